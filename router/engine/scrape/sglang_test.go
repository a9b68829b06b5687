package scrape

import (
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"
)

func TestSGLangMetrics(t *testing.T) {
	p, err := SGLangMetrics(page(t, "sglang.prom"), 0)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "reports", p.Reports(), []model.RankReport{
		report(0, func(r *model.RankReport) {
			r.Running, r.Waiting, r.Tokens, r.KVUsedBlocks, r.KVTotalBlocks, r.CacheHit = 9, 4, 10241, 641, 1280, 0.75
		}),
		report(1, func(r *model.RankReport) {
			r.Running, r.Waiting, r.Tokens, r.KVUsedBlocks, r.KVTotalBlocks, r.CacheHit = 2, 0, 400, 25, 1280, 0
		}),
	})
	same(t, "advert", p.Advert, Advert{Advertised: []int{0, 1}, BlockTokens: 16, KVBlocks: 1280})
	// 2 families of 8 rows by priority and 2 copies of totals, 5 of 2 copies.
	if p.Refused.Count != 0 || p.Duplicates != 2*(8+2)+4*2 {
		t.Errorf("refused %v, %d duplicates", p.Refused, p.Duplicates)
	}
}

func TestSGLangDuplicates(t *testing.T) {
	for name, c := range map[string]struct {
		page    string
		want    []model.Maybe // running
		refused []Reason
	}{
		"a total beside its parts": {
			"sglang:num_running_reqs{dp_rank=\"0\",priority=\"1\"} 2\nsglang:num_running_reqs{dp_rank=\"0\",priority=\"2\"} 3\nsglang:num_running_reqs{dp_rank=\"0\",priority=\"\"} 5\n",
			[]model.Maybe{5},
			nil,
		},
		"parts without a total": {
			"sglang:num_running_reqs{dp_rank=\"0\",priority=\"1\"} 2\nsglang:num_running_reqs{dp_rank=\"0\",priority=\"2\"} 3\n",
			[]model.Maybe{unk},
			[]Reason{NoTotal},
		},
		"a total over the ranks": {
			"sglang:num_running_reqs 30\nsglang:num_running_reqs{dp_rank=\"0\"} 10\nsglang:num_running_reqs{dp_rank=\"1\"} 20\n",
			[]model.Maybe{10, 20},
			nil,
		},
		"the leader is unusable": {
			"sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"0\"} NaN\nsglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"1\"} 4\n",
			[]model.Maybe{4},
			[]Reason{BadNumber},
		},
		"the first pipeline stage leads": {
			"sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"0\",pp_rank=\"1\"} 7\nsglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"9\",pp_rank=\"0\"} 4\n",
			[]model.Maybe{4},
			nil,
		},
	} {
		p, err := SGLangMetrics(body(c.page), 0)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []model.Maybe
		for _, r := range p.Reports() {
			got = append(got, r.Running)
		}
		same(t, name, got, c.want)
		same(t, name+", refused", reasons(&p.Refused), c.refused)
	}
}

func TestSGLangLoads(t *testing.T) {
	p, err := SGLangLoads(page(t, "sglang_loads.json"), 16)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "reports", p.Reports(), []model.RankReport{
		{Rank: 0, Running: 9, Waiting: 4, Tokens: 12641, PendingTokens: 1200, KVUsedBlocks: 641, KVTotalBlocks: 1280, CacheHit: 0.75},
		{Rank: 2, Running: 0, Waiting: 0, Tokens: 0, PendingTokens: 0, KVUsedBlocks: 0, KVTotalBlocks: 1280, CacheHit: 0},
	})
	same(t, "advert", p.Advert, Advert{Advertised: []int{0, 2}, BlockTokens: 16, KVBlocks: 1280, MaxActive: 96})
	if want := time.UnixMilli(1785921323250).UTC(); !p.Ranks[0].Taken.Equal(want) {
		t.Errorf("taken %v, want %v", p.Ranks[0].Taken, want)
	}
	p, err = SGLangLoads(page(t, "sglang_loads.json"), 0)
	if err != nil || p.Ranks[0].KVUsedBlocks.Known() || p.KVBlocks != 0 {
		t.Errorf("without a page size: %v, %+v", err, p)
	}
	p, err = SGLangLoads(page(t, "sglang_get_load.json"), 0)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "older reports", p.Reports(), []model.RankReport{
		report(0, func(r *model.RankReport) { r.Running, r.Waiting, r.Tokens, r.PendingTokens = 9, 4, 12641, 2400 }),
		report(1, func(r *model.RankReport) { r.Running, r.Waiting, r.Tokens = 2, 0, 400 }),
	})
}

func TestSGLangLoadsOddities(t *testing.T) {
	for name, c := range map[string]struct {
		body    string
		want    []model.RankReport
		refused []Reason
	}{
		"NaN": {
			`{"loads":[{"dp_rank":0,"num_running_reqs":1,"gen_throughput":NaN,"cache_hit_rate":-Infinity,"note":"NaN \" Infinity"}]}`,
			[]model.RankReport{report(0, func(r *model.RankReport) { r.Running = 1 })},
			[]Reason{BadNumber},
		},
		"spoilt fields": {
			`[{"dp_rank":0,"num_running_reqs":-1,"num_waiting_reqs":"3"},{"dp_rank":1,"num_running_reqs":1e300,"cache_hit_rate":2}]`,
			[]model.RankReport{unknown(0), unknown(1)},
			[]Reason{BadNumber, BadNumber, BadNumber, BadNumber},
		},
		"half a list": {
			`[{"dp_rank":0,"num_running_reqs":1},{"dp_rank":1,"num_run`,
			[]model.RankReport{report(0, func(r *model.RankReport) { r.Running = 1 })},
			[]Reason{Truncated},
		},
		"ranks that are none": {
			`[{"dp_rank":-1},{"dp_rank":"x"},{"dp_rank":1.5},7,{"dp_rank":3,"num_running_reqs":2}]`,
			[]model.RankReport{report(3, func(r *model.RankReport) { r.Running = 2 })},
			[]Reason{BadRank, BadRank, BadRank, BadLine},
		},
		"a total beside the ranks": {
			`[{"dp_rank":null,"num_running_reqs":9},{"dp_rank":0,"num_running_reqs":9}]`,
			[]model.RankReport{report(0, func(r *model.RankReport) { r.Running = 9 })},
			nil,
		},
		"twice, the newer first": {
			`[{"dp_rank":0,"timestamp":9,"num_running_reqs":1},{"dp_rank":0,"timestamp":8,"num_running_reqs":2}]`,
			[]model.RankReport{report(0, func(r *model.RankReport) { r.Running = 1 })},
			[]Reason{Disagree},
		},
		"fewer than wait": {
			`[{"dp_rank":0,"num_reqs":1,"num_waiting_reqs":2}]`,
			[]model.RankReport{report(0, func(r *model.RankReport) { r.Waiting = 2 })},
			[]Reason{Disagree},
		},
	} {
		p, err := SGLangLoads(body(c.body), 0)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		same(t, name, p.Reports(), c.want)
		same(t, name+", refused", reasons(&p.Refused), c.refused)
	}
	p, err := SGLangLoads(body(`[{"num_reqs":4,"num_waiting_reqs":1}]`), 0)
	if err != nil || !p.Unranked || p.Ranks[0].Running != 3 {
		t.Errorf("one row without a rank: %v, %+v", err, p)
	}
	_, err = SGLangLoads(body(`[{"num_reqs":4},{"num_reqs":4}]`), 0)
	refusedAs(t, err, NoRank, "2 rows without a dp_rank")
	_, err = SGLangLoads(body(`{"detail":"x"}`), 0)
	refusedAs(t, err, NoFigures)
	_, err = SGLangLoads(body(`{"loads":[{"dp_rank":0`), 0)
	refusedAs(t, err, Truncated)
}

func TestSGLangInfo(t *testing.T) {
	i, err := SGLangInfo(page(t, "sglang_info.json"))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "info", i, Info{
		Advert:  Advert{Advertised: []int{0, 1, 2, 3}, BlockTokens: 64, KVBlocks: 163776 / 64, MaxActive: 127},
		Version: "0.5.19", Model: "qwen3",
		Events: &EventsAt{Host: "*", Port: 5557, Ranks: 4},
	})
	i, err = SGLangInfo(body(`{"version":"0.4","dp_size":2,"enable_dp_attention":true,"page_size":1,"max_running_requests":101,"model_path":"m","kv_events":null,"internal_states":7}`))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "older info", i, Info{Advert: Advert{Advertised: []int{0, 1}, BlockTokens: 1, MaxActive: 50}, Version: "0.4", Model: "m"})
}

// What an engine says of its set-up holds keys; no error may show them.
func TestInfoKeepsSecrets(t *testing.T) {
	for name, a := range map[string]Answer{
		"half":     body(`{"api_key":"sk-secret","dp_size`),
		"no JSON":  body(`api_key=sk-secret`),
		"status":   {Status: 500, Body: []byte(`{"api_key":"sk-secret"}`)},
		"other":    body(`{"api_key":"sk-secret"}`),
		"list":     body(`["sk-secret"]`),
		"too many": body(`{"api_key":"sk-secret","dp_size":99999,"version":"1"}`),
	} {
		_, err := SGLangInfo(a)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
