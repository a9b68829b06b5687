package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"adpdeck/router"
	"adpdeck/router/engine"
	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"
)

var _ Engines = (*engine.Fleet)(nil)

// before is a gateway, a router and a fleet before fake engines.
type before struct {
	*Gateway
	router *router.Router
	url    string
	client *http.Client
}

func standBefore(t *testing.T, spec model.GatewaySpec, workers ...model.EngineSpec) *before {
	t.Helper()
	clock := &wallClock{}
	cfg := router.Config{Clock: clock, Record: true, MaxRanks: 64}
	cfg.Settings.RouterMode = model.ModeKV
	cfg.Settings.AttentionDpConfig = model.DefaultAttentionDpConfig()
	cfg.Settings.ClusterConfig = model.DefaultClusterConfig()
	r, err := router.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	fleet, err := engine.New(workers, r, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- fleet.Run(ctx) }()
	g, err := New(Options{Router: r, Engines: fleet, Spec: spec, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(g)
	b := &before{Gateway: g, router: r, url: server.URL, client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(func() {
		b.client.CloseIdleConnections()
		g.Drain(context.Background())
		server.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *before) post(t *testing.T, path, body, conv string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Session-ID", conv)
	resp, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(all)
}

// TestBeforeFakesOfEachKind talks to a fake of each kind in conversations that
// grow, streamed and whole.
func TestBeforeFakesOfEachKind(t *testing.T) {
	zmqEvents := enginetest.EventsConfig{Endpoint: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0"}
	fast := enginetest.Timing{PrefillTokensPerSecond: 1e6, DecodeBase: time.Millisecond, DecodePerRequest: time.Microsecond}
	for name, tt := range map[string]struct {
		cfg   enginetest.Config
		tells bool // the engine says what it had cached
		picks bool // and picks the rank
	}{
		"vllm":   {enginetest.Config{Kind: model.EngineVLLM, Ranks: 2, Events: zmqEvents, Timing: fast}, true, false},
		"sglang": {enginetest.Config{Kind: model.EngineSGLang, Ranks: 2, Events: zmqEvents, Timing: fast}, true, false},
		"trtllm": {enginetest.Config{Kind: model.EngineTRTLLM, Ranks: 2, Timing: fast}, true, true},
		"dynamo": {enginetest.Config{Kind: model.EngineDynamo, Ranks: 2, InstanceBase: 1<<63 + 7, Events: enginetest.EventsConfig{Endpoint: "tcp://127.0.0.1:0"}, Timing: fast}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := enginetest.New(tt.cfg)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Start(t.Context(), "127.0.0.1:0"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(e.Close)
			spec := model.EngineSpec{ID: "w", Kind: tt.cfg.Kind, URL: e.URL(model.NoRank), Ranks: 2}
			switch tt.cfg.Kind {
			case model.EngineDynamo:
				spec.InstanceID, spec.Events.Endpoint, spec.BlockTokens = 1<<63+7, e.EventEndpoint(0), 16
			case model.EngineTRTLLM:
				spec.BlockTokens = 32
			default:
				spec.Events.RankEndpoints = []string{e.EventEndpoint(0), e.EventEndpoint(1)}
			}
			b := standBefore(t, model.GatewaySpec{Tokenize: "engine", DecisionHeaders: true, Retry: true}, spec)
			until(t, "the engine has joined", func() bool {
				s := b.router.Snapshot()
				return len(s.Workers) == 1 && s.Workers[0].Liveness == model.LiveUp && len(s.Workers[0].Models) == 1 && b.router.BlockTokens() > 0
			})
			ranks := map[string]string{}
			for turn := range 6 {
				for _, conv := range []string{"a", "b"} {
					var messages []map[string]string
					for i := range turn + 1 {
						if i > 0 {
							messages = append(messages, map[string]string{"role": "assistant", "content": "well, as was said before"})
						}
						messages = append(messages, map[string]string{"role": "user", "content": fmt.Sprintf("%s asks %d: ", conv, i) + strings.Repeat("word after word ", 30)})
					}
					raw, _ := json.Marshal(map[string]any{"model": "fake-model", "messages": messages, "max_tokens": 4, "stream": turn%2 == 1})
					resp, body := b.post(t, "/v1/chat/completions", string(raw), conv)
					if resp.StatusCode != 200 || turn%2 == 1 && (!strings.HasSuffix(body, "data: [DONE]\n\n") || strings.Contains(body, `"choices":[],`)) {
						t.Fatalf("%s, turn %d: %d %s", conv, turn, resp.StatusCode, body)
					}
					rank := resp.Header.Get("X-Adpdeck-Rank")
					if was, ok := ranks[conv]; ok && was != rank {
						t.Logf("%s went from rank %s to %s at turn %d", conv, was, rank, turn)
					}
					ranks[conv] = rank
				}
			}
			s := b.router.Snapshot()
			if len(s.Convs) != 2 || s.Ranks[0].InFlight+s.Ranks[1].InFlight != 0 {
				t.Fatalf("%d conversations, %+v", len(s.Convs), s.Ranks)
			}
			for _, c := range s.Convs {
				if c.Turns != 6 || c.CachedUnknown == tt.tells || tt.tells && c.CachedTokens == 0 || c.Lost != 0 {
					t.Errorf("%+v", c)
				}
			}
			for _, p := range s.Workers[0].Proofs {
				t.Logf("proof: %+v", p)
				if p.Ignored != 0 {
					t.Errorf("%+v", p)
				}
			}
			agreed, blocks := b.router.IndexFigures()
			t.Logf("agreed %v, %d blocks, prompts: %v", agreed, blocks, grep(b, t, "adpdeck_gateway_prompts_total"))
			t.Logf("tokens: %v", grep(b, t, "adpdeck_gateway_prompt_tokens_total"))
		})
	}
}

func grep(b *before, t *testing.T, what string) (lines []string) {
	resp, err := b.client.Get(b.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, _ := io.ReadAll(resp.Body)
	for _, l := range strings.Split(string(all), "\n") {
		if strings.HasPrefix(l, what) {
			lines = append(lines, l)
		}
	}
	return lines
}
