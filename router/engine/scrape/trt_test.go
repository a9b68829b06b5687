package scrape

import (
	"testing"
	"time"

	"adpdeck/router/model"
)

func TestTRTRows(t *testing.T) {
	p, err := TRTRows(page(t, "trt_rows.json"), 16)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Ranks) != 16 || p.Refused.Count != 0 {
		t.Fatalf("%d ranks, refused %v", len(p.Ranks), p.Refused)
	}
	for i, r := range p.Reports() {
		gen := i % 3
		want := report(i, func(r *model.RankReport) {
			r.Running, r.PendingTokens, r.Tokens = model.Maybe(1+gen), 512, model.Maybe(512+64+1000*gen)
		})
		if i == 7 { // one is paused
			want.Running, want.Tokens = want.Running+1, want.Tokens+300
		}
		same(t, "report", r, want)
	}
	if want := time.Date(2026, 9, 30, 12, 0, 1, 250018000, time.UTC); !p.Ranks[5].Taken.Equal(want) {
		t.Errorf("taken %v, want %v", p.Ranks[5].Taken, want)
	}
	if p.BlockTokens != 32 || p.KVBlocks != 4096 || p.MaxActive != 64 || len(p.Advertised) != 16 {
		t.Errorf("advert %+v", p.Advert)
	}
}

func TestTRTOneRank(t *testing.T) {
	const row = `[{"iter":3,"timestamp":"01-02-2026 03:04:05.600000","numActiveRequests":9,"numQueuedRequests":2,"maxNumActiveRequests":64,
		"kvCacheStats":{"maxNumBlocks":100,"usedNumBlocks":40,"tokensPerBlock":32,"cacheHitRate":0.5},
		"inflightBatchingStats":{"numContextRequests":1,"numGenRequests":7,"numPausedRequests":0,"numCtxTokens":12}}]`
	p, err := TRTRows(body(row), 1)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the only rank", p.Reports(), []model.RankReport{report(0, func(r *model.RankReport) {
		r.Running, r.Waiting, r.PendingTokens, r.KVUsedBlocks, r.KVTotalBlocks, r.CacheHit = 9, 2, 12, 40, 100, 0.5
	})})
	for _, ranks := range []int{0, 8} {
		if p, err = TRTRows(body(row), ranks); err != nil {
			t.Fatal(err)
		}
		same(t, "perhaps one of several", p.Reports(), []model.RankReport{report(0, func(r *model.RankReport) {
			r.Running, r.PendingTokens = 8, 12
		})})
	}
}

func TestTRTRowsOddities(t *testing.T) {
	gen := func(s string) string {
		return `"inflightBatchingStats":{"numContextRequests":0,"numGenRequests":` + s + `}`
	}
	for name, c := range map[string]struct {
		body    string
		ranks   int
		want    map[int]model.Maybe // running
		refused []Reason
	}{
		"drained already":        {`[]`, 4, map[int]model.Maybe{}, nil},
		"out of order":           {`[{"iter":9,` + gen("1") + `},{"iter":8,` + gen("2") + `}]`, 1, map[int]model.Maybe{0: 1}, nil},
		"began anew":             {`[{"iter":900,"timestamp":"01-02-2026 03:04:05.0",` + gen("1") + `},{"iter":0,"timestamp":"01-02-2026 03:09:05.0",` + gen("2") + `}]`, 1, map[int]model.Maybe{0: 2}, nil},
		"the clock was put back": {`[{"iter":8,"timestamp":"10-25-2026 02:59:59.9",` + gen("1") + `},{"iter":9,"timestamp":"10-25-2026 02:00:00.1",` + gen("2") + `}]`, 1, map[int]model.Maybe{0: 2}, nil},
		"rows by process, ADP":   {`[{"iter":1,"rank":0,` + gen("1") + `},{"iter":1,"rank":1,` + gen("2") + `}]`, 2, map[int]model.Maybe{0: 1, 1: 2}, nil},
		"rows by process":        {`[{"iter":1,"rank":0,` + gen("1") + `},{"iter":1,"rank":1,` + gen("2") + `}]`, 1, map[int]model.Maybe{0: 1}, nil},
		"half":                   {`[{"iter":1,"attentionDpRank":1,` + gen("1") + `},{"iter":1,"att`, 2, map[int]model.Maybe{1: 1}, []Reason{Truncated}},
		"no iterations":          {`[{"iter":1,` + gen("4") + `},{"x":1},7,{"iter":2,"attentionDpRank":-1}]`, 2, map[int]model.Maybe{0: 4}, []Reason{NoFigures, BadLine, BadRank}},
		"null sections":          {`[{"iter":1,"kvCacheStats":null,"specDecodingStats":null,` + gen("NaN") + `}]`, 1, map[int]model.Maybe{0: unk}, []Reason{BadNumber}},
	} {
		p, err := TRTRows(body(c.body), c.ranks)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := map[int]model.Maybe{}
		for _, r := range p.Reports() {
			got[r.Rank] = r.Running
		}
		same(t, name, got, c.want)
		same(t, name+", refused", reasons(&p.Refused), c.refused)
	}
	_, err := TRTRows(body(`{"detail":"Not Found"}`), 1)
	refusedAs(t, err, NotJSON)
	_, err = TRTRows(body(`[{"object":"model"}]`), 1)
	refusedAs(t, err, NoFigures, "enable_iter_perf_stats")
}
