package cluster

import (
	"cmp"
	"slices"
	"time"

	"adpdeck/router/model"
)

// begin prepares the record: one candidate for each slot, compacted at the end.
func (r *Router) begin(req *Request, c *Choice, rec *model.Selection) {
	cands := rec.Candidates[:0]
	*rec = model.Selection{
		Request: req.ID, Mode: r.mode, Config: c.config, BlockTokens: r.opt.BlockTokens, PromptTokens: req.PromptTokens,
		Blocks: max(1, (req.PromptTokens+r.opt.BlockTokens-1)/r.opt.BlockTokens),
		Draw:   model.Unknown(), Margin: model.Unknown(), RunnerUp: model.Target{Rank: model.NoRank}, Chosen: model.Target{Rank: model.NoRank},
	}
	rec.Candidates = append(cands, make([]model.ScoredTarget, len(r.slots))...)
}

// recordTerms writes every term of the costs that were compared.
func (r *Router) recordTerms(p *prompt, req *Request, additional int, rec *model.Selection) {
	rec.MinActiveTokens = p.minActive
	var f facts
	for _, i := range r.scratch.live {
		r.facts(int(i), req, p.cfg, additional, &f)
		k := &rec.Candidates[i]
		p.score(&f, &k.ScoreTerms)
		k.Cost = r.scratch.cost[i]
	}
}

// probabilities writes the chance that each candidate had.
func (r *Router) probabilities(rec *model.Selection, c *Choice, lo float64) {
	sc := &r.scratch
	for _, i := range sc.live {
		p := sc.prob[i]
		if c.By == model.ByCost {
			p = 0
			switch {
			case r.mode == model.ModeLockstep && i == c.Slot:
				p = 1
			case r.mode != model.ModeLockstep && sc.cost[i] == lo:
				p = 1 / float64(c.Tied)
			}
		}
		rec.Candidates[i].Probability = p
	}
}

// finish writes what was chosen and closes the list of candidates.
func (r *Router) finish(now time.Duration, req *Request, c *Choice, rec *model.Selection) {
	rec.Chosen, rec.By, rec.Tie, rec.Tied, rec.Eligible = c.Target, c.By, c.Tie, c.Tied, c.Eligible
	if c.RunnerUp >= 0 {
		rec.RunnerUp, _ = r.Target(c.RunnerUp)
		rec.Margin = model.Maybe(c.Margin)
	}
	if !r.scratch.filtered {
		// Nothing was compared: the record says what the bound rank looks like.
		r.recordBound(now, req, c, rec)
		return
	}
	r.keep(rec)
}

// keep closes up the candidates: those of living slots, with their exclusions.
func (r *Router) keep(rec *model.Selection) {
	kept := rec.Candidates[:0]
	for i := range r.slots {
		t, ok := r.Target(int32(i))
		if !ok {
			continue
		}
		k := rec.Candidates[i]
		k.Target, k.Excluded = t, r.scratch.why[i].word()
		kept = append(kept, k)
	}
	rec.Candidates = kept
	r.trim(rec)
}

// recordRefusal writes why nothing was chosen.
func (r *Router) recordRefusal(req *Request, c *Choice, rec *model.Selection, bound bool) {
	rec.Chosen = c.Target
	switch {
	case bound:
		rec.Candidates = rec.Candidates[:1]
		rec.Candidates[0] = model.ScoredTarget{Target: req.Bound.Target, Excluded: "bound, at its cap or overloaded"}
	case !r.scratch.filtered:
		rec.Candidates = rec.Candidates[:0]
	default:
		r.keep(rec)
	}
}

func (r *Router) recordBound(now time.Duration, req *Request, c *Choice, rec *model.Selection) {
	sc := &r.scratch
	i := int(c.Slot)
	s, l := &r.slots[i], &r.load.ranks[i]
	u := r.unplacedAt(s.worker, now)
	sc.unplaced[s.worker] = u
	sc.active[i] = (float64(l.active(now)) + u.active) * s.inverse
	sc.taint[s.worker] = 1
	sc.lately[i] = r.sentLately(i, now)
	sc.group[s.worker] = group{}
	for _, k := range r.workers[s.worker].slots {
		sc.add(&r.slots[k], &r.load.ranks[k], &u, int(k))
	}
	p := newPrompt(r.mode, &c.config, req.PromptTokens, r.opt.BlockTokens)
	p.minActive = sc.active[i]
	var f facts
	r.facts(i, req, &c.config, r.potential(req, &c.config), &f)
	rec.Candidates = rec.Candidates[:1]
	k := &rec.Candidates[0]
	*k = model.ScoredTarget{Target: c.Target, Probability: 1}
	c.Cost = p.score(&f, &k.ScoreTerms)
	rec.MinActiveTokens = p.minActive
}

// trim keeps the chosen candidate and the cheapest of the others.
func (r *Router) trim(rec *model.Selection) {
	n := r.opt.MaxCandidates
	if n <= 0 || len(rec.Candidates) <= n {
		return
	}
	all := rec.Candidates
	slices.SortStableFunc(all, func(a, b model.ScoredTarget) int {
		rank := func(t *model.ScoredTarget) int {
			switch {
			case t.Target == rec.Chosen:
				return 0
			case t.Excluded == "":
				return 1
			}
			return 2
		}
		if d := cmp.Compare(rank(&a), rank(&b)); d != 0 {
			return d
		}
		return cmp.Compare(a.Cost, b.Cost)
	})
	rec.LeftOut = len(all) - n
	rec.Candidates = all[:n]
	slices.SortFunc(rec.Candidates, func(a, b model.ScoredTarget) int {
		switch {
		case a.Target.Less(b.Target):
			return -1
		case b.Target.Less(a.Target):
			return 1
		}
		return 0
	})
}
