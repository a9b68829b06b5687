package decisions

import (
	"cmp"
	"math"
	"slices"

	"adpdeck/router/model"
)

// contest is what the candidates of a decision were compared by.
type contest uint8

const (
	byScore    contest = iota // KV-aware: tokens to prefill and load
	byDynamo                  // mode kv: blocks
	byLockstep                // mode lockstep: tokens
	byTokens                  // fewest tokens
	byCount                   // fewest requests
	byTurn                    // the next in turn
	byNothing                 // a pin, a wish, no room
)

// row is one candidate.
type row struct {
	target   model.Target
	chosen   bool
	match    int
	count    float64
	tokens   float64
	prefill  float64
	load     float64
	total    float64 // score, cost, or the load compared
	chance   float64
	terms    *model.ScoreTerms
	excluded string
}

// story is a decision taken apart: its candidates, the chosen first, then the
// others from the best on; those that could not be chosen apart; and where the
// choice would flip.
type story struct {
	d        *model.Decision
	by       contest
	rows     []row
	excluded []row
	leftOut  int
	flips    []Flip
}

// tell takes d apart.
func tell(d *model.Decision) *story {
	s := &story{d: d}
	if d.Selection != nil && len(d.Selection.Candidates) > 0 {
		s.selection()
	} else {
		s.placement()
	}
	slices.SortStableFunc(s.rows, s.order)
	slices.SortStableFunc(s.excluded, func(a, b row) int { return cmp.Compare(a.excluded, b.excluded) })
	return s
}

// order puts the chosen first, then the best.
func (s *story) order(a, b row) int {
	switch {
	case a.chosen != b.chosen && a.chosen:
		return -1
	case a.chosen != b.chosen:
		return 1
	case s.by == byTurn || s.by == byNothing || math.IsNaN(a.total) || math.IsNaN(b.total):
		return 0
	}
	return cmp.Or(cmp.Compare(a.total, b.total), cmp.Compare(a.tokens, b.tokens), cmp.Compare(a.count, b.count))
}

func (s *story) add(r row) {
	if r.excluded != "" && !r.chosen {
		s.excluded = append(s.excluded, r)
		return
	}
	s.rows = append(s.rows, r)
}

func (s *story) selection() {
	x := s.d.Selection
	s.by, s.leftOut = byDynamo, x.LeftOut
	if x.Mode == model.ModeLockstep {
		s.by = byLockstep
	}
	for i := range x.Candidates {
		k := &x.Candidates[i]
		s.add(row{
			target: k.Target, chosen: k.Target == x.Chosen && s.d.Placement.Phase != model.PhaseEngine, match: k.CachedTokens, count: k.Requests, tokens: k.Pending,
			prefill: k.Prefill, load: k.Cost - k.Prefill, total: k.Cost, chance: k.Probability, terms: &k.ScoreTerms, excluded: k.Excluded,
		})
	}
	if s.by == byLockstep {
		for i := range s.rows {
			s.rows[i].prefill = s.rows[i].terms.New
			s.rows[i].load = s.rows[i].total - s.rows[i].prefill
		}
	}
	if s.d.Placement.Phase != model.PhaseEngine { // another rank of the worker would be no other choice
		s.flips = Weights(x)
	}
}

func (s *story) placement() {
	p := &s.d.Placement
	s.by, s.leftOut = contestOf(s.d), p.LeftOut
	for i := range p.Candidates {
		c := &p.Candidates[i]
		r := row{
			target: model.Target{Worker: s.d.Target.Worker, Rank: c.Rank}, chosen: c.Rank == p.Rank, match: c.MatchTokens,
			count: c.Count, tokens: c.Tokens, prefill: float64(c.PrefillTokens), load: float64(c.LoadTerm),
			total: float64(c.Score), excluded: c.Excluded,
		}
		switch s.by {
		case byCount:
			r.total = c.Count
		case byTokens, byTurn, byNothing:
			r.total = c.Tokens
		}
		s.add(r)
	}
	if f, ok := Beta(s.d.Target.Worker, p); ok {
		s.flips = []Flip{f}
	}
}

// contestOf is what a placement was decided by. The policy that places new
// conversations is told by the decision's own reason, as settings may have
// changed since.
func contestOf(d *model.Decision) contest {
	switch d.Placement.Phase {
	case model.PhaseScored:
		return byScore
	case model.PhaseBalanced:
		return byTokens
	case model.PhasePlaced, model.PhaseOverflow:
		switch d.Placement.Tie {
		case model.TieIndex, model.TieCount:
			return byCount
		}
		return placedBy(d.Why)
	}
	return byNothing
}

// best is the runner-up's row, nil where there is none.
func (s *story) second() *row {
	t := runnerUp(s.d)
	for i := range s.rows {
		if !s.rows[i].chosen && s.rows[i].target == t {
			return &s.rows[i]
		}
	}
	for i := range s.rows {
		if !s.rows[i].chosen && s.by != byTurn && s.by != byNothing {
			return &s.rows[i]
		}
	}
	return nil
}

// first is the chosen row, nil where it was not recorded.
func (s *story) first() *row {
	if len(s.rows) > 0 && s.rows[0].chosen {
		return &s.rows[0]
	}
	return nil
}
