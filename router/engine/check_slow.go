package engine

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// Times of the question that an engine answers slowly.
const (
	slowPeriod  = 1500 * time.Millisecond // between its beginnings, while the answers are good
	slowTimeout = 25 * time.Second        // SGLang gives up after 20
	slowRefusal = 100 * time.Millisecond  // a refusal comes at once
)

// slow is SGLang's /health. Unless told otherwise that lets the engine generate
// a token and looks each second whether one came: a good answer takes a second
// at least, and up to 20 under long prefills, while "starting" and "stopping"
// come at once. So it is asked beside a quick question, and its newest answer
// counts. It belongs to check.
type slow struct {
	asked  chan verdict // of the question under way, nil: none
	cancel context.CancelFunc
	began  time.Time
	verdict
}

// verdict is an answer; known is false where there was none.
type verdict struct {
	known bool
	why   string
}

// askBoth puts the quick question, whether anybody is there, and now and then the
// slow one.
func (w *worker) askBoth(ctx context.Context, d *door) (why string) {
	a, err := w.fetch(ctx, under(d.base, "/v1/models"), nil, maxHealthPage, checkTimeout)
	switch {
	case err != nil:
		why = plain(err, checkTimeout)
	case a.status >= http.StatusInternalServerError:
		why = "HTTP " + strconv.Itoa(a.status)
	}
	s := &d.slow
	if why != "" {
		s.end() // what is under way was asked of an engine that is gone
		s.verdict = verdict{}
		return why
	}
	s.collect(ctx, 0)
	if s.asked == nil && (!s.known || s.why != "" || time.Since(s.began) >= slowPeriod) {
		w.askSlowly(ctx, d)
		s.collect(ctx, slowRefusal)
	}
	if !s.known { // nothing to go by yet: wait as long as for a quick answer
		s.collect(ctx, checkTimeout)
	}
	return s.why
}

// askSlowly puts the slow question.
func (w *worker) askSlowly(ctx context.Context, d *door) {
	s := &d.slow
	asked := make(chan verdict, 1)
	ctx, s.cancel = context.WithCancel(ctx)
	s.asked, s.began = asked, time.Now()
	go func() {
		a, err := w.fetch(ctx, under(d.base, "/health"), nil, maxHealthPage, slowTimeout)
		switch {
		case err == nil:
			asked <- verdict{true, w.unwell(a)}
		case errors.Is(err, context.DeadlineExceeded):
			asked <- verdict{true, plain(err, slowTimeout)}
		default:
			asked <- verdict{}
		}
	}()
}

// collect takes the answer to the question under way, waiting for it at most so
// long.
func (s *slow) collect(ctx context.Context, most time.Duration) {
	if s.asked == nil {
		return
	}
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case v := <-s.asked:
		s.take(v)
		return
	default: // an answer that is there goes before a time that is up
	}
	select {
	case v := <-s.asked:
		s.take(v)
	case <-t.C:
	case <-ctx.Done():
	}
}

func (s *slow) take(v verdict) {
	s.cancel()
	s.asked, s.verdict = nil, v
}

// end gives up the question under way and waits until it is.
func (s *slow) end() {
	if s.asked != nil {
		s.cancel()
		<-s.asked
		s.asked = nil
	}
}
