package decisions

import (
	"math"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

// formula is one line of how a number came about: its name, the rule, and the
// rule with the numbers of the chosen rank.
type formula struct{ name, rule, numbers cell.Text }

// formulas are the lines below the table.
func (s *story) formulas(f *view.Frame) []formula {
	switch s.by {
	case byScore:
		return s.scoreFormulas(f)
	case byDynamo:
		return s.dynamoFormulas()
	case byLockstep:
		return s.lockstepFormulas()
	}
	if c := s.cap(); !c.Empty() {
		return []formula{{cell.Lit("cap"), c, cell.Text{}}}
	}
	return nil
}

func (s *story) scoreFormulas(f *view.Frame) []formula {
	p := &s.d.Placement
	c := candidate(p)
	if c == nil {
		return nil
	}
	load := formula{cell.Lit("load term"), cell.Lit("β × tokens on the rank ÷ tokens on all candidates × prompt"), cell.Text{}}
	if len(s.flips) > 0 {
		load.numbers = cell.Say("%s × %s ÷ %s × %s = %s", cell.Short(s.flips[0].Now), amount(c.Tokens), amount(float64(p.Denom)),
			cell.Full(p.PromptTokens), amount(float64(c.LoadTerm)))
	}
	side, so := cell.Lit("not above"), cell.Lit("so the whole prompt counts for every rank")
	if p.GateOpen {
		side, so = cell.Lit("above"), cell.Lit("so matches count")
	}
	threshold := cell.Lit("the threshold")
	if s.d.Version == f.State.Version {
		threshold = cell.Say("the threshold %s", cell.Short(f.State.Settings.AttentionDpConfig.KVCacheRoutingMatchRateThreshold))
	}
	gate := cell.Say("best match ÷ prompt = %s, %s %s, %s", cell.Fixed(float64(p.HitRate), 2), side, threshold, so)
	return []formula{load, {cell.Lit("gate"), gate, cell.Text{}}, {cell.Lit("cap"), s.cap(), cell.Text{}}}
}

// cap says how full the chosen rank was and how full it might be.
func (s *story) cap() cell.Text {
	p := &s.d.Placement
	if p.HardCap == 0 {
		return cell.Text{}
	}
	limit := p.HardCap
	if p.Expected > 0 {
		limit = min(limit, p.Expected)
	}
	t := cell.Say("soft cap %s, hard cap %s, so %s", cell.Int(p.Expected), cell.Int(p.HardCap), cell.Int(limit))
	if c := candidate(p); c != nil {
		return cell.Say("%s; %s had %s", t, name(s.d.Target), amount(c.Count))
	}
	return t
}

// others are the weights beside the first for which the choice holds.
func (s *story) others() formula {
	x := formula{name: cell.Lit("holds")}
	for i, f := range s.flips {
		if i > 0 {
			x.rule = cell.Say("%s · %s", x.rule, within(f))
		} else {
			x.rule = within(f)
		}
	}
	return x
}

// within is P 0.5 to 2.10, or every q.
func within(f Flip) cell.Text {
	sign := cell.Foreign(f.Sign)
	switch {
	case f.Below == nil && f.Above == nil:
		return cell.Say("every %s", sign)
	case f.Below == nil:
		return cell.Say("%s below %s (%s)", sign, digits(f.Above.At), name(f.Above.To))
	case f.Above == nil:
		return cell.Say("%s above %s (%s)", sign, digits(f.Below.At), name(f.Below.To))
	}
	return cell.Say("%s %s (%s) to %s (%s)", sign, digits(f.Below.At), name(f.Below.To), digits(f.Above.At), name(f.Above.To))
}

func (s *story) dynamoFormulas() []formula {
	x := s.d.Selection
	t, c := chosen(x), &x.Config
	if t == nil {
		return nil
	}
	cost := formula{
		cell.Lit("cost"), cell.Lit("P × max(0, blocks to prefill − credit) + decode blocks + q × requests"),
		cell.Say("%s × max(0, %s − %s) + %s + %s × %s = %s", cell.Short(c.PrefillLoadScale), tenths(t.RawPrefillBlocks), tenths(t.CreditBlocks),
			tenths(t.DecodeBlocks), cell.Short(c.DecodeActiveRequestWeight), tenths(t.Requests), tenths(t.Cost)),
	}
	if t.RecentTerm > 0 {
		cost.rule = cell.Say("%s; what was sent lately adds %s", cost.rule, tenths(t.RecentTerm))
	}
	credit := formula{
		cell.Lit("credit"), cell.Lit("credit × decay × device + host and disk by their weights"),
		cell.Say("%s × %s × %s + %s × %s + %s × %s = %s", cell.Short(c.KVOverlapScoreCredit), digits(t.Decay), cell.Full(t.Device),
			cell.Short(c.HostCacheHitWeight), cell.Full(t.Host), cell.Short(c.DiskCacheHitWeight), cell.Full(t.Disk), tenths(t.CreditBlocks)),
	}
	return s.withHolds(cost, credit)
}

func (s *story) lockstepFormulas() []formula {
	x := s.d.Selection
	t, c := chosen(x), &x.Config
	if t == nil {
		return nil
	}
	cost := formula{
		cell.Lit("cost"), cell.Lit("ν × new + ω × wait + λ × waiting × rise + μ × pending + δ × held"),
		cell.Say("%s × %s + %s × %s + %s × %s × %s + %s × %s + %s = %s", digits(max(1, t.WorkPrice)), amount(t.New), cell.Short(c.WaitWeight), amount(t.Wait),
			cell.Short(c.LockstepWeight), amount(1+t.Waiting), amount(t.Rise), cell.Short(c.PendingWeight), amount(t.Pending),
			amount(t.HeldTerm), amount(t.Cost)),
	}
	if t.RecentTerm > 0 {
		cost.rule = cell.Say("%s; what was sent lately adds %s", cost.rule, amount(t.RecentTerm))
	}
	rise := formula{
		cell.Lit("rise"), cell.Lit("max(0, rest + new − the worker's highest)"),
		cell.Say("max(0, %s + %s − %s) = %s", amount(t.Rest), amount(t.New), amount(t.HighestRest), amount(t.Rise)),
	}
	wait := formula{
		cell.Lit("wait"), cell.Lit("½ step + min(whole chunks of rest and new, the worker's highest)"),
		cell.Say("½ × %s + min(%s, %s) = %s", amount(t.Step), amount(max(1, math.Ceil((t.Rest+t.New)/max(1, t.Chunk)))*t.Chunk), amount(max(t.Rest+t.New, t.HighestRest)), amount(t.Wait)),
	}
	held := formula{
		cell.Lit("held"), cell.Lit("what the worker's fullest rank would hold"),
		cell.Say("held %s, fullest %s, after it %s, at δ %s", amount(t.Held), amount(t.HighestHeld), amount(t.FullestAfter), cell.Short(c.LockstepDecodeWeight)),
	}
	return s.withHolds(cost, wait, rise, held)
}

// withHolds ends formulas with the range of each weight, or with how the draw
// was made.
func (s *story) withHolds(fs ...formula) []formula {
	if len(s.flips) > 0 {
		return append(fs, s.others())
	}
	if x := s.d.Selection; x.By == model.ByTemperature {
		return append(fs, formula{
			cell.Lit("chance"), cell.Lit("exp(−(cost − least) ÷ (range × temperature)), shared out"),
			cell.Say("temperature %s, drew %s", cell.Short(x.Config.Temperature), cell.Fixed(float64(x.Draw), 4)),
		})
	}
	return fs
}

// paintFormula paints one line; the numbers go to a line of their own where
// they do not fit beside the rule.
func paintFormula(b *cell.Block, x formula) {
	b.Begin(cell.Normal)
	b.Gap(3)
	b.Left(cell.Dim, 10, x.name)
	b.Put(cell.Dim, cell.Lit("= "))
	if room := b.Width() - b.At() - 2; x.rule.Width()+x.numbers.Width()+3 > room && !x.numbers.Empty() {
		b.Left(cell.Plain, room, x.numbers) // the numbers tell more than the rule
		return
	}
	b.Put(cell.Dim, x.rule)
	if x.numbers.Empty() {
		return
	}
	b.To(b.Width() - 2 - x.numbers.Width())
	b.Put(cell.Plain, x.numbers)
}
