package decisions

import (
	"math"

	"adpdeck/router/model"
)

// weight is one weight of the cluster tier's cost: its value in a recorded
// configuration, and a candidate's cost as a function of it.
type weight struct {
	field, sign string
	now         func(*model.ClusterConfig) float64
	curve       func(*model.Selection, *model.ScoreTerms) curve
}

// Weights says for which values of each weight of its cost the cluster tier
// would have chosen the same target, the weights that matter most first. It is
// empty where the choice was not made by the lowest cost, where there was no
// other target, and where the recorded terms do not add up to the recorded cost
// (a decode pool without prefill tracking).
func Weights(s *model.Selection) []Flip {
	if s == nil || s.By != model.ByCost {
		return nil
	}
	list, lockstep := kvWeights(), s.Mode == model.ModeLockstep
	if lockstep {
		list = lockstepWeights()
		if s.Config.LockstepDecodeWeight == 0 {
			list = list[:len(list)-1]
		}
	}
	var out []Flip
	for _, w := range list {
		var all []curve
		var targets []model.Target
		chosen, now := -1, w.now(&s.Config)
		for i := range s.Candidates {
			k := &s.Candidates[i]
			if k.Excluded != "" {
				continue
			}
			c := w.curve(s, &k.ScoreTerms)
			if !near(c.at(now), k.Cost) {
				return nil
			}
			if k.Target == s.Chosen {
				chosen = len(all)
			}
			all, targets = append(all, c), append(targets, k.Target)
		}
		if chosen < 0 || len(all) < 2 {
			return nil
		}
		out = append(out, solve(Flip{Field: w.field, Sign: w.sign, Now: now}, all, targets, chosen))
	}
	return out
}

// near allows for the roundings of a different order of adding.
func near(a, b float64) bool {
	return math.Abs(a-b) <= 1e-9*(1+math.Abs(a)+math.Abs(b))
}

// kvWeights are those of Dynamo's cost, taint × (P × max(0, raw − credit) +
// decode + q × requests), and of what our own price on recent work adds, which
// P weighs too.
func kvWeights() []weight {
	return []weight{
		{
			"router_prefill_load_scale", "P", func(c *model.ClusterConfig) float64 { return c.PrefillLoadScale },
			func(s *model.Selection, t *model.ScoreTerms) curve {
				return straight(t.Taint*(t.DecodeBlocks+t.Active), t.Taint*(max(0, t.RawPrefillBlocks-t.CreditBlocks)+recentBlocks(s, t)))
			},
		},
		{
			"router_kv_overlap_score_credit", "credit", func(c *model.ClusterConfig) float64 { return c.KVOverlapScoreCredit },
			creditCurve,
		},
		{
			"router_decode_active_request_weight", "q", func(c *model.ClusterConfig) float64 { return c.DecodeActiveRequestWeight },
			func(_ *model.Selection, t *model.ScoreTerms) curve {
				return straight(t.Taint*(t.Prefill+t.DecodeBlocks+t.RecentTerm), t.Taint*t.Requests)
			},
		},
	}
}

// recentBlocks is the price of recent work at a prefill scale of 1.
func recentBlocks(s *model.Selection, t *model.ScoreTerms) float64 {
	if s.Config.PrefillLoadScale == 0 {
		return 0
	}
	return t.RecentTerm / s.Config.PrefillLoadScale
}

// creditCurve falls until all prefill work is credited, and is flat from there.
func creditCurve(s *model.Selection, t *model.ScoreTerms) curve {
	c := &s.Config
	rest := t.DecodeBlocks + t.Active + t.RecentTerm
	device := float64(t.Device)
	fixed := c.HostCacheHitWeight*float64(t.Host) + c.DiskCacheHitWeight*float64(t.Disk)
	if c.SharedCacheType != model.SharedCacheNone {
		fixed += c.SharedCacheMultiplier * float64(t.Shared)
	}
	return curve{
		{t.Taint * (rest + c.PrefillLoadScale*(t.RawPrefillBlocks-fixed)), -t.Taint * c.PrefillLoadScale * t.Decay * device},
		{t.Taint * rest, 0},
	}
}

// newCost is what there is to prefill at the price of work then.
func newCost(t *model.ScoreTerms) float64 { return max(1, t.WorkPrice) * t.New }

// riseOfAll is the rise, once for each request that waits on the worker and for
// this one.
func riseOfAll(t *model.ScoreTerms) float64 { return (1 + t.Waiting) * t.Rise }

// lockstepTerms are the parts of the lockstep cost: new at its price, λ × the
// rise for all who wait, ω × the wait, μ × pending, δ × tokens held, and the
// price of recent work.
func lockstepTerms(c *model.ClusterConfig, t *model.ScoreTerms) [6]float64 {
	return [6]float64{
		newCost(t), c.LockstepWeight * riseOfAll(t), c.WaitWeight * t.Wait, c.PendingWeight * t.Pending, t.HeldTerm, t.RecentTerm,
	}
}

// lockstepWeights are those of that cost. What δ is multiplied with is known
// from the record only where δ is not 0.
func lockstepWeights() []weight {
	// but is the cost by the weight of part k, which is multiplied with by. The
	// other parts are added in one order, so that candidates that are equal in
	// them come out equal.
	but := func(s *model.Selection, t *model.ScoreTerms, k int, by float64) curve {
		rest := 0.0
		for i, v := range lockstepTerms(&s.Config, t) {
			if i != k {
				rest += v
			}
		}
		return straight(t.Taint*rest, t.Taint*by)
	}
	return []weight{
		{
			"lockstep_weight", "λ", func(c *model.ClusterConfig) float64 { return c.LockstepWeight },
			func(s *model.Selection, t *model.ScoreTerms) curve { return but(s, t, 1, riseOfAll(t)) },
		},
		{
			"wait_weight", "ω", func(c *model.ClusterConfig) float64 { return c.WaitWeight },
			func(s *model.Selection, t *model.ScoreTerms) curve { return but(s, t, 2, t.Wait) },
		},
		{
			"pending_weight", "μ", func(c *model.ClusterConfig) float64 { return c.PendingWeight },
			func(s *model.Selection, t *model.ScoreTerms) curve { return but(s, t, 3, t.Pending) },
		},
		{
			"lockstep_decode_weight", "δ", func(c *model.ClusterConfig) float64 { return c.LockstepDecodeWeight },
			func(s *model.Selection, t *model.ScoreTerms) curve {
				return but(s, t, 4, t.HeldTerm/s.Config.LockstepDecodeWeight)
			},
		},
	}
}
