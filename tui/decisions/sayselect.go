package decisions

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
)

// saySelection says why the cluster tier chose the target.
func (s *story) saySelection(short bool) cell.Text {
	x := s.d.Selection
	at := name(x.Chosen)
	switch x.By {
	case model.ByBinding:
		return cell.Say("Its conversation holds it to %s (%s); nothing was compared", at, cell.Fit(whyOf(s.d), 40))
	case model.ByRequired:
		return cell.Say("The request named %s; nothing was compared", at)
	case model.ByTemperature:
		return s.sayDrawn(short)
	case model.ByCost:
		return s.sayCheapest(short)
	}
	if x.Chosen.Rank == model.NoRank {
		return cell.Say("No target was eligible, so it waits: %s", cell.Fit(whyOf(s.d), 60))
	}
	return cell.Say("%s was taken by the rule of mode %s (%s)", at, cell.Foreign(string(x.Mode)), cell.Fit(whyOf(s.d), 40))
}

// unit is what costs are counted in.
func (s *story) unit() cell.Text {
	if s.by == byLockstep {
		return cell.Lit("tokens")
	}
	return cell.Lit("blocks")
}

func (s *story) sayCheapest(short bool) cell.Text {
	x, a, b := s.d.Selection, s.first(), s.second()
	if a == nil {
		return cell.Say("%s was the cheapest", name(x.Chosen))
	}
	t := cell.Say("Cheapest: %s of %s prompt tokens are cached there", cell.Full(a.match), cell.Full(x.PromptTokens))
	if a.match == 0 {
		t = cell.Lit("Cheapest by load: it holds nothing of the prompt")
	}
	if !short {
		t = cell.Say("%s, and it cost %s %s in all", t, s.cost(a.total), s.unit())
		if b != nil {
			t = cell.Say("%s; the next, %s, %s more", t, name(b.target), s.cost(b.total-a.total))
		}
	}
	switch x.Tie {
	case model.TieReservoir:
		return cell.Say("%s; %s were equal, one was drawn", t, cell.Int(x.Tied))
	case model.TiePrefix:
		return cell.Say("%s; %s were equal, the prefix was last sent here", t, cell.Int(x.Tied))
	case model.TieIdle:
		return cell.Say("%s; %s were equal, this one idle the longest", t, cell.Int(x.Tied))
	}
	return t
}

func (s *story) sayDrawn(short bool) cell.Text {
	x, a := s.d.Selection, s.first()
	if a == nil {
		return cell.Say("%s was drawn at temperature %s", name(x.Chosen), cell.Short(x.Config.Temperature))
	}
	t := cell.Say("Drawn at temperature %s: its chance was %s", cell.Short(x.Config.Temperature), cell.Percent(a.chance))
	low := a
	for i := range s.rows {
		if s.rows[i].total < low.total {
			low = &s.rows[i]
		}
	}
	if low == a {
		return cell.Say("%s, it was the cheapest", t)
	}
	t = cell.Say("%s, the cheapest (%s) had %s", t, name(low.target), cell.Percent(low.chance))
	if !short && x.Draw.Known() {
		t = cell.Say("%s; the number drawn was %s", t, cell.Fixed(float64(x.Draw), 4))
	}
	return t
}

// then says what became of the decision.
func then(d *model.Decision, st *model.Settled, settled bool) (cell.Role, cell.Text) {
	if !settled {
		if d.Placement.Phase == model.PhaseUnplaced {
			return cell.Dim, cell.Lit("it waits; the decision that places it has its own line")
		}
		return cell.Dim, cell.Lit("no first token yet")
	}
	role := cell.Plain
	ran := cell.Say("%s used as told", name(d.Target))
	switch {
	case d.Placement.Phase == model.PhaseEngine && st.Ran.Rank != model.NoRank && st.Ran.Worker != "":
		ran = cell.Say("the engine picked %s", name(st.Ran))
	case d.Placement.Phase == model.PhaseEngine:
		ran = cell.Lit("the engine does not tell which rank it picked")
	case elsewhere(d, st):
		role, ran = cell.Warn, cell.Say("ran on %s, not on %s as told", name(st.Ran), name(d.Target))
	case st.Ran.Worker == "" || st.Ran.Rank == model.NoRank:
		ran = cell.Lit("the engine named no rank")
	}
	if !st.TTFTMs.Known() {
		return cell.Warn, cell.Say("ended (%s) before its first token", cell.Fit(string(st.Outcome), 16))
	}
	cached := cell.Say("%s cached", cell.Full(st.CachedTokens))
	want, ok := predicted(d)
	switch {
	case st.CachedUnknown && st.Outcome == "":
		cached = cell.Lit("what was cached is told at its end")
	case st.CachedUnknown:
		cached = cell.Lit("the engine does not tell what was cached")
	case !ok:
		cached = cell.Say("%s (none predicted)", cached)
	case int(want) == st.CachedTokens:
		cached = cell.Say("%s as predicted", cached)
	default:
		role = cell.Warn
		cached = cell.Say("%s, %s predicted", cached, cell.Full(int(want)))
	}
	t := cell.Say("%s, %s, first token %s", ran, cached, cell.Ms(float64(st.TTFTMs)))
	switch st.Outcome {
	case "":
		t = cell.Say("%s, still running", t)
	case model.OutcomeOK:
	default:
		role, t = cell.Warn, cell.Say("%s, ended: %s", t, cell.Fit(string(st.Outcome), 16))
	}
	return role, t
}
