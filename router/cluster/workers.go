package cluster

import (
	"fmt"
	"slices"
	"time"

	"adpdeck/router/model"
)

// AddWorker adds a worker and returns the slots of its ranks, by rank, which stay
// theirs until it is removed. They are the lowest that are free, in a row or not,
// so that slots lie below the most ranks that there ever were at one time.
func (r *Router) AddWorker(w Worker) (slots []int32, err error) {
	if _, ok := r.byID[w.ID]; ok || w.ID == "" {
		return nil, fmt.Errorf("%w: id %q is empty or taken", ErrWorker, w.ID)
	}
	if w.Ranks < 1 {
		return nil, fmt.Errorf("%w: %s has %d ranks: give at least 1", ErrWorker, w.ID, w.Ranks)
	}
	if r.used()+w.Ranks > MaxSlots {
		return nil, fmt.Errorf("%w: %s: more than %d ranks in all", ErrWorker, w.ID, MaxSlots)
	}
	at := int32(-1)
	for i := range r.workers {
		if r.workers[i].Ranks == 0 {
			at = int32(i)
			break
		}
	}
	if at < 0 {
		r.workers = append(r.workers, worker{})
		at = int32(len(r.workers) - 1)
	}
	r.byID[w.ID] = at
	r.workers[at] = worker{Worker: w}
	r.more(at, w.Ranks)
	r.resize()
	return slices.Clone(r.workers[at].slots), nil
}

// Resize gives a worker more ranks, or takes its last ones away with all that
// is booked there, as RemoveWorker does. The other ranks keep their slots.
func (r *Router) Resize(now time.Duration, id string, ranks int) error {
	at, ok := r.byID[id]
	switch {
	case !ok:
		return fmt.Errorf("%w: %s is not there", ErrWorker, id)
	case ranks < 1:
		return fmt.Errorf("%w: %s with %d ranks: give at least 1", ErrWorker, id, ranks)
	case ranks > r.workers[at].Ranks && r.used()+ranks-r.workers[at].Ranks > MaxSlots:
		return fmt.Errorf("%w: %s: more than %d ranks in all", ErrWorker, id, MaxSlots)
	}
	w := &r.workers[at]
	for len(w.slots) > ranks {
		r.vacate(now, w.slots[len(w.slots)-1])
		w.slots = w.slots[:len(w.slots)-1]
	}
	r.more(at, ranks)
	w.Ranks = ranks
	r.resize()
	return nil
}

// more gives a worker free slots until it has so many.
func (r *Router) more(at int32, ranks int) {
	free := int32(0)
	for k := len(r.workers[at].slots); k < ranks; k++ {
		for int(free) < len(r.slots) && r.slots[free].worker >= 0 {
			free++
		}
		r.occupy(at, k, free)
	}
}

// occupy gives a rank a free slot.
func (r *Router) occupy(at int32, rank int, s int32) {
	w := &r.workers[at]
	w.slots = append(w.slots, s)
	for len(r.slots) <= int(s) {
		r.slots = append(r.slots, slot{worker: -1})
	}
	r.load.grow(len(r.slots), len(r.workers))
	r.slots[s] = slot{
		worker: at, rank: int32(rank), weight: 1, inverse: 1, cap: w.MaxRequests, batch: w.MaxBatchedTokens,
		kvTotal: w.KVBlocks, kvUsed: -1,
	}
	r.limits(s)
}

// vacate frees a slot with all that is booked there.
func (r *Router) vacate(now time.Duration, s int32) {
	r.load.forget(now, s)
	r.recent.forget(s)
	r.slots[s] = slot{worker: -1}
}

func (r *Router) used() (n int) {
	for i := range r.slots {
		if r.slots[i].worker >= 0 {
			n++
		}
	}
	return n
}

// RemoveWorker removes a worker with all that is booked on it; ends that come
// late count as strays. It reports whether the worker was there.
func (r *Router) RemoveWorker(now time.Duration, id string) bool {
	at, ok := r.byID[id]
	if !ok {
		return false
	}
	r.load.forget(now, NoRankSlot(int(at)))
	for _, s := range r.workers[at].slots {
		r.vacate(now, s)
	}
	r.workers[at] = worker{}
	delete(r.byID, id)
	return true
}

// Number is the number of a worker, for NoRankSlot, WorkerLane and
// Request.Only; ok is false when it does not exist. It is free for another once
// the worker is removed.
func (r *Router) Number(id string) (n int, ok bool) {
	at, ok := r.byID[id]
	return int(at), ok
}

// SetBlockTokens changes the size of a KV block, once an engine has named it.
// What is booked keeps the blocks that it was booked with.
func (r *Router) SetBlockTokens(n int) {
	if n > 0 {
		r.opt.BlockTokens, r.load.blockTokens = n, n
	}
}

// tried reports that a request must not go to a target of the worker at, or,
// with rank NoRank, that it must go to none of its ranks.
func (r *Router) tried(req *Request, at int32, rank int) bool {
	for i := range req.Exclude {
		e := &req.Exclude[i]
		if e.Worker == r.workers[at].ID && (e.Rank == model.NoRank || e.Rank == rank) {
			return true
		}
	}
	return false
}

// leaves reports that a binding's target is out for this request alone: it was
// tried in vain, or does not serve what is asked for.
func (r *Router) leaves(req *Request) bool {
	if len(req.Exclude) == 0 && req.Only == nil {
		return false
	}
	at, ok := r.byID[req.Bound.Target.Worker]
	return ok && (r.tried(req, at, req.Bound.Target.Rank) || r.barred(at, req) == exNotAllowed)
}
