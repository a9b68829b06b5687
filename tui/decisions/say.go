package decisions

import (
	"math"
	"strings"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

func placedBy(why string) contest {
	switch {
	case strings.Contains(why, "fewest tokens"):
		return byTokens
	case strings.Contains(why, "fewest requests"):
		return byCount
	}
	return byTurn
}

// amount writes a number of tokens or points: whole, with all digits; huge ones
// short.
func amount(v float64) cell.Text {
	if v != v || math.Abs(v) >= 1e7 {
		return cell.Count(v)
	}
	return cell.Full(int64(math.Round(v)))
}

// tenths writes a number of blocks, which may be parts of one: 332.0, and 1,150.
func tenths(v float64) cell.Text {
	if v != v || math.Abs(v) >= 999.95 {
		return amount(v)
	}
	return cell.Fixed(v, 1)
}

// cost writes a score or cost in the unit of the contest.
func (s *story) cost(v float64) cell.Text {
	if s.by == byDynamo {
		return tenths(v)
	}
	return amount(v)
}

// digits writes v with three significant digits: 13.4, 0.0123.
func digits(v float64) cell.Text {
	if v == 0 || v != v || math.IsInf(v, 0) {
		return cell.Short(v)
	}
	return cell.Fixed(v, max(0, min(6, 2-int(math.Floor(math.Log10(math.Abs(v)))))))
}

func name(t model.Target) cell.Text { return view.PlaceText(t, 24) }

// holds says over which values of a weight the choice stays: short for a line
// of 80 cells, else with who would be chosen beyond.
func holds(f Flip, short bool) cell.Text {
	sign := cell.Foreign(f.Sign)
	switch {
	case f.Below == nil && f.Above == nil:
		return cell.Say("holds for every %s", sign)
	case f.Below == nil && short:
		return cell.Say("holds for every %s < %s", sign, digits(f.Above.At))
	case f.Above == nil && short:
		return cell.Say("holds for every %s > %s", sign, digits(f.Below.At))
	case short:
		return cell.Say("holds for %s %s to %s", sign, digits(f.Below.At), digits(f.Above.At))
	case f.Below == nil:
		return cell.Say("holds for every %s below %s (then %s)", sign, digits(f.Above.At), name(f.Above.To))
	case f.Above == nil:
		return cell.Say("holds for every %s above %s (below it %s)", sign, digits(f.Below.At), name(f.Below.To))
	}
	return cell.Say("holds for %s from %s (below it %s) to %s (above it %s)", sign,
		digits(f.Below.At), name(f.Below.To), digits(f.Above.At), name(f.Above.To))
}

// holdsFor says over which values the choice stays, of the first weight that could
// change it; of all of them when none can.
func (s *story) holdsFor(short bool) cell.Text {
	for _, f := range s.flips {
		if f.Below != nil || f.Above != nil {
			return holds(f, short)
		}
	}
	signs := cell.Foreign(s.flips[0].Sign)
	for i, f := range s.flips[1:] {
		if i == len(s.flips)-2 {
			signs = cell.Say("%s and %s", signs, cell.Foreign(f.Sign))
		} else {
			signs = cell.Say("%s, %s", signs, cell.Foreign(f.Sign))
		}
	}
	return cell.Say("holds for every %s", signs)
}

// sentence says why the request went where it did.
func (s *story) sentence(short bool) cell.Text {
	var t cell.Text
	switch s.d.Placement.Phase {
	case model.PhaseOperator, model.PhaseUnplaced:
		return s.ending(s.sayPlacement(short))
	case model.PhaseEngine:
		return s.ending(s.sayEngine(short))
	}
	if s.d.Selection != nil {
		t = s.saySelection(short)
	} else {
		t = s.sayPlacement(short)
	}
	switch {
	case len(s.flips) == 0:
	case short:
		t = cell.Say("%s; %s", t, s.holdsFor(true))
	default:
		t = cell.Say("%s. The choice %s", t, s.holdsFor(false))
	}
	return s.ending(t)
}

// ending adds the wish that was overruled, and the full stop.
func (s *story) ending(t cell.Text) cell.Text {
	if s.d.Conflict != "" {
		t = cell.Say("%s (%s)", t, cell.Fit(s.d.Conflict, 80))
	}
	return cell.Say("%s.", t)
}

func (s *story) sayPlacement(short bool) cell.Text {
	p, d := &s.d.Placement, s.d
	at := name(d.Target)
	switch p.Phase {
	case model.PhaseOperator:
		return cell.Say("An operator's pin holds the conversation on %s (%s); nothing was compared", at, cell.Fit(d.Why, 40))
	case model.PhaseBound:
		return cell.Say("The conversation was moved to %s (%s); nothing was compared", at, cell.Fit(d.Why, 40))
	case model.PhasePinned:
		return cell.Say("The conversation is bound to %s, which had room; nothing was compared", at)
	case model.PhaseExplicit:
		return cell.Say("The client asked for %s, which had room; nothing was compared", at)
	case model.PhaseWarmup:
		return cell.Say("%s was cold: warm-up sends each cold rank one request before scores decide", at)
	case model.PhaseSteered:
		return cell.Say("The cluster tier chose %s (%s); its record was not kept", at, cell.Fit(whyOf(d), 40))
	case model.PhaseUnplaced:
		if d.Selection != nil {
			return cell.Say("%s: the cluster tier's choice is kept until its rank has room", capital(d.Why))
		}
		return cell.Say("No rank had room, so it waits at %s for a slot: soft cap %s, hard cap %s", cell.Fit(d.Target.Worker, 24), cell.Int(p.Expected), cell.Int(p.HardCap))
	case model.PhaseScored:
		return s.sayScored(short)
	case model.PhaseBalanced:
		return cell.Say("It had %s of the ranks below their cap%s", s.least(), s.sayTie())
	case model.PhasePlaced:
		return cell.Say("Not bound yet, so it was placed: %s%s", s.least(), s.sayTie())
	case model.PhaseOverflow:
		return cell.Say("%s, so this turn ran on %s: %s%s", capital(d.Why), at, s.least(), s.sayTie())
	}
	return cell.Fit(d.Why, 80)
}

// sayEngine says how the worker was chosen, and that its engine picks the rank.
func (s *story) sayEngine(short bool) cell.Text {
	x, at := s.d.Selection, name(s.d.Target)
	t := cell.Say("%s was chosen (%s)", at, cell.Fit(orElse(s.d.WorkerWhy, "the only worker"), 40))
	switch {
	case x == nil:
	case x.By == model.ByBinding:
		t = cell.Say("Its conversation stays on %s", at)
	case x.By == model.ByRequired:
		t = cell.Say("The request named %s", at)
	case x.By == model.ByCost, x.By == model.ByTemperature:
		t = cell.Say("%s has the rank with the lowest cost, %s", at, name(x.Chosen))
		if x.By == model.ByTemperature {
			t = cell.Say("%s was drawn at temperature %s, by its rank %s", at, cell.Short(x.Config.Temperature), name(x.Chosen))
		}
	}
	if strings.Contains(s.d.Why, ": ") { // a rank that it could not be asked for
		return cell.Say("%s; %s", t, cell.Fit(s.d.Why, 60))
	}
	if short {
		return cell.Say("%s; its engine picks the rank", t)
	}
	return cell.Say("%s; which rank runs it is picked by its engine, which cannot be told one", t)
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// capital makes the first letter of a reason upper case.
func capital(why string) cell.Text {
	if why == "" {
		return cell.Unknown()
	}
	return cell.Fit(strings.ToUpper(why[:1])+why[1:], 60)
}

// least says by how little the chosen rank had the least.
func (s *story) least() cell.Text {
	a, b := s.first(), s.second()
	if a == nil {
		return cell.Fit(s.d.Why, 40)
	}
	unit, what := cell.Lit("tokens"), a.tokens
	switch s.by {
	case byTurn:
		return cell.Lit("the next rank in turn")
	case byCount:
		unit, what = cell.Lit("requests"), a.count
	}
	t := cell.Say("the fewest %s, %s", unit, amount(what))
	if b != nil {
		next := b.tokens
		if s.by == byCount {
			next = b.count
		}
		t = cell.Say("%s (next %s with %s)", t, name(b.target), amount(next))
	}
	return t
}

func (s *story) sayTie() cell.Text {
	switch s.d.Placement.Tie {
	case model.TieTokens:
		return cell.Lit("; equal scores, fewer tokens")
	case model.TieShuffle:
		return cell.Say("; %s ranks were equal, the shuffle by request id decided", cell.Int(len(s.d.Placement.Tied)))
	case model.TieCount:
		return cell.Say("; %s ranks were equal, fewer requests decided", cell.Int(len(s.d.Placement.Tied)))
	case model.TieCursor:
		return cell.Lit("; equal load, the next after the cursor")
	case model.TieIndex:
		return cell.Say("; %s ranks were equal in all, the lowest was taken", cell.Int(len(s.d.Placement.Tied)))
	}
	return cell.Text{}
}

func (s *story) sayScored(short bool) cell.Text {
	p := &s.d.Placement
	a, b := s.first(), s.second()
	var t cell.Text
	switch {
	case p.GateOpen && p.MatchTokens > 0:
		t = cell.Say("It already held %s of %s prompt tokens", cell.Full(p.MatchTokens), cell.Full(p.PromptTokens))
	case p.GateOpen:
		t = cell.Say("It held none of the %s prompt tokens, but its load was that much lower", cell.Full(p.PromptTokens))
	case short:
		t = cell.Lit("No rank held enough of the prompt; it was the lightest")
	default:
		t = cell.Say("No rank held enough of the %s prompt tokens to count, so load alone decided and it was the lightest", cell.Full(p.PromptTokens))
	}
	if !short && a != nil && b != nil && p.GateOpen {
		t = cell.Say("%s. Its load cost it %s points; %s", t, amount(a.load), against(a, b))
	}
	return cell.Say("%s%s", t, s.sayTie())
}

// against says what the runner-up would have cost instead.
func against(a, b *row) cell.Text {
	switch more := b.prefill - a.prefill; {
	case more > 0:
		return cell.Say("the best other rank (%s) would have had to prefill %s more tokens", name(b.target), amount(more))
	case more < 0:
		return cell.Say("the best other rank (%s) had %s fewer to prefill and %s more points of load", name(b.target), amount(-more), amount(b.load-a.load))
	}
	return cell.Say("the best other rank (%s) had as much to prefill and %s more points of load", name(b.target), amount(b.load-a.load))
}
