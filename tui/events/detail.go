package events

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// detail paints all that is known of the event under the cursor, down to row
// end.
func (v *View) detail(b *cell.Block, f *view.Frame, e *entry, end int) {
	p := painter{b: b, f: f, e: e, end: end, airy: end-b.Height() >= 10}
	b.Blank(1)
	p.rule()
	if p.airy {
		p.blank()
	}
	p.whole()
	p.pair(cell.Lit("before"), cell.Plain, given(e.Before), cell.Lit("after"), cell.Plain, given(e.After))
	by := cell.Say("%s, %s, %s ago", cell.Fit(e.Who, 32), cell.Clock(e.At), cell.Age(f.Now.Sub(e.At)))
	if e.Who == "" {
		by = cell.Say("the router, %s, %s ago", cell.Clock(e.At), cell.Age(f.Now.Sub(e.At)))
	}
	p.pair(cell.Lit("by"), cell.Plain, by, cell.Lit("kind"), cell.Dim, p.kind())
	role, undo, _ := e.undo(p.f.KeyOf(command.Undo))
	p.pair(cell.Lit("reason"), cell.Plain, given(e.reason()), cell.Lit("undo"), role, undo)
	x := v.about(e)
	p.pair(cell.Lit("about"), cell.Strong, p.where(x), cell.Lit("id"), cell.Dim, given(e.Command))
	p.progress(x)
}

// given is text from outside, or nothing.
func given(s string) cell.Text {
	if s == "" {
		return cell.Text{}
	}
	return cell.Fit(s, 200)
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

// title is v1412 drain w1/2, or engine: does not answer.
func (p *painter) title() cell.Text {
	what := cell.Fit(p.e.What, p.b.Width()-8)
	if p.e.Version != 0 {
		return cell.Say("v%s %s", cell.Int(p.e.Version), what)
	}
	return cell.Say("%s: %s", cell.Fit(p.e.kind, 12), what)
}

func (p *painter) rule() {
	p.b.Begin(cell.Normal)
	p.b.Gap(1)
	p.b.Rule(p.b.Width()-2, p.title())
}

// whole says in full what the title had to cut.
func (p *painter) whole() {
	if cell.Foreign(p.e.What).Width()+12 < p.b.Width() {
		return
	}
	lines := cell.Wrap(cell.Fit(p.e.What, 2*p.b.Width()), p.b.Width()-6)
	for _, l := range lines[:min(len(lines), 2)] {
		if p.left() > 0 {
			p.b.Begin(cell.Normal)
			p.b.Gap(3)
			p.b.Put(whatRole(p.e), l)
		}
	}
}

func (p *painter) kind() cell.Text {
	level := cell.Fit(p.e.Level, 12)
	if p.e.Level == "" {
		level = cell.Lit("info")
	}
	return cell.Say("%s, %s", cell.Fit(p.e.kind, 16), level)
}

// pair paints two facts side by side where both fit, else below each other; one
// without a text is left out.
func (p *painter) pair(n1 cell.Text, r1 cell.Role, t1, n2 cell.Text, r2 cell.Role, t2 cell.Text) {
	at := 3 + max(38, (p.b.Width()-6)/2)
	if p.b.Width() >= 150 {
		at = 76
	}
	room1, room2 := at-3-9-2, p.b.Width()-at-8-1
	switch {
	case t1.Empty() && t2.Empty():
		return
	case t1.Empty():
		p.fact(n2, r2, t2)
		return
	case t2.Empty():
		p.fact(n1, r1, t1)
		return
	case t1.Width() > room1 || t2.Width() > room2:
		p.fact(n1, r1, t1)
		p.fact(n2, r2, t2)
		return
	}
	if p.left() > 0 {
		p.fact(n1, r1, t1)
		p.b.To(at)
		p.b.Left(cell.Dim, 8, n2)
		p.b.Put(r2, t2)
	}
}

func (p *painter) fact(name cell.Text, role cell.Role, t cell.Text) {
	if p.left() <= 0 {
		return
	}
	p.b.Begin(cell.Normal)
	p.b.Gap(3)
	p.b.Left(cell.Dim, 9, name)
	p.b.Left(role, min(t.Width(), p.b.Width()-p.b.At()-1), t)
}

// where is what the event is about, and where enter goes.
func (p *painter) where(x *subject) cell.Text {
	enter := p.f.KeyOf(command.Open)
	switch {
	case p.e.onConvs():
		return cell.Say("conversations  (%s there)", enter)
	case x.target.Worker == "":
		return cell.Text{}
	case !x.there:
		return cell.Say("%s, which is gone", cell.Fit(name(x.target), 24))
	case x.target.Rank == model.NoRank:
		return cell.Say("%s  (%s worker)", cell.Fit(name(x.target), 24), enter)
	}
	return cell.Say("%s  (%s rank)", cell.Fit(name(x.target), 24), enter)
}

// progress says how far a rank that drains has come.
func (p *painter) progress(x *subject) {
	var left view.Left
	drains := 0
	for i := range p.f.State.Ranks {
		r := &p.f.State.Ranks[i]
		if r.Availability != model.Draining || r.Target.Worker != x.target.Worker || x.target.Rank != model.NoRank && r.Target != x.target {
			continue
		}
		drains++
		left = left.Add(view.LeftOn(r))
	}
	if drains == 0 || p.left() <= 0 {
		return
	}
	if x.target.Rank == model.NoRank {
		left = left.OnWorker(p.f.State, x.target.Worker)
	}
	if p.airy {
		p.blank()
	}
	p.fact(cell.Lit("now"), cell.Warn, cell.Say("%s %s", cell.Fit(name(x.target), 24), left.Sentence()))
}
