package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"
)

func engines(n int) string {
	page := ""
	for r := range n {
		page += fmt.Sprintf("vllm:num_requests_running{engine=\"%d\"} 0\n", r)
	}
	return page
}

func (s *sink) ranks(worker string) int {
	return get(s, func() int { return s.joined[worker].Ranks })
}

func (s *sink) finding(code, worker string) string {
	return get(s, func() string { return s.findings[code+" "+worker+"/-"].Message })
}

// TestRanksComeAndGoWithTheEngine is report A15 for ranks.
func TestRanksComeAndGoWithTheEngine(t *testing.T) {
	t.Parallel()
	var h *host
	bubble(t, []model.EngineSpec{{ID: "w", Kind: model.EngineVLLM, URL: "http://a:80"}}, func(n *network) { h = n.host("a:80") }, func(t *testing.T, r *rig) {
		time.Sleep(3 * time.Second)
		if r.ranks("w") != 0 || !strings.Contains(r.finding(FindingUnknown, "w"), "has not said yet") {
			t.Fatalf("joined with %d ranks, found %q", r.ranks("w"), r.finding(FindingUnknown, "w"))
		}
		prometheus(h, engines(2))
		until(t, 3*time.Second, func() bool { return r.ranks("w") == 2 && r.isLive("w/1") && r.finding(FindingUnknown, "w") == "" })
		prometheus(h, engines(4))
		until(t, 3*time.Second, func() bool { return r.ranks("w") == 4 && r.isLive("w/3") })
		prometheus(h, engines(2))
		time.Sleep(1500 * time.Millisecond)
		if r.ranks("w") != 4 {
			t.Error("gone by one page that lacked them")
		}
		until(t, 4*time.Second, func() bool { return r.ranks("w") == 2 })
		if _, err := r.fleet.Upstream(model.Target{Worker: "w", Rank: 2}, model.RouteChat, ""); err == nil {
			t.Error("a rank that is gone is steered to")
		}
		prometheus(h, "vllm:num_requests_running{engine=\"1\"} 0\n")
		time.Sleep(10 * time.Second)
		if r.ranks("w") != 2 {
			t.Error("a page without rank 0 took it away")
		}
	})
}

func TestAnEngineThatIsDownAndUnknownIsAFinding(t *testing.T) {
	t.Parallel()
	bubble(t, []model.EngineSpec{{ID: "w", Kind: model.EngineVLLM, URL: "http://a:80"}}, func(*network) {}, func(t *testing.T, r *rig) {
		until(t, 3*time.Second, func() bool {
			return strings.Contains(r.finding(FindingUnknown, "w"), "does not answer: connection refused")
		})
		h := r.net.host("a:80")
		prometheus(h, engines(1))
		until(t, 5*time.Second, func() bool { return r.isLive("w/0") && r.finding(FindingUnknown, "w") == "" })
	})
}

func TestAWorkerWhoseRanksAreKnownJoinsWhileItIsDown(t *testing.T) {
	t.Parallel()
	bubble(t, []model.EngineSpec{vllmSpec("w", "http://a:80")}, func(*network) {}, func(t *testing.T, r *rig) {
		until(t, 2*time.Second, func() bool { return r.ranks("w") == 2 && r.count("live w/- false") == 1 })
		if h := r.fleet.Health(); h[0].Live != 0 || h[0].Ranks != 2 || h[0].Why != "connection refused" {
			t.Errorf("%+v", h)
		}
	})
}

func TestDisagreementsAreFoundWithBothValues(t *testing.T) {
	t.Parallel()
	spec := model.EngineSpec{ID: "w", Kind: model.EngineVLLM, URL: "http://a:80", Ranks: 2, BlockTokens: 32, Models: []string{"mine"}}
	cache := "vllm:cache_config_info{engine=\"0\",block_size=\"%d\",num_gpu_blocks=\"100\"} 1\n"
	var h *host
	bubble(t, []model.EngineSpec{spec}, func(n *network) {
		h = n.host("a:80")
		prometheus(h, engines(4)+fmt.Sprintf(cache, 16))
		h.page("/v1/models", `{"data":[{"id":"theirs"}]}`, 200)
	}, func(t *testing.T, r *rig) {
		until(t, 5*time.Second, func() bool {
			words := r.finding(FindingDisagrees, "w")
			return strings.Contains(words, "ranks: 2 in the settings, 4 by its metrics") &&
				strings.Contains(words, "32 in the settings, 16 by its metrics") && strings.Contains(words, "models: mine in the settings")
		})
		if s := get(r.sink, func() model.WorkerSpec { return r.joined["w"] }); s.Ranks != 2 || s.BlockTokens != 32 || s.Models[0] != "mine" {
			t.Errorf("the settings do not count: %+v", s)
		}
		prometheus(h, engines(2)+fmt.Sprintf(cache, 32))
		h.page("/v1/models", `{"data":[{"id":"mine"}]}`, 200)
		until(t, 15*time.Second, func() bool { return r.finding(FindingDisagrees, "w") == "" })
	})
}

func TestSGLangSaysWhatItIs(t *testing.T) {
	t.Parallel()
	info := `{"version":"0.5","dp_size":2,"enable_dp_attention":true,"page_size":64,"max_running_requests":128,"max_total_num_tokens":6400,
		"kv_events":{"publisher":"zmq","endpoint_host":"*","endpoint_port_base":5557,"dp_size":2}}`
	for _, path := range []string{"/server_info", "/get_server_info"} {
		bubble(t, []model.EngineSpec{{ID: "w", Kind: model.EngineSGLang, URL: "http://a:80"}}, func(n *network) {
			h := n.host("a:80")
			h.page(path, info, 200)
			h.page("/v1/models", `{"data":[{"id":"m"}]}`, 200)
		}, func(t *testing.T, r *rig) {
			until(t, 3*time.Second, func() bool {
				s := get(r.sink, func() model.WorkerSpec { return r.joined["w"] })
				return s.Ranks == 2 && s.BlockTokens == 64 && s.KVBlocks == 100 && s.MaxNumActiveRequests == 64 && s.KVEvents && len(s.Models) == 1
			})
			w, _ := r.fleet.worker("w")
			w.mu.Lock()
			live, _ := w.endpoints()
			w.mu.Unlock()
			if fmt.Sprint(live) != "[tcp://a:5557 tcp://a:5558]" {
				t.Error(live)
			}
			until(t, 20*time.Second, func() bool {
				return get(r.sink, func() bool {
					return strings.HasPrefix(r.findings[FindingEvents+" w/1"].Message, "no kv events from tcp://a:5558: ")
				})
			})
		})
	}
}

func TestAWorkerThatTheRouterRefusesIsAFinding(t *testing.T) {
	t.Parallel()
	bubble(t, []model.EngineSpec{vllmSpec("w", "http://a:80")}, func(n *network) {
		n.host("a:80")
	}, func(t *testing.T, r *rig) {
		r.do(func() { r.refuse = errors.New("its blocks have 16 tokens") })
		until(t, 3*time.Second, func() bool { return r.finding(FindingRefused, "w") == "its blocks have 16 tokens" })
		if r.count("live") != 0 {
			t.Error("told of the life of a worker that is not there")
		}
		if h := r.fleet.Health()[0]; h.Live != 0 || h.Why != wordsNotTaken {
			t.Errorf("a worker that gets no requests is %+v", h)
		}
	})
}

// TestEventsAreNotReadBeforeThereIsSomewhereToPutThem: /kv_cache_events is emptied
// by reading it.
func TestEventsAreNotReadBeforeThereIsSomewhereToPutThem(t *testing.T) {
	t.Parallel()
	spec := model.EngineSpec{ID: "w", Kind: model.EngineTRTLLM, URL: "http://a:80", Ranks: 1, BlockTokens: 32}
	for name, refuse := range map[string]error{"refused": errors.New("its blocks have 16 tokens"), "taken": nil} {
		t.Run(name, func(t *testing.T) {
			bubble(t, []model.EngineSpec{spec}, func(n *network) {
				n.host("a:80").page("/kv_cache_events", `[{"event_id":0,"data":{"type":"created"},"attention_dp_rank":0}]`, 200)
			}, func(t *testing.T, r *rig) {
				r.do(func() { r.refuse = refuse })
				time.Sleep(5 * time.Second)
				read := get(r.sink, func() int { return len(r.events) })
				if (read > 0) != (refuse == nil) {
					t.Errorf("%d answers were read", read)
				}
			})
		})
	}
}

// TestAPageThatNamesNoRankSaysNothingOfTheirNumber has an SGLang engine that
// reports one total: its server info counts.
func TestAPageThatNamesNoRankSaysNothingOfTheirNumber(t *testing.T) {
	t.Parallel()
	bubble(t, []model.EngineSpec{{ID: "w", Kind: model.EngineSGLang, URL: "http://a:80"}}, func(n *network) {
		h := n.host("a:80")
		h.page("/server_info", `{"version":"0.5","dp_size":2,"page_size":64}`, 200)
		h.page("/v1/models", `{"data":[{"id":"m"}]}`, 200)
		prometheus(h, "sglang:num_running_reqs{tp_rank=\"0\"} 7\n")
	}, func(t *testing.T, r *rig) {
		until(t, 3*time.Second, func() bool { return r.ranks("w") == 2 })
		for range 60 {
			time.Sleep(time.Second)
			if n := r.ranks("w"); n != 2 {
				t.Fatalf("it has %d ranks", n)
			}
		}
		if s := running(r.sink, "w"); s != "" {
			t.Errorf("the total counts as a rank's: %s", s)
		}
	})
}

// TestWhoNeverNamedARankDoesNotTakeItAway has a TensorRT-LLM that reports rank 0
// alone, as older ones do, while its events come from four.
func TestWhoNeverNamedARankDoesNotTakeItAway(t *testing.T) {
	t.Parallel()
	var h *host
	bubble(t, []model.EngineSpec{{ID: "w", Kind: model.EngineTRTLLM, URL: "http://a:80"}}, func(n *network) {
		h = n.host("a:80")
		h.page("/metrics", `[{"iter":1,"inflightBatchingStats":{"numContextRequests":1,"numGenRequests":1}}]`, 200)
		h.page("/kv_cache_events", `[{"event_id":1,"data":{"type":"created"},"attention_dp_rank":3}]`, 200)
	}, func(t *testing.T, r *rig) {
		until(t, 3*time.Second, func() bool { return r.ranks("w") == 4 })
		for range 60 {
			time.Sleep(time.Second)
			if n := r.ranks("w"); n != 4 {
				t.Fatalf("it has %d ranks", n)
			}
		}
	})
}

// TestEventsDoNotHoldOnToRanksThatAreGone has an engine that comes back smaller.
func TestEventsDoNotHoldOnToRanksThatAreGone(t *testing.T) {
	t.Parallel()
	row := `{"iter":1,"attentionDpRank":%d,"inflightBatchingStats":{"numContextRequests":1,"numGenRequests":1}}`
	var h *host
	bubble(t, []model.EngineSpec{{ID: "w", Kind: model.EngineTRTLLM, URL: "http://a:80"}}, func(n *network) {
		h = n.host("a:80")
		h.page("/metrics", "["+fmt.Sprintf(row, 0)+","+fmt.Sprintf(row, 3)+"]", 200)
		h.page("/kv_cache_events", `[{"event_id":1,"data":{"type":"created"},"attention_dp_rank":3}]`, 200)
	}, func(t *testing.T, r *rig) {
		until(t, 3*time.Second, func() bool { return r.ranks("w") == 4 })
		time.Sleep(time.Second)
		h.page("/kv_cache_events", `[]`, 200)
		h.page("/metrics", "["+fmt.Sprintf(row, 0)+","+fmt.Sprintf(row, 1)+"]", 200)
		until(t, 10*time.Second, func() bool { return r.ranks("w") == 2 })
	})
}
