package router

import (
	"errors"
	"fmt"
	"time"
)

// refusedEvery is the least time between two events about refusals.
const refusedEvery = 10 * time.Second

// countRefused counts a request that the cluster tier turned away, by reason.
// Where ranks are overloaded, closed, or the queue is full it warns as well,
// not more often than refusedEvery: a missing worker is the client's doing, and
// one that found no room was told to come again.
func (r *Router) countRefused(err error) {
	n := &r.totals.Refused
	switch {
	case errors.Is(err, ErrNoEligible):
		n.NoEligible++
	case errors.Is(err, ErrOverloaded):
		n.Overloaded++
	case errors.Is(err, ErrQueueFull):
		n.QueueFull++
	case errors.Is(err, ErrFull):
		n.NoRoom++
		return
	default:
		n.Other++
		return
	}
	if told := n.NoEligible + n.Overloaded + n.QueueFull; told > 1 && r.now.Sub(r.refusedAt) < refusedEvery {
		return
	}
	r.refusedAt = r.now
	r.event("warn", "router", fmt.Sprintf("refused (%d so far): %v", n.NoEligible+n.Overloaded+n.QueueFull, err), 0)
}

// countFull counts a request that found no room and does not wait for it.
func (r *Router) countFull(err error) {
	if errors.Is(err, ErrFull) {
		r.countRefused(err)
	}
}
