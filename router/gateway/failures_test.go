package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"adpdeck/router/engine/steer"
	"adpdeck/router/model"
)

// TestSentAgainOnlyWhileNothingWasAnswered is safety 3.5, 21.
func TestSentAgainOnlyWhileNothingWasAnswered(t *testing.T) {
	const chat, responses = "/v1/chat/completions", "/v1/responses"
	for name, tt := range map[string]struct {
		path, behave string
		noRetry      bool
		sent, status int
		why          string
	}{
		"reset":                 {chat, "reset", false, 2, 502, "reset the connection"},
		"reset, retry off":      {chat, "reset", true, 1, 502, "before it answered"},
		"reset, kept by engine": {responses, "reset", false, 1, 502, "before it answered"},
		"half a header":         {chat, "half header", false, 1, 502, "before it answered"},
		"endless header":        {chat, "endless header", false, 1, 502, "before it answered"},
		"an error":              {chat, "500", false, 1, 500, "boom"},
		"mid-stream":            {chat, "mid-stream", false, 1, 200, "unexpected EOF"},
		"an error as event":     {chat, "error event", false, 1, 200, "dead"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, rigOptions{spec: model.GatewaySpec{Retry: !tt.noRetry, DecisionHeaders: true}})
			resp, body := g.post(t, tt.path, `{"stream":true,"behave":"`+tt.behave+`"}`)
			all := g.requests()
			if resp.StatusCode != tt.status || !strings.Contains(body, tt.why) || len(all) != tt.sent {
				t.Errorf("%d %q, sent %d times; want %d with %q, %d times", resp.StatusCode, body, len(all), tt.status, tt.why, tt.sent)
			}
			if len(all) == 2 && all[0].worker == all[1].worker {
				t.Errorf("sent twice to %s", all[0].worker)
			}
			if n := g.inFlight(); n != 0 {
				t.Errorf("%d requests are left on the books", n)
			}
			if g.router.Strays() != 0 {
				t.Errorf("%d ends too many", g.router.Strays())
			}
			failed := 0
			for _, n := range g.engines.failed {
				failed += n
			}
			if blames := tt.behave != "500" && tt.behave != "error event"; blames && failed != tt.sent || !blames && failed != 0 {
				t.Errorf("%d failures were told of %d attempts", failed, tt.sent)
			}
		})
	}
}

func TestDeadEngineIsGoneAround(t *testing.T) {
	for _, channel := range []string{steer.ChannelHeader, steer.ChannelPort} {
		g := newRig(t, rigOptions{spec: model.GatewaySpec{Retry: true, DecisionHeaders: true}})
		g.engines.channel = channel
		g.engines.servers["w0"].Close()
		for i := range 20 {
			resp, body := g.post(t, "/v1/responses", fmt.Sprintf(`{"model":"m","input":"%d"}`, i))
			// With an address for each rank only the rank is excluded: the other one
			// of the dead worker may be next.
			if resp.StatusCode != 200 && channel == steer.ChannelHeader || resp.StatusCode == 200 && resp.Header.Get("X-Adpdeck-Worker") != "w1" {
				t.Fatalf("%s: %d from %s: %s", channel, resp.StatusCode, resp.Header.Get("X-Adpdeck-Worker"), body)
			}
		}
		g.engines.mu.Lock()
		if g.engines.failed[model.Target{Worker: "w0", Rank: 0}]+g.engines.failed[model.Target{Worker: "w0", Rank: 1}] == 0 || g.engines.answered[model.Target{Worker: "w1", Rank: 0}] == 0 {
			t.Errorf("failures %v, answers %v", g.engines.failed, g.engines.answered)
		}
		g.engines.mu.Unlock()
		if g.inFlight() != 0 {
			t.Error("requests are left on the books")
		}
	}
}

// TestBoundConversationGoesOn kills the engine that holds a conversation: its turn
// is answered elsewhere, and it stays there.
func TestBoundConversationGoesOn(t *testing.T) {
	g := newRig(t, rigOptions{workers: 3, ranks: 1, spec: headersOn, settings: func(s *model.Settings) {
		ttl := 600.0
		s.ClusterConfig.SessionAffinityTTLSecs = &ttl
	}})
	turn := func() string {
		resp, body := g.post(t, "/v1/chat/completions", `{"model":"m"}`, "X-Session-ID", "c")
		if resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		return resp.Header.Get("X-Adpdeck-Worker")
	}
	first := turn()
	g.engines.servers[first].Close()
	second := turn()
	if second == first || turn() != second || turn() != second {
		t.Errorf("held by %s, then by %s, and not to stay", first, second)
	}
	if c := conv(t, g, model.ConvKey{Model: "m", ID: "c"}); c.Open != 0 {
		t.Errorf("%+v", c)
	}
}

// TestWorkerThatLeftIsGoneAround: a worker that leaves between the choice and the
// sending costs nobody an answer, whether retries are on or not.
func TestWorkerThatLeftIsGoneAround(t *testing.T) {
	g := newRig(t, rigOptions{spec: model.GatewaySpec{DecisionHeaders: true}})
	left := g.engines.servers["w0"]
	defer left.Close()
	g.engines.mu.Lock()
	delete(g.engines.servers, "w0")
	g.engines.mu.Unlock()
	for i := range 20 {
		if resp, body := g.post(t, "/v1/responses", fmt.Sprintf(`{"model":"m","input":"%d"}`, i)); resp.StatusCode != 200 || resp.Header.Get("X-Adpdeck-Worker") != "w1" {
			t.Fatalf("%d from %s: %s", resp.StatusCode, resp.Header.Get("X-Adpdeck-Worker"), body)
		}
	}
	resp, body := g.post(t, "/v1/responses", `{}`, "X-Adpdeck-Worker", "w0")
	if resp.StatusCode != 502 || !strings.Contains(body, "cannot_steer") || g.inFlight() != 0 {
		t.Errorf("%d %s, %d on the books", resp.StatusCode, body, g.inFlight())
	}
}

func TestNobodyElseToAsk(t *testing.T) {
	g := newRig(t, rigOptions{workers: 1, ranks: 1, spec: model.GatewaySpec{Retry: true, QueueTimeoutSecs: 0.05}})
	g.engines.servers["w0"].Close()
	resp, body := g.post(t, "/v1/chat/completions", `{}`)
	if resp.StatusCode != 502 || !strings.Contains(body, "refused the connection") || !strings.Contains(body, "could not be sent elsewhere") || strings.Contains(body, "127.0.0.1") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestDeadlines(t *testing.T) {
	g := newRig(t, rigOptions{workers: 1, ranks: 1, spec: model.GatewaySpec{RequestTimeoutSecs: 0.1, Retry: true}})
	start := time.Now()
	resp, body := g.post(t, "/v1/chat/completions", `{"behave":"slow"}`)
	if resp.StatusCode != 504 || !strings.Contains(body, "ask for fewer tokens") && !strings.Contains(body, "time limit") || time.Since(start) > 2*time.Second {
		t.Errorf("%d after %v: %s", resp.StatusCode, time.Since(start), body)
	}
	resp, body = g.post(t, "/v1/chat/completions", `{"stream":true,"behave":"stuck"}`)
	if resp.StatusCode != 200 || !strings.Contains(body, "unexpected EOF") {
		t.Errorf("a stream over its time: %d %s", resp.StatusCode, body)
	}
	if len(g.requests()) != 2 || g.inFlight() != 0 {
		t.Errorf("%d requests sent, %d left on the books", len(g.requests()), g.inFlight())
	}
}

// TestCapsHold sends a burst over two ranks of cap 2 and wants never more than two
// at once on a rank, and none lost.
func TestCapsHold(t *testing.T) {
	var mu sync.Mutex
	at, most := map[string]int{}, 0
	g := newRig(t, rigOptions{workers: 1, ranks: 2, cap: 2, handler: func(w http.ResponseWriter, r *http.Request, b string, body []byte) {
		rank := r.Header.Get("X-Data-Parallel-Rank")
		mu.Lock()
		at[rank]++
		most = max(most, at[rank])
		mu.Unlock()
		runtime.Gosched()
		mu.Lock()
		at[rank]--
		mu.Unlock()
		behaves(w, r, b, body)
	}})
	var wg sync.WaitGroup
	var failed atomic.Int64
	for range 100 {
		wg.Go(func() {
			if resp, _ := g.post(t, "/v1/chat/completions", `{}`); resp.StatusCode != 200 {
				failed.Add(1)
			}
		})
	}
	wg.Wait()
	if failed.Load() != 0 || most > 2 || len(g.requests()) != 100 {
		t.Errorf("%d failed, %d at once on a rank, %d arrived", failed.Load(), most, len(g.requests()))
	}
}

func TestQueueTimeLimit(t *testing.T) {
	g := newRig(t, rigOptions{workers: 1, ranks: 1, cap: 1, spec: model.GatewaySpec{QueueTimeoutSecs: 0.05}})
	resp, err := g.send(t.Context(), "/v1/chat/completions", `{"stream":true,"behave":"stuck"}`)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	full, body := g.post(t, "/v1/chat/completions", `{}`)
	if full.StatusCode != 429 || full.Header.Get("Retry-After") == "" || !strings.Contains(body, "no rank had room") || !strings.Contains(body, "rate_limit_error") {
		t.Errorf("%d %v %s", full.StatusCode, full.Header, body)
	}
	if g.inFlight() != 1 {
		t.Errorf("%d on the books", g.inFlight())
	}
}

// TestClientGone is safety 3.5, 23: the engine hears of it within 200 ms.
func TestClientGone(t *testing.T) {
	for _, behave := range []string{"slow", "stuck"} {
		gone := make(chan time.Time, 1)
		g := newRig(t, rigOptions{spec: model.GatewaySpec{Retry: true}, handler: func(w http.ResponseWriter, r *http.Request, b string, body []byte) {
			behaves(w, r, b, body)
			gone <- time.Now()
		}})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			until(t, "the engine has the request", func() bool { return len(g.requests()) == 1 })
			cancel()
		}()
		resp, err := g.send(ctx, "/v1/chat/completions", `{"stream":true,"behave":"`+behave+`"}`)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		start := time.Now()
		if err == nil {
			t.Error("the client was answered")
		}
		if took := (<-gone).Sub(start); took > 200*time.Millisecond {
			t.Errorf("%s: the engine heard of it after %v", behave, took)
		}
		until(t, "the request has ended", func() bool { n, _ := g.Open(); return n == 0 })
		if len(g.requests()) != 1 || g.inFlight() != 0 {
			t.Error("sent again for nobody, or left on the books")
		}
		text := g.get(t, "/metrics")
		if !strings.Contains(text, `adpdeck_gateway_outcomes_total{outcome="cancelled"} 1`) {
			t.Error("not counted as cancelled")
		}
	}
}

func TestClientGoneInTheQueue(t *testing.T) {
	g := newRig(t, rigOptions{workers: 1, ranks: 1, cap: 1})
	resp, err := g.send(t.Context(), "/v1/chat/completions", `{"stream":true,"behave":"stuck"}`)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		until(t, "two are open", func() bool { n, _ := g.Open(); return n == 2 })
		cancel()
	}()
	if _, err := g.send(ctx, "/v1/chat/completions", `{}`); err == nil {
		t.Error("answered")
	}
	until(t, "one is open", func() bool { n, _ := g.Open(); return n == 1 })
	if g.inFlight() != 1 || len(g.requests()) != 1 {
		t.Errorf("%d on the books, %d sent", g.inFlight(), len(g.requests()))
	}
}

// panics is a middleware whose writer panics at the nth write.
type panics struct {
	http.ResponseWriter
	left *atomic.Int64
}

func (p panics) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p panics) Write(b []byte) (int, error) {
	if p.left.Add(-1) == 0 {
		panic("a middleware's mistake")
	}
	return p.ResponseWriter.Write(b)
}

func TestPanics(t *testing.T) {
	var left atomic.Int64
	g := newRig(t, rigOptions{wrap: func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(panics{w, &left}, r) })
	}})
	happened := 0
	for n := int64(1); n <= 3; n++ {
		left.Store(n)
		resp, err := g.send(t.Context(), "/v1/chat/completions", `{"stream":true}`)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		if left.Load() > 0 {
			continue // events came together, in fewer writes
		}
		if happened++; err == nil {
			t.Errorf("panic at write %d: the client saw a whole answer", n)
		}
		until(t, "the books are empty", func() bool { n, _ := g.Open(); return n == 0 && g.inFlight() == 0 })
	}
	left.Store(-1)
	g.engines.ran = func(model.Target, http.Header, []byte) (model.Target, string, bool) { panic("ours") }
	// Whether the head of the answer was on its way decides what the client sees: an
	// answer, or a connection that broke off.
	if resp, err := g.send(t.Context(), "/v1/chat/completions", `{}`); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 && resp.StatusCode != 500 {
			t.Errorf("%d", resp.StatusCode)
		}
	}
	until(t, "the books are empty", func() bool { n, _ := g.Open(); return n == 0 && g.inFlight() == 0 })
	if text := g.get(t, "/metrics"); happened == 0 || !strings.Contains(text, fmt.Sprintf(`outcomes_total{outcome="panic"} %d`, happened+1)) {
		t.Errorf("%d panics, not counted as such", happened)
	}
}

func TestLargeErrorPasses(t *testing.T) {
	g := newRig(t, rigOptions{})
	resp, body := g.post(t, "/v1/chat/completions", `{"behave":"10 MiB error"}`)
	if resp.StatusCode != 500 || len(body) != 10<<20 || g.inFlight() != 0 {
		t.Errorf("%d, %d bytes, %d on the books", resp.StatusCode, len(body), g.inFlight())
	}
}

// TestBooksBalance opens and ends requests in every way there is, in any order,
// and wants the router's bookings to be the open requests at every step.
func TestBooksBalance(t *testing.T) {
	g := newRig(t, rigOptions{workers: 2, ranks: 2, cap: 3, spec: model.GatewaySpec{Retry: true, QueueTimeoutSecs: 0.02}})
	rapid.Check(t, func(rt *rapid.T) {
		type open struct {
			cancel context.CancelFunc
			ended  chan struct{}
		}
		var streams []open
		var lent []string
		check := func(step string) {
			until(t, step+": the books balance", func() bool {
				n, _ := g.Open()
				return n == len(streams) && g.inFlight() == len(streams)+len(lent) && g.leases.len() == len(lent)
			})
		}
		ways := []string{"", "reset", "half header", "mid-stream", "500", "error event"}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch what := rapid.SampledFrom([]string{"whole", "stuck", "leave", "bad", "lend", "return", "lose"}).Draw(rt, "step"); what {
			case "whole":
				way := rapid.SampledFrom(ways).Draw(rt, "way")
				stream := rapid.Bool().Draw(rt, "stream")
				g.post(t, "/v1/chat/completions", fmt.Sprintf(`{"stream":%v,"behave":%q}`, stream, way), "X-Session-ID", rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "conversation"))
			case "stuck":
				if len(streams)+len(lent) >= 12 {
					continue
				}
				ctx, cancel := context.WithCancel(t.Context())
				resp, err := g.send(ctx, "/v1/chat/completions", `{"stream":true,"behave":"stuck"}`)
				if err != nil {
					rt.Fatal(err)
				}
				if resp.StatusCode == 429 {
					cancel()
					resp.Body.Close()
					continue
				}
				o := open{cancel, make(chan struct{})}
				go func() { _, _ = io.Copy(io.Discard, resp.Body); resp.Body.Close(); close(o.ended) }()
				streams = append(streams, o)
			case "leave":
				if len(streams) > 0 {
					i := rapid.IntRange(0, len(streams)-1).Draw(rt, "which")
					streams[i].cancel()
					<-streams[i].ended
					streams = append(streams[:i], streams[i+1:]...)
				}
			case "bad":
				g.post(t, "/v1/chat/completions", `{"model":7}`)
			case "lend":
				if a, status := g.place(t, `{}`); status == 200 {
					lent = append(lent, a.ID)
				}
			case "return":
				if len(lent) > 0 {
					g.end(t, lent[0], "", 204)
					g.end(t, lent[0], "", 404)
					lent = lent[1:]
				}
			case "lose":
				g.clock.ahead.Add(int64(11 * time.Minute))
				g.Tick()
				lent = nil
			}
			check("in between")
		}
		for _, s := range streams {
			s.cancel()
			<-s.ended
		}
		for _, id := range lent {
			g.end(t, id, "?outcome=error", 204)
		}
		streams, lent = nil, nil
		check("at the end")
	})
	if n := g.router.Strays(); n != 0 {
		t.Errorf("%d ends too many", n)
	}
}

// TestManyStreams is safety 3.5, 17, without its ten minutes.
func TestManyStreams(t *testing.T) {
	n, events := 1000, 5
	if testing.Short() {
		n = 200
	}
	next := make(chan struct{})
	g := newRig(t, rigOptions{workers: 2, ranks: 4, handler: func(w http.ResponseWriter, r *http.Request, b string, body []byte) {
		if !strings.Contains(string(body), "stream") {
			behaves(w, r, b, body)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range events {
			_, _ = io.WriteString(w, chunk(i))
			_ = http.NewResponseController(w).Flush()
			if i == 0 {
				select {
				case <-next:
				case <-r.Context().Done():
					return
				}
			}
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}})
	g.post(t, "/v1/embeddings", `{}`) // what runs anyway runs now
	g.rest()
	base := runtime.NumGoroutine()
	var wg sync.WaitGroup
	var whole atomic.Int64
	for range n {
		wg.Go(func() {
			if _, body := g.post(t, "/v1/chat/completions", `{"stream":true}`); strings.Count(body, "data: {") == events && strings.HasSuffix(body, "[DONE]\n\n") {
				whole.Add(1)
			}
		})
	}
	until(t, "all streams are open", func() bool { return g.inFlight() == n })
	close(next)
	wg.Wait()
	if int(whole.Load()) != n {
		t.Errorf("%d of %d streams came whole", whole.Load(), n)
	}
	until(t, "goroutines are back", func() bool { g.rest(); return runtime.NumGoroutine() <= base+5 })
	if g.inFlight() != 0 {
		t.Error("requests are left on the books")
	}
}

// rest closes connections that idle.
func (g *rig) rest() {
	g.client.CloseIdleConnections()
	g.engines.client.CloseIdleConnections()
}
