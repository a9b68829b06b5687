package router

import (
	"cmp"
	"slices"

	"adpdeck/router/model"
	"adpdeck/router/pin"
)

// Snapshot returns everything a screen needs, as it is now. It is the caller's
// to keep and not to write. Its cost is that of the conversations it carries.
func (r *Router) Snapshot() *model.State {
	now := r.clock.Now()
	g := r.gatherIndex(now, true)
	r.lock(now)
	r.sweep()
	s := r.snapshot(g)
	r.putIndex(s, g)
	r.mu.Unlock()
	return ordered(s)
}

// ordered puts the conversations of a new snapshot in order, outside the lock.
func ordered(s *model.State) *model.State {
	slices.SortStableFunc(s.Convs, CompareConvs)
	return s
}

func (r *Router) snapshot(g *gathered) *model.State {
	s := &model.State{
		At: r.now, Version: r.version, Settings: *r.settings, Initial: r.initial,
		Totals: r.sumTotals(), Source: r.source,
		Workers: make([]model.Worker, 0, len(r.workers)), Convs: r.newestConvs(),
		Revisions: r.revisionsSince(0),
	}
	for _, w := range r.sorted {
		s.Workers = append(s.Workers, r.workerRow(w, g))
		for k := range w.ranks {
			s.Ranks = append(s.Ranks, r.rankRow(w, k))
		}
	}
	s.Events, _ = r.history.events.since(0, model.MaxEvents)
	slices.Reverse(s.Events)
	return s
}

// newestConvs publishes the conversations that were active last, at most
// model.MaxFeedConvs of them, in nearly the order of CompareConvs.
func (r *Router) newestConvs() []*model.Conv {
	out := make([]*model.Conv, 0, min(len(r.convs.byKey), model.MaxFeedConvs))
	for _, l := range []*convList{&r.convs.active, &r.convs.held} {
		for c := l.head; c != nil && len(out) < model.MaxFeedConvs; c = c.links[byActivity].next {
			out = append(out, r.publish(c))
		}
	}
	return out
}

// CompareConvs orders conversations as a State lists them: last activity,
// newest first, then by tenant, model and id.
func CompareConvs(a, b *model.Conv) int {
	return cmp.Or(b.LastAt.Compare(a.LastAt), cmp.Compare(a.Key.Tenant, b.Key.Tenant),
		cmp.Compare(a.Key.Model, b.Key.Model), cmp.Compare(a.Key.ID, b.Key.ID))
}

// publish returns the copy of c that screens may read, the same one until c
// changes.
func (r *Router) publish(c *conv) *model.Conv {
	if c.pub != nil && c.pubStamp == c.stamp {
		return c.pub
	}
	v := c.data
	v.Pin, v.Bound = model.PinNone, model.Target{Rank: model.NoRank}
	var note *pin.Note
	if b, ok := r.binds.Get(v.Key); ok {
		v.Pin, v.Bound, note = b.Source, b.Target, b.Note
	}
	if p, ok := r.ops.Get(v.Key); ok {
		v.Pin, v.Bound, note = model.PinOperator, p.Target, p.Note
	}
	if note != nil {
		v.By, v.PinnedAt, v.PinnedVersion, v.Reason = note.By, note.At, note.Version, note.Reason
	}
	c.pub, c.pubStamp = &v, c.stamp
	return c.pub
}

// revisionsSince publishes the revisions that changed after stamp, newest
// first; 0 means all of them.
func (r *Router) revisionsSince(stamp uint64) []model.Revision {
	var out []model.Revision
	for i := len(r.history.revisions) - 1; i >= 0; i-- {
		if rev := &r.history.revisions[i]; stamp == 0 || rev.stamp > stamp {
			out = append(out, rev.Revision)
		}
	}
	return out
}

func (r *Router) workerRow(w *worker, g *gathered) model.Worker {
	p50, p99 := w.told.quantiles(r.elapsed())
	return model.Worker{
		ID: w.spec.ID, Engine: w.spec.Engine, Ranks: len(w.ranks),
		Address: w.spec.Address, Steering: w.spec.Steering, GlobalRank: w.spec.StartRank, Models: w.spec.Models,
		JoinedAt: w.joined, Restarts: w.restartCount(), Liveness: w.state(), LivenessAt: w.live.at, LivenessWhy: w.live.why,
		MaxActive: w.spec.MaxNumActiveRequests, KVBlocks: w.spec.KVBlocks, BlockTokens: w.spec.BlockTokens,
		Open: r.book.WorkerOpen(w.index), Bound: w.bound, Waiting: r.waitingAt(w), SoftCap: w.softCap, Held: w.held,
		TTFTMsP50: p50, TTFTMsP99: p99, Feeds: r.feeds(w, g), Proofs: w.proofs.rows(),
	}
}

// waitingAt is what the engine last reported, or before that the router's own
// count of requests without a rank. Those handed to an engine that picks the rank
// have none, and do not wait here.
func (r *Router) waitingAt(w *worker) int {
	switch {
	case w.reported:
		return w.waiting
	case w.picks():
		return 0
	}
	return r.book.Waiting(w.index)
}

func (r *Router) rankRow(w *worker, k int) model.Rank {
	s := &w.ranks[k]
	row := s.load
	row.Availability, row.Weight = model.Ready, s.weight
	if s.drain {
		row.Availability = model.Draining
	}
	row.Down = s.down
	row.InFlight = r.book.Rank(w.index, k).InFlight
	row.Pins, row.OperatorPins = s.pins, s.operator
	sum := s.hits.sum(r.elapsed())
	row.Hit, row.Reachable = share(sum.cached, sum.prompt), share(sum.reached, sum.lookedAt)
	return row
}

// sumTotals brings the cluster's figures up to date.
func (r *Router) sumTotals() model.Totals {
	t := r.totals
	now := r.elapsed()
	t.RequestsPerSec = model.Unknown()
	if r.submitted > 0 {
		t.RequestsPerSec = model.Maybe(float64(r.arrivals.sum(now).count) / r.arrivals.span(now).Seconds())
	}
	hits := r.hits.sum(now)
	t.Hit = share(hits.cached, hits.prompt)
	t.TTFTMsP50, t.TTFTMsP99 = r.ttft.quantiles(now)
	t.Skew, t.SkewAt = model.Unknown(), model.Target{Rank: model.NoRank}
	for _, w := range r.workers {
		t.Queued += r.waitingAt(w)
		for k := range w.ranks {
			t.Queued += w.ranks[k].load.Queued
		}
		if skew, at := r.skew(w); skew.Known() && (!t.Skew.Known() || skew > t.Skew) {
			t.Skew, t.SkewAt = skew, at
		}
	}
	t.InQueue = r.steer.queue.Len()
	t.Queued += t.InQueue
	t.Open, t.Convs = r.book.Len()-r.book.Departed(), len(r.convs.byKey)
	t.Pins, t.OperatorPins, t.Decisions = r.binds.Len(), r.ops.Len(), r.routed
	return t
}

// skew is busiest ÷ mean tokens over the eligible ranks of w, on the engine's
// figures where it has reported, as the rows of the ranks show them, on the
// bookings otherwise; unknown when there are no tokens.
func (r *Router) skew(w *worker) (skew model.Maybe, busiest model.Target) {
	sum, most, n := 0, -1, 0
	for k := range w.ranks {
		s := &w.ranks[k]
		if !s.eligible() {
			continue
		}
		tokens := s.load.Tokens
		if s.load.ReportedAt.IsZero() {
			tokens = r.book.Rank(w.index, k).PromptTokens
		}
		sum, n = sum+tokens, n+1
		if tokens > most {
			most, busiest = tokens, s.load.Target
		}
	}
	if sum <= 0 {
		return model.Unknown(), model.Target{Rank: model.NoRank}
	}
	return model.Maybe(float64(most) * float64(n) / float64(sum)), busiest
}

// tokensAt is the engine's figure of rank k of w, or before it has reported
// what is booked there.
func (r *Router) tokensAt(w *worker, k int) int {
	own := r.book.Rank(w.index, k).PromptTokens
	switch s := &w.ranks[k]; {
	case s.load.ReportedAt.IsZero():
		return own
	case s.observed: // it may not know the newest bookings
		return max(s.load.Tokens, own)
	default:
		return s.load.Tokens
	}
}
