package router

import (
	"adpdeck/router/cluster"
	"adpdeck/router/model"
)

// Hard caps of ranks, as the router's own bookings stand, and the queue of who
// waits for room. In every mode: never more than MaxNumActiveRequests of Route
// and RouteWait at a time on a rank.

// hasRoom reports that one of the ranks of a worker that may take a request is
// below its hard cap.
func (r *Router) hasRoom(w *worker, req *model.Request) bool {
	most := w.most()
	if most <= 0 || r.book.WorkerOpen(w.index) < most {
		return true
	}
	if w.picks() {
		return false
	}
	for k := range w.ranks {
		s := &w.ranks[k]
		if s.eligible() && r.book.Rank(w.index, k).InFlight < most && (req == nil || !excludes(r.steer.req.Exclude, s.load.Target)) {
			return true
		}
	}
	return false
}

// fits reports that a rank which the engine tier may give a request has room,
// before it is asked. One that its client holds to a rank has no other: the
// routers of the engine tier go round a full one, since upstream's queue keeps
// such requests from them. And the conversation policy, as upstream's, goes over
// the hard cap where no rank has room.
func (r *Router) fits(w *worker, b *booking) bool {
	if c := &r.steer.choice; c.By == model.ByRequired && c.Slot >= 0 && !b.Value.relax && w.batch.states[c.Target.Rank].NumActiveRequests >= w.batch.hardCap {
		return false
	}
	if r.policy() != model.PolicyConversation || b.Value.chosen != model.NoRank {
		return true
	}
	g, closed := &w.batch, r.closed(w)
	for k := range g.states {
		if g.states[k].NumActiveRequests < g.hardCap && (closed == nil || !closed[k]) {
			return true
		}
	}
	if b.Value.conv == nil {
		return false
	}
	key := b.Value.conv.data.Key
	if _, pinned := r.ops.Get(key); pinned {
		return true // which rank has room for it, prePlace knows
	}
	bind, ok := r.bound(key) // a bound one may go to a rank that takes no new ones
	return ok && bind.Target.Worker == w.spec.ID && bind.Target.Rank != model.NoRank && w.answers(bind.Target.Rank) && !excludes(r.exclude, bind.Target) &&
		g.states[bind.Target.Rank].NumActiveRequests < g.hardCap
}

// takes reports that a request of a lane of the queue may go. One whose target
// has gone or died may, so that it is told.
func (r *Router) takes(lane int32) bool {
	if !r.room(lane) {
		return false
	}
	// The other modes know no thresholds.
	switch a := r.serves.byLane[lane]; {
	case !r.scored():
		return true
	case a != nil:
		return !r.steer.tier.MustWait(r.elapsed(), &cluster.Request{Only: a.only}, false)
	}
	return r.steer.tier.Takes(r.elapsed(), lane)
}

// room reports that a lane's ranks have room, or that there is nothing to wait
// for.
func (r *Router) room(lane int32) bool {
	if lane >= 0 && lane < modelLanes {
		t, ok := r.steer.tier.Target(lane)
		if !ok {
			return true
		}
		w := r.workers[r.byID[t.Worker]]
		most := w.spec.MaxNumActiveRequests
		if w.picks() {
			return r.hasRoom(w, nil)
		}
		return most <= 0 || !w.answers(t.Rank) || r.book.Rank(w.index, t.Rank).InFlight < most
	}
	only, some := []bool(nil), false
	if a := r.serves.byLane[lane]; a != nil {
		only = a.only
	}
	for _, w := range r.workers {
		if lane < cluster.SharedLane && lane != cluster.WorkerLane(w.number) || !allowed(only, w) || w.eligible == 0 {
			continue
		}
		if some = true; r.hasRoom(w, nil) {
			return true
		}
	}
	return !some
}
