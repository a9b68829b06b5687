package cluster

import (
	"time"

	"adpdeck/router/model"
)

// MustWait says whether a request has to queue: a threshold of the queue is
// set and either others wait before it (backlog) or the share
// busy_worker_ratio of its eligible ranks is busy; or every rank that it could
// go to is at its hard cap. A request for one rank looks at that rank only.
// Where no rank is eligible for another reason it does not wait, so that
// Choose can say why.
func (r *Router) MustWait(now time.Duration, req *Request, backlog bool) bool {
	bound := req.Bound
	if bound != nil && r.leaves(req) {
		bound = nil
	}
	if bound != nil {
		if at, ok := r.Slot(req.Bound.Target); ok && !r.slots[at].blocked {
			full := r.full(at)
			busy := r.busy(at, r.activeOn(at, now))
			switch {
			case req.Bound.Hard:
				return full || busy || backlog && r.Thresholds()
			case !full && !busy:
				return backlog && r.Thresholds()
			}
		}
	}
	want, err := r.wish(req)
	if err != nil {
		return false
	}
	if b := bound; b != nil && b.Hard && b.Target.Rank == model.NoRank {
		if at, ok := r.byID[b.Target.Worker]; ok {
			want = wish{worker: at, rank: model.NoRank, stays: true}
		}
	}
	var counts [exclusions]int
	r.filter(now, req, want, &counts)
	live := r.scratch.live
	if len(live) == 0 {
		return counts[exCap] > 0
	}
	if !r.Thresholds() {
		return false
	}
	if backlog {
		return true
	}
	busy := 0
	for _, i := range live {
		if r.busy(i, r.activeOn(i, now)) {
			busy++
		}
	}
	return float64(busy) >= r.cfg.BusyWorkerRatio*float64(len(live))
}

// Thresholds reports that the queue has a threshold: without one only full ranks
// make a request wait.
func (r *Router) Thresholds() bool {
	return r.cfg.QueueThreshold != nil || r.cfg.QueueThresholdTokens != nil
}

// Lane is where a request waits: the slot of the only rank that it may go to,
// the lane of the only worker (WorkerLane), or SharedLane.
func (r *Router) Lane(req *Request) int32 {
	switch {
	case req.Bound != nil && r.leaves(req):
	case req.Bound != nil && req.Bound.Hard:
		return r.LaneOf(req.Bound.Target)
	case req.Bound == nil && req.Explicit != nil:
		return r.LaneOf(*req.Explicit)
	}
	return SharedLane
}

// LaneOf is the lane of a target: its slot, or with NoRank its worker's.
// SharedLane stands for one that is not there.
func (r *Router) LaneOf(t model.Target) int32 {
	if at, ok := r.Slot(t); ok {
		return at
	}
	if w, ok := r.byID[t.Worker]; ok && t.Rank == model.NoRank {
		return WorkerLane(int(w))
	}
	return SharedLane
}

// Takes reports that a request of a lane may go now.
func (r *Router) Takes(now time.Duration, lane int32) bool { return !r.HeldWaits(now, lane, false) }

// HeldWaits is MustWait for a request that is held to a lane: to a rank by a pin
// or its client, whatever else shuts that rank; or to the ranks of a worker.
func (r *Router) HeldWaits(now time.Duration, lane int32, backlog bool) bool {
	req := Request{}
	switch {
	case lane < SharedLane:
		if t, ok := r.Target(NoRankSlot(int(SharedLane - 1 - lane))); ok {
			req.Explicit = &t
		}
	case lane > SharedLane:
		if _, ok := r.Target(lane); !ok {
			return false // it has gone: there is nothing to wait for
		}
		return r.full(lane) || r.busy(lane, r.activeOn(lane, now)) || backlog && r.Thresholds()
	}
	return r.MustWait(now, &req, backlog)
}
