package router

import (
	"reflect"
	"slices"

	"adpdeck/router/model"
)

// Subscription follows the state for one subscriber. Nothing is queued for it:
// the router remembers when each object changed last, and Take collects what
// changed since the last Take, each object at its newest. A subscriber that
// never comes back costs nothing but a cursor. Start and Take belong to one
// goroutine; Close may be called from any.
type Subscription struct {
	r       *Router
	c       chan struct{}
	started bool

	stamp    uint64 // of the newest change seen
	decision uint64 // number of the newest decision, settlement, event seen
	settled  uint64
	event    uint64
	// What was sent last of the objects that also change with time alone.
	totals   model.Totals
	source   model.Source
	settings *model.Settings
	workers  []model.Worker
	ranks    []model.Rank // both by target
	// What workers and ranks were before, for reuse.
	spareWorkers []model.Worker
	spareRanks   []model.Rank
	// The same of the index, ordered by target.
	index       []model.IndexRank
	spareIndex  []model.IndexRank
	indexTotals model.IndexTotals
	findings    []model.Finding
}

// Subscribe adds a subscriber. It follows nothing before Start.
func (r *Router) Subscribe() *Subscription {
	s := &Subscription{r: r, c: make(chan struct{}, 1)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subs = append(r.subs, s)
	return s
}

// C signals that something may have changed since the last Take. It holds one
// signal, is never closed, and does not signal that windows slid on: take at a
// steady pace, or on a signal.
func (s *Subscription) C() <-chan struct{} { return s.c }

// Close ends the subscription; Take returns nothing from then on.
func (s *Subscription) Close() {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.started = false
	s.r.subs = slices.DeleteFunc(s.r.subs, func(o *Subscription) bool { return o == s })
}

// Start returns a snapshot that later Changes follow. Called again it starts
// afresh, as Take asks for when too much has gone by.
func (s *Subscription) Start() *model.State {
	now := s.r.clock.Now()
	r := s.r
	g := r.gatherIndex(now, true)
	r.lock(now)
	state := r.snapshot(g)
	r.putIndex(state, g)
	s.index, s.findings = append(s.index[:0], state.Index...), state.Findings
	s.indexTotals = g.totals
	s.started = slices.Contains(r.subs, s)
	s.stamp, s.decision, s.settled, s.event = r.stamp, r.decisions.n, r.settled.n, r.history.events.n
	s.totals, s.source, s.settings = state.Totals, state.Source, r.settings
	s.workers = append(s.workers[:0], state.Workers...)
	s.ranks = s.ranks[:0]
	s.ranks = append(s.ranks, state.Ranks...)
	r.mu.Unlock()
	return ordered(state)
}

// Take returns everything since the last Take or Start, coalesced: each object
// at its newest, the newest maxDecisions decisions with the number left out,
// and as many settlements twice. It is nil when nothing changed.
//
// A Change is applied to a State so: WorkersGone with their Ranks and Index rows,
// RanksGone with theirs, and Gone go first, then Convs by key (a State
// keeps the model.MaxFeedConvs newest, ordered by CompareConvs), Workers by id,
// Ranks by target, Revisions by version and Events by id (both newest first,
// the newest 256 kept); the rest is replaced.
//
// resync says that too much has gone by to be told as a Change, more
// conversations dropped or changed than the router remembers: call Start again.
// It is also true before the first Start.
func (s *Subscription) Take(maxDecisions int) (c *model.Change, resync bool) {
	now := s.r.clock.Now()
	r := s.r
	g := r.gatherIndex(now, false)
	r.lock(now)
	defer r.mu.Unlock()
	if !s.started {
		return nil, true
	}
	c = &model.Change{At: r.now, Version: r.version}
	some := s.takeFigures(c, g)
	some = s.takeIndex(c, g) || some
	if r.stamp != s.stamp {
		ok := false
		if c.Gone, ok = r.convs.goneSince(s.stamp); !ok {
			return nil, true
		}
		if c.Convs, ok = s.changedConvs(); !ok {
			return nil, true
		}
		c.Revisions = r.revisionsSince(max(s.stamp, 1))
		c.Events, _ = r.history.events.since(s.event, model.MaxEvents)
		slices.Reverse(c.Events)
		some = some || len(c.Gone)+len(c.Convs)+len(c.Revisions)+len(c.Events) > 0
	}
	c.Decisions, c.DecisionsLeftOut = r.decisions.since(s.decision, maxDecisions)
	c.Settled, _ = r.settled.since(s.settled, 2*maxDecisions)
	some = some || c.DecisionsLeftOut > 0 || len(c.Decisions)+len(c.Settled) > 0
	s.stamp, s.decision, s.settled, s.event = r.stamp, r.decisions.n, r.settled.n, r.history.events.n
	if !some {
		return nil, false
	}
	return c, false
}

// changedConvs publishes the conversations that changed, the newest change
// last; ok is false when there are more than a State carries.
func (s *Subscription) changedConvs() (out []*model.Conv, ok bool) {
	for c := s.r.convs.change.head; c != nil && c.stamp > s.stamp; c = c.links[byChange].next {
		if len(out) == model.MaxFeedConvs {
			return nil, false
		}
		out = append(out, s.r.publish(c))
	}
	slices.Reverse(out)
	return out, true
}

// takeFigures compares settings, totals, source, workers and ranks with what
// was sent last and takes what differs; it reports whether anything does.
func (s *Subscription) takeFigures(c *model.Change, g *gathered) bool {
	r := s.r
	if s.settings != r.settings {
		s.settings, c.Settings = r.settings, r.settings
	}
	if t := r.sumTotals(); !sameTotals(t, s.totals) {
		s.totals, c.Totals = t, &t
	}
	if s.source != r.source {
		source := r.source
		s.source, c.Source = source, &source
	}
	s.takeRows(c, g)
	return c.Settings != nil || c.Totals != nil || c.Source != nil ||
		len(c.Workers)+len(c.Ranks)+len(c.WorkersGone)+len(c.RanksGone) > 0
}

// takeRows does so with workers and ranks, which are ordered by target there and
// here; those that are only there have left.
func (s *Subscription) takeRows(c *model.Change, g *gathered) {
	r := s.r
	workers, ranks := s.workers, s.ranks
	s.workers, s.spareWorkers = s.spareWorkers[:0], s.workers
	s.ranks, s.spareRanks = s.spareRanks[:0], s.ranks
	for _, w := range r.sorted {
		row := r.workerRow(w, g)
		for len(workers) > 0 && model.Target.Less(model.Target{Worker: workers[0].ID}, model.Target{Worker: row.ID}) {
			c.WorkersGone = append(c.WorkersGone, workers[0].ID)
			workers = workers[1:]
		}
		if len(workers) > 0 && workers[0].ID == row.ID {
			if !sameWorker(&row, &workers[0]) {
				c.Workers = append(c.Workers, row)
			}
			workers = workers[1:]
		} else {
			c.Workers = append(c.Workers, row)
		}
		s.workers = append(s.workers, row)
		for k := range w.ranks {
			row := r.rankRow(w, k)
			ranks = s.skipped(c, ranks, row.Target)
			if len(ranks) > 0 && ranks[0].Target == row.Target {
				if !sameRank(&row, &ranks[0]) {
					c.Ranks = append(c.Ranks, row)
				}
				ranks = ranks[1:]
			} else {
				c.Ranks = append(c.Ranks, row)
			}
			s.ranks = append(s.ranks, row)
		}
	}
	for i := range workers {
		c.WorkersGone = append(c.WorkersGone, workers[i].ID)
	}
	s.skipped(c, ranks, model.Target{})
}

// skipped leaves out the ranks before upto, or all for none, which have left. A
// worker that has left takes its own with it.
func (s *Subscription) skipped(c *model.Change, ranks []model.Rank, upto model.Target) []model.Rank {
	for len(ranks) > 0 && (upto.Worker == "" || ranks[0].Target.Less(upto)) {
		if t := ranks[0].Target; s.r.isThere(t.Worker) {
			c.RanksGone = append(c.RanksGone, t)
		}
		ranks = ranks[1:]
	}
	return ranks
}

// sameWorker compares what stands in rows; unknown figures are equal.
func sameWorker(a, b *model.Worker) bool {
	if !same(a.TTFTMsP50, b.TTFTMsP50) || !same(a.TTFTMsP99, b.TTFTMsP99) {
		return false
	}
	x, y := *a, *b
	x.TTFTMsP50, x.TTFTMsP99, y.TTFTMsP50, y.TTFTMsP99 = 0, 0, 0, 0
	return reflect.DeepEqual(x, y)
}

// same compares figures of which two unknown ones are equal.
func same(a, b model.Maybe) bool { return a == b || !a.Known() && !b.Known() }

func sameRank(a, b *model.Rank) bool {
	x, y := *a, *b
	x.Hit, x.Reachable, y.Hit, y.Reachable = 0, 0, 0, 0
	return x == y && same(a.Hit, b.Hit) && same(a.Reachable, b.Reachable)
}

func sameTotals(a, b model.Totals) bool {
	if !same(a.RequestsPerSec, b.RequestsPerSec) || !same(a.TTFTMsP50, b.TTFTMsP50) ||
		!same(a.TTFTMsP99, b.TTFTMsP99) || !same(a.Hit, b.Hit) || !same(a.Skew, b.Skew) {
		return false
	}
	a.RequestsPerSec, a.TTFTMsP50, a.TTFTMsP99, a.Hit, a.Skew = 0, 0, 0, 0, 0
	b.RequestsPerSec, b.TTFTMsP50, b.TTFTMsP99, b.Hit, b.Skew = 0, 0, 0, 0, 0
	return a == b
}
