package cluster

import (
	"math"
	"time"

	"adpdeck/router/model"
)

// SetDraining makes a rank take no new conversations, or take them again.
func (r *Router) SetDraining(t model.Target, draining bool) bool {
	return r.set(t, func(s *slot) { s.draining = draining })
}

// SetBlocked makes a rank take nothing at all: it is quarantined or dead.
// Bindings to it count as gone.
func (r *Router) SetBlocked(t model.Target, blocked bool) bool {
	return r.set(t, func(s *slot) { s.blocked = blocked })
}

// SetWeight divides a rank's load by w in every comparison; 0 closes it to new
// conversations. 1 is Dynamo exactly. A negative or infinite weight is refused.
func (r *Router) SetWeight(t model.Target, w float64) bool {
	if !(w >= 0 && w <= math.MaxFloat32) {
		return false
	}
	return r.set(t, func(s *slot) {
		s.weight, s.inverse = w, 1
		if w > 0 {
			s.inverse = 1 / w
		}
	})
}

// Capacity is what one rank advertises; 0 for what is not known.
type Capacity struct {
	MaxRequests      int // hard cap, 0: none
	MaxBatchedTokens int
	KVBlocks         int
}

// SetCapacity replaces what a rank advertised.
func (r *Router) SetCapacity(t model.Target, c Capacity) bool {
	return r.set(t, func(s *slot) { s.cap, s.batch, s.kvTotal = c.MaxRequests, c.MaxBatchedTokens, c.KVBlocks })
}

// ReportNothing says that an engine's figures of a rank cannot be had any more:
// it is no longer overloaded by them, nor has it other traffic than ours.
func (r *Router) ReportNothing(t model.Target) bool {
	s, ok := r.Slot(t)
	if ok {
		r.load.ReportNothing(s)
		r.ReportKV(t, -1)
	}
	return ok
}

// ReportKV takes an engine's count of KV blocks in use on a rank, below 0 for
// unknown.
func (r *Router) ReportKV(t model.Target, used int) bool {
	return r.set(t, func(s *slot) { s.kvUsed = used })
}

// ReportPending takes an engine's count of tokens still to be prefilled on a
// rank, true at asOf (see Load.ReportPending).
func (r *Router) ReportPending(t model.Target, tokens int, asOf time.Duration) bool {
	s, ok := r.Slot(t)
	if ok {
		r.load.ReportPending(s, tokens, asOf)
	}
	return ok
}

// ClearOverload opens the latch of a rank by hand; it sets again when the next
// figure is above the threshold.
func (r *Router) ClearOverload(t model.Target) bool {
	s, ok := r.Slot(t)
	if ok {
		r.slots[s].latch = false
	}
	return ok
}

func (r *Router) set(t model.Target, f func(*slot)) bool {
	at, ok := r.Slot(t)
	if !ok {
		return false
	}
	f(&r.slots[at])
	r.limits(at)
	r.relatch(at)
	return true
}

// relatch moves the decode latch of a rank: it sets when the engine's or the
// router's count of blocks is above the threshold, and opens when both are
// below it.
func (r *Router) relatch(at int32) {
	if at < 0 || r.cfg.ActiveDecodeBlocksThreshold == nil {
		return
	}
	s := &r.slots[at]
	if s.worker < 0 || s.kvTotal <= 0 {
		s.latch = false
		return
	}
	limit := *r.cfg.ActiveDecodeBlocksThreshold * float64(s.kvTotal)
	ours, theirs := float64(roundUnits(r.load.ranks[at].units)), float64(s.kvUsed)
	switch {
	case ours > limit || theirs > limit:
		s.latch = true
	case ours < limit && theirs < limit:
		s.latch = false
	}
}

// RankFigures is a rank as the cluster tier sees it now.
type RankFigures struct {
	Target model.Target
	SlotFigures
	// HighestPending is the most that any living rank of the worker has
	// pending.
	HighestPending int
	// Overloaded and Busy are the words of the threshold that is exceeded,
	// empty for none.
	Overloaded string
	Busy       bool
	Draining   bool
	Blocked    bool
	Weight     float64
}

// Figures returns a rank as the cluster tier sees it; ok is false when it does
// not exist.
func (r *Router) Figures(t model.Target, now time.Duration) (f RankFigures, ok bool) {
	at, ok := r.Slot(t)
	if !ok {
		return f, false
	}
	s := &r.slots[at]
	w := &r.workers[s.worker]
	f = RankFigures{Target: t, SlotFigures: r.load.Figures(at, now), Draining: s.draining, Blocked: s.blocked, Weight: s.weight}
	for _, k := range w.slots {
		f.HighestPending = max(f.HighestPending, int(r.load.Pending(k)))
	}
	if e := s.overloaded(float64(f.ActiveTokens)); e != eligible {
		f.Overloaded = e.word()
	}
	f.Busy = r.busy(at, float64(f.ActiveTokens))
	return f, true
}

// defaultChunk is taken for max_num_batched_tokens where an engine does not
// tell: the figure that engines start with.
const defaultChunk = 8192

// limits works out the rank's overload threshold in active tokens, and how much
// it prefills in a step.
func (r *Router) limits(at int32) {
	c, s := &r.cfg, &r.slots[at]
	s.chunk = defaultChunk
	if s.batch > 0 {
		s.chunk = int64(s.batch)
	}
	s.overload = math.Inf(1)
	if c.ActivePrefillTokensThreshold != nil {
		s.overload = float64(*c.ActivePrefillTokensThreshold)
	}
	if c.ActivePrefillTokensThresholdFrac != nil {
		s.overload = min(s.overload, *c.ActivePrefillTokensThresholdFrac*batchTokens(s))
	}
}

// overloaded applies Dynamo's thresholds to one rank.
func (s *slot) overloaded(active float64) exclusion {
	switch {
	case active > s.overload:
		return exPrefill
	case s.latch:
		return exBlocks
	}
	return eligible
}

// batchTokens is max_num_batched_tokens; Dynamo takes ten million where it is
// not known.
func batchTokens(s *slot) float64 {
	if s.batch > 0 {
		return float64(s.batch)
	}
	return 10_000_000
}

// busy applies the queue's thresholds to one rank.
func (r *Router) busy(at int32, active float64) bool {
	c := &r.cfg
	return c.QueueThresholdTokens != nil && active > float64(*c.QueueThresholdTokens) ||
		c.QueueThreshold != nil && active > *c.QueueThreshold*batchTokens(&r.slots[at])
}
