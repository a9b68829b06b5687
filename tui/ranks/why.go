package ranks

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// why says in a sentence or two why the rank is as full as it is, and what to
// try.
func (p *side) why() {
	reason, next := p.explain()
	p.wrap(cell.Plain, reason)
	if !next.Empty() {
		p.wrap(cell.Strong, next)
	}
}

// explain returns the sentence and the next step for the panel's rank.
func (p *side) explain() (reason, next cell.Text) {
	r, x, s := p.r, p.x, p.f.State
	age, isOld := old(s, r)
	pins := r.Pins + r.OperatorPins
	many := x.medianPins > 0 && float64(pins) >= 1.5*float64(x.medianPins)
	missed := r.Hit.Known() && float64(r.Reachable-r.Hit) >= 0.05
	switch {
	case r.Down:
		return cell.Lit("its engine does not answer: nothing goes there until it does."), cell.Lit("see 7 Workers for what was tried; nothing to do here")
	case !known(r):
		return cell.Lit("the engine has not reported this rank yet; its load is not known."), cell.Text{}
	case isOld:
		return cell.Say("its last report is %s old, the others go on: is its engine stuck?", cell.Age(age)),
			cell.Say("try: %s drain it until it reports", p.f.KeyOf(command.Drain))
	case r.Availability == model.Draining:
		left := view.LeftOn(r)
		if p.picker != nil {
			left = left.OnWorker(s, p.picker.ID)
			if !left.Drained() {
				return cell.Say("draining with all of %s, whose engine picks the rank: %s open and %s conversations bound there.", cell.Fit(p.picker.ID, 24), cell.Full(left.Open), cell.Full(left.Pins)),
					cell.Say("try: 7 Workers, %s ready", p.f.KeyOf(command.Ready))
			}
		}
		if left.Drained() {
			return cell.Lit("drained: nothing is open here and no pin is left; it is safe to stop."), cell.Say("try: %s ready, when it is back", p.f.KeyOf(command.Ready))
		}
		return cell.Say("draining: no new conversations; %s open and %s pins still to go.", cell.Full(left.Open), cell.Full(left.Pins)),
			cell.Say("try: %s ready, or migrate its pins (%s)", p.f.KeyOf(command.Ready), p.f.KeyOf(command.ViewID(2)))
	case p.picker != nil:
		return cell.Say("its engine picks the rank: adpdeck chooses %s, and cannot ask it for this rank.", cell.Fit(p.picker.ID, 24)),
			cell.Say("try: 7 Workers, %s drains all of %s", p.f.KeyOf(command.Drain), cell.Fit(p.picker.ID, 24))
	case r.Weight == 0:
		return cell.Lit("weight 0: it takes no new work."), cell.Say("try: %s weight above 0", p.f.KeyOf(command.Weight))
	case x.hot(r) && many:
		return cell.Say("why so full: %s pins, %s the median.", cell.Full(pins), cell.Ratio(float64(pins)/float64(x.medianPins))),
			cell.Say("try: %s, mark idle ones, %s migrate", p.f.KeyOf(command.Open), p.f.KeyOf(command.Migrate))
	case x.hot(r) && (s.Settings.RouterMode == model.ModeKV || s.Settings.RouterMode == model.ModeLockstep):
		return cell.Lit("why so full: long prefixes draw requests here."), cell.Say("try: 3 Decisions, why they went here, or %s a lower weight", p.f.KeyOf(command.Weight))
	case x.hot(r) && s.Settings.AttentionDpConfig.Policy() == model.PolicyKVAware:
		return cell.Lit("why so full: long prefixes draw requests here."), cell.Say("try: 5 Tuning, a larger β, or %s a lower weight", p.f.KeyOf(command.Weight))
	case x.hot(r):
		return cell.Lit("why so full: it holds the longest prompts."), cell.Say("try: %s a lower weight", p.f.KeyOf(command.Weight))
	case x.mean > 0 && float64(r.Tokens) < 0.5*x.mean:
		return cell.Say("it carries less than half the mean of %s tokens.", cell.Kilo(x.mean)), cell.Text{}
	case missed:
		return cell.Say("%s of its prompt tokens were cached, %s could have been on another rank.",
			percent(float64(r.Hit)), percent(float64(r.Reachable))), cell.Text{}
	}
	return cell.Lit("it carries its fair share."), cell.Text{}
}

// wrap paints a sentence over as many rows as it needs, broken between words.
func (p *side) wrap(role cell.Role, t cell.Text) {
	for _, line := range cell.Wrap(t, p.w) {
		p.line()
		p.b.Put(role, line)
	}
}

// keys names what can be done with the rank.
func (p *side) keys() {
	type hint struct{ key, word cell.Text }
	hints := []hint{
		{p.f.KeyOf(command.Open), cell.Lit("convs")},
		{p.f.KeyOf(command.Weight), cell.Lit("weight")},
		{p.f.KeyOf(command.Drain), cell.Lit("drain")},
	}
	if p.r.Availability == model.Draining {
		hints[2] = hint{p.f.KeyOf(command.Ready), cell.Lit("ready")}
	}
	p.line()
	for _, h := range hints {
		p.b.Put(cell.Key, h.key)
		p.b.Gap(1)
		p.b.Left(cell.Dim, 11, h.word)
	}
}
