package enginetest_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"
)

// busy starts an engine on which rank 1 of 2 holds three requests that never get
// a first token.
func busy(t *testing.T, kind model.EngineKind, h enginetest.Habits) *enginetest.Engine {
	t.Helper()
	h.NoFirstToken = true
	e := newEngine(t, enginetest.Config{Kind: kind, Ranks: 2, Blocks: 64, MaxActive: 2, Habits: h})
	var g sync.WaitGroup
	for range 3 {
		g.Go(func() {
			req, _ := http.NewRequest(http.MethodPost, e.URL(model.NoRank)+"/v1/chat/completions", strings.NewReader(chat("hello", nil)))
			req.Header.Set("X-Data-Parallel-Rank", "1")
			if resp, err := client().Do(req); err == nil {
				resp.Body.Close()
			}
		})
	}
	eventually(t, "three requests", func() bool { return e.Open() == 3 })
	t.Cleanup(func() { e.Close(); g.Wait() })
	return e
}

// page is a metrics page's series, by name and labels as written.
func page(t *testing.T, e *enginetest.Engine, path string) (map[string]string, map[string]int, string) {
	t.Helper()
	_, text := call(t, e, http.MethodGet, path, "")
	series, times := map[string]string{}, map[string]int{}
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		series[line[:i]] = line[i+1:]
		times[line[:i]]++
	}
	return series, times, text
}

func TestPrometheusPages(t *testing.T) {
	tests := map[model.EngineKind]map[string]string{
		model.EngineVLLM: {
			`vllm:num_requests_waiting{engine="1",model_name="fake-model"}`:                                       "3",
			`vllm:num_requests_waiting{engine="0",model_name="fake-model"}`:                                       "0",
			`vllm:cache_config_info{block_size="16",engine="1",kv_cache_size_tokens="1024",num_gpu_blocks="128"}`: "1",
		},
		model.EngineSGLang: {
			`sglang:num_queue_reqs{engine_type="unified",model_name="fake-model",tp_rank="1",pp_rank="0",dp_rank="1",moe_ep_rank="1"}`: "3",
			`sglang:cache_config_info{page_size="16",num_pages="64"}`:                                                                  "1",
		},
		model.EngineDynamo: {
			`dynamo_frontend_inflight_requests{model="fake-model"}`:                                                              "3",
			`dynamo_frontend_worker_active_prefill_tokens{worker_id="7587888160958628001",dp_rank="1",worker_type="decode"}`:     "*",
			`dynamo_component_router_worker_registered{router_worker_id="7587888160958628001",dp_rank="1",worker_type="decode"}`: "1",
		},
	}
	for kind, want := range tests {
		series, times, text := page(t, busy(t, kind, enginetest.Habits{}), "/metrics")
		for name, v := range want {
			if got := series[name]; got == "" || v != "*" && got != v {
				t.Errorf("%s: %s is %q, want %s, in\n%s", kind, name, got, v, text)
			}
		}
		for name, n := range times {
			if n > 1 {
				t.Errorf("%s: %s stands %d times", kind, name, n)
			}
		}
	}
}

func TestCountersAgreeWithAnswers(t *testing.T) {
	e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM, Ranks: 2})
	text := strings.Repeat("some words ", 40)
	cached, prompts := 0, 0
	for range 3 {
		_, o := callJSON(t, e, http.MethodPost, "/v1/chat/completions", chat(text, nil), "X-Data-Parallel-Rank", "1")
		var n, c int
		fmt.Sscan(fmt.Sprint(at(t, o, "usage.prompt_tokens")), &n)
		fmt.Sscan(fmt.Sprint(at(t, o, "usage.prompt_tokens_details.cached_tokens")), &c)
		cached, prompts = cached+c, prompts+n
	}
	series, _, _ := page(t, e, "/metrics")
	for name, want := range map[string]int{"prefix_cache_hits_total": cached, "prefix_cache_queries_total": prompts, "generation_tokens_total": 12} {
		key := `vllm:` + name + `{engine="1",model_name="fake-model"}`
		if series[key] != fmt.Sprint(want) || want == 0 {
			t.Errorf("%s is %s, answers say %d", name, series[key], want)
		}
	}
}

func TestMetricHabits(t *testing.T) {
	row := func(engine string) string {
		return `vllm:num_requests_waiting{engine="` + engine + `",model_name="fake-model"}`
	}
	e := busy(t, model.EngineVLLM, enginetest.Habits{})
	for value := range map[string]bool{"NaN": true, "+Inf": true, "-Inf": true, "-1": true} {
		set(t, e, func(h *enginetest.Habits) { h.MetricValue = value })
		if series, _, _ := page(t, e, "/metrics"); series[row("1")] != value {
			t.Errorf("gauge %s, want %s", series[row("1")], value)
		}
	}
	set(t, e, func(h *enginetest.Habits) { h.MetricHabits = enginetest.MetricHabits{MetricsRank0Only: true} })
	if series, _, _ := page(t, e, "/metrics"); series[row("1")] != "" || series[row("0")] != "0" {
		t.Errorf("rank 0 only: %v", series)
	}
	set(t, e, func(h *enginetest.Habits) { h.MetricHabits = enginetest.MetricHabits{MissingRanks: []int{0}} })
	if series, _, _ := page(t, e, "/metrics"); series[row("0")] != "" || series[row("1")] != "3" {
		t.Errorf("rank 0 missing: %v", series)
	}
	set(t, e, func(h *enginetest.Habits) { h.MetricHabits = enginetest.MetricHabits{DuplicateSeries: true} })
	if series, _, _ := page(t, e, "/metrics"); series[`vllm:gpu_cache_usage_perc{engine="1",model_name="fake-model"}`] == "" {
		t.Error("no old name beside the new")
	}
	set(t, e, func(h *enginetest.Habits) { h.MetricHabits = enginetest.MetricHabits{MetricBytes: 10 << 20} })
	if _, _, text := page(t, e, "/metrics"); len(text) < 10<<20 || len(text) > 11<<20 {
		t.Errorf("a page of %d bytes, want 10 MiB", len(text))
	}
	set(t, e, func(h *enginetest.Habits) { h.MetricHabits = enginetest.MetricHabits{MetricsFrozen: true} })
	page(t, e, "/metrics")
	set(t, e, func(h *enginetest.Habits) { h.NoFirstToken = false })
	eventually(t, "the requests' end", func() bool { return e.Open() == 0 })
	if series, _, _ := page(t, e, "/metrics"); series[row("1")] != "3" {
		t.Errorf("a frozen page moved to %s", series[row("1")])
	}
	set(t, e, func(h *enginetest.Habits) { h.MetricsFrozen = false })
	if series, _, _ := page(t, e, "/metrics"); series[row("1")] != "0" {
		t.Errorf("thawed: %s", series[row("1")])
	}
}

func TestDuplicatesOfOtherKinds(t *testing.T) {
	h := enginetest.Habits{MetricHabits: enginetest.MetricHabits{DuplicateSeries: true}}
	_, _, text := page(t, busy(t, model.EngineSGLang, h), "/metrics")
	for _, want := range []string{`dp_rank="1",moe_ep_rank="1",priority=""} 3`, `dp_rank="1",moe_ep_rank="1",priority="0"} 3`, `tp_rank="3",pp_rank="0",dp_rank="1"`} {
		if !strings.Contains(text, want) {
			t.Errorf("sglang lacks %s", want)
		}
	}
	_, _, text = page(t, busy(t, model.EngineDynamo, h), "/metrics")
	if !strings.Contains(text, `dynamo_frontend_worker_active_decode_blocks{worker_id="7587888160958628001",worker_type="decode"}`) {
		t.Error("dynamo lacks a total beside its ranks")
	}
}

func TestSGLangLoads(t *testing.T) {
	e := busy(t, model.EngineSGLang, enginetest.Habits{})
	_, o := callJSON(t, e, http.MethodGet, "/v1/loads?include=core,queues", "")
	if fmt.Sprint(at(t, o, "loads.1.num_waiting_reqs")) != "3" || fmt.Sprint(at(t, o, "loads.1.queues.waiting")) != "3" || at(t, o, "loads.0.num_total_tokens") == nil {
		t.Errorf("loads %v", o)
	}
	if _, o := callJSON(t, e, http.MethodGet, "/v1/loads?dp_rank=1", ""); len(o["loads"].([]any)) != 1 || fmt.Sprint(at(t, o, "loads.0.dp_rank")) != "1" {
		t.Errorf("one rank: %v", o)
	}
	for _, query := range []string{"include=all,wrong", "dp_rank=2", "dp_rank=x"} {
		if resp, _ := call(t, e, http.MethodGet, "/v1/loads?"+query, ""); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s got %d", query, resp.StatusCode)
		}
	}
	if series, _, _ := page(t, e, "/v1/loads?format=prometheus&dp_rank=1"); len(series) == 0 {
		t.Error("no prometheus form")
	}
	if _, text := call(t, e, http.MethodGet, "/get_load", ""); !strings.Contains(text, `"dp_rank":1,"num_reqs":3`) {
		t.Errorf("/get_load: %s", text)
	}
	set(t, e, func(h *enginetest.Habits) { h.MetricValue = "NaN" })
	if _, text := call(t, e, http.MethodGet, "/v1/loads", ""); !strings.Contains(text, `"num_running_reqs":NaN`) {
		t.Errorf("NaN as Python writes it: %s", text)
	}
	if _, o := callJSON(t, e, http.MethodGet, "/server_info", ""); fmt.Sprint(o["dp_size"]) != "2" || o["api_key"] == nil {
		t.Errorf("server info %v", o)
	}
}

func TestTensorRTStatistics(t *testing.T) {
	e := newEngine(t, enginetest.Config{Kind: model.EngineTRTLLM, Ranks: 2})
	for i := range 2 {
		call(t, e, http.MethodPost, "/v1/chat/completions", chat(fmt.Sprint("hello ", i), object{"ignore_eos": true, "max_tokens": 5}))
	}
	_, text := call(t, e, http.MethodGet, "/metrics", "")
	rows := `{"rows":` + text + `}`
	o := parse(t, rows)
	list := o["rows"].([]any)
	if len(list) < 10 || len(list)%2 != 0 {
		t.Fatalf("%d rows, want one for each rank of each iteration", len(list))
	}
	seen := map[float64]bool{}
	for i := 0; i < len(list); i += 2 {
		zero, one := list[i].(object), list[i+1].(object)
		seen[one["attentionDpRank"].(float64)] = true
		if zero["iter"] != one["iter"] || fmt.Sprint(zero["kvCacheStats"]) != fmt.Sprint(one["kvCacheStats"]) || one["numQueuedRequests"] != 0.0 {
			t.Fatalf("rank 1's row is not rank 0's copy: %v, %v", zero, one)
		}
	}
	if !seen[1] || len(seen) != 1 {
		t.Errorf("ranks %v", seen)
	}
	if series, _, _ := page(t, e, "/prometheus/metrics"); series[`trtllm_kv_cache_max_blocks{engine_type="undefined",model_name="fake-model"}`] != "8192" {
		t.Errorf("prometheus %v", series)
	}

	// Drained: the next reader waits two seconds and gets an empty list.
	clock := newManual()
	f := newEngine(t, enginetest.Config{Kind: model.EngineTRTLLM, Clock: clock})
	got := make(chan string)
	go func() {
		_, text := call(t, f, http.MethodGet, "/metrics", "")
		got <- text
	}()
	eventually(t, "the reader's wait", func() bool { return clock.waiting() == 1 })
	clock.advance(2 * time.Second)
	if text := <-got; text != "[]" {
		t.Errorf("an idle engine says %s", text)
	}
}

func TestBusyThreshold(t *testing.T) {
	e := newEngine(t, enginetest.Config{Kind: model.EngineDynamo})
	_, o := callJSON(t, e, http.MethodPost, "/busy_threshold", `{"model": "fake-model", "active_decode_blocks_threshold": -0.5}`)
	if fmt.Sprint(o["active_decode_blocks_threshold"]) != "-0.5" {
		t.Fatal(o)
	}
	status, o := callJSON(t, e, http.MethodPost, "/v1/chat/completions", chat("x", nil))
	if status != http.StatusServiceUnavailable {
		t.Errorf("beyond the threshold: %d %v", status, o)
	}
	// null reads, it does not take back.
	callJSON(t, e, http.MethodPost, "/busy_threshold", `{"model": "fake-model", "active_decode_blocks_threshold": null}`)
	_, o = callJSON(t, e, http.MethodGet, "/busy_threshold", "")
	if fmt.Sprint(at(t, o, "thresholds.0.active_decode_blocks_threshold")) != "-0.5" {
		t.Errorf("thresholds %v", o)
	}
	callJSON(t, e, http.MethodPost, "/busy_threshold", `{"model": "fake-model", "active_decode_blocks_threshold": 0.9}`)
	if status, o := callJSON(t, e, http.MethodPost, "/v1/chat/completions", chat("x", nil)); status != http.StatusOK {
		t.Errorf("below the threshold: %d %v", status, o)
	}
}

// TestPeak: the most requests of a rank at one time.
func TestPeak(t *testing.T) {
	e := busy(t, model.EngineVLLM, enginetest.Habits{})
	if e.Peak(0) != 0 || e.Peak(1) != 3 {
		t.Errorf("peaks %d and %d, want 0 and 3", e.Peak(0), e.Peak(1))
	}
	set(t, e, func(h *enginetest.Habits) { h.NoFirstToken = false })
	for range 5 { // one after the other
		call(t, e, http.MethodPost, "/v1/completions", `{"prompt":"hello","max_tokens":2}`, "X-Data-Parallel-Rank", "0")
	}
	if e.Peak(0) != 1 {
		t.Errorf("peak %d, want 1", e.Peak(0))
	}
}
