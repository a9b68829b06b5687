package router

import (
	"fmt"
	"time"

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
	r.countFull(err)
	r.unlock()
	if err == nil {
		r.know.routed(l, slot, now.Sub(r.start))
		r.know.suspect(req.ID, d.Target, l, now)
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
		r.noteShared(l)
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
	if w.batch.ranks[0] == model.NoRank {
		d = noDecision()
		if b.Value.decision != 0 {
			d = r.decisionOf(w)
		}
		r.withdraw(b)
		return d, -1, fmt.Errorf("request %d at %s: %w: %s; send it again when a request has ended", req.ID, w.spec.ID, ErrFull, d.Why)
	}
	r.noteShared(l)
	d = r.decisionOf(w)
	return d, int(w.slots[d.Target.Rank]), nil
}

// noDecision is what goes with an error: no rank, never rank 0.
func noDecision() model.Decision {
	return model.Decision{Target: model.Target{Rank: model.NoRank}, RunnerUp: model.NoRank}
}
