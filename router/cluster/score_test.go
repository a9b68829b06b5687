package cluster

import (
	"math"
	"testing"

	"adpdeck/router/model"
)

// Hand-computed from dynamo.md 1.2 with blocks of 16 tokens.
func TestDynamoCost(t *testing.T) {
	base := facts{known: true, taint: 1}
	with := func(f func(*facts)) facts { g := base; f(&g); return g }
	cases := map[string]struct {
		isl  int
		minA float64
		cfg  func(*Config)
		f    facts
		want model.ScoreTerms
	}{
		"docs example, worker 1: prefill 8, decode 10": {
			isl: 160, f: with(func(f *facts) { f.device, f.decode = 2, 10 }),
			want: model.ScoreTerms{CachedTokens: 32, RawPrefillBlocks: 10, Decay: 1, CreditBlocks: 2, Prefill: 8, Cost: 18},
		},
		"docs example, worker 2: prefill 5, decode 5": {
			isl: 160, f: with(func(f *facts) { f.device, f.decode = 5, 5 }),
			want: model.ScoreTerms{CachedTokens: 80, RawPrefillBlocks: 10, Decay: 1, CreditBlocks: 5, Prefill: 5, Cost: 10},
		},
		"docs example, worker 3: prefill 2, decode 9": {
			isl: 160, f: with(func(f *facts) { f.device, f.decode = 8, 9 }),
			want: model.ScoreTerms{CachedTokens: 128, RawPrefillBlocks: 10, Decay: 1, CreditBlocks: 8, Prefill: 2, Cost: 11},
		},
		"real division: 100 tokens are 6.25 blocks, active tokens add": {
			isl: 100, f: with(func(f *facts) { f.active, f.device = 28, 1 }),
			want: model.ScoreTerms{CachedTokens: 16, RawPrefillBlocks: 8, Decay: 1, CreditBlocks: 1, Prefill: 7, Cost: 7},
		},
		"no load entry: the prompt alone": {
			isl: 96, f: with(func(f *facts) { f.known, f.active = false, 500 }),
			want: model.ScoreTerms{RawPrefillBlocks: 6, Decay: 1, Prefill: 6, Cost: 6},
		},
		"cached beyond the prompt is counted as work and taken off again": {
			isl: 32, f: with(func(f *facts) { f.device = 4 }),
			want: model.ScoreTerms{CachedTokens: 64, RawPrefillBlocks: 4, Decay: 1, CreditBlocks: 4, Cost: 0},
		},
		"tiers: 4 device, 4 host, 4 disk weigh 4 + 3 + 1": {
			isl: 192, f: with(func(f *facts) { f.device, f.host, f.disk, f.tiers = 4, 4, 4, true }),
			want: model.ScoreTerms{CachedTokens: 128, RawPrefillBlocks: 12, Decay: 1, CreditBlocks: 8, Prefill: 4, Cost: 4},
		},
		"shared cache counts with its type only": {
			isl: 160, f: with(func(f *facts) { f.shared = 6 }),
			want: model.ScoreTerms{RawPrefillBlocks: 10, Decay: 1, Prefill: 10, Cost: 10},
		},
		"shared cache, half": {
			isl: 160, cfg: func(c *Config) { c.SharedCacheType = model.SharedCacheHiCache }, f: with(func(f *facts) { f.shared = 6 }),
			want: model.ScoreTerms{RawPrefillBlocks: 10, Decay: 1, CreditBlocks: 3, Prefill: 7, Cost: 7},
		},
		"decay: 160 tokens above the idlest are R blocks, so credit halves at k 1": {
			isl: 160, minA: 80, cfg: func(c *Config) { c.KVOverlapScoreCreditDecay = 1 },
			f:    with(func(f *facts) { f.active, f.device = 240, 8 }),
			want: model.ScoreTerms{CachedTokens: 128, RawPrefillBlocks: 25, Decay: 0.5, CreditBlocks: 4, Prefill: 21, Cost: 21},
		},
		"scale 32 and a request weight of 2": {
			isl: 64, cfg: func(c *Config) { c.PrefillLoadScale, c.DecodeActiveRequestWeight = 32, 2 },
			f:    with(func(f *facts) { f.device, f.decode, f.requests = 1, 7, 3 }),
			want: model.ScoreTerms{CachedTokens: 16, RawPrefillBlocks: 4, Decay: 1, CreditBlocks: 1, Prefill: 96, Active: 6, Cost: 109},
		},
		"credit above the work clamps at 0": {
			isl: 64, cfg: func(c *Config) { c.KVOverlapScoreCredit = 2 }, f: with(func(f *facts) { f.device, f.decode = 3, 1 }),
			want: model.ScoreTerms{CachedTokens: 48, RawPrefillBlocks: 4, Decay: 1, CreditBlocks: 6, Cost: 1},
		},
		"prefill not tracked": {
			isl: 64, cfg: func(c *Config) { c.TrackPrefillTokens = false }, f: with(func(f *facts) { f.active, f.decode, f.device = 160, 9, 2 }),
			want: model.ScoreTerms{CachedTokens: 32, Decay: 1, CreditBlocks: 2, Cost: 9},
		},
		"decode pool takes the credit off decode blocks": {
			isl: 64, cfg: func(c *Config) { c.TrackPrefillTokens, c.DecodeActiveRequestWeight = false, 1 },
			f:    with(func(f *facts) { f.decode, f.device, f.requests, f.decodePool = 9, 2, 3, true }),
			want: model.ScoreTerms{CachedTokens: 32, Decay: 1, CreditBlocks: 2, Active: 3, Cost: 10},
		},
		"a preferred taint of weight 1": {
			isl: 160, f: with(func(f *facts) { f.taint = math.Exp(-math.Tanh(1)) }),
			want: model.ScoreTerms{RawPrefillBlocks: 10, Decay: 1, Prefill: 10, Cost: 4.669214877224426},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := model.DefaultClusterConfig()
			if c.cfg != nil {
				c.cfg(&cfg)
			}
			p := newPrompt(model.ModeKV, &cfg, c.isl, 16)
			p.minActive = c.minA
			var got model.ScoreTerms
			p.score(&c.f, &got)
			if math.Abs(got.Cost-c.want.Cost) > 1e-12 || got.Decay != c.want.Decay || got.CreditBlocks != c.want.CreditBlocks ||
				got.Prefill != c.want.Prefill || got.Active != c.want.Active || got.RawPrefillBlocks != c.want.RawPrefillBlocks ||
				got.CachedTokens != c.want.CachedTokens {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// Hand-computed: λ 2, μ 0.25, δ 0.5, blocks of 16 tokens, steps of 1,000; load is
// 0, so a token of work costs 1. held is half of what the fullest rank would hold.
func TestLockstepCost(t *testing.T) {
	cases := map[string]struct {
		isl               int
		f                 facts
		omega             float64
		fresh, rise, wait float64
		cost              float64
	}{
		"idle worker: all of it is a rise":     {160, facts{}, 0, 160, 160, 160, 160 + 320 + 80},
		"below the worker's highest: free":     {160, facts{pending: 40, rest: 40, high: 200}, 0, 160, 0, 200, 160 + 10 + 80},
		"part above":                           {160, facts{pending: 100, rest: 100, high: 200}, 0, 160, 60, 260, 160 + 120 + 25 + 80},
		"three wait: the rise costs all":       {160, facts{pending: 100, rest: 100, high: 200, waiting: 3}, 0, 160, 60, 260, 160 + 480 + 25 + 80},
		"match takes work and rise":            {160, facts{device: 5, pending: 100, rest: 100, high: 200}, 0, 80, 0, 200, 80 + 25 + 80},
		"below the fullest rank of the worker": {160, facts{held: 10, full: 500, high: 1000}, 0, 160, 0, 1000, 160 + 229.375},
		"above it":                             {160, facts{held: 400, full: 500, high: 1000}, 0, 160, 0, 1000, 160 + 280},
		"host blocks count by their weight":    {160, facts{host: 4, high: 1000, tiers: true}, 0, 112, 0, 1000, 112 + 80},
		"the wait, priced":                     {160, facts{pending: 40, rest: 40, high: 200}, .5, 160, 0, 200, 160 + 100 + 10 + 80},
		"one chunk beside a long backlog":      {160, facts{high: 2500}, 1, 160, 0, 1000, 160 + 1000 + 80},
		"two chunks, of three":                 {160, facts{pending: 900, rest: 900, high: 2500}, 1, 160, 0, 2000, 160 + 2000 + 225 + 80},
		"to the end of the backlog":            {160, facts{pending: 2100, rest: 2100, high: 2500}, 1, 160, 0, 2500, 160 + 2500 + 525 + 80},
		"what runs is as good as done":         {160, facts{pending: 900, high: 1500, step: 1000}, 1, 160, 0, 1500, 160 + 1500 + 225 + 80},
		"blocks on their way count as matched": {160, facts{device: 2, onWay: 6, high: 1000}, 0, 64, 0, 1000, 64 + 80},
		"but not what starts in the same step": {160, facts{device: 2, onWay: 6, pending: 1040, rest: 1040, high: 3000}, 0, 104, 0, 2000, 104 + 260 + 80},
		"in a long backlog all is there":       {160, facts{device: 2, onWay: 6, pending: 3040, rest: 3040, high: 4000}, 0, 64, 0, 4000, 64 + 760 + 80},
		"fewer than are there count not":       {160, facts{device: 5, onWay: 2, pending: 100, rest: 100, high: 200}, 0, 80, 0, 200, 80 + 25 + 80},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := model.DefaultClusterConfig()
			cfg.LockstepWeight, cfg.PendingWeight, cfg.LockstepDecodeWeight, cfg.WaitWeight = 2, 0.25, 0.5, c.omega
			p := newPrompt(model.ModeLockstep, &cfg, c.isl, 16)
			var got model.ScoreTerms
			c.f.taint, c.f.chunk = 1, 1000
			p.score(&c.f, &got)
			if got.New != c.fresh || got.Rise != c.rise || got.Wait != c.wait || got.Cost != c.cost {
				t.Errorf("new %v, rise %v, wait %v, cost %v; want %v, %v, %v, %v", got.New, got.Rise, got.Wait, got.Cost, c.fresh, c.rise, c.wait, c.cost)
			}
		})
	}
}

func TestSharedHitsBeyondTheDevice(t *testing.T) {
	spans := []Span{{0, 4}, {6, 10}}
	for from, want := range map[int]int{0: 8, 2: 6, 4: 4, 5: 4, 7: 3, 10: 0, 99: 0} {
		if got := beyond(spans, from); got != want {
			t.Errorf("beyond(%d) = %d, want %d", from, got, want)
		}
	}
}
