package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"
)

func running(s *sink, worker string) string {
	return get(s, func() string {
		var b strings.Builder
		for _, l := range s.loads[worker] {
			fmt.Fprintf(&b, "%d:%v ", l.Rank, float64(l.Running))
		}
		return strings.TrimSpace(b.String())
	})
}

const sglangLoads = `{"loads":[{"dp_rank":0,"num_running_reqs":3,"num_waiting_reqs":1,"num_used_tokens":64,"num_total_tokens":100},
	{"dp_rank":1,"num_running_reqs":5,"num_waiting_reqs":0,"num_used_tokens":10,"num_total_tokens":10}]}`

func TestLoadsOfEachKind(t *testing.T) {
	t.Parallel()
	trt := `[{"iter":1,"attentionDpRank":0,"inflightBatchingStats":{"numScheduledRequests":2,"numContextRequests":1,"numGenRequests":1,"numPausedRequests":0}},
		{"iter":1,"attentionDpRank":1,"inflightBatchingStats":{"numScheduledRequests":4,"numContextRequests":0,"numGenRequests":4,"numPausedRequests":0}}]`
	tests := map[string]struct {
		spec  model.EngineSpec
		pages map[string]string // by host and path
		want  string
	}{
		"vllm": {
			model.EngineSpec{Kind: model.EngineVLLM, URL: "http://a:80", Ranks: 2},
			map[string]string{"a:80/metrics": fmt.Sprintf(vllmPage, 1, 27, 5)},
			"0:1 1:27",
		},
		"vllm by port": {
			model.EngineSpec{Kind: model.EngineVLLM, RankURLs: []string{"http://a:80", "http://a:81"}},
			map[string]string{"a:80/metrics": "vllm:num_requests_running{engine=\"0\"} 4\n", "a:81/metrics": "vllm:num_requests_running{engine=\"0\"} 6\n"},
			"0:4 1:6",
		},
		"vllm by port, one silent": {
			model.EngineSpec{Kind: model.EngineVLLM, RankURLs: []string{"http://a:80", "http://a:81"}},
			map[string]string{"a:80/metrics": "", "a:81/metrics": "vllm:num_requests_running{engine=\"1\"} 6\n"},
			"1:6",
		},
		"vllm elsewhere": {
			model.EngineSpec{Kind: model.EngineVLLM, URL: "http://a:80", Ranks: 2, MetricsURL: "http://m:9/stats"},
			map[string]string{"a:80/": "", "m:9/stats": fmt.Sprintf(vllmPage, 2, 3, 5)},
			"0:2 1:3",
		},
		"sglang": {
			model.EngineSpec{Kind: model.EngineSGLang, URL: "http://a:80", Ranks: 2},
			map[string]string{"a:80/v1/loads": sglangLoads},
			"0:3 1:5",
		},
		"sglang older": {
			model.EngineSpec{Kind: model.EngineSGLang, URL: "http://a:80", Ranks: 2},
			map[string]string{"a:80/get_load": `[{"dp_rank":0,"num_reqs":4,"num_waiting_reqs":1,"num_tokens":9},{"dp_rank":1,"num_reqs":2,"num_waiting_reqs":0,"num_tokens":1}]`},
			"0:3 1:2",
		},
		"sglang metrics": {
			model.EngineSpec{Kind: model.EngineSGLang, URL: "http://a:80", Ranks: 2},
			map[string]string{"a:80/metrics": "sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"0\"} 7\nsglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"0\"} 8\n"},
			"0:7 1:8",
		},
		"trtllm": {
			model.EngineSpec{Kind: model.EngineTRTLLM, URL: "http://a:80", Ranks: 2, Events: model.EventSource{Transport: "none"}},
			map[string]string{"a:80/metrics": trt},
			"0:2 1:4",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.spec.ID = "w"
			bubble(t, []model.EngineSpec{tc.spec}, func(n *network) {
				for at, body := range tc.pages {
					addr, path, _ := strings.Cut(at, "/")
					if n.hosts[addr] == nil {
						n.host(addr)
					}
					n.hosts[addr].page("/"+path, body, 200)
				}
			}, func(t *testing.T, r *rig) {
				until(t, 5*time.Second, func() bool { return running(r.sink, "w") == tc.want })
			})
		})
	}
}

func TestDynamoLoadsAreOfItsInstance(t *testing.T) {
	t.Parallel()
	spec := model.EngineSpec{ID: "d", Kind: model.EngineDynamo, URL: "http://f:80", Ranks: 2, InstanceID: 1<<63 + 1}
	var h *host
	bubble(t, []model.EngineSpec{spec}, func(n *network) {
		h = n.host("f:80")
		page := ""
		for _, w := range []uint64{1 << 63, 1<<63 + 1} {
			for r := range 2 {
				page += fmt.Sprintf("dynamo_component_router_worker_registered{router_worker_id=\"%d\",dp_rank=\"%d\",worker_type=\"decode\"} 1\n", w, r)
			}
		}
		prometheus(h, page)
	}, func(t *testing.T, r *rig) {
		until(t, 5*time.Second, func() bool { return get(r.sink, func() bool { return r.observed["d"] > 0 }) })
		prometheus(h, `dynamo_component_router_worker_registered{router_worker_id="7",dp_rank="0",worker_type="decode"} 1`+"\n")
		until(t, 5*time.Second, func() bool {
			return get(r.sink, func() bool { return strings.Contains(r.blind["d"], "do not name instance 9223372036854775809") })
		})
	})
}

// TestASnapshotIsAsOldAsItsQuestion is report A11: what was booked while the
// answer was on its way is not in it.
func TestASnapshotIsAsOldAsItsQuestion(t *testing.T) {
	t.Parallel()
	bubble(t, []model.EngineSpec{vllmSpec("w0", "http://a:80")}, func(n *network) {
		h := n.host("a:80")
		prometheus(h, fmt.Sprintf(vllmPage, 1, 2, 5))
		h.slow["/metrics"] = 1500 * time.Millisecond
	}, func(t *testing.T, r *rig) {
		began := time.Now()
		until(t, 5*time.Second, func() bool { return get(r.sink, func() bool { return r.observed["w0"] == 1 }) })
		if at := get(r.sink, func() time.Time { return r.taken["w0"] }); !at.Equal(began) {
			t.Errorf("taken %v after the question", at.Sub(began))
		}
	})
}

// TestASickSourceStopsNobodyElse has one worker whose pages are all bad in turn,
// and watches the other.
func TestASickSourceStopsNobodyElse(t *testing.T) {
	t.Parallel()
	bad := map[string]struct {
		fall func(h *host)
		why  string
	}{
		"nan":            {func(h *host) { prometheus(h, "vllm:num_requests_running{engine=\"0\"} NaN\n") }, "NaN"},
		"minus one":      {func(h *host) { prometheus(h, "vllm:num_requests_running{engine=\"0\"} -1\n") }, "-1"},
		"10 MiB":         {func(h *host) { prometheus(h, strings.Repeat("# a comment that says nothing\n", 350_000)) }, "byte"},
		"html":           {func(h *host) { prometheus(h, "<html></html>") }, ""},
		"500":            {func(h *host) { h.page("/metrics", "oops", 500) }, "500"},
		"never answers":  {func(h *host) { h.mu.Lock(); h.slow["/metrics"] = time.Hour; h.mu.Unlock() }, "no answer within 2s"},
		"reset":          {func(h *host) { h.set(reset) }, "the connection ended"},
		"endless header": {func(h *host) { h.set(flood) }, ""},
		"slow header":    {func(h *host) { h.set(drip) }, "no answer within"},
		"half a body":    {func(h *host) { h.set(stall) }, ""},
		"blackhole":      {func(h *host) { h.set(blackhole) }, "no answer within"},
	}
	for name, tc := range bad {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sick *host
			bubble(t, []model.EngineSpec{vllmSpec("sick", "http://a:80"), vllmSpec("well", "http://b:80")}, func(n *network) {
				sick = n.host("a:80")
				prometheus(sick, fmt.Sprintf(vllmPage, 1, 2, 5))
				prometheus(n.host("b:80"), fmt.Sprintf(vllmPage, 3, 4, 5))
			}, func(t *testing.T, r *rig) {
				until(t, 5*time.Second, func() bool { return running(r.sink, "sick") == "0:1 1:2" })
				tc.fall(sick)
				before := get(r.sink, func() int { return r.observed["well"] })
				time.Sleep(10 * time.Second)
				if n := get(r.sink, func() int { return r.observed["well"] }) - before; n < 9 {
					t.Errorf("the other was observed %d times in ten seconds", n)
				}
				if !r.isLive("well/0") {
					t.Error("the other is out")
				}
				why := get(r.sink, func() string { return r.blind["sick"] }) + r.finding(FindingFigures, "sick")
				if !strings.Contains(why, tc.why) || tc.why == "" && why == "" {
					t.Errorf("why is %q, want %q in it", why, tc.why)
				}
			})
		})
	}
}

func TestAMissingRankIsUnknown(t *testing.T) {
	t.Parallel()
	for missing := range 2 {
		bubble(t, []model.EngineSpec{vllmSpec("w0", "http://a:80")}, func(n *network) {
			prometheus(n.host("a:80"), fmt.Sprintf("vllm:num_requests_running{engine=\"%d\"} 27\n", 1-missing))
		}, func(t *testing.T, r *rig) {
			until(t, 5*time.Second, func() bool { return running(r.sink, "w0") == fmt.Sprintf("%d:27", 1-missing) })
		})
	}
}

func TestARestartIsTold(t *testing.T) {
	t.Parallel()
	var h *host
	bubble(t, []model.EngineSpec{vllmSpec("w0", "http://a:80")}, func(n *network) {
		h = n.host("a:80")
		prometheus(h, fmt.Sprintf(vllmPage, 1, 2, 1000))
	}, func(t *testing.T, r *rig) {
		time.Sleep(10 * time.Second)
		if r.count("restarted") != 0 {
			t.Fatal("restarted without one")
		}
		prometheus(h, fmt.Sprintf(vllmPage, 0, 0, 2000))
		until(t, 3*time.Second, func() bool { return r.count("restarted w0/-") == 1 })
		time.Sleep(10 * time.Second)
		if r.count("restarted") != 1 {
			t.Error(sortedLines(r.sink))
		}
	})
}

// TestTwoProcessesAtOneAddressAreNoRestarts has a balancer in front of two
// engines: their caches are not emptied by turns.
func TestTwoProcessesAtOneAddressAreNoRestarts(t *testing.T) {
	t.Parallel()
	var h *host
	bubble(t, []model.EngineSpec{vllmSpec("w0", "http://a:80")}, func(n *network) {
		h = n.host("a:80")
		prometheus(h, fmt.Sprintf(vllmPage, 0, 0, 100))
	}, func(t *testing.T, r *rig) {
		until(t, 3*time.Second, func() bool { return get(r.sink, func() bool { return r.observed["w0"] > 1 }) })
		for turn := range 20 {
			prometheus(h, fmt.Sprintf(vllmPage, 0, 0, 200-100*(turn%2)))
			time.Sleep(1500 * time.Millisecond)
		}
		if n := r.count("restarted"); n != 1 {
			t.Errorf("restarted %d times", n)
		}
		if words := r.finding(FindingMixed, "w0"); !strings.Contains(words, "two processes answer by turns") {
			t.Errorf("found %q", words)
		}
		prometheus(h, fmt.Sprintf(vllmPage, 0, 0, 500)) // a real one
		until(t, 3*time.Second, func() bool { return r.count("restarted") == 2 && r.finding(FindingMixed, "w0") == "" })
	})
}
