package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"
)

// capped are two workers of two ranks that may have most requests at a time each.
func capped(most int, change func(p *plan)) func(p *plan) {
	return func(p *plan) {
		for i := range p.serve.Workers {
			p.serve.Workers[i].MaxNumActiveRequests = most
		}
		if change != nil {
			change(p)
		}
	}
}

// TestHardCaps sends 500 requests at once, in every mode: no rank ever has more
// than its cap, by the engines' own count, and none is lost.
func TestHardCaps(t *testing.T) {
	t.Parallel()
	const most, n = 6, 500
	for _, mode := range []model.RouterMode{model.ModeKV, model.ModeLockstep, model.ModeRoundRobin, model.ModeRandom, model.ModeLeastLoaded, model.ModePowerOfTwo} {
		for _, policy := range []model.Policy{model.PolicyDefault, model.PolicyConversation} {
			t.Run(string(mode)+" "+string(policy), func(t *testing.T) {
				t.Parallel()
				w := stand(t, capped(most, func(p *plan) {
					p.settings.RouterMode = mode
					p.settings.AttentionDpConfig = p.settings.AttentionDpConfig.WithPolicy(policy)
				}), enginetest.Config{}, enginetest.Config{})
				var whole atomic.Int64
				each(n, n, func(i int) {
					a := ask{path: "/v1/completions", tokens: tokens(i), most: 2, stream: i%2 == 0}
					if i%3 == 0 {
						a.conv = fmt.Sprint("c", i%30)
					}
					if got := w.send(a); got.ok() && (!a.stream || strings.HasSuffix(got.body, "[DONE]\n\n")) {
						whole.Add(1)
					} else {
						t.Errorf("%d %v %.300s", got.status, got.err, got.body)
					}
				})
				if whole.Load() != n {
					t.Errorf("%d of %d came whole", whole.Load(), n)
				}
				for i, e := range w.engines {
					for rank := range 2 {
						if got := e.Peak(rank); got > most || got < most/2 {
							t.Errorf("w%d/%d had at most %d requests at a time, its cap is %d", i, rank, got, most)
						}
					}
				}
				if w.sentTimes() != n {
					t.Errorf("the engines served %d", w.sentTimes())
				}
				w.closed()
			})
		}
	}
}

// TestFullQueue: who finds the queue full is told to come again, and only who does.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	const most, places, n = 2, 5, 40
	w := stand(t, capped(most, func(p *plan) { p.settings.ClusterConfig.QueueMaxRequests = places }), slowPair()...)
	full := w.hold(4*most, "")
	defer full.release()
	results := make(chan answer, n)
	for i := range n {
		go func() { results <- w.send(ask{text: fmt.Sprint("waits ", i)}) }()
	}
	queued := 0
	w.until("the queue is full", func(s *model.State) bool {
		queued = s.Totals.InQueue
		return len(results) == n-queued && queued > 0
	})
	t.Logf("%d wait, %d were refused", queued, n-queued)
	for range n - queued {
		got := <-results
		after, err := strconv.Atoi(got.header.Get("Retry-After"))
		if got.status != 429 || err != nil || after < 1 || !strings.Contains(got.body, "rate_limit_error") {
			t.Errorf("%d, Retry-After %q, %s", got.status, got.header.Get("Retry-After"), got.body)
		}
	}
	if s := w.h.live.Snapshot(); s.Totals.Refused.QueueFull != uint64(n-queued) || s.Totals.Open != 4*most {
		t.Errorf("%+v", s.Totals)
	}
	full.release()
	for range queued {
		if got := <-results; !got.ok() {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	w.closed()
}

// TestClientsGone: an engine hears that a client has gone, whatever the request
// was doing, and the books are even.
func TestClientsGone(t *testing.T) {
	t.Parallel()
	for name, habits := range map[string]string{
		"in its answer":         `{}`,
		"before its first byte": `{"no_first_token": true}`,
		"before its head":       `{"on": ["openai"], "half_open": true}`,
	} {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " ", stream), func(t *testing.T) {
				t.Parallel()
				w := stand(t, nil, slowPair()[0])
				w.bad(habits)
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan answer, 1)
				go func() { done <- w.send(ask{ctx: ctx, text: "gone", stream: stream, most: 20000}) }()
				w.until("it is under way", func(s *model.State) bool {
					return s.Totals.Open == 1 && (strings.Contains(habits, "half_open") || w.engines[0].Open() == 1)
				})
				began := time.Now()
				cancel()
				w.until("the engine has stopped", func(*model.State) bool { return w.engines[0].Open() == 0 })
				within(t, "upstream cancelled", time.Since(began), 200*time.Millisecond)
				<-done
				w.mended()
				w.closed()
				if w.sentTimes() > 1 {
					t.Errorf("sent %d times", w.sentTimes())
				}
			})
		}
	}
}

// TestRetries: a request is sent again once, before the first byte, elsewhere, and
// not at all otherwise.
func TestRetries(t *testing.T) {
	t.Parallel()
	w := stand(t, nil, enginetest.Config{}, enginetest.Config{})
	// The engine dies; until that is known requests go around it.
	w.engines[0].Kill()
	const n = 60
	each(8, n, func(i int) {
		if got := w.send(ask{text: fmt.Sprint("goes around ", i)}); !got.ok() || got.target.Worker != "w1" {
			t.Errorf("%d %v from %s: %s", got.status, got.err, got.target, got.body)
		}
	})
	if len(w.engines[1].Served()) != n {
		t.Errorf("w1 served %d of %d", len(w.engines[1].Served()), n)
	}
	w.closed()
	// Both die: the answer names both attempts, and there were no more.
	w.until("w0 is down", func(s *model.State) bool { return workerOf(s, "w0").Liveness == model.LiveDown })
	w.engines[1].Kill()
	got := w.send(ask{text: "nobody is left"})
	if got.status != 502 && got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s", got.status, got.err, got.body)
	}
	w.closed()
}
