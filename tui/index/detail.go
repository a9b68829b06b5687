package index

import (
	"strings"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

// detail paints what is known of the rank under the cursor, and the findings,
// down to row h.
func (v *View) detail(b *cell.Block, f *view.Frame, e *entry, h int) {
	top := b.Height()
	p := painter{b: b, f: f, e: e, end: h, airy: h-top >= 12}
	if p.airy {
		p.blank()
	}
	p.rule(v.headline(f, e))
	if p.airy {
		p.blank()
	}
	p.findings()
	if !p.airy && h-top < 8 {
		p.short()
		return
	}
	if p.airy || e.Feed != model.FeedLive {
		p.wrap(cell.Plain, sentence(e, f.Now), 3)
	}
	if p.airy {
		p.blank()
	}
	p.facts()
	p.losses()
	p.others()
}

// short is the detail where rows are few: what is wrong, what was lost.
func (p *painter) short() {
	if p.e.Feed != model.FeedLive {
		p.wrap(cell.Plain, sentence(p.e, p.f.Now), 2)
	}
	if p.e.Hit.Known() {
		lost := lostText(p.e, 5)
		if lost.Empty() {
			lost = cell.Lit("next to nothing lost")
		}
		p.fact(cell.Lit("hit"), cell.Plain, cell.Say("%s here, %s reachable: %s", cell.PercentShort(float64(p.e.Hit)), cell.PercentShort(float64(p.e.Reachable)), lost))
	}
	p.facts()
}

// headline is w1/6: silent for 48 s.
func (v *View) headline(f *view.Frame, e *entry) cell.Text {
	name := cell.Fit(e.Target.String(), 32)
	_, feed := feedOf(e)
	switch {
	case e.Feed == model.FeedApproximate:
		return cell.Say("%s: approximate, without events", name)
	case e.EventAt.IsZero():
		return cell.Say("%s: %s", name, feed)
	case e.Feed == model.FeedGap:
		return cell.Say("%s: gap, in doubt", name)
	case e.Feed == model.FeedDoubt:
		return cell.Say("%s: in doubt, events were lost", name)
	}
	return cell.Say("%s: %s, last heard %s ago", name, feed, ageText(f.Now, e.EventAt))
}

// painter paints the detail and never past its last row.
type painter struct {
	b    *cell.Block
	f    *view.Frame
	e    *entry
	end  int
	airy bool
}

func (p *painter) left() int { return p.end - p.b.Height() }

func (p *painter) blank() {
	if p.left() > 0 {
		p.b.Blank(1)
	}
}

func (p *painter) rule(t cell.Text) {
	if p.left() > 0 {
		p.b.Begin(cell.Normal)
		p.b.Gap(1)
		p.b.Rule(p.b.Width()-2, t)
	}
}

// line begins a row of the detail and reports whether there is one left.
func (p *painter) line() bool {
	if p.left() <= 0 {
		return false
	}
	p.b.Begin(cell.Normal)
	p.b.Gap(3)
	return true
}

func (p *painter) wrap(role cell.Role, t cell.Text, most int) {
	lines := cell.Wrap(t, min(p.b.Width()-6, 110))
	for _, l := range lines[:min(len(lines), most)] {
		if p.line() {
			p.b.Put(role, l)
		}
	}
}

// findings are those of this rank: since when, what, and what to do.
func (p *painter) findings() {
	for _, x := range p.e.findings {
		p.finding(x)
	}
	if len(p.e.findings) > 0 && p.airy {
		p.blank()
	}
}

func (p *painter) finding(x *model.Finding) {
	p.wrap(cell.Crit, cell.Say("%s (for %s)", cell.Fit(x.Message, 300), cell.Age(p.f.Now.Sub(x.Since))), 2)
	if x.Next != "" {
		p.wrap(cell.Strong, cell.Say("next: %s", cell.Fit(x.Next, 300)), 2)
	}
}

func (p *painter) fact(name cell.Text, role cell.Role, t cell.Text) {
	if p.line() {
		p.b.Left(cell.Dim, 10, name)
		p.b.Left(role, p.b.Width()-p.b.At()-1, t)
	}
}

func (p *painter) facts() {
	e := p.e
	cap := cell.Text{}
	if most := e.capacity(); most > 0 {
		cap = cell.Say(" of %s", cell.Full(most))
	}
	held := cell.Say("%s device%s, %s host, %s disk; the index spends %s", cell.Full(e.Device), cap, cell.Full(e.Host), cell.Full(e.Disk), bytesText(e.Bytes))
	p.fact(cell.Lit("blocks"), cell.Plain, held)
	role := cell.Plain
	if e.Gaps+e.Restarts+e.Refused > 0 {
		role = cell.Warn
	}
	feed := cell.Say("batch %s; %s gaps, %s restarts, %s events refused; %s blocks wait for a parent, %s holes",
		cell.Full(e.Seq), cell.Full(e.Gaps), cell.Full(e.Restarts), cell.Full(e.Refused), cell.Full(e.Waiting), cell.Full(e.Holes))
	if !p.airy {
		feed = cell.Say("%s gaps, %s restarts, %s refused, %s blocks waiting, %s holes", cell.Full(e.Gaps), cell.Full(e.Restarts),
			cell.Full(e.Refused), cell.Full(e.Waiting), cell.Full(e.Holes))
	}
	p.fact(cell.Lit("feed"), role, feed)
	if e.Unplaced > 0 {
		p.fact(cell.Lit("unplaced"), cell.Warn, cell.Say("%s blocks came to a tier by a name never told before, so they do not count", cell.Full(e.Unplaced)))
	}
	if e.LastError != "" {
		p.fact(cell.Lit("refused"), cell.Warn, cell.Say("last: %s", cell.Fit(e.LastError, 160)))
	}
	agreed := cell.Lit("no first token to compare with in the last minute")
	if e.picked() {
		agreed = cell.Lit("nothing is predicted for a rank that the engine picks")
	}
	if e.Agreed.Known() {
		agreed = cell.Say("%s of requests found in cache what the router had predicted", agreedText(e))
	}
	p.fact(cell.Lit("agreed"), agreedRole(e), agreed)
}

// losses set hit against reachable and split the difference by its causes.
func (p *painter) losses() {
	e := p.e
	if !e.Hit.Known() {
		none := cell.Lit("nothing was routed here in the last minute")
		if e.picked() {
			none = cell.Say("not known: the engine of %s picks the rank and did not tell of this one", cell.Fit(e.Target.Worker, 24))
		}
		p.fact(cell.Lit("hit"), cell.Dim, none)
		return
	}
	share := lostShare(e)
	text := cell.Say("%s found here, %s was reachable", cell.Percent(float64(e.Hit)), cell.Percent(float64(e.Reachable)))
	if share == share {
		text = cell.Say("%s: %s points lost", text, cell.Fixed(100*share, 1))
	}
	p.fact(cell.Lit("hit"), cell.Plain, text)
	for _, c := range causes(e.Lost) {
		if !p.line() {
			return
		}
		p.b.Gap(2)
		p.b.Left(cell.Dim, 12, c.word)
		p.b.Right(cell.Plain, 6, cell.Fixed(points(e, c), 1))
		p.b.Gap(2)
		p.b.Bar(min(24, p.b.Width()/5), cell.Bar{Value: float64(c.tokens), Max: float64(e.Lost.Sum()), Tick: -1, Role: cell.BarFill})
		p.b.Right(cell.Dim, 9, cell.Count(float64(c.tokens)))
		p.b.Put(cell.Dim, cell.Say(" tokens: %s", c.about))
	}
}

// others are the findings of other ranks.
func (p *painter) others() {
	var rest []*model.Finding
	for i := range p.f.State.Findings {
		if x := &p.f.State.Findings[i]; x.Target != p.e.Target {
			rest = append(rest, x)
		}
	}
	if len(rest) == 0 || p.left() < 3 {
		return
	}
	if p.airy {
		p.blank()
	}
	p.rule(cell.Say("Findings elsewhere: %s", cell.Int(len(rest))))
	for _, x := range rest {
		if p.left() < 1 {
			return
		}
		p.elsewhere(x)
	}
}

// elsewhere is a finding of another rank, named where its text does not.
func (p *painter) elsewhere(x *model.Finding) {
	y, at := *x, view.Place(x.Target)
	if !strings.HasPrefix(y.Message, at) {
		y.Message = at + ": " + y.Message
	}
	p.finding(&y)
}
