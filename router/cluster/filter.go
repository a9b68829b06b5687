package cluster

import (
	"time"

	"adpdeck/router/model"
)

// wish is what a request demands of its target.
type wish struct {
	worker int32 // -1 for any
	rank   int   // NoRank for any
	stays  bool  // its conversation is there already: draining does not matter
}

// wish reads what the request demands.
func (r *Router) wish(req *Request) (w wish, err error) {
	w = wish{worker: -1, rank: model.NoRank}
	e := req.Explicit
	switch {
	case e == nil && r.mode == model.ModeDirect: // whatever has room: it must not wait for what it cannot have
		return w, &Refusal{Err: ErrWorkerNeeded, Request: req.ID, Next: "name a worker in the request, or change router_mode", Status: 400}
	case e == nil:
		return w, nil
	}
	var ok bool
	if w.worker, ok = r.byID[e.Worker]; !ok {
		return w, &Refusal{Err: ErrNoWorker, Request: req.ID, Detail: e.Worker, Next: "name a worker that is there, or none", Status: 400}
	}
	if w.rank = e.Rank; w.rank < model.NoRank || w.rank >= r.workers[w.worker].Ranks {
		return w, &Refusal{Err: ErrNoRank, Request: req.ID, Detail: e.String(), Next: "name a rank of the worker, or none", Status: 400}
	}
	if r.barred(w.worker, req) == exNotAllowed {
		return w, &Refusal{Err: ErrNotAllowed, Request: req.ID, Detail: e.Worker, Next: "allow it, or name another", Status: 400}
	}
	return w, nil
}

// filter finds the eligible slots, rank by rank, and their load.
func (r *Router) filter(now time.Duration, req *Request, want wish, counts *[exclusions]int) {
	sc := &r.scratch
	sc.live, sc.picks = sc.live[:0], false
	for w := range r.workers {
		sc.barred[w], sc.group[w] = r.barred(int32(w), req), group{}
		if sc.unplaced[w] = (unplaced{}); r.workers[w].Picks {
			sc.picks, sc.unplaced[w] = true, r.unplacedAt(int32(w), now)
		}
	}
	for i := range r.slots {
		s := &r.slots[i]
		why := exGone
		if s.worker >= 0 {
			why = sc.barred[s.worker]
			if why == eligible {
				why = r.excluded(now, int32(i), want)
			}
			if len(req.Exclude) > 0 && why == eligible && r.tried(req, s.worker, int(s.rank)) {
				why = exTried
			}
		}
		sc.why[i] = why
		counts[why]++
		if why == eligible {
			sc.live = append(sc.live, int32(i))
			sc.add(s, &r.load.ranks[i], sc.unplacedOn(s), i)
			sc.lately[i] = r.sentLately(i, now)
		}
	}
	sc.filtered = true
}

// mostWaiting bounds the requests of a worker that count as waiting: in a long
// queue their number would otherwise outweigh their tokens, and short prompts
// would gather on one rank, long ones on the others.
const mostWaiting = 16

// add takes in the load l of slot s, whose number is i, with its share u of what
// its worker has without a rank.
func (sc *scratch) add(s *slot, l *slotLoad, u *unplaced, i int) {
	running := float64(l.running(s.chunk)) * s.inverse
	sc.pending[i] = (float64(l.pending+l.foreign) + u.pending) * s.inverse
	sc.rest[i] = sc.pending[i] - running
	sc.held[i] = (float64(l.held) + u.held) * s.inverse
	g := &sc.group[s.worker]
	g.high = max(g.high, sc.rest[i])
	g.step = max(g.step, running)
	g.full = max(g.full, sc.held[i])
	g.waiting = min(mostWaiting, g.waiting+(float64(l.waiting)+u.waiting)*s.inverse)
}

// sentLately is what was sent to slot i lately, after its weight; 0 where that
// has no price.
func (r *Router) sentLately(i int, now time.Duration) float64 {
	if r.cfg.RecentWeight == 0 {
		return 0
	}
	s := &r.slots[i]
	return s.lately.value(now, r.cfg.RecentSecs) * s.inverse
}

// barred says whether a whole worker is out for this request.
func (r *Router) barred(w int32, req *Request) exclusion {
	if req.Only != nil && (int(w) >= len(req.Only) || !req.Only[w]) {
		return exNotAllowed
	}
	if len(req.Allowed) > 0 {
		allowed := false
		for _, id := range req.Allowed {
			allowed = allowed || id == r.workers[w].ID
		}
		if !allowed {
			return exNotAllowed
		}
	}
	for _, t := range req.Required {
		if !hasTaint(&r.workers[w], t) {
			return exTaint
		}
	}
	return eligible
}

// out is how many requests count to a rank's hard cap.
func (r *Router) out(at int32) int {
	n, s := int(r.load.ranks[at].requests), &r.slots[at]
	if r.dropped && n < s.cap {
		n = max(n, r.opt.Outstanding(int(s.worker), int(s.rank)))
	}
	return n
}

// excluded applies the rules of one rank, and leaves its active tokens behind.
func (r *Router) excluded(now time.Duration, at int32, want wish) exclusion {
	s, l := &r.slots[at], &r.load.ranks[at]
	u := r.scratch.unplacedOn(s)
	switch {
	case want.worker >= 0 && s.worker != want.worker:
		return exOtherWorker
	case want.rank >= 0 && int(s.rank) != want.rank:
		return exOtherRank
	case s.weight <= 0 && !want.stays:
		return exWeight
	case s.blocked:
		return exBlocked
	case s.draining && !want.stays:
		return exDraining
	case u.full || s.cap > 0 && !r.workers[s.worker].Picks && r.out(at) >= s.cap:
		return exCap
	}
	active := float64(l.active(now)) + u.active
	r.scratch.active[at] = active * s.inverse
	return s.overloaded(active)
}
