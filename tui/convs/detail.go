package convs

import (
	"slices"
	"time"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/dialog"
	"adpdeck/tui/view"
)

// turnCache keeps the decisions of one conversation while nothing changes.
type turnCache struct {
	rev   uint64
	key   model.ConvKey
	turns []*model.Decision
	full  bool
}

// turnsOf returns the decisions of a conversation that are still kept, newest
// first.
func (v *View) turnsOf(f *view.Frame, k model.ConvKey) []*model.Decision {
	t := &v.turns
	if t.full && t.rev == f.Rev && t.key == k {
		return t.turns
	}
	*t = turnCache{rev: f.Rev, key: k, full: true}
	for i := len(f.Decisions) - 1; i >= 0; i-- {
		if d := f.Decisions[i]; d.Conv == k {
			t.turns = append(t.turns, d)
		}
	}
	return t.turns
}

// detailPainter paints the detail of one conversation.
type detailPainter struct {
	b *cell.Block
	f *view.Frame
	c *model.Conv
}

// drawDetail paints h rows: a rule with the name, facts, turns, a cause, keys.
func (v *View) drawDetail(b *cell.Block, f *view.Frame, c *model.Conv, h int) {
	end := b.Height() + h
	p := detailPainter{b, f, c}
	turns := v.turnsOf(f, c.Key)
	b.Begin(cell.Normal)
	b.Gap(1)
	b.Rule(b.Width()-2, cell.Fit(c.Key.ID, b.Width()))
	airy := h >= 16
	if airy {
		b.Blank(1)
	}
	p.facts()
	if airy {
		b.Blank(1)
	}
	foot := 0
	var note []cell.Text
	if t, ok := p.note(turns); ok && h >= 12 {
		note = cell.Wrap(t, b.Width()-4)
		foot += 1 + len(note)
	}
	if h >= 12 {
		foot += 2
	}
	p.turns(turns, end-b.Height()-foot)
	for b.Height() < end-foot {
		b.Blank(1)
	}
	if len(note) > 0 {
		b.Blank(1)
	}
	for _, t := range note {
		b.Begin(cell.Normal)
		b.Gap(3)
		b.Put(cell.Warn, t)
	}
	if h >= 12 {
		b.Blank(1)
		p.keys(v.detail)
	}
	for b.Height() < end {
		b.Blank(1)
	}
}

func (p *detailPainter) fact(name cell.Text, runs ...cell.Run) {
	p.b.Begin(cell.Normal)
	p.b.Gap(3)
	p.b.Left(cell.Dim, 11, name)
	for _, r := range runs {
		p.b.Left(r.Role, min(r.Text.Width(), p.b.Width()-p.b.At()-1), r.Text)
	}
}

func plain(t cell.Text) cell.Run { return cell.Run{Role: cell.Plain, Text: t} }
func dim(t cell.Text) cell.Run   { return cell.Run{Role: cell.Dim, Text: t} }

func (p *detailPainter) facts() {
	c := p.c
	p.fact(cell.Lit("pin"), plain(p.pin()))
	at := dialog.Where(c)
	picks := view.EnginePicks(p.f.State, at.Worker)
	where := []cell.Run{{Role: cell.Strong, Text: view.PlaceText(at, 40)}}
	switch {
	case picks && at.Rank == model.NoRank:
		where = append(where, dim(cell.Lit("   its engine picks the rank")))
	case picks:
		where = append(where, dim(cell.Say("   picked by the engine of %s, which cannot be asked for it", cell.Fit(at.Worker, 24))))
	}
	if c.Last.Worker != "" && c.Last != at && !(picks && c.Last.Worker == at.Worker && c.Last.Rank == model.NoRank) {
		where = append(where, cell.Run{Role: cell.Warn, Text: cell.Say("   last turn on %s", view.PlaceText(c.Last, 40))})
	}
	if left, drains := draining(p.f.State, dialog.Where(c)); drains {
		where = append(where, cell.Run{Role: cell.Warn, Text: cell.Say("   %s", left.Short())})
	}
	where = append(where, dim(cell.Say("   moved %s times   tenant %s   model %s", cell.Full(c.Moves), orDash(c.Key.Tenant, 24), orDash(c.Key.Model, 32))))
	p.fact(cell.Lit("rank"), where...)
	turns := cell.Full(c.Turns)
	if c.Turns > 1 {
		turns = cell.Say("%s in %s", turns, cell.Age(c.LastAt.Sub(c.FirstAt)))
	}
	cached := cell.Lit("no first token yet")
	if c.PromptTokens > 0 {
		cached = cell.Say("cached %s of %s (%s)", cell.Kilo(float64(c.CachedTokens)), cell.Kilo(float64(c.PromptTokens)), cell.PercentShort(hitOf(c)))
	}
	p.fact(cell.Lit("turns"), plain(turns), dim(cell.Say("   %s open   ", cell.Int(c.Open))), plain(cached))
	switch {
	case c.Honoured+c.Lost == 0 && picks:
		p.fact(cell.Lit("honoured"), dim(cell.Lit("nothing to honour: the engine picks the rank and does not tell which")))
	case c.Honoured+c.Lost == 0:
		p.fact(cell.Lit("honoured"), dim(cell.Lit("the engine has reported no rank yet")))
	case c.Lost == 0:
		p.fact(cell.Lit("honoured"), plain(cell.Say("%s of %s: the engine used the rank it was told", cell.Full(c.Honoured), cell.Full(c.Honoured))))
	default:
		p.fact(cell.Lit("honoured"), cell.Run{Role: cell.Warn, Text: cell.Say("%s of %s: %s turns ran elsewhere than the router said",
			cell.Full(c.Honoured), cell.Full(c.Honoured+c.Lost), cell.Full(c.Lost))})
	}
}

func orDash(s string, w int) cell.Text {
	if s == "" {
		return cell.Unknown()
	}
	return cell.Fit(s, w)
}

// pin says who or what holds the conversation.
func (p *detailPainter) pin() cell.Text {
	c := p.c
	switch c.Pin {
	case model.PinOperator, model.PinMigrated:
		verb := cell.Lit("operator: ")
		if c.Pin == model.PinMigrated {
			verb = cell.Lit("moved by ")
		}
		t := cell.Say("%s%s, %s, v%s", verb, cell.Fit(c.By, 24), cell.Clock(c.PinnedAt), cell.Int(c.PinnedVersion))
		if view.EnginePicks(p.f.State, c.Bound.Worker) {
			t = cell.Say("%s; holds the worker only", t)
		}
		if c.Reason != "" {
			t = cell.Say("%s, reason %s", t, cell.Fit(c.Reason, 60))
		}
		return t
	case model.PinAuto:
		s := p.f.State.Settings
		switch {
		case s.RouterMode != model.ModeKV && s.RouterMode != model.ModeLockstep:
			return cell.Lit("auto: bound by the conversation policy")
		case s.ClusterConfig.SessionAffinityTTLSecs != nil:
			ttl := time.Duration(*s.ClusterConfig.SessionAffinityTTLSecs * float64(time.Second))
			return cell.Say("auto: bound by session affinity, until it is idle for %s", cell.Age(ttl))
		}
		return cell.Lit("auto: bound before; affinity is off, so it does not act")
	}
	return cell.Lit("none: the policy decides each turn")
}

// turns paints the last turns in at most h rows, the heads among them.
func (p *detailPainter) turns(turns []*model.Decision, h int) {
	if h <= 0 {
		return
	}
	b := p.b
	b.Begin(cell.Normal)
	b.Gap(3)
	b.Right(cell.Title, 4, cell.Lit("TURN"))
	b.Gap(2)
	b.Left(cell.Title, 8, cell.Lit("TIME"))
	b.Right(cell.Title, 8, cell.Lit("PROMPT"))
	b.Right(cell.Title, 8, cell.Lit("CACHED"))
	b.Right(cell.Title, 11, cell.Lit("PREFILLED"))
	b.Right(cell.Title, 7, cell.Lit("TTFT"))
	b.Gap(2)
	b.Left(cell.Title, 7, cell.Lit("RANK"))
	b.Put(cell.Title, cell.Lit("WHY"))
	if len(turns) == 0 && h > 1 {
		b.Begin(cell.Normal)
		b.Gap(3)
		b.Put(cell.Dim, cell.Lit("none among the last decisions"))
	}
	for i, d := range turns[:min(len(turns), h-1)] {
		p.turn(d, p.c.Turns-i)
	}
}

func (p *detailPainter) turn(d *model.Decision, n int) {
	b := p.b
	s, settled := p.f.Settled[d.ID]
	b.Begin(cell.Normal)
	b.Gap(3)
	b.Right(cell.Dim, 4, cell.Int(max(n, 0)))
	b.Gap(2)
	b.Left(cell.Dim, 8, cell.Clock(d.At))
	b.Right(cell.Plain, 8, cell.Full(d.Placement.PromptTokens))
	cached, prefilled, ttft, ran := cell.Unknown(), cell.Unknown(), cell.Unknown(), d.Target
	if settled {
		if !s.CachedUnknown {
			cached = cell.Full(s.CachedTokens)
			prefilled = cell.Full(max(0, d.Placement.PromptTokens-s.CachedTokens))
		}
		ttft = cell.Ms(float64(s.TTFTMs))
		if s.Ran.Worker != "" {
			ran = s.Ran
		}
	}
	b.Right(cell.Plain, 8, cached)
	b.Right(cell.Plain, 11, prefilled)
	b.Right(cell.Plain, 7, ttft)
	b.Gap(2)
	b.Left(cell.Strong, 6, view.PlaceText(ran, 6))
	b.Gap(1)
	why := cell.Fit(d.Why, 60)
	role := cell.Plain
	switch {
	case d.Placement.Phase == model.PhaseEngine && ran.Rank != model.NoRank:
		why = cell.Lit("picked by the engine")
	case ran != d.Target:
		role, why = cell.Warn, cell.Say("asked for %s, not honoured", cell.Fit(d.Target.String(), 12))
	case d.Conflict != "":
		why = cell.Say("%s · %s", why, cell.Fit(d.Conflict, 40))
	}
	b.Left(role, b.Width()-b.At()-1, why)
}

// slowFactor is how much longer than the middle turn a turn must have taken to
// be named.
const slowFactor = 5

// note names the turn that took far longer than the others.
func (p *detailPainter) note(turns []*model.Decision) (cell.Text, bool) {
	var times []float64
	worst, at := 0.0, -1
	for i, d := range turns {
		s, ok := p.f.Settled[d.ID]
		if !ok || !s.TTFTMs.Known() {
			continue
		}
		times = append(times, float64(s.TTFTMs))
		if float64(s.TTFTMs) > worst {
			worst, at = float64(s.TTFTMs), i
		}
	}
	if len(times) < 3 {
		return cell.Text{}, false
	}
	slices.Sort(times)
	median := times[len(times)/2]
	if worst < slowFactor*median || worst < 500 {
		return cell.Text{}, false
	}
	d := turns[at]
	t := cell.Say("turn %s took %s to its first token, %s the middle of these turns", cell.Int(p.c.Turns-at), cell.Ms(worst), cell.Ratio(worst/median))
	switch d.Placement.Phase {
	case model.PhaseOperator, model.PhaseBound, model.PhasePinned:
		t = cell.Say("%s; its pin outranks load on %s", t, cell.Foreign(d.Target.String()))
	}
	return t, true
}

func (p *detailPainter) keys(open bool) {
	b := p.b
	b.Begin(cell.Normal)
	b.Gap(3)
	pin := cell.Lit(" pin   ")
	if p.c.Pin == model.PinOperator {
		pin = cell.Lit(" change or remove pin   ")
	}
	last := cell.Lit(" all its turns")
	key := p.f.KeyOf(command.Open)
	if open {
		key, last = p.f.KeyOf(command.Back), cell.Lit(" back")
	}
	for _, k := range [...]struct{ key, word cell.Text }{
		{p.f.KeyOf(command.Pin), pin},
		{p.f.KeyOf(command.Migrate), cell.Lit(" migrate   ")},
		{p.f.KeyOf(command.Evict), cell.Lit(" evict   ")},
		{p.f.KeyOf(command.Copy), cell.Lit(" copy id   ")},
		{key, last},
	} {
		b.Put(cell.Key, k.key)
		b.Put(cell.Dim, k.word)
	}
}
