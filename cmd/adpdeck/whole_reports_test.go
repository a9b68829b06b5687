package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"
)

// The tests below are the public reports that a product of this kind must get
// right, each seen from outside.

// TestEventEncodings is A1: both encodings in one life of an engine, and events
// that cannot be read are counted and shown with the last error.
func TestEventEncodings(t *testing.T) {
	t.Parallel()
	w := stand(t, nil, enginetest.Config{})
	n := 0
	more := func() {
		w.good(ask{path: "/v1/completions", tokens: tokens(n), at: fmt.Sprint("w0/", n%2)})
		n++
	}
	for i := range 16 {
		w.bad(fmt.Sprintf(`{"form": %q, "hash": %q}`, []string{"array", "map"}[i%2], []string{"unsigned", "signed", "bytes"}[i%3]))
		more()
	}
	w.until("the index is true", func(*model.State) bool { return w.agrees(0, n) })
	w.bad(`{"form": "array", "fields": 3}`) // without token ids
	for range 4 {
		w.good(ask{path: "/v1/completions", tokens: tokens(900 + n), at: "w0/1"})
		n++
	}
	w.until("what cannot be read is shown", func(s *model.State) bool {
		bad, good := indexOf(s, "w0", 1), indexOf(s, "w0", 0)
		return bad.Refused >= 4 && strings.Contains(bad.LastError, "missing_field") && good.Refused == 0
	})
	w.closed()
}

// TestReplayFramings is A2: gaps are closed whether replays carry the topic or
// not, and nothing is applied twice.
func TestReplayFramings(t *testing.T) {
	t.Parallel()
	for _, framing := range []string{"old", "new"} {
		t.Run(framing, func(t *testing.T) {
			t.Parallel()
			w := stand(t, nil, enginetest.Config{Habits: enginetest.Habits{EventHabits: enginetest.EventHabits{Framing: framing}}})
			r := rand.New(rand.NewPCG(1, 2))
			for n := 0; n < 60; {
				rank := r.IntN(2)
				lost := r.IntN(4)
				if err := w.engines[0].DropBatches(rank, lost); err != nil {
					t.Fatal(err)
				}
				for range lost + 1 {
					w.good(ask{path: "/v1/completions", tokens: tokens(n), at: fmt.Sprint("w0/", rank), most: 1})
					n++
				}
				w.until("the gap is closed", func(s *model.State) bool {
					return w.agrees(0, n) && indexOf(s, "w0", rank).Feed != model.FeedGap
				})
			}
			s := w.h.live.Snapshot()
			for rank := range 2 {
				if row := indexOf(s, "w0", rank); row.Feed != model.FeedLive || row.Gaps == 0 || row.Restarts != 0 || row.Doubtful != 0 {
					t.Errorf("%+v", row)
				}
			}
			w.closed()
		})
	}
}

// hybrid are two nodes of one deployment with two ranks each.
func hybrid(p *plan) {
	for i := range p.serve.Workers {
		p.serve.Workers[i].Group = "moe"
	}
}

// TestGlobalRanks is A3: a rank is asked of its node in the numbers that this
// node expects, whoever asks and in whatever numbers.
func TestGlobalRanks(t *testing.T) {
	t.Parallel()
	for _, kind := range []model.EngineKind{model.EngineVLLM, model.EngineSGLang} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			numbers := model.NumbersLocal
			if kind == model.EngineSGLang {
				numbers = model.NumbersGlobal
			}
			w := stand(t, hybrid, enginetest.Config{Kind: kind, Numbers: numbers}, enginetest.Config{Kind: kind, Numbers: numbers, StartRank: 2})
			w.good(ask{text: "first", conv: "c"})
			w.ctlOK("pin", "c", "w1/1")
			for turn := range 3 {
				w.good(ask{text: fmt.Sprint("turn ", turn), conv: "c"})
			}
			w.good(ask{text: "asked for by its global number", header: []string{"X-Data-Parallel-Rank", "3"}})
			all := w.engines[1].Served()
			if len(all) < 4 {
				t.Fatalf("%d requests reached node 1", len(all))
			}
			for _, s := range all[len(all)-4:] {
				if s.Ran != 1 || s.Asked != 1 {
					t.Errorf("%+v", s)
				}
			}
			_, told, code := w.ctl("pin", "c", "w1/2")
			if code == 0 || !strings.Contains(told, "no such rank") {
				t.Errorf("a pin to a rank that no worker has: %d %s", code, told)
			}
			got := w.send(ask{text: "nobody has it", header: []string{"X-Data-Parallel-Rank", "4"}})
			if got.status != 400 || !strings.Contains(got.body, "which no worker has") {
				t.Errorf("%d %s", got.status, got.body)
			}
			w.closed()
		})
	}
}

// TestRankRangesAreRefused is A3's other half: a hole or an overlap does not start.
func TestRankRangesAreRefused(t *testing.T) {
	for start, want := range map[int]string{1: "overlap", 3: "hole"} {
		p := plan{settings: model.DefaultSettings()}
		p.serve.Workers = []model.EngineSpec{
			{ID: "w0", Kind: model.EngineVLLM, URL: "http://127.0.0.1:1", Group: "moe", Ranks: 2},
			{ID: "w1", Kind: model.EngineVLLM, URL: "http://127.0.0.1:2", Group: "moe", Ranks: 2, StartRank: start},
		}
		if _, err := newHouse(p, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("start rank %d: %v, want %q", start, err, want)
		}
	}
}

// TestIgnoredPins is A4: SGLang honours a rank on some routes and answers 200 on
// all; the console says which within three requests.
//
// It runs by itself: where a tokeniser is slower than a request waits for it there
// is nothing to prove with.
func TestIgnoredPins(t *testing.T) {
	w := stand(t, nil, enginetest.Config{Kind: model.EngineSGLang})
	w.good(ask{text: "first", conv: "c"})
	w.ctlOK("pin", "c", "w0/1")
	routes := map[string]model.Route{
		"/v1/chat/completions": model.RouteChat, "/v1/completions": model.RouteCompletions,
		"/v1/responses": model.RouteResponses, "/v1/embeddings": model.RouteEmbeddings,
	}
	for path := range routes {
		for turn := range 3 { // one after the other: this engine takes ranks in turn
			w.good(ask{path: path, text: words(fmt.Sprint(path, turn), 80), conv: "c"})
		}
	}
	proof := func(s *model.State, r model.Route) model.SteeringProof {
		for _, p := range workerOf(s, "w0").Proofs {
			if p.Route == r {
				return p
			}
		}
		return model.SteeringProof{}
	}
	more := time.Now().Add(4 * time.Second)
	w.until("pin not honoured on responses", func(s *model.State) bool {
		if time.Now().After(more) { // tokenisers that are slow leave nothing to prove with
			w.good(ask{path: "/v1/responses", text: words(more.String(), 80), conv: "c"})
			more = time.Now().Add(300 * time.Millisecond)
		}
		f, ok := found(s, model.FindingPinNotHonoured, "w0")
		return ok && strings.Contains(f.Message, "responses") && f.Next != ""
	})
	w.until("honoured elsewhere", func(s *model.State) bool {
		for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
			if p := proof(s, routes[path]); p.Honoured < p.Asked-1 && p.Honoured < 3 {
				if time.Now().After(more) {
					w.good(ask{path: path, text: words(more.String(), 80), conv: "c"})
					more = time.Now().Add(300 * time.Millisecond)
				}
				return false
			}
		}
		return true
	})
	s := w.h.live.Snapshot()
	for path, r := range routes {
		p := proof(s, r)
		t.Logf("%s: %+v", path, p)
		if p.Asked < 3 || (r == model.RouteChat || r == model.RouteCompletions) && p.Ignored != 0 || r == model.RouteResponses && p.Ignored < 2 {
			t.Errorf("%s: %+v", path, p)
		}
	}
	if out := w.ctlOK("get", "workers"); !strings.Contains(out, "sglang") {
		t.Errorf("ctl get workers:\n%s", out)
	}
	// Switched off on chat as well, it is noticed there too, and forgiven later.
	w.bad(`{"ignore_rank": ["chat"]}`)
	more = time.Now()
	chat := func() { // a turn now and then: this engine takes ranks in turn
		if time.Now().After(more) {
			w.good(ask{text: words(more.String(), 80), conv: "c"})
			more = time.Now().Add(200 * time.Millisecond)
		}
	}
	w.until("pin not honoured on chat", func(s *model.State) bool {
		chat()
		f, ok := foundSaying(s, model.FindingPinNotHonoured, "chat")
		return ok && f.Target.Worker == "w0"
	})
	w.mended()
	w.until("honoured again", func(s *model.State) bool {
		chat()
		_, ok := foundSaying(s, model.FindingPinNotHonoured, "chat")
		return !ok
	})
	w.closed()
}

// TestModelsShareNoPins is A5: a conversation that uses several models keeps its
// place at each.
func TestModelsShareNoPins(t *testing.T) {
	t.Parallel()
	models := []string{"m0", "m1", "m2", "m3", "m4"}
	cfg := enginetest.Config{Models: models, Ranks: 4, Timing: enginetest.Timing{Instant: true}}
	w := stand(t, nil, cfg, cfg)
	convs := 100
	if testing.Short() {
		convs = 20
	}
	each(8, convs, func(i int) {
		home := map[string]model.Target{}
		for turn := range 2 {
			for _, m := range models {
				got := w.send(ask{model: m, text: words(fmt.Sprint("conversation ", i, m), 20+turn), conv: fmt.Sprint("k", i), most: 1})
				if was, ok := home[m]; !got.ok() || ok && was != got.target {
					t.Errorf("k%d at %s: %d, from %s to %s", i, m, got.status, was, got.target)
				}
				home[m] = got.target
			}
		}
	})
	s := w.h.live.Snapshot()
	if len(s.Convs) != convs*len(models) {
		t.Errorf("%d conversations", len(s.Convs))
	}
	for _, c := range s.Convs {
		if c.Moves != 0 || c.Turns != 2 {
			t.Errorf("%+v", c)
		}
	}
	w.closed()
}

// each runs f for 0 to n-1, a few at a time.
func each(workers, n int, f func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range workers {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// TestTenantsShareNoPins is A6: two keys with the same session id have a pin each,
// and evicting one leaves the other.
func TestTenantsShareNoPins(t *testing.T) {
	t.Parallel()
	w := stand(t, nil, enginetest.Config{Ranks: 4})
	key := func(k string) []string { return []string{"Authorization", "Bearer " + k} }
	a := w.good(ask{text: words("a", 40), conv: "chat-1", header: key("sk-a"), at: "w0/1"}).target
	b := w.good(ask{text: words("b", 40), conv: "chat-1", header: key("sk-b"), at: "w0/2"}).target
	s := w.h.live.Snapshot()
	if len(s.Convs) != 2 || s.Convs[0].Key.Tenant == s.Convs[1].Key.Tenant || s.Convs[0].Key.Tenant == "" || a == b {
		t.Fatalf("%d conversations, at %s and %s", len(s.Convs), a, b)
	}
	of := func(text string, k string) model.Target {
		return w.good(ask{text: words(text, 40), conv: "chat-1", header: key(k)}).target
	}
	if got := of("a", "sk-a"); got != a {
		t.Errorf("a went from %s to %s", a, got)
	}
	w.until("the console knows both", func(*model.State) bool { return strings.Count(w.ctlOK("get", "convs"), "chat-1") == 2 })
	_, told, code := w.ctl("evict", "chat-1")
	if code == 0 || !strings.Contains(told, "--tenant") {
		t.Errorf("which of two is not asked: %d %s", code, told)
	}
	tenantOf := func(at model.Target) string {
		for _, c := range w.h.live.Snapshot().Convs {
			if c.Last == at {
				return c.Key.Tenant
			}
		}
		return ""
	}
	w.ctlOK("evict", "chat-1", "--tenant", tenantOf(a))
	for _, c := range w.h.live.Snapshot().Convs {
		if bound := c.Pin != model.PinNone; bound != (c.Last == b) {
			t.Errorf("after the eviction of one: %+v", c)
		}
	}
	if got := of("b", "sk-b"); got != b {
		t.Errorf("b went from %s to %s", b, got)
	}
	if out := w.ctlOK("get", "convs"); !strings.Contains(out, tenantOf(b)) {
		t.Errorf("the tenant is not shown:\n%s", out)
	}
	w.closed()
}

// TestEveryRouteCounts is A9: what is open on any route is on the books, at each
// step, and health checks touch none of it.
func TestEveryRouteCounts(t *testing.T) {
	t.Parallel()
	w := stand(t, nil, enginetest.Config{}, enginetest.Config{})
	for _, e := range w.engines {
		if err := e.SetJSON([]byte(`{"on": ["openai"], "half_open": true}`)); err != nil {
			t.Fatal(err)
		}
	}
	paths := []string{"/v1/embeddings", "/v1/responses", "/v1/chat/completions", "/v1/completions"}
	const n = 40
	var cancels []context.CancelFunc
	results := make(chan answer, n)
	open := func(want int, what string) {
		t.Helper()
		w.until(fmt.Sprintf("%s: %d are open", what, want), func(s *model.State) bool {
			b := w.books()
			if b.carried == want && b.booked != b.carried {
				// Between the two counts one may have come or gone: look again.
				b = w.books()
			}
			return b.carried == want && b.booked == want && s.Totals.Open == want
		})
	}
	for i := range n {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		cancels = append(cancels, cancel)
		go func() {
			results <- w.send(ask{ctx: ctx, path: paths[i%len(paths)], text: fmt.Sprint("request ", i), stream: i%8 > 3 && i%4 != 0})
		}()
		open(i+1, "opening")
		if resp, err := w.http.Get(w.url + "/health"); err != nil || read(resp).status != 200 {
			t.Errorf("/health: %v", err)
		}
	}
	for _, r := range w.h.live.Snapshot().Ranks {
		if r.InFlight < n/8 || r.InFlight > n*3/8 {
			t.Errorf("%d of %d on %s", r.InFlight, n, r.Target)
		}
	}
	for i := range n / 2 {
		cancels[2*i]()
		open(n-i-1, "leaving")
	}
	for _, e := range w.engines {
		if err := e.SetJSON([]byte(`{"half_open": false}`)); err != nil {
			t.Fatal(err)
		}
	}
	answered := 0
	for range n {
		if a := <-results; a.ok() {
			answered++
		}
	}
	if answered != n/2 {
		t.Errorf("%d of %d were answered", answered, n/2)
	}
	w.closed()
	if page := w.metrics(); !strings.Contains(page, fmt.Sprintf("adpdeck_gateway_outcomes_total{outcome=\"cancelled\"} %d\n", n/2)) {
		t.Error("those who left are not counted")
	}
}

// TestFiguresOfEachRank is A10: one figure for each rank, a worker's total is the
// sum, and a rank that is left out is unknown.
func TestFiguresOfEachRank(t *testing.T) {
	t.Parallel()
	for _, ranks := range []int{1, 4, 16} {
		t.Run(fmt.Sprint(ranks), func(t *testing.T) {
			t.Parallel()
			slow := slowPair()[0]
			slow.Ranks = ranks
			w := stand(t, nil, slow)
			last := fmt.Sprint("w0/", ranks-1)
			h := w.hold(3, last)
			defer h.release()
			w.until("each rank has its own figure", func(s *model.State) bool {
				total := 0
				for _, r := range s.Ranks {
					if r.ReportedAt.IsZero() {
						return false
					}
					total += r.Active
				}
				return total == 3 && rankOf(s, "w0", ranks-1).Active == 3
			})
			if ranks == 1 {
				return // a page that leaves its only rank out says nothing
			}
			for _, missing := range []int{0, ranks / 2, ranks - 1} {
				w.bad(fmt.Sprintf(`{"missing_ranks": [%d]}`, missing))
				w.until("it is unknown, and it alone", func(s *model.State) bool {
					for _, r := range s.Ranks {
						if r.ReportedAt.IsZero() != (r.Target.Rank == missing) {
							return false
						}
					}
					return workerOf(s, "w0").Ranks == ranks
				})
			}
		})
	}
}

// TestKeylessTrafficSpreads is A14: without any id the load decides, in every mode.
func TestKeylessTrafficSpreads(t *testing.T) {
	t.Parallel()
	for _, mode := range []model.RouterMode{model.ModeKV, model.ModeLockstep, model.ModeRoundRobin, model.ModeLeastLoaded} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			// An engine that the machine is too busy to run misses its checks and
			// rightly gets nothing: that run shows nothing.
			for try := 1; !keyless(t, mode); try++ {
				if try == 5 {
					t.Skip("the machine is too busy to keep two engines alive while 800 requests are opened")
				}
			}
		})
	}
}

// keyless opens 800 requests and looks where they went. It reports whether both
// engines were up all the time.
func keyless(t *testing.T, mode model.RouterMode) bool {
	t.Helper()
	// No answer comes, so that all are open at a time and nothing but the router's
	// own books decides.
	silent := enginetest.Config{Ranks: 4, Habits: enginetest.Habits{HTTPHabits: enginetest.HTTPHabits{On: []string{"openai"}, HalfOpen: true}}}
	w := stand(t, func(p *plan) { p.settings.RouterMode = mode }, silent, silent)
	defer w.stop()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const n, atOnce = 800, 40
	up := func() bool { return !w.missed("w0") && !w.missed("w1") }
	var clients sync.WaitGroup
	for i := range n {
		clients.Go(func() { w.send(ask{ctx: ctx, path: "/v1/completions", tokens: chain(uint64(i), 4)}) })
		if (i+1)%atOnce == 0 {
			w.until("they are open", func(s *model.State) bool { return s.Totals.Open == i+1 || !up() })
		}
	}
	s := w.h.live.Snapshot()
	t.Log(spreadOf(s))
	if !up() {
		cancel()
		clients.Wait()
		return false
	}
	for _, r := range s.Ranks {
		if r.Requests < 80 || r.Requests > 120 {
			t.Errorf("%d of 800 went to %s", r.Requests, r.Target)
		}
	}
	if s.Totals.Keyless != n || len(s.Convs) != 0 {
		t.Errorf("%d keyless, %d conversations", s.Totals.Keyless, len(s.Convs))
	}
	cancel()
	clients.Wait()
	w.closed()
	return true
}

// spreadOf is how many requests each rank got.
func spreadOf(s *model.State) (n []uint64) {
	for _, r := range s.Ranks {
		n = append(n, r.Requests)
	}
	return n
}

// TestRestartsAndLateBatches is A13: a restart costs the old blocks their credit
// at once and is shown; a batch that comes late or twice is none.
func TestRestartsAndLateBatches(t *testing.T) {
	t.Parallel()
	w := stand(t, nil, enginetest.Config{}, enginetest.Config{})
	n := 0
	more := func(k int) {
		for range k {
			w.good(ask{path: "/v1/completions", tokens: tokens(n), at: fmt.Sprint("w0/", n%2)})
			n++
		}
	}
	w.bad(`{"duplicate_every": 2}`)
	more(8)
	w.bad(`{"duplicate_every": 0, "reorder_every": 3}`)
	more(9)
	w.mended()
	more(4)
	w.until("the index is true", func(*model.State) bool { return w.agrees(0, n) })
	if s := w.h.live.Snapshot(); workerOf(s, "w0").Restarts != 0 || indexOf(s, "w0", 0).Restarts+indexOf(s, "w0", 1).Restarts != 0 {
		t.Errorf("a late batch is taken for a restart: %+v", s.Index)
	}
	bound := w.good(ask{text: words("bound", 60), conv: "c", at: "w0/1"}).target
	if err := w.engines[0].Restart(model.NoRank); err != nil {
		t.Fatal(err)
	}
	w.heard(w.engines[0])
	began := time.Now()
	more(2) // the first batch of each rank tells
	w.until("no old block counts", func(*model.State) bool { return w.agrees(0, n) })
	t.Logf("true %v after the restart", time.Since(began))
	w.until("it is shown", func(s *model.State) bool { return workerOf(s, "w0").Restarts == 1 })
	moved := w.good(ask{text: words("bound", 60), conv: "c"}).target
	for range 4 {
		if got := w.good(ask{text: words("bound", 60), conv: "c"}).target; got != moved {
			t.Errorf("c flaps: from %s to %s, then to %s", bound, moved, got)
		}
	}
	if got := workerOf(w.h.live.Snapshot(), "w0").Restarts; got != 1 {
		t.Errorf("one restart was counted %d times", got)
	}
	w.closed()
}
