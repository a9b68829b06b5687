package router

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"adpdeck/router/cluster"
	"adpdeck/router/model"
)

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

// waiting knows by conversation who is in the queue.
type waiting struct {
	byConv map[model.ConvKey][]int64
	moved  []model.ConvKey // those whose binding has changed while a turn waits
}

func (w *waiting) add(key model.ConvKey, id int64) {
	if !key.Keyless() {
		w.byConv[key] = append(w.byConv[key], id)
	}
}

func (w *waiting) remove(key model.ConvKey, id int64) {
	ids := w.byConv[key]
	if at := slices.Index(ids, id); at >= 0 {
		ids = slices.Delete(ids, at, at+1)
	}
	if len(ids) == 0 {
		delete(w.byConv, key)
	} else {
		w.byConv[key] = ids
	}
}

func (w *waiting) rebound(key model.ConvKey) {
	if len(w.byConv[key]) > 0 && !slices.Contains(w.moved, key) {
		w.moved = append(w.moved, key)
	}
}

// RouteWait is Route for a caller that can wait. A request waits while every
// rank that may take it is at its hard cap, in the modes kv and lockstep also
// while as many are busy as router_queue_threshold and busy_worker_ratio say, or
// others wait before it. One that a pin, a hard binding or its client holds to a
// rank looks at that rank alone; one whose conversation is bound, or bound
// elsewhere, while it waits follows the binding. router_queue_policy orders the
// queue. It returns when the request was routed, when the queue is full
// (ErrQueueFull, at once) or when ctx ends: the error is ctx's then, and the
// request is not open. req is not to be written meanwhile.
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
			r.countRefused(err)
		}
	} else {
		r.countFull(err)
	}
	r.unlock()
	if waits && err == nil {
		got := r.await(ctx, p)
		d, slot, err = got.decision, got.slot, got.err
	}
	if err == nil {
		now = r.clock.Now() // it may have waited
		r.know.routed(p.look, slot, now.Sub(r.start))
		r.know.suspect(req.ID, d.Target, p.look, now)
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
	if err := s.queue.Push(r.elapsed(), &r.settings.ClusterConfig, len(r.workers), w); err != nil {
		return err
	}
	s.waiting.add(p.req.Conv, p.req.ID)
	r.totals.Unplaced++
	return nil
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
	if waited {
		r.steer.waiting.remove(p.req.Conv, p.req.ID)
		r.totals.Refused.LeftQueue++
	}
	r.unlock()
	if waited {
		return routed{decision: noDecision(), slot: -1, err: fmt.Errorf("request %d left the queue: %w", p.req.ID, ctx.Err())}
	}
	return <-p.answer
}

// wake routes the requests of the queue whose turn has come. It is called with
// the lock before each unlock. What it routes may bind conversations of which
// others wait, and those then wait for another rank.
func (r *Router) wake() {
	for {
		r.wakeReady()
		if len(r.steer.waiting.moved) == 0 {
			return
		}
		r.followBindings()
	}
}

// wakeReady routes who may go by the lane that it waits in. One that finds no
// room after all keeps its place; those behind it in its lane wait too, unless
// it may go to fewer ranks than they.
func (r *Router) wakeReady() {
	s := &r.steer
	var stuck []int32
	var aside []cluster.Waiting[*parked]
	ready := func(lane int32) bool { return !slices.Contains(stuck, lane) && r.takes(lane) }
	for s.queue.Len() > 0 {
		w, stale, ok := s.queue.Pop(r.elapsed(), &r.settings.ClusterConfig, ready)
		if !ok {
			break
		}
		if stale && w.Payload.look != nil {
			w.Payload.look.match(r.know, r.elapsed())
		}
		switch {
		case r.again(&w, woken):
		case len(aside) < maxAside && (len(w.Payload.req.Exclude) > 0 || w.Payload.req.Explicit != nil):
			aside = append(aside, w)
		default: // those that it leaves behind in another lane go on
			s.queue.Return(w)
			stuck = append(stuck, w.Slot)
		}
	}
	for _, w := range aside {
		s.queue.Return(w)
	}
}

// maxAside bounds the requests that one wake passes over.
const maxAside = 64

// followBindings lets those who wait choose anew what they wait for whose
// conversation was bound, bound elsewhere or set free since they came.
func (r *Router) followBindings() {
	s := &r.steer
	moved := s.waiting.moved
	s.waiting.moved = nil
	for _, key := range moved {
		for _, id := range slices.Clone(s.waiting.byConv[key]) {
			if w, ok := s.queue.Remove(id); ok && !r.again(&w, refuses) {
				s.queue.Return(w)
			}
		}
	}
}

// again routes a request that waited. It reports false when it waits on, in the
// lane that choose named: the caller returns it to the queue.
func (r *Router) again(w *cluster.Waiting[*parked], rule roomRule) bool {
	p, s := w.Payload, &r.steer
	s.again = true
	d, slot, err := r.route(r.wallNow(), p.req, p.look, p.matches, rule)
	s.again = false
	if errors.Is(err, ErrFull) {
		w.Slot = s.lane
		return false
	}
	s.waiting.remove(p.req.Conv, p.req.ID)
	p.answer <- routed{d, slot, err}
	return true
}

// requeue lets all who wait choose anew what they wait for, in their order:
// ranks have come, gone or died, or an operator has changed what holds them.
func (r *Router) requeue() {
	if r.steer.queue.Len() == 0 {
		return
	}
	for _, w := range r.steer.queue.Empty() {
		if !r.again(&w, refuses) {
			r.steer.queue.Return(w)
		}
	}
}
