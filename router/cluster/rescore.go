package cluster

import (
	"cmp"
	"math"
	"slices"

	"adpdeck/router/model"
)

// Flip says at which value of one weight a choice would have been another.
type Flip struct {
	Field string  // router_prefill_load_scale in mode kv, lockstep_weight in lockstep
	Now   float64 // its value
	// Above and Below are the nearest values at which another candidate costs
	// the same, unknown where there is none; AboveTo and BelowTo are those
	// candidates, by index.
	Above, Below     model.Maybe
	AboveTo, BelowTo int
}

// FlipAt finds where the choice of a record made by cost flips. All costs are
// straight lines over the weight, so the answer is exact. ok is false when
// nothing was compared by cost.
func FlipAt(sel *model.Selection) (f Flip, ok bool) {
	f = Flip{Field: "router_prefill_load_scale", Now: sel.Config.PrefillLoadScale, Above: model.Unknown(), Below: model.Unknown(), AboveTo: -1, BelowTo: -1}
	if sel.Mode == model.ModeLockstep {
		f.Field, f.Now = "lockstep_weight", sel.Config.LockstepWeight
	}
	slope := func(k *model.ScoredTarget) float64 {
		if sel.Mode == model.ModeLockstep {
			return (1 + k.Waiting) * k.Rise * k.Taint
		}
		return max(0, k.RawPrefillBlocks-k.CreditBlocks) * k.Taint
	}
	chosen := slices.IndexFunc(sel.Candidates, func(k model.ScoredTarget) bool { return k.Target == sel.Chosen })
	if chosen < 0 || sel.By != model.ByCost {
		return f, false
	}
	own := &sel.Candidates[chosen]
	for i := range sel.Candidates {
		k := &sel.Candidates[i]
		if i == chosen || k.Excluded != "" {
			continue
		}
		steeper := slope(own) - slope(k) // by how much the chosen one grows faster
		at := model.Maybe(f.Now + (k.Cost-own.Cost)/steeper)
		switch {
		case steeper > 0 && !(at >= f.Above):
			f.Above, f.AboveTo = at, i
		case steeper < 0 && at >= 0 && !(at <= f.Below):
			f.Below, f.BelowTo = at, i
		}
	}
	return f, true
}

// Rescore scores the candidates of a recorded selection as mode (kv or
// lockstep) and cfg would have, the recorded loads given, and writes the terms
// to terms, by candidate. It returns the index of the cheapest, -1 when there
// was none, and whether others cost the same. Only candidates in the record
// take part; a choice that was not made by cost is scored all the same. The
// special cost of decode pools is not recorded and not computed.
func Rescore(sel *model.Selection, mode model.RouterMode, cfg *Config, terms []model.ScoreTerms) (best int, tied bool) {
	p := newPrompt(mode, cfg, sel.PromptTokens, max(1, sel.BlockTokens))
	p.minActive, p.load, p.recent = sel.MinActiveTokens, sel.MeanPending, sel.MeanRecent
	best = -1
	lowest := math.Inf(1)
	for i := range sel.Candidates {
		k := &sel.Candidates[i]
		if k.Excluded != "" || i >= len(terms) {
			continue
		}
		f := facts{
			device: k.Device, host: k.Host, disk: k.Disk, shared: k.Shared, onWay: k.OnWay, tiers: true, known: true,
			active: k.ActiveTokens, requests: k.Requests, decode: k.DecodeBlocks,
			pending: k.Pending, rest: k.Rest, high: k.HighestRest, step: k.Step, lately: k.Recent, held: k.Held, full: k.HighestHeld,
			waiting: k.Waiting, chunk: cmp.Or(k.Chunk, defaultChunk), taint: k.Taint,
		}
		cost := p.score(&f, &terms[i])
		switch {
		case cost < lowest:
			best, lowest, tied = i, cost, false
		case cost == lowest:
			tied = true
			if k.Target == sel.Chosen {
				best = i
			}
		}
	}
	return best, tied
}
