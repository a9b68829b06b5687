package router

import (
	"context"
	"errors"
	"fmt"
	"time"

	"adpdeck/router/cluster"
	"adpdeck/router/model"
)

// roomRule is what becomes of a request for which there is no room, or all of
// whose ranks are busy by the queue's thresholds.
type roomRule uint8

const (
	// engineQueues: it is sent on and waits at its engine. Caps only prefer ranks
	// that have room, and the queue's thresholds do not apply.
	engineQueues roomRule = iota
	// refuses it at once.
	refuses
	// woken: its turn in the queue has come.
	woken
)

// Route is both tiers for an engine that takes a rank: a batch of one on the
// router's own bookings, which stand in for the engine's states. matches holds
// by worker the prefix found on each rank, in tokens; the cluster tier uses
// the index instead.
//
// The error wraps those of Submit, or ErrFull (with the decision that says what
// is full, where one was made); the request is not open then.
func (r *Router) Route(req *model.Request, matches map[string][]int32) (model.Decision, error) {
	now, start := r.clock.Now(), r.wallNow()
	l, err := r.know.look(req, now.Sub(r.start))
	if err != nil {
		return noDecision(), err
	}
	defer r.know.drop(l)
	r.lock(now)
	d, slot, err := r.route(start, req, l, matches, refuses)
	r.unlock()
	if err == nil {
		r.know.routed(l, slot, now.Sub(r.start))
	}
	return d, err
}

// route places one request; the caller has the lock. slot is the rank's, -1 for
// none.
func (r *Router) route(start time.Time, req *model.Request, l *lookup, matches map[string][]int32, rule roomRule) (d model.Decision, slot int, err error) {
	b, target, err := r.submit(req, l, rule)
	if err != nil {
		return noDecision(), -1, err
	}
	w := r.places[b.Worker]
	r.bookedStates(w)
	w.batch.bookings = append(w.batch.bookings, b)
	w.batch.matches = append(w.batch.matches, matches[target.Worker])
	if w.picks() {
		if err = r.handOver(w, b, r.since(start)); err != nil {
			r.withdraw(b)
			return noDecision(), -1, err
		}
		return r.decisionOf(w), -1, nil
	}
	r.exclude = r.steer.req.Exclude
	if !r.fits(w, b) {
		err = fmt.Errorf("request %d at %s: %w: every rank that may take it is at its hard cap; send it again when a request has ended", req.ID, w.spec.ID, ErrFull)
	} else {
		err = r.routeBatch(w)
	}
	r.exclude = nil
	if err != nil {
		r.withdraw(b)
		return noDecision(), -1, err
	}
	r.conclude(w, 0, r.since(start))
	if d = r.decisionOf(w); d.Target.Rank == model.NoRank {
		r.withdraw(b)
		return d, -1, fmt.Errorf("request %d at %s: %w: %s; send it again when a request has ended", req.ID, w.spec.ID, ErrFull, d.Why)
	}
	return d, int(w.slots[d.Target.Rank]), nil
}

// noDecision is what goes with an error: no rank, never rank 0.
func noDecision() model.Decision {
	return model.Decision{Target: model.Target{Rank: model.NoRank}, RunnerUp: model.NoRank}
}

// parked is a request in the cluster tier's queue. Who wakes it routes it and
// sends the answer, once.
type parked struct {
	req     *model.Request
	look    *lookup
	matches map[string][]int32
	answer  chan routed
}

type routed struct {
	decision model.Decision
	slot     int
	err      error
}

// RouteWait is Route for a caller that can wait. A request waits while every
// rank that may take it is at its hard cap, in the modes kv and lockstep also
// while as many are busy as router_queue_threshold and busy_worker_ratio say;
// router_queue_policy orders the queue. It returns when the request was routed, when the queue is
// full (ErrQueueFull, at once) or when ctx ends: the error is ctx's then, and
// the request is not open. req is not to be written meanwhile.
func (r *Router) RouteWait(ctx context.Context, req *model.Request, matches map[string][]int32) (model.Decision, error) {
	now, start := r.clock.Now(), r.wallNow()
	l, err := r.know.look(req, now.Sub(r.start))
	if err != nil {
		return noDecision(), err
	}
	p := &parked{req: req, look: l, matches: matches, answer: make(chan routed, 1)}
	defer func() { r.know.drop(p.look) }()
	r.lock(now)
	d, slot, err := r.route(start, req, l, matches, refuses)
	waits := errors.Is(err, ErrFull)
	if waits {
		if err = r.park(p); err != nil {
			r.tellRefused(err)
		}
	}
	r.unlock()
	if waits && err == nil {
		got := r.await(ctx, p)
		d, slot, err = got.decision, got.slot, got.err
	}
	if err == nil {
		r.know.routed(p.look, slot, r.clock.Now().Sub(r.start))
	}
	return d, err
}

// park puts a request into the queue. What choose left in steer.lane says which
// rank or worker it waits for.
func (r *Router) park(p *parked) error {
	s := &r.steer
	w := cluster.Waiting[*parked]{
		ID: p.req.ID, Slot: s.lane, Strict: p.req.StrictPriority, Jump: float64(p.req.Priority), PromptTokens: p.req.PromptTokens, Payload: p,
	}
	if p.look != nil {
		block := r.know.blockTokens()
		for _, k := range r.workers {
			for _, slot := range k.slots {
				w.BestCached = max(w.BestCached, p.look.held(int(slot), block))
			}
		}
	}
	return s.queue.Push(r.elapsed(), &r.settings.ClusterConfig, len(r.workers), w)
}

// await waits for the answer. Where ctx ends after the request was routed, the
// decision stands and is returned.
func (r *Router) await(ctx context.Context, p *parked) routed {
	select {
	case got := <-p.answer:
		return got
	case <-ctx.Done():
	}
	now := r.clock.Now()
	r.lock(now)
	_, waited := r.steer.queue.Remove(p.req.ID)
	r.unlock()
	if waited {
		return routed{decision: noDecision(), slot: -1, err: fmt.Errorf("request %d left the queue: %w", p.req.ID, ctx.Err())}
	}
	return <-p.answer
}
