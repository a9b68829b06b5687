package decisions

import (
	"math"
	"slices"

	"adpdeck/router/model"
)

// Turn is the value of a weight at which another target would be chosen, and
// which one.
type Turn struct {
	At float64
	To model.Target
}

// Flip says over which values of one weight a choice holds, all else as it was
// recorded.
type Flip struct {
	Field string // its name in the settings
	Sign  string // as a formula writes it: β, λ, P
	Now   float64
	// Below and Above are where the choice changes first in either direction; nil
	// means not within the bounds that an operator can set.
	Below, Above *Turn
}

// line is a + b·x.
type line struct{ a, b float64 }

func (l line) at(x float64) float64 { return l.a + l.b*x }

// curve is a candidate's cost by one weight: the higher of two lines, which are
// the same where the cost has no bend.
type curve [2]line

func straight(a, b float64) curve { return curve{{a, b}, {a, b}} }

func (c curve) at(x float64) float64 { return max(c[0].at(x), c[1].at(x)) }

// crossing appends where l and m are equal, if that is one place.
func crossing(at []float64, l, m line) []float64 {
	if l.b != m.b {
		at = append(at, (m.a-l.a)/(l.b-m.b))
	}
	return at
}

// turns finds where candidate chosen, the cheapest at now, stops being so:
// downwards to lo and upwards to hi. Between two neighbours among the crossings
// and bends no order changes, so one look in their middle decides.
func turns(all []curve, chosen int, now, lo, hi float64) (below, above float64, belowTo, aboveTo int) {
	below, above, belowTo, aboveTo = math.Inf(-1), math.Inf(1), -1, -1
	w := all[chosen]
	var points []float64
	for i, c := range all {
		if i == chosen {
			continue
		}
		points = append(points[:0], now)
		points = crossing(crossing(points, w[0], w[1]), c[0], c[1])
		for _, l := range w {
			points = crossing(crossing(points, l, c[0]), l, c[1])
		}
		points = append(points, lo, hi)
		points = slices.DeleteFunc(points, func(x float64) bool { return !(x >= lo && x <= hi) })
		slices.Sort(points)
		for k := 1; k < len(points); k++ {
			from, to := points[k-1], points[k]
			middle := from + (to-from)/2
			if !(middle > from && middle < to) || !(c.at(middle) < w.at(middle)) {
				continue
			}
			switch {
			case from >= now && from < above:
				above, aboveTo = from, i
			case to <= now && to > below:
				below, belowTo = to, i
			}
		}
	}
	return below, above, belowTo, aboveTo
}

// solve makes a Flip of the curves of targets.
func solve(f Flip, all []curve, targets []model.Target, chosen int) Flip {
	lo, hi := 0.0, math.Inf(1)
	if field, ok := model.FieldByName(f.Field); ok {
		lo, hi = min(field.Min, f.Now), max(field.Max, f.Now)
	}
	below, above, belowTo, aboveTo := turns(all, chosen, f.Now, lo, hi)
	// At the bound itself all that differs may be how the parts were rounded.
	if belowTo >= 0 && below-lo > 1e-9*f.Now {
		f.Below = &Turn{At: below, To: targets[belowTo]}
	}
	if aboveTo >= 0 {
		f.Above = &Turn{At: above, To: targets[aboveTo]}
	}
	return f
}

// Beta says for which β the KV-aware router would have chosen the same rank of
// the worker, from the recorded prefill and load. ok is false where no scores
// were compared, or where no rank had any load, so that β did not matter.
func Beta(worker string, p *model.Placement) (f Flip, ok bool) {
	if p.Phase != model.PhaseScored || !p.Denom.Known() || p.Denom == 0 {
		return f, false
	}
	n := float64(p.PromptTokens)
	var all []curve
	var targets []model.Target
	chosen, most := -1, 0.0
	for i := range p.Candidates {
		c := &p.Candidates[i]
		if c.Excluded != "" || !c.Score.Known() {
			continue
		}
		share := c.Tokens / float64(p.Denom) * n
		if share > most {
			most, f.Now = share, float64(c.LoadTerm)/share
		}
		if c.Rank == p.Rank {
			chosen = len(all)
		}
		all = append(all, straight(float64(c.PrefillTokens), share))
		targets = append(targets, model.Target{Worker: worker, Rank: c.Rank})
	}
	if chosen < 0 || most == 0 || len(all) < 2 {
		return f, false
	}
	f.Field, f.Sign, f.Now = model.FieldLoadBalanceWeight, "β", tidy(f.Now)
	return solve(f, all, targets, chosen), true
}

// tidy takes the last rounding off a weight that was found by dividing.
func tidy(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || v != v {
		return v
	}
	scale := math.Pow(10, 12-math.Ceil(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}
