package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"adpdeck/feed"
	"adpdeck/feed/feedtest"
	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"
)

// linkTo is a way to HOST:PORT that can be made bad.
func linkTo(t testing.TB, to string) *feedtest.Relay {
	t.Helper()
	r, err := feedtest.NewRelay(strings.TrimPrefix(to, "tcp://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// fault is what may become of a link.
type fault struct {
	begin, end func(l *feedtest.Relay)
	lasts      time.Duration // at least; what is measured may take longer
	silent     bool          // nothing comes any more
}

// faults are those of safety 3.5, 20.
func faults() map[string]fault {
	hole := 6 * time.Second
	if long() {
		hole = 30 * time.Second
	}
	return map[string]fault{
		"latency": {
			begin: func(l *feedtest.Relay) { l.Jitter(500*time.Millisecond, 500*time.Millisecond) },
			end:   func(l *feedtest.Relay) { l.Latency(0) }, lasts: time.Second,
		},
		"bandwidth": {
			begin: func(l *feedtest.Relay) { l.Bandwidth(1 << 10) },
			end:   func(l *feedtest.Relay) { l.Bandwidth(0) }, lasts: 2 * time.Second,
		},
		"slices": {
			begin: func(l *feedtest.Relay) { l.Slice(1) },
			end:   func(l *feedtest.Relay) { l.Slice(0) }, lasts: time.Second,
		},
		"reset": {
			begin: func(l *feedtest.Relay) { l.ResetAfter(1 << 10) },
			end:   func(l *feedtest.Relay) { l.ResetAfter(0) }, lasts: time.Second,
		},
		"half-open": { // until the host is back, which does not know its old connections
			begin: func(l *feedtest.Relay) { l.HalfOpen(true) },
			end:   func(l *feedtest.Relay) { l.HalfOpen(false); l.Cut() }, lasts: 2 * time.Second, silent: true,
		},
		"blackhole": {
			begin: func(l *feedtest.Relay) { l.Blackhole(true) },
			end:   func(l *feedtest.Relay) { l.Blackhole(false) }, lasts: hole, silent: true,
		},
	}
}

// sick is a whole of which one kind of link to w0 goes bad; w1 is well.
type sick struct {
	*whole
	fault
	name  string
	links []*feedtest.Relay
	began time.Time // of the fault
	n     int       // prompts sent
}

// links are the kinds of link, each with how it is put in and what must hold.
func links() map[string]struct {
	put  func(s *sick, p *plan)
	tell func(s *sick)
} {
	return map[string]struct {
		put  func(s *sick, p *plan)
		tell func(s *sick)
	}{
		"engine": {
			put: func(s *sick, p *plan) {
				l := linkTo(s.t, s.engines[0].Addr(model.NoRank))
				s.links, p.serve.Workers[0].URL = append(s.links, l), "http://"+l.Addr()
			},
			tell: (*sick).engineLink,
		},
		"metrics": {
			put: func(s *sick, p *plan) {
				l := linkTo(s.t, s.engines[0].Addr(model.NoRank))
				s.links, p.serve.Workers[0].MetricsURL = append(s.links, l), "http://"+l.Addr()+"/metrics"
			},
			tell: (*sick).metricsLink,
		},
		"events": {
			put: func(s *sick, p *plan) {
				p.serve.Workers[0].Events.RankEndpoints = nil
				for rank := range 2 {
					l := linkTo(s.t, s.engines[0].EventEndpoint(rank))
					s.links = append(s.links, l)
					p.serve.Workers[0].Events.RankEndpoints = append(p.serve.Workers[0].Events.RankEndpoints, "tcp://"+l.Addr())
				}
			},
			tell: (*sick).eventsLink,
		},
		"feed": {put: func(*sick, *plan) {}, tell: (*sick).feedLink},
	}
}

// TestSickLinks is safety 3.5, 20: each fault on each kind of link.
func TestSickLinks(t *testing.T) {
	t.Parallel()
	for name, f := range faults() {
		for kind, l := range links() {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				s := &sick{fault: f, name: name, whole: &whole{t: t}}
				s.engines = []*enginetest.Engine{fake(t, enginetest.Config{}), fake(t, enginetest.Config{})}
				s.whole = before(t, func(p *plan) { l.put(s, p) }, s.engines...)
				s.ready()
				s.until("figures come", func(st *model.State) bool { return feedOf(st, "w0", model.FeedMetrics).State == model.FeedLive })
				l.tell(s)
				s.closed()
			})
		}
	}
}

func (s *sick) fall() {
	s.began = time.Now()
	for _, l := range s.links {
		s.begin(l)
	}
}

func (s *sick) heal() time.Time {
	time.Sleep(time.Until(s.began.Add(s.lasts)))
	for _, l := range s.links {
		s.end(l)
	}
	return time.Now()
}

// work has requests of w0 answered, one after the other, while the fault lasts:
// nothing that they wait for can be waiting for its end.
func (s *sick) work(k int) {
	s.t.Helper()
	began := time.Now()
	for range k {
		s.served(ask{path: "/v1/completions", tokens: tokens(s.n), at: fmt.Sprint("w0/", s.n%2)})
		s.n++
	}
	within(s.t, fmt.Sprint(k, " requests"), time.Since(began), 2*time.Second)
}

// served sends a request until it is answered. It may be told to come again where
// the machine is so busy that engines miss their checks: at once, and not where it
// is not.
func (w *whole) served(a ask) answer {
	w.t.Helper()
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		got := w.send(a)
		switch {
		case got.ok():
			return got
		case got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" || long() || time.Since(began) > 30*time.Second:
			w.t.Fatalf("%+v: %d %v %.300s", a, got.status, got.err, got.body)
		}
	}
}

// staysUp wants w0 to be in use while one of its sources is sick. Only a check of
// its own that a busy machine missed may have it down, for a moment.
func (s *sick) staysUp() {
	s.t.Helper()
	if w := workerOf(s.h.live.Snapshot(), "w0"); w.Liveness != model.LiveUp && (long() || !strings.Contains(w.LivenessWhy, "no answer within")) {
		s.t.Errorf("it is %s: %s", w.Liveness, w.LivenessWhy)
	}
	s.until("it is up", func(st *model.State) bool { return workerOf(st, "w0").Liveness == model.LiveUp })
}

// missed reports that an engine was taken for dead at some time. One that nothing
// was done to is so only where the machine is too busy for it to answer a check
// within a second, twice in a row.
func (w *whole) missed(id string) bool {
	return slices.ContainsFunc(w.h.live.Snapshot().Events, func(e model.Event) bool {
		return e.Kind == model.EventEngine && e.Who == id && e.After == string(model.LiveDown)
	})
}

// engineLink: an engine that is slow is used, one that is silent is left alone and
// used again when it is well.
func (s *sick) engineLink() {
	if s.silent {
		s.fall()
		s.dies(s.began, "no answer within")
		s.returns(s.heal())
		return
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	var traffic sync.WaitGroup
	s.fall()
	for k := range 4 { // a busy engine proves by its answers that it lives
		traffic.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				got := s.send(ask{ctx: ctx, path: "/v1/completions", tokens: tokens(4*i + k), at: fmt.Sprint("w0/", k%2), most: 1, stream: k < 2})
				if ctx.Err() == nil && !got.ok() && s.name != "reset" && got.status != http.StatusServiceUnavailable {
					s.t.Errorf("%d %v %s", got.status, got.err, got.body)
				}
			}
		})
	}
	if s.name == "reset" {
		cancel()
		traffic.Wait()
		s.until("all has ended", func(*model.State) bool { return s.books().engines == 0 })
		seen := len(s.engines[0].Served())
		if got := s.send(ask{text: "long", at: "w0/0", stream: true, most: 60}); got.ok() {
			s.t.Errorf("%d %s", got.status, got.body)
		}
		if n := len(s.engines[0].Served()) - seen; n > 1 {
			s.t.Errorf("sent %d times", n)
		}
	}
	for ; time.Since(s.began) < s.lasts; time.Sleep(20 * time.Millisecond) {
		if w := workerOf(s.h.live.Snapshot(), "w0"); w.Liveness == model.LiveDown && (long() || !strings.Contains(w.LivenessWhy, "no answer within")) {
			s.t.Fatalf("a slow engine is down: %s", w.LivenessWhy)
		}
	}
	if s.name != "reset" {
		s.served(ask{path: "/v1/completions", tokens: tokens(900), at: "w0/1", most: 1})
	}
	cancel()
	traffic.Wait()
	s.returns(s.heal())
}

// metricsLink: no request waits for figures, nobody is taken for dead without
// them, and old ones are not shown as live.
func (s *sick) metricsLink() {
	s.fall()
	s.work(20)
	if s.silent {
		took := s.until("figures are stale", func(st *model.State) bool {
			f := feedOf(st, "w0", model.FeedMetrics)
			return f.State == model.FeedStale && f.Why != ""
		})
		within(s.t, "stale", took, 6*time.Second)
		s.work(20)
	}
	s.staysUp()
	healed := s.heal()
	s.until("figures come again", func(st *model.State) bool {
		return feedOf(st, "w0", model.FeedMetrics).State == model.FeedLive && rankOf(st, "w0", 0).ReportedAt.After(healed)
	})
}

// eventsLink: no request waits for events, and what was missed is learnt when the
// link is well again.
func (s *sick) eventsLink() {
	s.work(10)
	s.fall()
	s.work(30)
	s.staysUp()
	s.heal()
	s.until("it is heard again", func(*model.State) bool { return s.engines[0].Subscribers(0) > 0 && s.engines[0].Subscribers(1) > 0 })
	s.until("the index is true", func(*model.State) bool {
		if !s.agrees(0, s.n) {
			s.work(2) // a batch shows what was lost before it
			time.Sleep(50 * time.Millisecond)
		}
		return s.agrees(0, s.n)
	})
}

// feedLink: a console never takes an old state for a live one, nobody waits for
// it, and it is in step again when its link is well.
func (s *sick) feedLink() {
	l := linkTo(s.t, s.h.feedLn.Addr().String())
	s.links = append(s.links, l)
	c := feed.Dial(s.t.Context(), l.Addr(), feed.ClientOptions{PingPeriod: time.Second, MaxRetry: time.Second})
	defer c.Close()
	s.until("the console is live", func(*model.State) bool { return c.View().Link.Phase == feed.PhaseLive })

	truth := &history{}
	slack := 2 * time.Second // of the machine
	if long() {
		slack = time.Second
	}
	s.fall()
	lasts := max(s.lasts, 4*time.Second)
	for i := 0; time.Since(s.began) < lasts; i++ {
		if i%8 == 0 {
			r := s.h.Apply(model.Command{ID: fmt.Sprint("set", i), Verb: model.VerbSet, Set: []model.FieldValue{{Field: "router_temperature", Value: fmt.Sprint(float64(i+1) / 1000)}}})
			if !r.Accepted {
				s.t.Fatal(r.Refusal)
			}
			truth.add(r.Version)
			s.work(1)
		}
		now := time.Now()
		v := c.View()
		if old := truth.at(now.Add(-3*v.Link.Period - slack)); !v.Link.Stale(now) && v.State.Version < old {
			s.t.Fatalf("%v into the fault v%d is shown as live, it was v%d long ago: %+v", now.Sub(s.began), v.State.Version, old, v.Link)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if v := c.View(); s.silent && !v.Link.Stale(time.Now()) {
		s.t.Errorf("a console that hears nothing shows %+v", v.Link)
	}
	healed := s.heal()
	s.until("the console is in step", func(st *model.State) bool {
		v := c.View()
		return v.Link.Phase == feed.PhaseLive && !v.Link.Stale(time.Now()) && v.State.Version == st.Version
	})
	within(s.t, "in step", time.Since(healed), 5*time.Second)
}

// history is when which version began.
type history struct {
	times    []time.Time
	versions []uint64
}

func (h *history) add(version uint64) {
	h.times, h.versions = append(h.times, time.Now()), append(h.versions, version)
}

// at is the version that was then, 0 before all.
func (h *history) at(then time.Time) (version uint64) {
	for i, at := range h.times {
		if !at.After(then) {
			version = h.versions[i]
		}
	}
	return version
}
