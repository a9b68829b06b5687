package engine

import (
	"fmt"
	"time"

	"adpdeck/router/engine/scrape"
	"adpdeck/router/model"
)

// took takes what a page of loads says beside the loads.
func (w *worker) took(p *scrape.Page) {
	w.mu.Lock()
	changed := w.learnt.advert(fromMetrics, &p.Advert)
	for i := range p.Ranks {
		r := &p.Ranks[i]
		_, was := w.sick[r.Rank]
		switch {
		case r.Condition == scrape.Unhealthy && !was:
			w.sick[r.Rank] = "the engine says that it is not well"
			changed = true
		case r.Condition == scrape.Healthy && was:
			delete(w.sick, r.Rank)
			changed = true
		}
	}
	if changed {
		w.settle()
	}
	w.mu.Unlock()
	if changed {
		nudge(w.poke)
	}
}

// refused shows what of a page was not used, by its first reason. It belongs to
// load.
func (w *worker) refused(p *scrape.Page) {
	words := ""
	if p.Refused.Count > 0 {
		words = "not all that it says of its loads is used: " + cut(p.Refused.List[0].Detail)
	}
	w.finding(FindingFigures, model.Target{Worker: w.spec.ID, Rank: model.NoRank}, words, "compare its metrics page with what its kind and version should say")
}

// process takes the time at which the process behind a rank began: another one
// than before is another process, with an empty cache. One that was there before
// it never ended: two answer by turns, and nothing began anew.
func (w *worker) process(rank int, began time.Time) {
	if began.IsZero() {
		return
	}
	w.mu.Lock()
	was, known := w.started[rank]
	again := known && !sameStart(began, was.newest)
	mixed := again && sameStart(began, was.before)
	if again || !known {
		w.started[rank] = starts{began, was.newest}
	}
	again = again && !mixed
	if again && len(w.restarts) < maxRestarts {
		w.restarts = append(w.restarts, restart{rank, fmt.Sprintf("its process began at %s, the one before at %s",
			began.UTC().Format(time.TimeOnly), was.newest.UTC().Format(time.TimeOnly))})
	}
	w.mu.Unlock()
	if mixed {
		w.finding(FindingMixed, model.Target{Worker: w.spec.ID, Rank: rank}, fmt.Sprintf("two processes answer by turns at its address, begun at %s and %s",
			began.UTC().Format(time.TimeOnly), was.newest.UTC().Format(time.TimeOnly)), "name each engine as a worker of its own, by an address that leads to it alone")
	}
	if again {
		w.finding(FindingMixed, model.Target{Worker: w.spec.ID, Rank: rank}, "", "")
		nudge(w.poke)
		nudge(w.again)
	}
}

// starts are when the process that answered last began, and the one before it.
type starts struct{ newest, before time.Time }

// sameStart compares times that are read with an error.
func sameStart(a, b time.Time) bool { return a.Sub(b).Abs() < time.Second }

// maxRestarts bounds the restarts that wait to be told: one for each rank.
const maxRestarts = MaxRanks
