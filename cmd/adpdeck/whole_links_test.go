package main

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"adpdeck/feed/feedtest"
	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"
)

// link is a way to an address that can be made bad.
type link struct {
	*feedtest.Bad
	ln net.Listener
	to string
	wg sync.WaitGroup

	mu    sync.Mutex // guards what follows
	limit int64      // bytes of an answer before the connection breaks, 0: none
}

// linkTo listens on a port of its own and passes on what comes to HOST:PORT.
func linkTo(t testing.TB, to string) *link {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{Bad: feedtest.NewBad(), ln: ln, to: to}
	bad := l.Listen(ln)
	l.wg.Go(func() {
		for {
			c, err := bad.Accept()
			if err != nil {
				return
			}
			l.wg.Go(func() { l.pass(c) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		l.Cut()
		l.wg.Wait()
	})
	return l
}

func (l *link) addr() string { return l.ln.Addr().String() }

// breakAfter breaks connections after so many bytes of answers, 0: never.
func (l *link) breakAfter(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = bytes
}

func (l *link) pass(c net.Conn) {
	defer c.Close()
	far, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	defer far.Close()
	l.mu.Lock()
	limit := l.limit
	l.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(far, c)
		_ = far.Close()
	}()
	if limit > 0 {
		_, _ = io.CopyN(c, far, limit)
	} else {
		_, _ = io.Copy(c, far)
	}
	_ = c.Close()
	<-done
}

// faults are what may become of a link, each with its end.
func faults() map[string]func(l *link) (heal func()) {
	return map[string]func(l *link) func(){
		"slow": func(l *link) func() {
			l.Latency(150 * time.Millisecond)
			return func() { l.Latency(0) }
		},
		"one byte at a time": func(l *link) func() {
			l.Slice(1)
			return func() { l.Slice(0) }
		},
		"breaks after 1 KiB": func(l *link) func() {
			l.breakAfter(1 << 10)
			l.Cut()
			return func() { l.breakAfter(0); l.Cut() }
		},
		"swallows all": func(l *link) func() {
			l.HalfOpen(true)
			return func() { l.HalfOpen(false); l.Cut() }
		},
	}
}

// TestSickMetricsAndEvents: no request waits for a source that is sick, no engine
// is taken for dead by it, and what was missed is learnt when it is well again.
func TestSickMetricsAndEvents(t *testing.T) {
	t.Parallel()
	for name, fault := range faults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := fake(t, enginetest.Config{})
			var events []*link
			for rank := range 2 {
				events = append(events, linkTo(t, strings.TrimPrefix(e.EventEndpoint(rank), "tcp://")))
			}
			figures := linkTo(t, e.Addr(model.NoRank))
			w := before(t, func(p *plan) {
				s := &p.serve.Workers[0]
				s.MetricsURL = "http://" + figures.addr() + "/metrics"
				s.Events.RankEndpoints = nil
				for _, l := range events {
					s.Events.RankEndpoints = append(s.Events.RankEndpoints, "tcp://"+l.addr())
				}
			}, e)
			w.ready()
			w.until("it is heard", func(s *model.State) bool {
				return e.Subscribers(0) > 0 && e.Subscribers(1) > 0 && feedOf(s, "w0", model.FeedMetrics).State == model.FeedLive
			})
			n := 0
			work := func(k int) {
				t.Helper()
				for range k {
					w.good(ask{path: "/v1/completions", tokens: tokens(n), at: fmt.Sprint("w0/", n%2)})
					n++
				}
			}
			work(10)
			var heal []func()
			for _, l := range append(events, figures) {
				heal = append(heal, fault(l))
			}
			if name == "swallows all" {
				w.until("figures are stale", func(s *model.State) bool { return feedOf(s, "w0", model.FeedMetrics).State == model.FeedStale })
			}
			began := time.Now()
			work(40)
			t.Logf("40 requests in %v", time.Since(began))
			if got := workerOf(w.h.live.Snapshot(), "w0").Liveness; got != model.LiveUp {
				t.Errorf("a sick source made the engine %s", got)
			}
			for _, h := range heal {
				h()
			}
			w.until("it is heard again", func(*model.State) bool { return e.Subscribers(0) > 0 && e.Subscribers(1) > 0 })
			w.until("the index is true", func(*model.State) bool {
				if !w.agrees(0, n) {
					work(2) // a batch shows what was lost before it
					time.Sleep(50 * time.Millisecond)
				}
				return w.agrees(0, n)
			})
			w.closed()
		})
	}
}

// TestSickEngineLinks: an engine behind a bad link is used while it answers, left
// alone when it does not, and used again when it does.
func TestSickEngineLinks(t *testing.T) {
	t.Parallel()
	for name, fault := range faults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sick, well := fake(t, enginetest.Config{}), fake(t, enginetest.Config{})
			l := linkTo(t, sick.Addr(model.NoRank))
			w := before(t, func(p *plan) {
				p.serve.Workers[0].URL = "http://" + l.addr()
				p.serve.Gateway.RequestTimeoutSecs = 3
			}, sick, well)
			w.ready()
			heal := fault(l)
			switch name {
			case "slow", "one byte at a time":
				for i := range 4 {
					w.good(ask{text: fmt.Sprint("late ", i), at: fmt.Sprint("w0/", i%2), stream: i < 2, most: 2})
				}
				if got := workerOf(w.h.live.Snapshot(), "w0").Liveness; got != model.LiveUp {
					t.Errorf("a slow engine is %s", got)
				}
			case "breaks after 1 KiB":
				// A short answer passes, a long one breaks; neither is asked for twice.
				got := w.send(ask{text: "long", at: "w0/0", stream: true, most: 60})
				if got.err == nil {
					t.Errorf("%d %s", got.status, got.body)
				}
				if n := len(sick.Served()); n > 1 {
					t.Errorf("sent %d times", n)
				}
			case "swallows all":
				began := time.Now()
				w.dies(began, "no answer within")
			}
			began := time.Now()
			heal()
			w.returns(began)
			w.closed()
		})
	}
}
