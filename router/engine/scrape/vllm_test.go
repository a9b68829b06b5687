package scrape

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"adpdeck/router/model"
)

func TestVLLMPage(t *testing.T) {
	p, err := VLLM(page(t, "vllm.prom"))
	if err != nil {
		t.Fatal(err)
	}
	full := func(running, waiting, used, hit model.Maybe) func(r *model.RankReport) {
		return func(r *model.RankReport) {
			r.Running, r.Waiting, r.KVUsedBlocks, r.KVTotalBlocks, r.CacheHit = running, waiting, used, 8192, hit
		}
	}
	same(t, "reports", p.Reports(), []model.RankReport{
		report(0, full(0, 0, 0, unk)), // nothing was asked of its cache yet
		report(1, full(27, 4, 4096, 0.75)),
		report(2, full(3, 0, 1024, 0.25)),
		report(3, full(1, 0, 8, 0)),
	})
	same(t, "advert", p.Advert, Advert{Advertised: []int{0, 1, 2, 3}, BlockTokens: 16, KVBlocks: 8192})
	var health []Condition
	for i := range p.Ranks {
		health = append(health, p.Ranks[i].Condition)
	}
	same(t, "health", health, []Condition{Healthy, Healthy, Unhealthy, Healthy})
	if want := time.Unix(1759843212, 250e6).UTC(); !p.Started.Equal(want) {
		t.Errorf("started %v, want %v", p.Started, want)
	}
	if p.Refused.Count != 0 || p.Duplicates != 0 || p.Unranked {
		t.Errorf("refused %v, duplicates %d, unranked %t", p.Refused, p.Duplicates, p.Unranked)
	}
}

func TestVLLMOldPage(t *testing.T) {
	p, err := VLLM(page(t, "vllm_old.prom"))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "reports", p.Reports(), []model.RankReport{report(0, func(r *model.RankReport) {
		r.Running, r.Waiting, r.KVUsedBlocks, r.KVTotalBlocks, r.CacheHit = 5, 2, 250, 1000, 0.5
	})})
	if !p.Unranked {
		t.Error("a page without the label engine is not marked")
	}
	p.Inside(4, 1, model.NumbersAuto)
	same(t, "advert of a worker of one rank", p.Advert, Advert{Advertised: []int{0}, BlockTokens: 16, KVBlocks: 1000})
	p.Inside(0, 2, model.NumbersAuto)
	if len(p.Ranks) != 0 || !p.Refused.Has(NoRank) {
		t.Errorf("two ranks: %v, refused %v; want none and no_rank", p.Ranks, p.Refused.List)
	}
}

// Several API processes: their series are copies, never added up; the sum in
// num_gpu_blocks does not count where one rank's own size is said.
func TestVLLMProcesses(t *testing.T) {
	p, err := VLLM(page(t, "vllm_processes.prom"))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "reports", p.Reports(), []model.RankReport{
		report(0, func(r *model.RankReport) { r.Running, r.KVUsedBlocks, r.KVTotalBlocks = 3, 500, 1000 }),
		report(1, func(r *model.RankReport) { r.Running, r.KVUsedBlocks, r.KVTotalBlocks = 9, 250, 1000 }),
	})
	same(t, "refused", reasons(&p.Refused), []Reason{Disagree})
	if want := "vllm:num_requests_running of engine 1 is there twice, as 8 and 9; the larger counts"; p.Refused.List[0].Detail != want {
		t.Errorf("refused with %q", p.Refused.List[0].Detail)
	}
	if p.Duplicates != 4 {
		t.Errorf("%d duplicates, want 4", p.Duplicates)
	}
}

func TestVLLMCapacity(t *testing.T) {
	row := func(engine int, labels string) string {
		return fmt.Sprintf("vllm:cache_config_info{engine=\"%d\",%s} 1\n", engine, labels)
	}
	for name, c := range map[string]struct {
		page string
		want []model.Maybe
	}{
		"one engine":          {row(0, `block_size="16",num_gpu_blocks="100"`), []model.Maybe{100}},
		"a sum":               {row(0, `block_size="16",num_gpu_blocks="101"`) + row(1, `block_size="16",num_gpu_blocks="101"`), []model.Maybe{50, 50}},
		"each its own":        {row(0, `block_size="16",num_gpu_blocks="100"`) + row(1, `block_size="16",num_gpu_blocks="90"`), []model.Maybe{100, 90}},
		"tokens":              {row(0, `block_size="16",num_gpu_blocks="200",kv_cache_size_tokens="1600"`) + row(1, `block_size="16",num_gpu_blocks="200",kv_cache_size_tokens="1600"`), []model.Maybe{100, 100}},
		"not known yet":       {row(0, `block_size="16",num_gpu_blocks="None"`), []model.Maybe{unk}},
		"a number with signs": {row(0, `block_size="16",num_gpu_blocks="-5"`), []model.Maybe{unk}},
	} {
		p, err := VLLM(body(c.page))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []model.Maybe
		for _, r := range p.Reports() {
			got = append(got, r.KVTotalBlocks)
		}
		same(t, name, got, c.want)
	}
}

// A10: one value for each rank; a rank that is missing is unknown, not 0.
func TestEveryRankItsOwnFigure(t *testing.T) {
	for _, ranks := range []int{1, 4, 16} {
		for missing := -1; missing < ranks; missing++ {
			var b strings.Builder
			for e := range ranks {
				if e != missing {
					fmt.Fprintf(&b, "vllm:num_requests_running{engine=\"%d\",model_name=\"m\"} %d\n", e, 27*e)
				}
				fmt.Fprintf(&b, "vllm:num_requests_waiting{engine=\"%d\",model_name=\"m\"} %d\n", e, e)
			}
			p, err := VLLM(body(b.String()))
			if err != nil {
				t.Fatal(err)
			}
			for e, r := range p.Reports() {
				want := model.Maybe(27 * e)
				if e == missing {
					want = unk
				}
				same(t, fmt.Sprintf("%d ranks without %d, rank %d", ranks, missing, e), []model.Maybe{r.Running, r.Waiting}, []model.Maybe{want, model.Maybe(e)})
			}
			if len(p.Ranks) != ranks {
				t.Errorf("%d ranks of %d", len(p.Ranks), ranks)
			}
		}
	}
}

// The same as a property, over all engines that write Prometheus text: any
// ranks, any of them missing in any family, in any order, with copies.
func TestRanksAreKeptApart(t *testing.T) {
	vllm := func(a Answer) (Page, error) { return VLLM(a) }
	sglang := func(a Answer) (Page, error) { return SGLangMetrics(a, 0) }
	rapid.Check(t, func(t *rapid.T) {
		type engine struct {
			read             func(Answer) (Page, error)
			label, run, wait string
		}
		e := rapid.SampledFrom([]engine{
			{vllm, "engine", vllmRunning, vllmWaiting},
			{sglang, "dp_rank", sglangRunning, sglangQueued},
		}).Draw(t, "engine")
		ranks := rapid.SampledFrom([]int{1, 4, 16}).Draw(t, "ranks")
		var lines []string
		want := map[int][2]model.Maybe{}
		for rank := range ranks {
			w := [2]model.Maybe{unk, unk}
			for i, family := range []string{e.run, e.wait} {
				if rapid.Bool().Draw(t, "missing") {
					continue
				}
				v := rapid.IntRange(0, 500).Draw(t, "value")
				w[i] = model.Maybe(v)
				for range rapid.IntRange(1, 3).Draw(t, "copies") {
					lines = append(lines, fmt.Sprintf("%s{%s=\"%d\"} %d", family, e.label, rank, v))
				}
			}
			if w[0].Known() || w[1].Known() {
				want[rank] = w
			}
		}
		if len(lines) == 0 {
			t.Skip("nothing on the page")
		}
		p, err := e.read(body(strings.Join(rapid.Permutation(lines).Draw(t, "order"), "\n") + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Ranks) != len(want) || p.Refused.Count > 0 {
			t.Fatalf("ranks %v, refused %v, want %v", p.Advertised, p.Refused, want)
		}
		for _, r := range p.Reports() {
			w := want[r.Rank]
			if r.Running.Known() != w[0].Known() || w[0].Known() && r.Running != w[0] || r.Waiting.Known() != w[1].Known() || w[1].Known() && r.Waiting != w[1] {
				t.Fatalf("rank %d: %v, %v, want %v", r.Rank, r.Running, r.Waiting, w)
			}
		}
		if !slices.IsSorted(p.Advertised) {
			t.Fatalf("advertised %v", p.Advertised)
		}
	})
}
