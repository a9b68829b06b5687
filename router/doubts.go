package router

import (
	"fmt"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

// A rank that lost event batches is in doubt (see event.Feed): it goes on being
// credited with what it held, for a while. The doubt ends in time although
// nothing more is heard of the rank, and soon when a request disproves it; both
// are noticed when a first token comes, outside the router's lock.

// noteDoubt remembers when the rank's doubt ends, or a request will have
// disproved it. The caller has s.mu.
func (s *source) noteDoubt() {
	at, ok := s.feed.DoubtUntil()
	if !ok {
		return
	}
	if before, told := s.verdict(); told && before.Before(at) {
		at = before
	}
	for due := at.UnixNano(); ; {
		old := s.k.doubts.Load()
		if old != 0 && old <= due || s.k.doubts.CompareAndSwap(old, due) {
			return
		}
	}
}

// endDoubts ends the doubts whose time is over or that were disproved, and
// carries out resyncs.
func (r *Router) endDoubts(now time.Time) {
	k := r.know
	due := k.doubts.Load()
	if due == 0 || now.UnixNano() < due || !k.doubts.CompareAndSwap(due, 0) {
		return
	}
	for _, s := range k.seats.Load().all {
		s.mu.Lock()
		if !s.gone {
			s.tell(now)
			if s.resync.Swap(false) {
				s.learnAfresh()
			}
			s.feed.Tick(s.now)
			r.askReplay(s)
			s.noteDoubt()
		}
		s.mu.Unlock()
	}
}

// learnAfresh carries out a resync. The caller has s.mu.
func (s *source) learnAfresh() {
	if g := s.k.guess.Load(); g != nil && g.index != nil {
		_ = g.index.Clear(prefix.ID(s.slot)) // the target is there until the feed is gone
	}
	s.feed.Resync(s.now)
}

// planResync plans to forget what a rank's cache, or that of each rank of a
// worker where the target names none, is known, or guessed, to hold. Where what it published can be asked for again nothing is forgotten
// before the answer begins, and the rank is in doubt until then.
func (r *Router) planResync(cmd *model.Command) plan {
	if cmd.Target == nil {
		return refuse(model.RefusedMalformed, "name a rank, for example w0/3", "%s: no rank is named", cmd.Verb)
	}
	t := *cmd.Target
	at, ok := r.byID[t.Worker]
	switch {
	case !ok && t.Rank == model.NoRank:
		return refuse(model.RefusedTarget, r.ranksAre(t.Worker), "%s %s: no such worker", cmd.Verb, t.Worker)
	case !ok || t.Rank != model.NoRank && r.rank(t) == nil:
		return refuse(model.RefusedTarget, r.ranksAre(t.Worker), "%s %s: no such rank", cmd.Verb, t)
	case r.know.index == nil:
		return refuse(model.RefusedIndex, "name the engines' block size", "%s %s: the router keeps no index", cmd.Verb, t)
	}
	what := fmt.Sprintf("%s %s: its cache is learned afresh", cmd.Verb, t)
	if t.Rank == model.NoRank {
		what = fmt.Sprintf("%s %s, all %d ranks: their caches are learned afresh", cmd.Verb, t.Worker, len(r.workers[at].ranks))
	}
	return plan{what: what, act: func() {
		for k, s := range r.know.seats.Load().byWorker[t.Worker] {
			if t.Rank == model.NoRank || t.Rank == k {
				s.resync.Store(true)
				r.know.doubts.Store(1) // long ago
			}
		}
	}}
}
