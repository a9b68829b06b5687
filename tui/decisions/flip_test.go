package decisions

import (
	"math"
	"math/rand/v2"
	"testing"

	"adpdeck/router/adp"
	"adpdeck/router/cluster"
	"adpdeck/router/model"
)

// close is how near to a flip the real router is asked again, as a share.
const closeBy = 1e-6

// routeAt is the real KV-aware router's choice for one request at a β.
func routeAt(t *testing.T, b *adp.Batch, tp int, beta float64) model.Placement {
	t.Helper()
	cfg := model.DefaultAttentionDpConfig().WithPolicy(model.PolicyKVAware)
	cfg.KVCacheRoutingLoadBalanceWeight = beta
	r := adp.New(tp, cfg, nil, adp.Options{Record: true})
	var out adp.Result
	if err := r.Route(b, &out); err != nil {
		t.Fatal(err)
	}
	return out.Placements[0]
}

// The β at which the choice flips is where the real router, asked again a
// millionth to either side, changes its mind, and to the rank that was named;
// in between it never does.
func TestBetaAgainstTheRouter(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	flips, scored := 0, 0
	for range 1500 {
		tp := 2 + rng.IntN(15)
		n := 1 + rng.IntN(9000)
		b := &adp.Batch{HardCap: 16}
		req := adp.Request{ID: int64(rng.IntN(1 << 30)), Tokens: n, Matches: make([]int32, tp)}
		for k := range tp {
			b.States = append(b.States, model.RankState{Rank: k, NumActiveRequests: rng.IntN(18), NumActiveTokens: rng.IntN(60_000)})
			if rng.IntN(2) == 0 {
				req.Matches[k] = int32(rng.IntN(n + 1))
			}
		}
		b.Requests = []adp.Request{req}
		now := rng.Float64() * 4
		p := routeAt(t, b, tp, now)
		f, ok := Beta("w0", &p)
		if !ok {
			continue
		}
		scored++
		if math.Abs(f.Now-now) > 1e-9 {
			t.Fatalf("β is %v, found %v", now, f.Now)
		}
		rankAt := func(beta float64) int { p := routeAt(t, b, tp, beta); return p.Rank }
		lo, hi := 0.0, 16.0
		if f.Above != nil {
			flips++
			hi = f.Above.At
			if got := rankAt(hi*(1+closeBy) + closeBy); got != f.Above.To.Rank {
				t.Fatalf("just above β %v rank %d is chosen, said %s (now %v: %d)", hi, got, f.Above.To, now, p.Rank)
			}
		}
		if f.Below != nil {
			flips++
			lo = f.Below.At
			if got := rankAt(max(0, lo*(1-closeBy)-closeBy)); got != f.Below.To.Rank {
				t.Fatalf("just below β %v rank %d is chosen, said %s (now %v: %d)", lo, got, f.Below.To, now, p.Rank)
			}
		}
		for i := range 12 {
			beta := lo + (hi-lo)*(closeBy+(1-2*closeBy)*float64(i)/11)
			if got := rankAt(beta); got != p.Rank {
				t.Fatalf("β %v between %v and %v: rank %d instead of %d", beta, lo, hi, got, p.Rank)
			}
		}
	}
	if scored < 700 || flips < 250 {
		t.Fatalf("only %d scored choices and %d flips were tried", scored, flips)
	}
}

// selection is a random record whose chosen target is the cheapest by the
// cluster tier's own scoring.
func selection(rng *rand.Rand, mode model.RouterMode) *model.Selection {
	cfg := model.DefaultClusterConfig()
	cfg.KVOverlapScoreCredit, cfg.PrefillLoadScale, cfg.DecodeActiveRequestWeight = rng.Float64()*3, rng.Float64()*3, rng.Float64()*2
	cfg.KVOverlapScoreCreditDecay = float64(rng.IntN(2)) * rng.Float64()
	cfg.LockstepWeight, cfg.PendingWeight, cfg.LockstepDecodeWeight = rng.Float64()*5, rng.Float64(), rng.Float64()*.2
	cfg.WaitWeight = rng.Float64()
	cfg.RecentWeight = float64(rng.IntN(2)) * rng.Float64()
	s := &model.Selection{Mode: mode, Config: cfg, By: model.ByCost, BlockTokens: 16, PromptTokens: 1 + rng.IntN(8000)}
	blocks := (s.PromptTokens + 15) / 16
	s.MinActiveTokens, s.MeanPending, s.MeanRecent = math.Inf(1), float64(rng.IntN(20_000)), float64(rng.IntN(200_000))
	for k := range 2 + rng.IntN(14) {
		var c model.ScoredTarget
		c.Target = model.Target{Worker: "w" + string(rune('0'+k%3)), Rank: k}
		c.Held, c.HighestHeld, c.OnWay = float64(rng.IntN(60_000)), float64(60_000+k%3*20_000), rng.IntN(blocks+1)/4
		c.Recent = float64(rng.IntN(600_000))
		c.Device, c.Host, c.Disk = rng.IntN(blocks+1), rng.IntN(4), rng.IntN(3)
		c.ActiveTokens, c.Requests, c.DecodeBlocks = float64(rng.IntN(9000)), float64(rng.IntN(30)), float64(rng.IntN(3000))
		c.Pending, c.HighestRest, c.Taint = float64(rng.IntN(8000)), float64(8000+k%3*500), 1
		c.Rest, c.Step, c.Waiting, c.Chunk = float64(rng.IntN(1+int(c.Pending))), float64(k%3*700), float64(k%3), 2048
		if rng.IntN(8) == 0 {
			c.Excluded = "draining"
		} else {
			s.MinActiveTokens = min(s.MinActiveTokens, c.ActiveTokens)
		}
		s.Candidates = append(s.Candidates, c)
	}
	terms := make([]model.ScoreTerms, len(s.Candidates))
	best, _ := cluster.Rescore(s, mode, &s.Config, terms)
	for i := range s.Candidates {
		if s.Candidates[i].Excluded == "" {
			s.Candidates[i].ScoreTerms = terms[i]
		}
	}
	if best >= 0 {
		s.Chosen = s.Candidates[best].Target
	}
	return s
}

func TestWeightsAgainstRescoring(t *testing.T) {
	for _, mode := range []model.RouterMode{model.ModeKV, model.ModeLockstep} {
		t.Run(string(mode), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			flips := 0
			for range 1500 {
				s := selection(rng, mode)
				for _, f := range Weights(s) {
					flips += checkFlip(t, s, &f)
				}
			}
			if flips < 700 {
				t.Fatalf("only %d flips were tried", flips)
			}
		})
	}
}

func checkFlip(t *testing.T, s *model.Selection, f *Flip) (flips int) {
	t.Helper()
	field, _ := model.FieldByName(f.Field)
	at := func(x float64) model.Target {
		cfg := s.Config
		set := map[string]*float64{
			"router_prefill_load_scale": &cfg.PrefillLoadScale, "router_kv_overlap_score_credit": &cfg.KVOverlapScoreCredit,
			"router_decode_active_request_weight": &cfg.DecodeActiveRequestWeight, "lockstep_weight": &cfg.LockstepWeight,
			"wait_weight": &cfg.WaitWeight, "pending_weight": &cfg.PendingWeight, "lockstep_decode_weight": &cfg.LockstepDecodeWeight,
		}
		*set[f.Field] = x
		best, _ := cluster.Rescore(s, s.Mode, &cfg, make([]model.ScoreTerms, len(s.Candidates)))
		return s.Candidates[best].Target
	}
	lo, hi := field.Min, field.Max
	if f.Above != nil {
		flips++
		hi = f.Above.At
		if got := at(hi*(1+closeBy) + closeBy); got != f.Above.To {
			t.Fatalf("%s just above %v: %s, said %s", f.Field, hi, got, f.Above.To)
		}
	}
	if f.Below != nil {
		flips++
		lo = f.Below.At
		if got := at(max(0, lo*(1-closeBy)-closeBy)); got != f.Below.To {
			t.Fatalf("%s just below %v: %s, said %s", f.Field, lo, got, f.Below.To)
		}
	}
	for i := range 12 {
		x := lo + (hi-lo)*(closeBy+(1-2*closeBy)*float64(i)/11)
		if got := at(x); got != s.Chosen {
			t.Fatalf("%s %v between %v and %v: %s instead of %s", f.Field, x, lo, hi, got, s.Chosen)
		}
	}
	return flips
}

func TestFlipsByHand(t *testing.T) {
	score := func(prefill int, load float64) model.Candidate {
		return model.Candidate{PrefillTokens: prefill, Tokens: load, LoadTerm: model.Maybe(load), Score: model.Maybe(float64(prefill) + load)}
	}
	p := &model.Placement{Phase: model.PhaseScored, Rank: 0, PromptTokens: 1000, Denom: 1000}
	for name, c := range map[string]struct {
		other        model.Candidate
		below, above float64 // -1 none
	}{
		"above":           {score(400, 50), -1, 6}, // 100 + 100β meets 400 + 50β
		"below":           {score(50, 200), .5, -1},
		"never":           {score(200, 200), -1, -1},
		"same in all":     {score(100, 100), -1, -1},
		"out of reach":    {score(9000, 50), -1, -1}, // β 178
		"equal, less now": {score(150, 50), -1, 1},
		"excluded":        {model.Candidate{PrefillTokens: 1, Score: 1, Excluded: "soft cap"}, -1, -1},
	} {
		t.Run(name, func(t *testing.T) {
			p.Candidates = []model.Candidate{score(100, 100), c.other, score(5000, 5000)}
			p.Candidates[1].Rank, p.Candidates[2].Rank = 1, 2
			f, ok := Beta("w", p)
			at := func(x *Turn) float64 {
				if x == nil {
					return -1
				}
				if x.To.Rank != 1 {
					t.Errorf("flips to %s", x.To)
				}
				return x.At
			}
			if !ok || f.Now != 1 || math.Abs(at(f.Below)-c.below) > 1e-9 || math.Abs(at(f.Above)-c.above) > 1e-9 {
				t.Errorf("ok %v, now %v, below %v, above %v", ok, f.Now, at(f.Below), at(f.Above))
			}
		})
	}
}

// Candidates that only δ tells apart are equal at δ 0; that is no flip, however
// the sums were rounded.
func TestEqualAtTheBoundIsNoFlip(t *testing.T) {
	s := &model.Selection{Mode: model.ModeLockstep, By: model.ByCost, Config: model.DefaultClusterConfig(), Chosen: model.Target{Worker: "w"}}
	s.Config.LockstepDecodeWeight = .1
	for k, held := range []float64{66_880, 68_310, 67_520.3} {
		var c model.ScoredTarget
		c.Target = model.Target{Worker: "w", Rank: k}
		c.New, c.Rise, c.Wait, c.Pending, c.Taint = 873.1, 873.7, .3, .1, 1
		c.HeldTerm = .1 * held
		for _, v := range lockstepTerms(&s.Config, &c.ScoreTerms) {
			c.Cost += v
		}
		s.Candidates = append(s.Candidates, c)
	}
	for _, f := range Weights(s) {
		if f.Below != nil || f.Above != nil {
			t.Errorf("%s flips: %+v %+v", f.Sign, f.Below, f.Above)
		}
	}
	if len(Weights(s)) != 4 {
		t.Errorf("%d weights", len(Weights(s)))
	}
}

func TestNoFlipWhereNothingWasCompared(t *testing.T) {
	if f := Weights(nil); f != nil {
		t.Error("no selection")
	}
	s := selection(rand.New(rand.NewPCG(5, 6)), model.ModeKV)
	for _, by := range []string{model.ByTemperature, model.ByBinding, model.ByRequired} {
		s.By = by
		if Weights(s) != nil {
			t.Errorf("%s has flips", by)
		}
	}
	s.By = model.ByCost
	s.Candidates[0].Cost++ // terms that do not add up
	s.Candidates[0].Excluded = ""
	if Weights(s) != nil {
		t.Error("terms that do not add up have flips")
	}
	if _, ok := Beta("w", &model.Placement{Phase: model.PhaseBalanced, Denom: model.Unknown()}); ok {
		t.Error("a balanced placement has a flip")
	}
}
