package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"adpdeck/router"
	"adpdeck/router/engine"
	"adpdeck/router/engine/enginetest"
	"adpdeck/router/engine/steer"
	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

type wall struct{}

func (wall) Now() time.Time { return time.Now() }

// house is a router in front of a fake engine.
type house struct {
	t *testing.T
	r *router.Router
	f *engine.Fleet
	e *enginetest.Engine
}

func newHouse(t *testing.T, cfg enginetest.Config, name func(e *enginetest.Engine, s *model.EngineSpec)) *house {
	t.Helper()
	e, err := enginetest.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	s := model.DefaultSettings()
	s.RouterMode = model.ModeKV
	r, err := router.New(router.Config{Clock: wall{}, Settings: s, MaxRanks: 64})
	if err != nil {
		t.Fatal(err)
	}
	spec := model.EngineSpec{ID: "w", Kind: cfg.Kind, URL: e.URL(model.NoRank)}
	name(e, &spec)
	f, err := engine.New([]model.EngineSpec{spec}, r, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	h := &house{t: t, r: r, f: f, e: e}
	h.until("ready", 10*time.Second, func(s *model.State) bool {
		return len(s.Workers) == 1 && s.Workers[0].Liveness == model.LiveUp && s.Workers[0].BlockTokens > 0 && len(s.Workers[0].Models) == 1
	})
	return h
}

// until waits until the router's state is so.
func (h *house) until(what string, most time.Duration, is func(s *model.State) bool) time.Duration {
	h.t.Helper()
	began := time.Now()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		s := h.r.Snapshot()
		if is(s) {
			return time.Since(began)
		}
		if time.Since(began) > most {
			b, _ := json.MarshalIndent(map[string]any{"workers": s.Workers, "findings": s.Findings, "index": s.Index, "events": s.Events}, "", " ")
			h.t.Fatalf("%s: not within %v: %s", what, most, b)
		}
		<-look.C
	}
}

// run sends a prompt of token ids to a rank.
func (h *house) run(rank int, prompt []uint32) {
	h.t.Helper()
	up, err := h.f.Upstream(model.Target{Worker: "w", Rank: rank}, model.RouteCompletions, "")
	if err != nil {
		h.t.Fatal(err)
	}
	body, _ := json.Marshal(map[string]any{"model": "fake-model", "prompt": prompt, "max_tokens": 2})
	if body, err = steer.Edit(body, up.Body); err != nil {
		h.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, up.Base.JoinPath("/v1/completions").String(), bytes.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header = up.Header
	resp, err := up.Transport.RoundTrip(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	var whole bytes.Buffer
	if _, err := whole.ReadFrom(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		h.t.Fatalf("%d %s %v", resp.StatusCode, &whole, err)
	}
}

func prompt(i int) []uint32 {
	p := make([]uint32, 64+16*(i%5))
	for k := range p {
		p[k] = uint32(1000*i + k + 1)
	}
	return p
}

// agrees reports whether the router knows of each rank's cache what is true.
func (h *house) agrees(prompts int) bool {
	block := h.r.Snapshot().Workers[0].BlockTokens
	hasher, err := prefix.NewHasher(block, prefix.Seed("", ""))
	if err != nil {
		h.t.Fatal(err)
	}
	for i := range prompts {
		p := prompt(i)
		var locals []uint64
		for _, l := range hasher.Locals(nil, p) {
			locals = append(locals, uint64(l))
		}
		for _, m := range h.r.Matches(&model.Request{Locals: locals, BlockTokens: block, PromptTokens: len(p)}) {
			if m.Device != h.e.Holds(m.Target.Rank, p, "", "") {
				return false
			}
		}
	}
	return true
}

// TestTheRoutersIndexIsTheEnginesTruth loses, repeats and swaps batches on their
// way, and has an engine begin anew (safety.md 3.5, tests 12 and 13).
func TestTheRoutersIndexIsTheEnginesTruth(t *testing.T) {
	t.Parallel()
	for _, kind := range []model.EngineKind{model.EngineVLLM, model.EngineSGLang} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, enginetest.Config{
				Kind: kind, Ranks: 2, Blocks: 128,
				Events: enginetest.EventsConfig{Endpoint: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0"},
				Habits: enginetest.Habits{EventHabits: enginetest.EventHabits{DropEvery: 5, DuplicateEvery: 7, ReorderEvery: 9}},
			}, func(e *enginetest.Engine, s *model.EngineSpec) {
				s.Events.RankEndpoints = []string{e.EventEndpoint(0), e.EventEndpoint(1)}
				s.Events.RankReplays = []string{e.ReplayEndpoint(0), e.ReplayEndpoint(1)}
			})
			h.until("heard", 10*time.Second, func(*model.State) bool { return h.e.Subscribers(0) > 0 && h.e.Subscribers(1) > 0 })
			for i := range 40 {
				h.run(i%2, prompt(i))
			}
			if err := h.e.Set(func(b *enginetest.Habits) { b.EventHabits = enginetest.EventHabits{} }); err != nil {
				t.Fatal(err)
			}
			h.run(0, prompt(40)) // whose batch shows what was lost before it
			h.run(1, prompt(41))
			took := h.until("the truth", 10*time.Second, func(s *model.State) bool { return h.agrees(42) })
			t.Logf("true after %v", took)
			gaps := uint64(0)
			for _, row := range h.r.Snapshot().Index {
				gaps += row.Gaps
			}
			if gaps == 0 {
				t.Error("no gap was seen, so none was closed")
			}
			if err := h.e.Restart(1); err != nil {
				t.Fatal(err)
			}
			h.until("heard again", 10*time.Second, func(*model.State) bool { return h.e.Subscribers(1) > 0 })
			h.run(1, prompt(43))
			h.until("the truth after a restart", 10*time.Second, func(s *model.State) bool { return h.agrees(44) })
		})
	}
}

func TestTheRouterShowsWhatTheFleetTells(t *testing.T) {
	t.Parallel()
	for _, kind := range []model.EngineKind{model.EngineVLLM, model.EngineSGLang, model.EngineTRTLLM} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, enginetest.Config{Kind: kind, Ranks: 4}, func(_ *enginetest.Engine, s *model.EngineSpec) {
				if kind == model.EngineTRTLLM {
					s.Ranks, s.BlockTokens = 4, 32
				}
			})
			h.until("metrics", 10*time.Second, func(s *model.State) bool {
				w := s.Workers[0]
				fresh := kind == model.EngineTRTLLM // which says nothing before it has worked
				for _, f := range w.Feeds {
					fresh = fresh || f.Name == model.FeedMetrics && f.State == model.FeedLive
				}
				return w.Ranks == 4 && w.Engine == string(kind) && w.Address == h.e.URL(model.NoRank) && fmt.Sprint(w.Models) == "[fake-model]" && fresh
			})
			if kind == model.EngineTRTLLM {
				h.run(model.NoRank, prompt(1))
				h.until("metrics", 10*time.Second, func(s *model.State) bool {
					for _, f := range s.Workers[0].Feeds {
						if f.Name == model.FeedMetrics {
							return f.State == model.FeedLive
						}
					}
					return false
				})
			}
			h.e.Kill()
			if took := h.until("down", 5*time.Second, func(s *model.State) bool { return s.Workers[0].Liveness == model.LiveDown }); took > 3*time.Second {
				t.Errorf("down after %v", took)
			}
			if err := h.e.Revive(t.Context()); err != nil {
				t.Fatal(err)
			}
			if took := h.until("up", 8*time.Second, func(s *model.State) bool { return s.Workers[0].Liveness == model.LiveUp }); took > 5*time.Second {
				t.Errorf("up after %v", took)
			}
		})
	}
}
