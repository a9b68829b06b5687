package cluster

import (
	"time"

	"adpdeck/router/model"
)

// unplaced is what a worker whose engine picks the rank has of requests for which
// it has not told the rank, or never will. Nobody knows which rank they burden,
// so each that takes new work bears its share.
type unplaced struct {
	requests, active, pending, held, blocks, waiting float64 // of each rank
	full                                             bool    // together with those on ranks: at its hard caps
}

// unplacedAt is what the requests without a rank are to each rank of a worker.
func (r *Router) unplacedAt(w int32, now time.Duration) (u unplaced) {
	l, k := &r.load.side[w], &r.workers[w]
	if !k.Picks || len(k.slots) == 0 {
		return u
	}
	if u.full = r.full(k.slots[0]); l.requests == 0 {
		return u
	}
	n := 0
	for _, at := range k.slots {
		if s := &r.slots[at]; !s.draining && !s.blocked && s.weight > 0 {
			n++
		}
	}
	share := 1 / float64(max(1, n))
	u.requests, u.active, u.pending = float64(l.requests)*share, float64(l.active(now))*share, float64(l.pending)*share
	u.held, u.blocks, u.waiting = float64(l.held)*share, float64(roundUnits(l.units))*share, float64(l.waiting)*share
	return u
}

// unplacedOn is what the filter found of the worker of a slot. It spares the hot
// path the look-up where no engine picks the rank.
func (sc *scratch) unplacedOn(s *slot) *unplaced {
	if !sc.picks {
		return &sc.placed
	}
	return &sc.unplaced[s.worker]
}

// full reports that a rank is at its hard cap. Where the engine picks the rank
// it may pick any, and the caps of all count together.
func (r *Router) full(at int32) bool {
	s := &r.slots[at]
	w := &r.workers[s.worker]
	switch {
	case s.cap <= 0:
		return false
	case !w.Picks:
		return r.out(at) >= s.cap
	}
	open := int(r.load.side[s.worker].requests)
	if r.dropped {
		open = max(open, r.opt.Outstanding(int(s.worker), model.NoRank))
	}
	for _, k := range w.slots {
		open += r.out(k)
	}
	return open >= s.cap*len(w.slots)
}

// activeOn is Dynamo's A of a rank, its share of what has no rank included.
func (r *Router) activeOn(at int32, now time.Duration) float64 {
	u := r.unplacedAt(r.slots[at].worker, now)
	return float64(r.load.ranks[at].active(now)) + u.active
}

// lastOn is the number of the newest booking that may have gone to a rank.
func (r *Router) lastOn(at int32) uint64 {
	last := r.load.ranks[at].last
	if !r.scratch.picks {
		return last
	}
	if w := r.slots[at].worker; r.workers[w].Picks {
		return max(last, r.load.side[w].last)
	}
	return last
}

// SetPicks says that a worker's engine picks the rank, or no longer does.
func (r *Router) SetPicks(id string, picks bool) bool {
	at, ok := r.byID[id]
	if ok {
		r.workers[at].Picks = picks
	}
	return ok
}
