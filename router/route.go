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
		return model.Decision{}, err
	}
	defer r.know.drop(l)
	r.lock(now)
	d, err := r.route(start, req, l, matches, refuses)
	r.countFull(err)
	r.unlock()
	if err == nil {
		r.know.routed(l, r.slot(d.Target), now.Sub(r.start))
	}
	return d, err
}

// route places one request; the caller has the lock.
func (r *Router) route(start time.Time, req *model.Request, l *lookup, matches map[string][]int32, rule roomRule) (model.Decision, error) {
	b, target, err := r.submit(req, l, rule)
	if err != nil {
		return model.Decision{}, err
	}
	w := r.workers[b.Worker]
	r.bookedStates(w)
	w.batch.bookings = append(w.batch.bookings, b)
	w.batch.matches = append(w.batch.matches, matches[target.Worker])
	if err := r.routeBatch(w); err != nil {
		r.withdraw(b)
		return model.Decision{}, err
	}
	r.conclude(w, 0, r.since(start))
	d := r.decisionOf(w)
	if d.Target.Rank == model.NoRank {
		r.withdraw(b)
		return d, fmt.Errorf("request %d at %s: %w: %s; send it again when a request has ended", req.ID, w.spec.ID, ErrFull, d.Why)
	}
	return d, nil
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
	err      error
}

// RouteWait is Route for a caller that can wait. In the modes kv and lockstep a
// request waits while every rank that may take it is at its cap, or as many are
// busy as router_queue_threshold and busy_worker_ratio say; router_queue_policy
// orders the queue. It returns when the request was routed, when the queue is
// full (ErrQueueFull, at once) or when ctx ends: the error is ctx's then, and
// the request is not open. req is not to be written meanwhile.
func (r *Router) RouteWait(ctx context.Context, req *model.Request, matches map[string][]int32) (model.Decision, error) {
	now, start := r.clock.Now(), r.wallNow()
	l, err := r.know.look(req, now.Sub(r.start))
	if err != nil {
		return model.Decision{}, err
	}
	p := &parked{req: req, look: l, matches: matches, answer: make(chan routed, 1)}
	defer func() { r.know.drop(p.look) }()
	r.lock(now)
	d, err := r.route(start, req, l, matches, refuses)
	waits := r.scored() && errors.Is(err, ErrFull)
	if waits {
		if err = r.park(p); err != nil {
			r.countRefused(err)
		}
	} else {
		r.countFull(err)
	}
	r.unlock()
	if waits && err == nil {
		d, err = r.await(ctx, p)
	}
	if err == nil {
		r.know.routed(p.look, r.slot(d.Target), r.clock.Now().Sub(r.start))
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
		for slot := range r.know.targets {
			w.BestCached = max(w.BestCached, p.look.held(slot, r.know.block))
		}
	}
	return s.queue.Push(r.elapsed(), &r.settings.ClusterConfig, len(r.workers), w)
}

// await waits for the answer. Where ctx ends after the request was routed, the
// decision stands and is returned.
func (r *Router) await(ctx context.Context, p *parked) (model.Decision, error) {
	select {
	case got := <-p.answer:
		return got.decision, got.err
	case <-ctx.Done():
	}
	now := r.clock.Now()
	r.lock(now)
	_, waited := r.steer.queue.Remove(p.req.ID)
	if waited {
		r.totals.Refused.LeftQueue++
	}
	r.unlock()
	if waited {
		return model.Decision{}, fmt.Errorf("request %d left the queue: %w", p.req.ID, ctx.Err())
	}
	got := <-p.answer
	return got.decision, got.err
}

// wake routes the requests of the queue whose turn has come. It is called with
// the lock before each unlock; one that finds no rank after all is refused.
func (r *Router) wake() {
	s := &r.steer
	for s.queue.Len() > 0 {
		w, stale, ok := s.queue.Pop(r.elapsed(), &r.settings.ClusterConfig, r.takes)
		if !ok {
			return
		}
		p := w.Payload
		if stale && p.look != nil {
			p.look.match(r.know, r.elapsed())
		}
		d, err := r.route(r.wallNow(), p.req, p.look, p.matches, woken)
		r.countFull(err)
		p.answer <- routed{d, err}
	}
}

// takes reports that a request of a lane of the queue may go.
func (r *Router) takes(lane int32) bool {
	// The other modes have no queue: let it go.
	return !r.scored() || r.steer.tier.Takes(r.elapsed(), lane)
}
