package router

import (
	"errors"
	"fmt"
	"time"
)

// refusals counts requests that the cluster tier turned away.
type refusals struct {
	n  uint64
	at time.Time // when an operator was last told
}

// refusedEvery is the least time between two events about refusals.
const refusedEvery = 10 * time.Second

// tellRefused warns of a request that was turned away because ranks are
// overloaded, closed, or the queue is full, not more often than refusedEvery.
func (r *Router) tellRefused(err error) {
	if !errors.Is(err, ErrOverloaded) && !errors.Is(err, ErrNoEligible) && !errors.Is(err, ErrQueueFull) {
		return
	}
	f := &r.refusals
	f.n++
	if f.n > 1 && r.now.Sub(f.at) < refusedEvery {
		return
	}
	f.at = r.now
	r.event("warn", "router", fmt.Sprintf("refused (%d so far): %v", f.n, err), 0)
}
