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
	list := kvWeights()
	if s.Mode == model.ModeLockstep {
		list = lockstepWeights()
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
// decode + q × requests).
func kvWeights() []weight {
	return []weight{
		{
			"router_prefill_load_scale", "P", func(c *model.ClusterConfig) float64 { return c.PrefillLoadScale },
			func(_ *model.Selection, t *model.ScoreTerms) curve {
				return straight(t.Taint*(t.DecodeBlocks+t.Active), t.Taint*max(0, t.RawPrefillBlocks-t.CreditBlocks))
			},
		},
		{
			"router_kv_overlap_score_credit", "credit", func(c *model.ClusterConfig) float64 { return c.KVOverlapScoreCredit },
			creditCurve,
		},
		{
			"router_decode_active_request_weight", "q", func(c *model.ClusterConfig) float64 { return c.DecodeActiveRequestWeight },
			func(_ *model.Selection, t *model.ScoreTerms) curve {
				return straight(t.Taint*(t.Prefill+t.DecodeBlocks), t.Taint*t.Requests)
			},
		},
	}
}

// creditCurve falls until all prefill work is credited, and is flat from there.
func creditCurve(s *model.Selection, t *model.ScoreTerms) curve {
	c := &s.Config
	rest := t.DecodeBlocks + t.Active
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

// lockstepWeights are those of new + λ × rise + μ × pending + δ × decode tokens.
func lockstepWeights() []weight {
	cost := func(s *model.Selection, t *model.ScoreTerms) (fresh, rise, pending, decode float64) {
		return t.Taint * t.New, t.Taint * t.Rise, t.Taint * t.Pending, t.Taint * float64(s.BlockTokens) * t.DecodeBlocks
	}
	return []weight{
		{
			"lockstep_weight", "λ", func(c *model.ClusterConfig) float64 { return c.LockstepWeight },
			func(s *model.Selection, t *model.ScoreTerms) curve {
				n, r, p, d := cost(s, t)
				return straight(n+s.Config.PendingWeight*p+s.Config.LockstepDecodeWeight*d, r)
			},
		},
		{
			"pending_weight", "μ", func(c *model.ClusterConfig) float64 { return c.PendingWeight },
			func(s *model.Selection, t *model.ScoreTerms) curve {
				n, r, p, d := cost(s, t)
				return straight(n+s.Config.LockstepWeight*r+s.Config.LockstepDecodeWeight*d, p)
			},
		},
		{
			"lockstep_decode_weight", "δ", func(c *model.ClusterConfig) float64 { return c.LockstepDecodeWeight },
			func(s *model.Selection, t *model.ScoreTerms) curve {
				n, r, p, d := cost(s, t)
				return straight(n+s.Config.LockstepWeight*r+s.Config.PendingWeight*p, d)
			},
		},
	}
}
