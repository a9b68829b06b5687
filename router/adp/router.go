package adp

import (
	"adpdeck/router/model"
)

// Router is the rank router of one worker. It holds what upstream keeps
// between calls: the conversation map, the placement cursor and the ranks that
// wait for their warm-up request. Use New.
type Router struct {
	tp   int
	cfg  model.AttentionDpConfig
	opt  Options
	pins Pins
	own  *LRU // pins, when the router keeps them itself

	cursor     int
	pending    []bool // ranks still cold
	pendingN   int
	everWarmed bool // the set has been filled once

	mt *twister

	// Scratch of one call.
	b      *Batch
	out    *Result
	fleet  fleet
	seq    []int32 // requests in the order of placement
	got    []int   // placements by rank, all 0 between two calls
	rest   []int32 // requests not placed by phase 1, in order
	sorter sorter
	heap   []heapKey
	scan   scan
	load   []int
}

// New returns a router for tp ranks, 0 or more. A nil pins makes it keep its
// own LRU of kv_cache_routing_max_sessions conversations.
func New(tp int, cfg model.AttentionDpConfig, pins Pins, opt Options) *Router {
	tp = max(tp, 0)
	r := &Router{tp: tp, opt: opt, pins: pins, pending: make([]bool, tp), got: make([]int, tp), mt: newTwister()}
	if pins == nil {
		r.own = NewLRU(cfg.KVCacheRoutingMaxSessions)
		r.pins = r.own
	}
	r.Configure(cfg)
	return r
}

// Configure changes the settings between two batches. Pins, cursor and pending
// warm-up stay; a lower kv_cache_routing_max_sessions drops the oldest of the
// router's own pins. Warm-up switched on for the first time starts with every
// rank; switched off and on again it goes on where it stopped.
func (r *Router) Configure(cfg model.AttentionDpConfig) {
	r.cfg = cfg
	if r.own != nil {
		r.own.SetMax(cfg.KVCacheRoutingMaxSessions)
	}
	if cfg.KVCacheRoutingColdStartWarmup && !r.everWarmed {
		r.everWarmed = true
		for k := range r.pending {
			r.pending[k] = true
		}
		r.pendingN = r.tp
	}
}

// Cursor is where round_robin and least_tokens go on.
func (r *Router) Cursor() int { return r.cursor }

// PendingWarmup lists the ranks that still wait for their warm-up request,
// ascending; none while warm-up is off.
func (r *Router) PendingWarmup() []int {
	out := []int{}
	if !r.cfg.KVCacheRoutingColdStartWarmup {
		return out
	}
	for k, cold := range r.pending {
		if cold {
			out = append(out, k)
		}
	}
	return out
}

// Pins is the router's own conversation map, nil when it was given one.
func (r *Router) Pins() *LRU { return r.own }

// Route places one batch and refills out. In normal mode the error is nil; in
// parity mode it is a *ParityError where upstream raises, out is then empty,
// and pins, cursor and pending are as upstream leaves them.
func (r *Router) Route(b *Batch, out *Result) error {
	r.begin(b, out)
	var err error
	switch r.cfg.Policy() {
	case model.PolicyConversation:
		err = r.routeConversation()
	case model.PolicyKVAware:
		err = r.routeKVAware()
	default:
		err = r.routeDefault()
	}
	r.finish(err)
	return err
}

func (r *Router) begin(b *Batch, out *Result) {
	r.b, r.out = b, out
	n := len(b.Requests)
	r.fleet.load(b, r.tp)
	r.seq, r.rest = r.seq[:0], r.rest[:0]
	if len(out.Assignments) != r.tp {
		out.Assignments = sized(out.Assignments, r.tp)
		for k := range out.Assignments {
			out.Assignments[k] = []int32{}
		}
		out.used = out.used[:0]
	}
	for _, k := range out.used {
		out.Assignments[k] = out.Assignments[k][:0]
	}
	out.used = out.used[:0]
	out.Ranks = sized(out.Ranks, n)
	for i := range out.Ranks {
		out.Ranks[i] = model.NoRank
	}
	out.Unassigned = out.Unassigned[:0]
	out.Placements = out.Placements[:0]
	out.Expected = 0
	if r.opt.Record {
		out.Placements = sized(out.Placements, n)
		clear(out.Placements)
	}
}

// finish lays the placements out by rank.
func (r *Router) finish(err error) {
	out := r.out
	if err != nil {
		r.seq, out.Unassigned, out.Placements = r.seq[:0], out.Unassigned[:0], out.Placements[:0]
		for i := range out.Ranks {
			out.Ranks[i] = model.NoRank
		}
	}
	out.flat = sized(out.flat, len(r.seq))
	at := 0
	for _, k := range out.used {
		n := 0
		if err == nil {
			n = r.got[k]
		}
		out.Assignments[k] = out.flat[at : at : at+n]
		at += n
		r.got[k] = 0
	}
	for _, i := range r.seq {
		k := out.Ranks[i]
		out.Assignments[k] = append(out.Assignments[k], i)
	}
	r.b, r.out = nil, nil
}

// assign gives request i to rank k.
func (r *Router) assign(i int32, k int) {
	r.out.Ranks[i] = int32(k)
	r.seq = append(r.seq, i)
	if r.got[k] == 0 {
		r.out.used = append(r.out.used, int32(k))
	}
	r.got[k]++
	f := &r.fleet
	f.counts[k]++
	f.sum++
	f.most = max(f.most, f.counts[k])
}

// wish is the rank that a request asks for.
type wish struct {
	rank  int  // noRank when it cannot be had
	asked bool // a rank was named, be it one that exists or, in parity mode, not
}

// explicit reads the rank that request q asks for. In parity mode a rank that
// does not exist fails as upstream's list indexing does; otherwise it counts
// as none.
func (r *Router) explicit(q *Request) (wish, error) {
	if q.Params == nil || q.Params.Rank == nil || q.Null {
		return wish{rank: model.NoRank}, nil
	}
	k := *q.Params.Rank
	if k >= 0 && k < r.tp {
		return wish{k, true}, nil
	}
	if !r.opt.Parity {
		return wish{rank: model.NoRank}, nil
	}
	if k >= r.tp || k < -r.tp {
		return wish{}, errListIndex()
	}
	if r.fleet.counts[k+r.tp] < r.b.HardCap {
		return wish{}, errKey(k)
	}
	return wish{model.NoRank, true}, nil
}

// honours reports whether an explicit request may go to rank k.
func (r *Router) honours(k int) bool {
	return k >= 0 && r.fleet.isOpen(k) && r.fleet.counts[k] < r.b.HardCap
}

// sized returns s with length n, its old content in front, growing it when it
// must.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return append(s[:cap(s)], make([]T, n-cap(s))...)
	}
	return s[:n]
}
