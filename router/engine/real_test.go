package engine

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/engine/enginetest/zmq"
	"adpdeck/router/engine/steer"
	"adpdeck/router/model"
)

// serve runs a fake engine and a fleet in front of it over real sockets.
func serve(t *testing.T, e *enginetest.Engine, addresses []string, spec model.EngineSpec, name func(s *model.EngineSpec)) (*sink, *Fleet) {
	t.Helper()
	if err := e.Start(t.Context(), addresses...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	name(&spec)
	return run(t, spec)
}

func run(t *testing.T, specs ...model.EngineSpec) (*sink, *Fleet) {
	t.Helper()
	s := newSink()
	f, err := New(specs, s, Options{})
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
	return s, f
}

// send sends one chat through what Upstream says and returns the answer.
func send(t *testing.T, f *Fleet, target model.Target, text string) (http.Header, []byte) {
	t.Helper()
	up, err := f.Upstream(target, model.RouteChat, "conv-1")
	if err != nil {
		t.Fatal(err)
	}
	body, err := steer.Edit(fmt.Appendf(nil, `{"model":"fake-model","max_tokens":4,"messages":[{"role":"user","content":%q}]}`, text), up.Body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, up.Base.JoinPath("/v1/chat/completions").String(), bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = up.Header
	req.Header.Set("Content-Type", "application/json")
	resp, err := up.Transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s %v", resp.StatusCode, answer, err)
	}
	return resp.Header, answer
}

func long(i int) string { return fmt.Sprintf("%d ", i) + strings.Repeat("word after word ", 60) }

// TestBeforeFakesOfEachKind has each kind found out, steered, listened to, killed
// and brought back.
func TestBeforeFakesOfEachKind(t *testing.T) {
	t.Parallel()
	zmqEvents := enginetest.EventsConfig{Endpoint: "tcp://127.0.0.1:0", Replay: "tcp://127.0.0.1:0"}
	tests := map[string]struct {
		cfg   enginetest.Config
		ports int
		spec  func(e *enginetest.Engine, s *model.EngineSpec)
		event string // what the events of rank 1 begin with
	}{
		"vllm": {enginetest.Config{Kind: model.EngineVLLM, Ranks: 2, Events: zmqEvents}, 1, func(e *enginetest.Engine, s *model.EngineSpec) {
			s.Events.RankEndpoints = []string{e.EventEndpoint(0), e.EventEndpoint(1)}
		}, "w/1 conn "},
		"vllm by port": {enginetest.Config{Kind: model.EngineVLLM, Ranks: 2, Events: zmqEvents}, 2, func(e *enginetest.Engine, s *model.EngineSpec) {
			s.URL, s.RankURLs = "", []string{e.URL(0), e.URL(1)}
			s.Events.RankEndpoints = []string{e.EventEndpoint(0), e.EventEndpoint(1)}
		}, "w/1 conn "},
		"sglang": {enginetest.Config{Kind: model.EngineSGLang, Ranks: 2, Events: zmqEvents}, 1, func(e *enginetest.Engine, s *model.EngineSpec) {
			s.Events.RankEndpoints = []string{e.EventEndpoint(0), e.EventEndpoint(1)}
		}, "w/1 conn "},
		"trtllm": {enginetest.Config{Kind: model.EngineTRTLLM, Ranks: 2}, 1, func(*enginetest.Engine, *model.EngineSpec) {}, `w [{"event_id"`},
		"dynamo": {
			enginetest.Config{Kind: model.EngineDynamo, Ranks: 2, Workers: 2, InstanceBase: 1<<63 + 7, Events: enginetest.EventsConfig{Endpoint: "tcp://127.0.0.1:0"}},
			1,
			func(e *enginetest.Engine, s *model.EngineSpec) {
				s.InstanceID = 1<<63 + 7
				s.Events.Endpoint = e.EventEndpoint(0)
			}, "w plane ",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := enginetest.New(tc.cfg)
			if err != nil {
				t.Fatal(err)
			}
			addresses := []string{"127.0.0.1:0", "127.0.0.1:0"}[:tc.ports]
			s, f := serve(t, e, addresses, model.EngineSpec{ID: "w", Kind: tc.cfg.Kind}, func(s *model.EngineSpec) {
				s.URL = e.URL(model.NoRank)
				tc.spec(e, s)
			})
			s.await(t, "joined", 10*time.Second, func() bool { return s.joined["w"].Ranks == 2 && s.live["w/1"] })
			s.await(t, "models", 10*time.Second, func() bool { return fmt.Sprint(s.joined["w"].Models) == "[fake-model]" })
			target := model.Target{Worker: "w", Rank: 1}
			if tc.cfg.Kind == model.EngineTRTLLM {
				target.Rank = model.NoRank
			}
			for i := range 3 {
				h, answer := send(t, f, target, long(i))
				f.Answered(target)
				if ran, _, known := f.Ran(target, h, answer); known && ran != target {
					t.Errorf("ran on %v: %s", ran, answer)
				} else if tc.cfg.Kind == model.EngineDynamo && !known {
					t.Errorf("dynamo did not say where it ran: %s", answer)
				}
			}
			if target.Rank == 1 {
				for _, v := range e.Served()[max(0, len(e.Served())-3):] {
					if v.Ran != 1 {
						t.Errorf("served by rank %d", v.Ran)
					}
				}
			}
			s.await(t, "events", 10*time.Second, func() bool {
				for _, line := range s.events {
					if strings.HasPrefix(line, tc.event) {
						return true
					}
				}
				return false
			})
			if tc.cfg.Kind != model.EngineDynamo { // whose page has figures of its own router only
				s.await(t, "loads", 10*time.Second, func() bool { return len(s.loads["w"]) == 2 })
			}

			e.Kill()
			if d := s.await(t, "dead", 5*time.Second, func() bool { return !s.live["w/0"] && !s.live["w/1"] }); d > 3*time.Second {
				t.Errorf("out after %v", d)
			}
			if err := e.Revive(t.Context()); err != nil {
				t.Fatal(err)
			}
			if d := s.await(t, "back", 8*time.Second, func() bool { return s.live["w/0"] && s.live["w/1"] }); d > 5*time.Second {
				t.Errorf("back after %v", d)
			}
		})
	}
}

// TestLostBatchesAreReplayed closes gaps of both framings.
func TestLostBatchesAreReplayed(t *testing.T) {
	t.Parallel()
	for _, topics := range []bool{false, true} {
		p, err := zmq.Listen(zmq.Options{Replay: "tcp://127.0.0.1:0", TopicInReplay: topics, Topic: "kv"})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		srv := &http.Server{Handler: http.NotFoundHandler()}
		go func() { _ = srv.Serve(ln) }()
		defer srv.Close()
		s, _ := run(t, model.EngineSpec{ID: "w", Kind: model.EngineVLLM, URL: "http://" + ln.Addr().String(), Ranks: 1, Events: model.EventSource{
			RankEndpoints: []string{p.Endpoint()}, RankReplays: []string{p.ReplayEndpoint()},
		}})
		for i := range 8 {
			p.Publish(bytes.Repeat([]byte{0xc0}, i+1))
		}
		s.await(t, "joined", 5*time.Second, func() bool { return s.joined["w"].Ranks == 1 })
		s.gaps <- model.Gap{Target: model.Target{Worker: "w"}, From: 4}
		s.gaps <- model.Gap{Target: model.Target{Worker: "w", Rank: 7}, From: 4}
		s.gaps <- model.Gap{Target: model.Target{Worker: "x"}, From: 4}
		s.await(t, "replayed", 5*time.Second, func() bool {
			return strings.HasSuffix(strings.Join(s.events, "\n"), "w/0 replay 4: 5 bytes\nw/0 replay 5: 6 bytes\nw/0 replay 6: 7 bytes\nw/0 replay 7: 8 bytes\nw/0 done: <nil>")
		})
		p.Evict(6)
		s.gaps <- model.Gap{Target: model.Target{Worker: "w"}, From: 0}
		s.await(t, "evicted", 5*time.Second, func() bool {
			return strings.Contains(s.events[len(s.events)-1], "w/0 done: replay of w/0 from 0: ")
		})
	}
}

// TestConnectionsOfOnePublisherAreToldApart follows a publisher over its restart.
func TestConnectionsOfOnePublisherAreToldApart(t *testing.T) {
	t.Parallel()
	p, err := zmq.Listen(zmq.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s, _ := run(t, model.EngineSpec{ID: "w", Kind: model.EngineVLLM, URL: "http://127.0.0.1:1", Ranks: 1, Events: model.EventSource{RankEndpoints: []string{p.Endpoint()}}})
	heard := func(line string) {
		t.Helper()
		late := time.After(10 * time.Second)
		for {
			p.Publish([]byte{0xc0})
			s.mu.Lock()
			found := strings.Contains(strings.Join(s.events, "\n"), line)
			s.mu.Unlock()
			if found {
				return
			}
			select {
			case <-s.told:
			case <-time.After(20 * time.Millisecond):
			case <-late:
				t.Fatalf("%q was not heard: %v", line, s.events)
			}
		}
	}
	heard("w/0 conn 4294967297 ")
	if err := p.Restart(); err != nil {
		t.Fatal(err)
	}
	heard("w/0 conn 4294967298 ")
}
