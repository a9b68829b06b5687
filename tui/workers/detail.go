package workers

import (
	"slices"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// painter paints what is known of one worker, and never past its last row.
type painter struct {
	b    *cell.Block
	f    *view.Frame
	e    *entry
	end  int
	airy bool // blank rows between the parts, and the table of proofs
}

func (p *painter) left() int { return p.end - p.b.Height() }

func (p *painter) blank() {
	if p.left() > 0 {
		p.b.Blank(1)
	}
}

// all paints everything: what is wrong first, the strip of ranks last and
// whatever happens. cursor says that the rule carries the cursor's sign.
func (p *painter) all(cursor bool) {
	p.rule(cursor)
	if p.airy {
		p.blank()
	}
	foot := p.stripRows()
	if p.airy {
		foot++
	}
	if p.left() < foot+4 {
		foot = 0
	}
	p.end -= foot
	p.wrong()
	p.facts()
	if p.airy {
		p.proofs()
	}
	p.end += foot
	if foot == 0 {
		return
	}
	if p.airy || p.left() > foot {
		p.blank()
	}
	p.strip()
	if p.left() >= 2 {
		p.blank()
		p.keys()
	}
}

func (p *painter) rule(cursor bool) {
	title := cell.Fit(p.e.ID, 40)
	if cursor {
		title = cell.Say("%s %s", cell.Glyph(p.f.Ink.Glyphs.CursorMark), title)
	}
	_, state := p.e.state(p.f)
	p.b.Begin(cell.Normal)
	p.b.Gap(1)
	p.b.Rule(p.b.Width()-2, cell.Say("%s: %s, %s", title, cell.Fit(p.e.Engine, 24), state))
}

// row begins a row of the detail and reports whether there is one left.
func (p *painter) row() bool {
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
		if p.row() {
			p.b.Put(role, l)
		}
	}
}

// fact paints a name and runs of text; a remark that does not fit is left out.
func (p *painter) fact(name cell.Text, runs ...cell.Run) {
	if !p.row() {
		return
	}
	p.b.Left(cell.Dim, 11, name)
	for i, r := range runs {
		room := p.b.Width() - p.b.At() - 1
		if i > 0 && r.Role == cell.Dim && r.Text.Width() > room {
			return
		}
		p.b.Left(r.Role, min(r.Text.Width(), room), r.Text)
	}
}

func plain(t cell.Text) cell.Run { return cell.Run{Role: cell.Plain, Text: t} }
func dim(t cell.Text) cell.Run   { return cell.Run{Role: cell.Dim, Text: t} }
func warn(t cell.Text) cell.Run  { return cell.Run{Role: cell.Warn, Text: t} }

// group is a finding that several ranks have in the same words.
type group struct {
	first *model.Finding
	ranks int
}

// together puts what is said alike of several ranks into one, in their order.
func together(list []*model.Finding) []group {
	var out []group
	for _, x := range list {
		at := slices.IndexFunc(out, func(g group) bool {
			return g.first.Code == x.Code && g.first.Message == x.Message && g.first.Next == x.Next
		})
		if at < 0 {
			at = len(out)
			out = append(out, group{first: x})
		}
		out[at].ranks++
	}
	return out
}

// wrong is why it does not answer, then its findings with what to do.
func (p *painter) wrong() {
	e, n := p.e, 1
	if p.airy {
		n = 2
	}
	switch why := cell.Fit(e.LivenessWhy, 300); {
	case why.Empty() || e.Liveness == model.LiveUp:
	case e.Liveness == model.LiveParts:
		p.wrap(cell.Crit, cell.Say("some of its ranks do not answer: %s", why), n)
	default:
		p.wrap(cell.Crit, cell.Say("does not answer: %s", why), n)
	}
	groups := together(e.findings)
	for i, g := range groups {
		x := g.first
		words := cell.Fit(x.Message, 300)
		if p.airy && x.Code == model.FindingEngineDisagrees {
			words = cell.Lit("the settings file and the engine say different things, listed below")
		}
		if !p.airy && i > 0 {
			more := cell.Say("and %s findings more", cell.Int(len(groups)-i))
			if len(groups)-i == 1 {
				more = cell.Lit("and 1 finding more")
			}
			p.wrap(cell.Warn, more, 1)
			return
		}
		long := cell.Say("for %s", cell.Age(since(p.f.Now, x.Since)))
		if g.ranks > 1 {
			long = cell.Say("%s ranks, %s", cell.Int(g.ranks), long)
		}
		p.wrap(cell.Crit, cell.Say("%s (%s)", words, long), n)
		if x.Next != "" && p.airy {
			p.wrap(cell.Strong, cell.Say("next: %s", cell.Fit(x.Next, 300)), n)
		}
	}
	if p.airy && (len(e.findings) > 0 || e.LivenessWhy != "") {
		p.blank()
	}
}

func (p *painter) facts() {
	e := p.e
	p.address()
	p.feeds()
	p.lockstep()
	p.capacity()
	p.settings()
	if e.simulated() {
		return
	}
	p.honoured()
	restarts := plain(cell.Say("%s since joining", cell.Full(e.Restarts)))
	if e.Restarts > 0 {
		restarts.Role = cell.Warn
	}
	p.fact(cell.Lit("restarts"), restarts, dim(p.alive()))
	if len(e.Models) > 0 {
		p.fact(cell.Lit("models"), plain(p.models()))
	}
}

// alive says since when the engine answers, or does not.
func (p *painter) alive() cell.Text {
	e := p.e
	switch {
	case e.LivenessAt.IsZero():
		return cell.Text{}
	case e.Liveness == model.LiveUp:
		return cell.Say("   answers since %s", cell.Clock(e.LivenessAt))
	}
	return cell.Say("   so for %s", ageText(p.f.Now, e.LivenessAt))
}

func (p *painter) models() cell.Text {
	t := cell.Text{}
	for i, m := range p.e.Models {
		if i == 8 {
			return cell.Say("%s and %s more", t, cell.Int(len(p.e.Models)-i))
		}
		if i > 0 {
			t = cell.Say("%s, ", t)
		}
		t = cell.Concat(t, cell.Fit(m, 40))
	}
	return t
}

// address is where the engine is, how a rank is asked for, and since when.
func (p *painter) address() {
	e := p.e
	if e.simulated() {
		p.fact(cell.Lit("engine"), dim(cell.Lit("simulated in this process: no address, no feeds, nothing to steer")))
		return
	}
	runs := []cell.Run{plain(cell.Fit(e.Address, 60)), dim(cell.Lit("   ")), plain(e.steering())}
	if e.Address == "" {
		runs = runs[2:]
	}
	if !e.JoinedAt.IsZero() {
		runs = append(runs, dim(cell.Say("   joined %s", cell.Clock(e.JoinedAt))))
	}
	switch n := max(e.Ranks, len(e.ranks)); {
	case e.GlobalRank > 0 && n == 1:
		runs = append(runs, dim(cell.Say("   rank %s of its group", cell.Int(e.GlobalRank))))
	case e.GlobalRank > 0 && n > 1:
		runs = append(runs, dim(cell.Say("   ranks %s–%s of its group", cell.Int(e.GlobalRank), cell.Int(e.GlobalRank+n-1))))
	}
	p.fact(cell.Lit("address"), runs...)
}

// feeds paints each feed's sign, its state where that is not live, and its age;
// then why those are as they are.
func (p *painter) feeds() {
	if len(p.e.Feeds) == 0 {
		return
	}
	var runs []cell.Run
	for i := range p.e.Feeds {
		x := &p.e.Feeds[i]
		if i > 0 {
			runs = append(runs, dim(cell.Lit("   ")))
		}
		role, sign := dot(p.f.Ink, x.State)
		runs = append(runs, plain(cell.Say("%s ", cell.Fit(x.Name, 16))), cell.Run{Role: role, Text: sign})
		age := ageText(p.f.Now, x.At)
		switch {
		case x.State == model.FeedLive && age.Empty():
		case x.State == model.FeedLive:
			runs = append(runs, dim(cell.Say(" %s", age)))
		case x.State == model.FeedApproximate:
			runs = append(runs, dim(cell.Lit(" guessed")))
		default:
			runs = append(runs, cell.Run{Role: role, Text: cell.Say(" %s", cell.Fit(string(x.State), 12))})
			if !age.Empty() {
				runs = append(runs, dim(cell.Say(" %s", age)))
			}
		}
	}
	p.fact(cell.Lit("feeds"), runs...)
	for i := range p.e.Feeds {
		x := &p.e.Feeds[i]
		if x.Why == "" || p.e.finds(x.Why) {
			continue
		}
		text := cell.Say("%s: %s", cell.Fit(x.Name, 16), cell.Fit(x.Why, 160))
		switch {
		case x.State != model.FeedLive:
			p.fact(cell.Text{}, warn(text))
		case x.Name == model.FeedMetrics: // where it comes from, or what is still missing
			p.fact(cell.Text{}, dim(text))
		}
	}
}

// finds reports that a finding says the same already.
func (e *entry) finds(why string) bool {
	return slices.ContainsFunc(e.findings, func(x *model.Finding) bool { return x.Message == why })
}

// even is busiest ÷ mean below which no rank is named as the one that holds the
// others up.
const even = 1.10

// lockstep says which rank the others wait for.
func (p *painter) lockstep() {
	e := p.e
	if e.busiest == nil || len(e.ranks) < 2 {
		return
	}
	name, most, mean := cell.Fit(e.busiest.Target.String(), 24), cell.Kilo(float64(e.busiest.Tokens)), cell.Kilo(e.mean)
	switch {
	case e.mean > 0 && float64(e.busiest.Tokens) >= even*e.mean:
		p.fact(cell.Lit("lockstep"), plain(cell.Say("a step waits for the busiest rank: %s, %s, mean %s", name, most, mean)))
	default:
		p.fact(cell.Lit("lockstep"), plain(cell.Say("a step waits for the busiest rank; even now: %s, mean %s", most, mean)))
	}
}

// keys names what can be done with the worker.
func (p *painter) keys() {
	if !p.row() {
		return
	}
	for _, k := range [...]struct{ key, word cell.Text }{
		{p.f.KeyOf(command.Drain), cell.Lit(" drain…   ")},
		{p.f.KeyOf(command.Ready), cell.Lit(" ready   ")},
		{p.f.KeyOf(command.Open), cell.Lit(" its ranks   ")},
		{p.f.KeyOf(command.Copy), cell.Lit(" copy   ")},
		{p.f.KeyOf(command.Export), cell.Lit(" export")},
	} {
		p.b.Put(cell.Key, k.key)
		p.b.Put(cell.Dim, k.word)
	}
}
