package dialog

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// The words of choosers beside ranks.
const (
	wordRemove = "remove"
	wordAuto   = "auto"
)

type pinBody struct {
	convList
	choose chooser
}

// NewPin asks for a rank to pin conversations to, which must be at least one.
// to is chosen at first when it is not nil.
func NewPin(f *view.Frame, convs []*model.Conv, to *model.Target) *Box {
	p := &pinBody{convList: convList{convs}}
	p.choose.here = Where(convs[0])
	p.choose.at = option{target: p.choose.here}
	if p.choose.here.Rank == model.NoRank {
		p.choose.at.target.Rank = 0 // its engine picks the rank: any stands for the worker
	}
	if to != nil {
		p.choose.at = option{target: *to}
	}
	if len(convs) == 1 {
		p.choose.matched = matches(f, convs[0].Key)
	}
	for _, c := range convs {
		if c.Pin == model.PinOperator {
			p.choose.words = []string{wordRemove}
			break
		}
	}
	x := &Box{
		title: cell.Say("Pin %s", p.named()), button: cell.Lit("Pin"), hint: func(f *view.Frame) cell.Text { return cell.Say("%s rank   ", moveKeys(f)) },
		version: f.State.Version, body: p,
	}
	x.wants(len(convs))
	return x
}

func (p *pinBody) rows(f *view.Frame) int { return p.convList.rows() + 1 + p.choose.rows(f) + 2 }

func (p *pinBody) paint(b *cell.Block, f *view.Frame, h int) {
	if own := min(p.convList.rows(), max(1, h-4)); h > 3 {
		p.convList.paint(b, f, own)
		h -= own
		gap(b, &h, p.choose.rows(f)+2)
	}
	notes := min(2, max(0, h-3))
	p.choose.paint(b, f, h-notes, func(string) cell.Text { return cell.Lit("take the operator's pin away") })
	if notes > 1 {
		b.Blank(1)
	}
	if notes > 0 {
		role, text := p.effect(f)
		line(b, &notes, cell.Lit("effect"), role, text)
	}
}

// effect says what pinning there means, and warns.
func (p *pinBody) effect(f *view.Frame) (cell.Role, cell.Text) {
	if p.choose.at.word == wordRemove {
		return cell.Plain, cell.Lit("the policy decides again from the next turn on")
	}
	r := rankOf(f.State, p.choose.at.target)
	name := cell.Foreign(p.choose.at.target.String())
	switch {
	case r == nil:
		return cell.Warn, cell.Say("there is no rank %s", name)
	case r.Availability == model.Draining:
		return cell.Warn, cell.Say("%s drains: the router will refuse; %s on the rank first", name, f.KeyOf(command.Ready))
	case r.MaxActive > 0 && r.Active >= r.MaxActive:
		return cell.Warn, cell.Say("%s is full: a pinned turn waits there for room", name)
	}
	if w := p.choose.at.target.Worker; view.EnginePicks(f.State, w) {
		return cell.Warn, cell.Say("holds %s only: its engine picks the rank", cell.Fit(w, 16))
	}
	return cell.Plain, cell.Lit("outranks the policy until removed; outlives idle time")
}

func (p *pinBody) key(f *view.Frame, k view.Key) { p.choose.key(f, k) }

func (p *pinBody) fire(f *view.Frame) (view.Send, cell.Text) {
	if p.choose.at.word == wordRemove {
		return view.Send{Command: model.Command{Verb: model.VerbUnpin, Convs: p.keys()}}, cell.Text{}
	}
	t := p.choose.at.target
	if rankOf(f.State, t) == nil {
		return view.Send{}, cell.Lit("choose a rank")
	}
	return view.Send{Command: model.Command{Verb: model.VerbPin, Convs: p.keys(), Target: &t}}, cell.Text{}
}

type migrateBody struct {
	all      []*model.Conv
	idleOnly bool
	convList
	choose chooser
}

// NewMigrate asks where to move conversations, which must be at least one.
func NewMigrate(f *view.Frame, convs []*model.Conv, to *model.Target) *Box {
	m := &migrateBody{all: convs, convList: convList{convs}}
	m.choose.words = []string{wordAuto}
	m.choose.at = option{word: wordAuto}
	m.choose.here = Where(convs[0])
	if to != nil {
		m.choose.at = option{target: *to}
	}
	if len(convs) == 1 {
		m.choose.matched = matches(f, convs[0].Key)
	}
	x := &Box{
		title: cell.Say("Migrate %s", m.named()), button: cell.Lit("Migrate"), hint: func(f *view.Frame) cell.Text { return cell.Say("%s   i idle only   ", moveKeys(f)) },
		version: f.State.Version, body: m,
	}
	x.wants(len(convs))
	return x
}

func (m *migrateBody) rows(f *view.Frame) int {
	return 2 + m.convList.rows() + 1 + m.choose.rows(f) + 4
}

// spread reports that the router shares them out, each to the rank that has the
// fewest tokens when its turn comes: auto, for more than one.
func (m *migrateBody) spread() bool { return m.choose.at.word == wordAuto && len(m.convs) > 1 }

// target is where they go: the rank chosen, or the one that auto means now.
func (m *migrateBody) target(f *view.Frame) (model.Target, bool) {
	if m.choose.at.word == wordAuto {
		return least(f.State, m.choose.here)
	}
	return m.choose.at.target, rankOf(f.State, m.choose.at.target) != nil
}

func (m *migrateBody) paint(b *cell.Block, f *view.Frame, h int) {
	if h > 5 {
		m.fromTo(b, f)
		h--
		gap(b, &h, m.convList.rows()+m.choose.rows(f)+5)
	}
	if own := min(m.convList.rows(), max(1, h-7)); h > 3 {
		m.convList.paint(b, f, own)
		h -= own
		gap(b, &h, m.choose.rows(f)+4)
	}
	notes := min(4, max(0, h-3))
	m.choose.paint(b, f, h-notes, func(string) cell.Text {
		t, ok := least(f.State, m.choose.here)
		switch {
		case !ok:
			return cell.Lit("no ready rank has room")
		case len(m.convs) > 1:
			return cell.Say("spread by least tokens, first %s", cell.Foreign(t.String()))
		}
		return cell.Say("least tokens: %s", cell.Foreign(t.String()))
	})
	if notes > 3 {
		notes--
		b.Blank(1)
	}
	line(b, &notes, cell.Lit("cost"), cell.Plain, cell.Say("%s cached tokens left behind on %s", cell.Kilo(float64(m.cached())), m.where()))
	line(b, &notes, cell.Lit("gain"), cell.Plain, m.gain(f))
	line(b, &notes, cell.Lit("undo"), cell.Plain, cell.Say("%s takes it back; old blocks stay until they are evicted", f.KeyOf(command.Undo)))
}

func (m *migrateBody) fromTo(b *cell.Block, f *view.Frame) {
	b.Begin(cell.Normal)
	b.Gap(pad)
	b.Left(cell.Dim, 6, cell.Lit("from"))
	b.Put(cell.Strong, m.where())
	if t, ok := m.target(f); ok {
		b.Gap(3)
		b.Put(cell.Dim, cell.Lit("to "))
		if m.spread() {
			b.Put(cell.Strong, cell.Lit("the lightest ranks"))
		} else {
			b.Put(cell.Strong, cell.Foreign(t.String()))
		}
	}
	if m.idleOnly {
		b.Gap(3)
		b.Put(cell.Dim, cell.Say("busy ones left out: %s of %s", cell.Int(len(m.convs)), cell.Int(len(m.all))))
	}
}

// gain compares both ranks' tokens.
func (m *migrateBody) gain(f *view.Frame) cell.Text {
	t, ok := m.target(f)
	to := rankOf(f.State, t)
	from := rankOf(f.State, m.choose.here)
	if !ok || to == nil || from == nil || to.ReportedAt.IsZero() || from.ReportedAt.IsZero() {
		return cell.Unknown()
	}
	if m.spread() {
		return cell.Say("each to the lightest then; now %s with %s", cell.Foreign(to.Target.String()), cell.Kilo(float64(to.Tokens)))
	}
	for _, c := range m.convs {
		if Where(c) != m.choose.here {
			return cell.Say("they join %s, which has %s tokens", cell.Foreign(to.Target.String()), cell.Kilo(float64(to.Tokens)))
		}
	}
	return cell.Say("from %s with %s to %s with %s tokens", cell.Foreign(from.Target.String()), cell.Kilo(float64(from.Tokens)),
		cell.Foreign(to.Target.String()), cell.Kilo(float64(to.Tokens)))
}

func (m *migrateBody) key(f *view.Frame, k view.Key) {
	if k.Name != "i" {
		m.choose.key(f, k)
		return
	}
	m.idleOnly = !m.idleOnly
	m.convs = m.all
	if m.idleOnly {
		m.convs = nil
		for _, c := range m.all {
			if c.Open == 0 {
				m.convs = append(m.convs, c)
			}
		}
	}
}

func (m *migrateBody) count() int { return len(m.convs) }

func (m *migrateBody) fire(f *view.Frame) (view.Send, cell.Text) {
	t, ok := m.target(f)
	switch {
	case len(m.convs) == 0:
		return view.Send{}, cell.Lit("all of them are busy: i takes them in again")
	case !ok:
		return view.Send{}, cell.Lit("no ready rank has room")
	case m.spread():
		return view.Send{Command: model.Command{Verb: model.VerbMigrate, Convs: m.keys()}}, cell.Text{}
	}
	return view.Send{Command: model.Command{Verb: model.VerbMigrate, Convs: m.keys(), Target: &t}}, cell.Text{}
}
