package enginetest

import (
	"context"
	"time"
)

// Clock is the time that an engine lives in. Steps of its ranks and every delay
// are measured with it.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f once, in a goroutine of its own, when d has passed.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a call that is still to come.
type Timer interface {
	// Stop takes the call back and reports whether that was in time.
	Stop() bool
}

// wall is the machine's own clock.
type wall struct{}

func (wall) Now() time.Time                            { return time.Now() }
func (wall) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// sleep waits for d by the clock, or until ctx ends, which it reports as false.
func sleep(ctx context.Context, c Clock, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	over := make(chan struct{})
	t := c.AfterFunc(d, func() { close(over) })
	select {
	case <-over:
		return true
	case <-ctx.Done():
		t.Stop()
		return false
	}
}
