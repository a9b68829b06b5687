package enginetest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"
)

func TestKillAndRevive(t *testing.T) {
	e := newEngine(t, enginetest.Config{
		Kind: model.EngineVLLM, Ranks: 2, Events: enginetest.EventsConfig{Endpoint: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0"},
		Habits: enginetest.Habits{HTTPHabits: enginetest.HTTPHabits{}},
	})
	fill(t, e, 0, 1)
	prompt := enginetest.Tokenize("prompt number 0 of rank 0 with some words more to fill a block of tokens")
	if e.Holds(0, prompt, "", "") == 0 {
		t.Fatal("nothing cached")
	}
	p := hear(t, e, 0)
	addr, events := e.Addr(model.NoRank), e.EventEndpoint(0)
	set(t, e, func(h *enginetest.Habits) { h.NoFirstToken = true })
	running := begin(context.Background(), t, e, http.MethodPost, "/v1/chat/completions", chat("x", object{"stream": true}))
	eventually(t, "a request", func() bool { return e.Open() == 1 })
	e.Kill()
	if err := <-running; err == nil {
		t.Error("a request outlived its engine")
	}
	if err := <-begin(context.Background(), t, e, http.MethodGet, "/health", ""); err == nil {
		t.Error("a dead engine is healthy")
	}
	if err := e.Restart(model.NoRank); err == nil {
		t.Error("a dead engine restarted")
	}
	if err := e.Revive(context.Background()); err != nil {
		t.Fatal(err)
	}
	set(t, e, func(h *enginetest.Habits) { h.NoFirstToken = false })
	if e.Addr(model.NoRank) != addr || e.EventEndpoint(0) != events {
		t.Errorf("it came back at %s and %s", e.Addr(model.NoRank), e.EventEndpoint(0))
	}
	if n := e.Holds(0, prompt, "", ""); n != 0 {
		t.Errorf("%d tokens outlived the process", n)
	}
	eventually(t, "the subscriber's return", func() bool { return e.Subscribers(0) == 1 })
	fill(t, e, 0, 1)
	eventually(t, "batch 0 again", func() bool { n := p.numbers(); return len(n) == 1 && n[0] == 0 })
}

func TestRestartOfOneRank(t *testing.T) {
	e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM, Ranks: 2, Habits: enginetest.Habits{HTTPHabits: enginetest.HTTPHabits{NoFirstToken: true}}})
	var done []<-chan error
	for range 2 { // the balance puts one on each rank
		done = append(done, begin(context.Background(), t, e, http.MethodPost, "/v1/chat/completions", chat("x", nil)))
	}
	eventually(t, "two requests", func() bool { return e.Open() == 2 })
	if err := e.Restart(1); err != nil {
		t.Fatal(err)
	}
	set(t, e, func(h *enginetest.Habits) { h.NoFirstToken = false })
	failed := 0
	for _, d := range done {
		if err := <-d; err != nil {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d of 2 requests failed with rank 1, want 1", failed)
	}
}

func TestPortForEachRank(t *testing.T) {
	e, err := enginetest.New(enginetest.Config{Kind: model.EngineVLLM, Ranks: 2, Timing: instant()})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(context.Background(), "127.0.0.1:0", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if e.Addr(model.NoRank) != "" || e.Addr(0) == e.Addr(1) || e.Addr(2) != "" {
		t.Errorf("addresses %q %q", e.Addr(0), e.Addr(1))
	}
	for rank := range 2 {
		for header, want := range map[string]int{"": 200, "0": 200, "1": 400} {
			req, _ := http.NewRequest(http.MethodPost, e.URL(rank)+"/v1/chat/completions", strings.NewReader(chat("x", nil)))
			req.Header.Set("X-Data-Parallel-Rank", header)
			resp, err := client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("rank %q asked of rank %d's port: %d, want %d", header, rank, resp.StatusCode, want)
			}
			if want != 200 {
				continue
			}
			if s := last(t, e); s.Ran != rank {
				t.Errorf("port %d ran on %d", rank, s.Ran)
			}
		}
		resp, err := client().Get(e.URL(rank) + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if strings.Contains(string(text), fmt.Sprintf(`running{engine="%d"`, 1-rank)) || !strings.Contains(string(text), fmt.Sprintf(`running{engine="%d"`, rank)) {
			t.Errorf("rank %d's page:\n%s", rank, text)
		}
	}
}

func TestStartErrors(t *testing.T) {
	e := newEngine(t, enginetest.Config{Kind: model.EngineTRTLLM, Ranks: 2})
	if err := e.Start(context.Background(), "127.0.0.1:0"); !errors.Is(err, enginetest.ErrStarted) {
		t.Errorf("a second start: %v", err)
	}
	f, err := enginetest.New(enginetest.Config{Kind: model.EngineTRTLLM, Ranks: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Start(context.Background(), "127.0.0.1:0", "127.0.0.1:0"); err == nil {
		t.Error("trtllm-serve has a port for each rank")
	}
	if err := f.Start(context.Background(), e.Addr(model.NoRank)); err == nil {
		t.Error("two engines on one port")
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := f.Start(ctx, "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	cancel()
	eventually(t, "the end with its context", func() bool {
		_, err := client().Get(f.URL(model.NoRank) + "/health")
		return err != nil
	})
}

// TestSteps follows one request by the clock: 800 tokens of prompt at 8,000 a
// second, then a step of 6.35 ms for each further token.
func TestSteps(t *testing.T) {
	clock := newManual()
	e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM, Clock: clock, Timing: enginetest.Timing{PrefillTokensPerSecond: 8000}})
	ids := make([]int, 800)
	done := begin(context.Background(), t, e, http.MethodPost, "/v1/completions", marshal(object{"model": "fake-model", "prompt": ids, "max_tokens": 3, "ignore_eos": true}))
	eventually(t, "the first step", func() bool { return clock.waiting() == 1 })
	start := clock.Now()
	clock.advance(99 * time.Millisecond)
	series, _, _ := page(t, e, "/metrics")
	if got := series[`vllm:generation_tokens_total{engine="0",model_name="fake-model"}`]; got != "0" {
		t.Errorf("%s tokens after 99 ms", got)
	}
	for range 50 {
		if e.Open() == 0 {
			break
		}
		clock.advance(time.Millisecond)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if took := clock.Now().Sub(start); took != 113*time.Millisecond { // 100 + 2·6.35, whole milliseconds
		t.Errorf("the answer took %v, want 113 ms", took)
	}
}

// TestBarrier: an idle rank's neighbour decodes as slowly as the busiest.
func TestBarrier(t *testing.T) {
	for barrier, want := range map[bool]string{true: "0", false: "1"} {
		clock := newManual()
		e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM, Ranks: 2, Clock: clock, Timing: enginetest.Timing{PrefillTokensPerSecond: 1000, Barrier: barrier}, Habits: enginetest.Habits{HTTPHabits: enginetest.HTTPHabits{NoFirstToken: true}}})
		var g sync.WaitGroup
		for rank, n := range []int{1000, 10} { // a second, and 10 ms
			g.Go(func() {
				req, _ := http.NewRequest(http.MethodPost, e.URL(model.NoRank)+"/v1/completions", strings.NewReader(marshal(object{"model": "fake-model", "prompt": make([]int, n), "max_tokens": 1})))
				req.Header.Set("X-Data-Parallel-Rank", fmt.Sprint(rank))
				if resp, err := client().Do(req); err == nil {
					resp.Body.Close()
				}
			})
		}
		eventually(t, "two requests", func() bool { return e.Open() == 2 })
		set(t, e, func(h *enginetest.Habits) { h.NoFirstToken = false })
		clock.advance(20 * time.Millisecond)
		series, _, _ := page(t, e, "/metrics")
		if got := series[`vllm:generation_tokens_total{engine="1",model_name="fake-model"}`]; got != want {
			t.Errorf("barrier %v: rank 1 has %s tokens after 20 ms, want %s", barrier, got, want)
		}
		clock.advance(time.Second)
		g.Wait()
	}
}

// TestPreemption: two answers outgrow a cache that held both prompts; the later
// one waits and comes through all the same.
func TestPreemption(t *testing.T) {
	e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM, Blocks: 12, BlockTokens: 8, Habits: enginetest.Habits{HTTPHabits: enginetest.HTTPHabits{NoFirstToken: true}}})
	var done []<-chan error
	for i := range 2 {
		ids := make([]int, 30)
		ids[0] = i
		done = append(done, begin(context.Background(), t, e, http.MethodPost, "/v1/completions", marshal(object{"model": "fake-model", "prompt": ids, "max_tokens": 60, "ignore_eos": true})))
	}
	eventually(t, "two requests", func() bool { return e.Open() == 2 })
	set(t, e, func(h *enginetest.Habits) { h.NoFirstToken = false })
	for _, d := range done {
		if err := <-d; err != nil {
			t.Error(err)
		}
	}
	series, _, _ := page(t, e, "/metrics")
	if series[`vllm:num_preemptions_total{engine="0",model_name="fake-model"}`] == "0" {
		t.Error("nobody was preempted")
	}
	for _, s := range e.Served() {
		if s.OutputTokens != 60 || s.Aborted {
			t.Errorf("served %+v", s)
		}
	}
}

// TestManyStreams holds a thousand streams at once.
func TestManyStreams(t *testing.T) {
	if testing.Short() {
		t.Skip("a thousand streams are for the long run")
	}
	const streams = 1000
	e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM, Ranks: 8, Timing: enginetest.Timing{PrefillTokensPerSecond: 1e6, DecodeBase: 50 * time.Millisecond, DecodePerRequest: 1}})
	base := runtime.NumGoroutine()
	tr := &http.Transport{MaxIdleConnsPerHost: streams}
	c := &http.Client{Transport: tr, Timeout: time.Minute}
	var g sync.WaitGroup
	var failed sync.Map
	for i := range streams {
		g.Go(func() {
			resp, err := c.Post(e.URL(model.NoRank)+"/v1/chat/completions", "application/json", strings.NewReader(chat(fmt.Sprint("stream ", i), object{"stream": true, "max_tokens": 20, "ignore_eos": true})))
			if err != nil {
				failed.Store(i, err)
				return
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err != nil || !strings.HasSuffix(string(text), "data: [DONE]\n\n") {
				failed.Store(i, fmt.Sprint(err, len(text)))
			}
		})
	}
	g.Wait()
	failed.Range(func(k, v any) bool { t.Errorf("stream %v: %v", k, v); return true })
	tr.CloseIdleConnections()
	eventually(t, "goroutines back to base", func() bool { return runtime.NumGoroutine() <= base+5 })
	if n := e.Open(); n != 0 {
		t.Errorf("%d requests left", n)
	}
}

func TestQueueIsBounded(t *testing.T) {
	e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM, MaxActive: 1, MaxWaiting: 2, Habits: enginetest.Habits{HTTPHabits: enginetest.HTTPHabits{NoFirstToken: true}}})
	var done []<-chan error
	for range 2 {
		done = append(done, begin(context.Background(), t, e, http.MethodPost, "/v1/chat/completions", chat("x", nil)))
	}
	eventually(t, "a full queue", func() bool { return e.Open() == 2 })
	if resp, _ := call(t, e, http.MethodPost, "/v1/chat/completions", chat("x", nil)); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("beyond the queue: %d", resp.StatusCode)
	}
	set(t, e, func(h *enginetest.Habits) { h.NoFirstToken = false })
	for _, d := range done {
		if err := <-d; err != nil {
			t.Error(err)
		}
	}
}
