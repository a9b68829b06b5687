package adp

import (
	"cmp"
	"slices"

	"adpdeck/router/model"
)

// record notes one placement before it is booked: what every rank looked like
// at that moment and why it could or could not be chosen.
func (r *Router) record(i int32, k int, phase model.Phase, added float64) *model.Placement {
	q := &r.b.Requests[i]
	p := &r.out.Placements[i]
	*p = model.Placement{
		Request: q.ID, Rank: k, Phase: phase, PromptTokens: q.tokens(), AddedTokens: added,
		Expected: r.out.Expected, HardCap: r.b.HardCap,
		HitRate: model.Unknown(), Denom: model.Unknown(),
	}
	if k >= 0 {
		p.MatchTokens = q.match(k)
	}
	early := phase == model.PhaseExplicit || phase == model.PhaseWarmup || phase == model.PhasePinned
	p.Candidates = make([]model.Candidate, r.tp)
	for c := range p.Candidates {
		w := r.fleet.weight(c)
		if !(w > 0) {
			w = 1
		}
		p.Candidates[c] = model.Candidate{
			Rank: c, Count: float64(r.fleet.counts[c]) / w, Tokens: r.tokensOf(c) / w,
			MatchTokens: q.match(c), PrefillTokens: q.tokens(),
			LoadTerm: model.Unknown(), Score: model.Unknown(),
			Excluded: r.excluded(c, early),
		}
	}
	r.trim(p)
	return p
}

// tokensOf is the load of a rank as the policy in force counts it.
func (r *Router) tokensOf(k int) float64 {
	if r.cfg.Policy() == model.PolicyConversation && r.cfg.KVCacheRoutingNewConvPlacement == model.PlaceLeastTokens {
		return float64(r.load[k])
	}
	return float64(r.fleet.tokens[k])
}

// excluded says why rank k could not be chosen, empty when it could. A phase
// before the soft cap is known looks at the hard cap alone.
func (r *Router) excluded(k int, early bool) string {
	f := &r.fleet
	switch {
	case f.closed && !f.open[k] && !(f.weights[k] > 0):
		return "weight 0"
	case f.closed && !f.open[k]:
		return "draining"
	case f.counts[k] >= r.b.HardCap:
		return "hard cap"
	case !early && !f.under(k):
		return "soft cap"
	}
	return ""
}

// stampExpected writes the soft cap into records that were made before it was
// known.
func (r *Router) stampExpected() {
	for i := range r.out.Placements {
		if r.out.Placements[i].Phase != "" {
			r.out.Placements[i].Expected = r.out.Expected
		}
	}
}

// trim keeps the rank that was chosen and the best of the others, ordered by
// rank, when a record has more candidates than the options allow.
func (r *Router) trim(p *model.Placement) {
	limit := r.opt.MaxCandidates
	if limit <= 0 || len(p.Candidates) <= limit {
		return
	}
	value := func(c *model.Candidate) float64 {
		if c.Score.Known() {
			return float64(c.Score)
		}
		return c.Tokens
	}
	first := func(c *model.Candidate) int {
		switch {
		case c.Rank == p.Rank:
			return 0
		case c.Excluded == "":
			return 1
		}
		return 2
	}
	slices.SortStableFunc(p.Candidates, func(a, b model.Candidate) int {
		if d := first(&a) - first(&b); d != 0 {
			return d
		}
		return cmp.Compare(value(&a), value(&b))
	})
	p.LeftOut += len(p.Candidates) - limit
	p.Candidates = slices.Clip(p.Candidates[:limit])
	slices.SortFunc(p.Candidates, func(a, b model.Candidate) int { return a.Rank - b.Rank })
}

// recordScored notes a KV-aware choice: position p of the eligible ranks.
func (r *Router) recordScored(i int32, pos int) {
	s := &r.scan
	q := &r.b.Requests[i]
	k := int(s.ranks[pos])
	limit := r.opt.MaxCandidates
	r.opt.MaxCandidates = 0 // cut by score, once it is there
	p := r.record(i, k, model.PhaseScored, max(s.n-float64(q.match(k)), 0))
	r.opt.MaxCandidates = limit
	p.GateOpen = s.gate
	p.HitRate = model.Maybe(float64(s.mmax) / max(s.n, 1))
	p.Denom = model.Maybe(s.denom)
	var equal []int // ranks whose score is the best
	for at, rank := range s.ranks {
		c := &p.Candidates[rank]
		m := 0
		if s.gate {
			m = q.match(int(rank))
		}
		c.PrefillTokens = q.tokens() - m
		c.LoadTerm = model.Maybe(s.beta * float64(float64(s.tok[at]/s.denom)*s.n))
		c.Score = model.Maybe(s.score(s.tok[at], m))
		if float64(c.Score) == s.best {
			equal = append(equal, int(rank))
		}
	}
	switch {
	case s.tie > 1:
		p.Tie = model.TieShuffle
		for _, rank := range equal {
			if p.Candidates[rank].Tokens == s.bestTok {
				p.Tied = append(p.Tied, rank)
			}
		}
	case len(equal) > 1:
		p.Tie, p.Tied = model.TieTokens, equal
	}
	r.trim(p)
}

// recordBalanced notes a default router's choice of rank k.
func (r *Router) recordBalanced(i int32, k, n int) {
	p := r.record(i, k, model.PhaseBalanced, float64(n))
	f := &r.fleet
	r.noteTie(p, k, func(c int) (uint64, uint64) {
		return f.ordinal(f.tokens[c], c), f.ordinal(f.counts[c], c)
	}, model.TieIndex, f.under)
}

// recordPlaced notes the placement of a conversation by policy. It is made
// after the choice and before it is booked.
func (r *Router) recordPlaced(i int32, k int, phase model.Phase, added float64, fell bool) {
	p := r.record(i, k, phase, added)
	f := &r.fleet
	stood := f.under
	if fell {
		stood = func(c int) bool { return f.isOpen(c) && !r.full(c) }
	}
	switch place := r.cfg.KVCacheRoutingNewConvPlacement; {
	case place == model.PlaceLeastTokens:
		r.noteTie(p, k, func(c int) (uint64, uint64) {
			return f.ordinal(r.load[c], c), f.ordinal(f.counts[c], c)
		}, model.TieCursor, stood)
	case place == model.PlaceLeastQueued || fell:
		r.noteTie(p, k, func(c int) (uint64, uint64) {
			return f.ordinal(f.counts[c], c), 0
		}, model.TieIndex, stood)
	}
	if fell {
		for c := range p.Candidates {
			// With all at the cap it no longer bars anyone with a slot left.
			if x := p.Candidates[c].Excluded; (x == "soft cap" || x == "hard cap") && !r.full(p.Candidates[c].Rank) {
				p.Candidates[c].Excluded = ""
			}
		}
	}
}

// noteTie finds the ranks that equal k in the first, or in both, of two keys.
func (r *Router) noteTie(p *model.Placement, k int, keys func(int) (uint64, uint64), last model.Tie, stood func(int) bool) {
	a, b := keys(k)
	var first, both []int
	for c := range r.tp {
		if !stood(c) {
			continue
		}
		x, y := keys(c)
		if x == a {
			first = append(first, c)
			if y == b {
				both = append(both, c)
			}
		}
	}
	switch {
	case len(both) > 1:
		p.Tie, p.Tied = last, both
	case len(first) > 1:
		p.Tie, p.Tied = model.TieCount, first
	}
}
