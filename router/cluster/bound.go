package cluster

import (
	"time"

	"adpdeck/router/model"
)

// bound follows the conversation's binding, or refuses. done is false when the
// request is to be placed afresh.
func (r *Router) bound(now time.Duration, req *Request, c *Choice, rec *model.Selection) (done bool, err error) {
	if req.Bound == nil || r.leaves(req) {
		return false, nil
	}
	if req.Bound.Target.Rank == model.NoRank {
		return r.boundWorker(now, req, c, rec)
	}
	at, ok := r.Slot(req.Bound.Target)
	if !ok || r.slots[at].blocked {
		c.BoundGone = true
		return false, nil
	}
	why := eligible
	if r.full(at) {
		why = exCap
	} else {
		why = r.slots[at].overloaded(r.activeOn(at, now))
	}
	if why != eligible {
		if !req.Bound.Hard {
			return false, nil
		}
		ref := &Refusal{Err: ErrOverloaded, Request: req.ID, Detail: "bound to " + req.Bound.Target.String() + ", " + why.word(), Status: 529}
		ref.Next = "retry later, or set router_session_affinity_mode soft"
		if why == exCap {
			ref.Err = ErrFull
		}
		return true, ref
	}
	c.take(r, at, model.ByBinding)
	c.Eligible = 1
	c.Conflict = r.conflicts(req, c.Target)
	return true, nil
}

// boundWorker follows a binding that names a worker only: its ranks compete.
func (r *Router) boundWorker(now time.Duration, req *Request, c *Choice, rec *model.Selection) (done bool, err error) {
	at, ok := r.byID[req.Bound.Target.Worker]
	alive := false
	for k := range r.slots {
		alive = alive || ok && r.slots[k].worker == at && !r.slots[k].blocked
	}
	if !alive {
		c.BoundGone = true
		return false, nil
	}
	if err = r.afresh(now, req, wish{worker: at, rank: model.NoRank, stays: true}, c, rec); err != nil {
		return req.Bound.Hard, err
	}
	c.By = model.ByBinding
	c.Conflict = r.conflicts(req, c.Target)
	return true, nil
}

// conflicts reports whether the request demanded another target than t.
func (r *Router) conflicts(req *Request, t model.Target) bool {
	e := req.Explicit
	return e != nil && (e.Worker != t.Worker || e.Rank != model.NoRank && t.Rank != model.NoRank && e.Rank != t.Rank)
}
