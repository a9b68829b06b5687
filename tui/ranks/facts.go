package ranks

import (
	"slices"
	"time"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

// oldAfter is how far a rank's own report may lie behind the state before its
// row counts as old.
const oldAfter = 3 * time.Second

// facts are the figures over all ranks that rows and sentences compare with.
type facts struct {
	share      float64 // mean active requests of the eligible ranks, -1 when unknown
	mean       float64 // mean tokens of the eligible ranks, 0 when unknown
	skewMean   float64 // the same over the worker of the busiest rank
	busiest    *model.Rank
	skew       float64 // NaN when unknown
	medianPins int
	most       float64 // greatest tokens of any rank
	reported   int     // ranks that ever reported
}

// known reports whether the engine ever reported r.
func known(r *model.Rank) bool { return !r.ReportedAt.IsZero() }

// eligible reports whether r takes new work.
func eligible(r *model.Rank) bool {
	return r.Availability == model.Ready && r.Weight > 0
}

// old returns how old r's report is where that is too old.
func old(s *model.State, r *model.Rank) (time.Duration, bool) {
	if !known(r) {
		return 0, false
	}
	age := s.At.Sub(r.ReportedAt)
	return age, age > oldAfter
}

func gather(s *model.State) facts {
	x := facts{share: -1, skew: float64(s.Totals.Skew)}
	var active, tokens, n float64
	var skewTokens, skewN float64
	pins := make([]int, 0, len(s.Ranks))
	for i := range s.Ranks {
		r := &s.Ranks[i]
		pins = append(pins, r.Pins)
		if !known(r) {
			continue
		}
		x.reported++
		x.most = max(x.most, float64(r.Tokens))
		if r.Target == s.Totals.SkewAt {
			x.busiest = r
		}
		if !eligible(r) {
			continue
		}
		active, tokens, n = active+float64(r.Active), tokens+float64(r.Tokens), n+1
		if r.Target.Worker == s.Totals.SkewAt.Worker {
			skewTokens, skewN = skewTokens+float64(r.Tokens), skewN+1
		}
	}
	if n > 0 {
		x.share, x.mean = active/n, tokens/n
	}
	if skewN > 0 {
		x.skewMean = skewTokens / skewN
	}
	if len(pins) > 0 {
		slices.Sort(pins)
		x.medianPins = pins[len(pins)/2]
	}
	return x
}

// hotFactor is how far over the mean a rank's tokens are hot; hotSkew the skew
// from which the busiest rank is.
const (
	hotFactor = 1.5
	hotSkew   = 1.25
)

// hot reports whether r is at its cap, far over the mean, or the one that holds
// the others up.
func (x *facts) hot(r *model.Rank) bool {
	switch {
	case r.MaxActive > 0 && r.Active >= r.MaxActive:
		return true
	case r == x.busiest && x.skew >= hotSkew:
		return true
	}
	return x.mean > 0 && float64(r.Tokens) > hotFactor*x.mean
}

// even is the skew below which no rank is named.
const even = 1.10

// skewSentence says which rank holds the others up, in as many words as fit
// into room cells.
func skewSentence(s *model.State, x *facts, room int) cell.Text {
	skew := float64(s.Totals.Skew)
	switch {
	case x.reported == 0:
		return cell.Lit("no rank has reported yet")
	case !s.Totals.Skew.Known():
		return cell.Lit("skew is not known yet")
	case x.busiest == nil:
		return cell.Say("skew %s", cell.Ratio(skew))
	case skew < even:
		return cell.Say("skew %s: the ranks are even (mean %s)", cell.Ratio(skew), cell.Kilo(x.skewMean))
	}
	head := cell.Say("skew %s: %s", cell.Ratio(skew), target(x.busiest.Target))
	for _, t := range []cell.Text{
		cell.Say("%s holds every step (%s, mean %s)", head, cell.Kilo(float64(x.busiest.Tokens)), cell.Kilo(x.skewMean)),
		cell.Say("%s holds every step", head), head,
	} {
		if t.Width() <= room {
			return t
		}
	}
	return cell.Say("skew %s", cell.Ratio(skew))
}

// target is a target as text.
func target(t model.Target) cell.Text { return cell.Foreign(t.String()) }

// count is a figure of a rank, the dash where the rank never reported.
func count(r *model.Rank, t cell.Text) cell.Text {
	if !known(r) {
		return cell.Unknown()
	}
	return t
}

// stateOf names what r takes and how it differs from the rest: down, old 48 s,
// drain, a weight, ready.
func stateOf(f *view.Frame, r *model.Rank) (cell.Role, cell.Text) {
	if r.Down {
		return cell.Crit, cell.Lit("down")
	}
	if age, isOld := old(f.State, r); isOld {
		return cell.Warn, cell.Say("%s old", cell.Age(age))
	}
	switch {
	case r.Availability == model.Draining:
		if view.EnginePicks(f.State, r.Target.Worker) {
			return cell.Warn, cell.Lit("drain")
		}
		return cell.Warn, view.LeftOn(r).Short()
	case !known(r):
		return cell.Dim, cell.Lit("silent")
	case r.Weight != model.DefaultWeight:
		return cell.Staged, cell.Say("w %s", cell.Fixed(r.Weight, 2))
	}
	return cell.Plain, cell.Lit("ready")
}

// activeOf is 12/16.
func activeOf(r *model.Rank) cell.Text {
	if !known(r) {
		return cell.Unknown()
	}
	return cell.Say("%s/%s", cell.Int(r.Active), cell.Int(r.MaxActive))
}

// kvOf is the used share of the KV cache, unknown where the engine did not say.
func kvOf(r *model.Rank) float64 {
	if !known(r) || r.KVTotalBlocks <= 0 {
		return float64(model.Unknown())
	}
	return float64(r.KVUsedBlocks) / float64(r.KVTotalBlocks)
}
