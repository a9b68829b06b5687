package decisions

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// explained returns the story of d, kept while the same decision is looked at.
func (v *View) explained(d *model.Decision) *story {
	if v.story == nil || v.story.d != d {
		v.story = tell(d)
	}
	return v.story
}

// title is Why w0/3?
func title(d *model.Decision) cell.Text {
	switch {
	case d.Placement.Phase == model.PhaseUnplaced:
		return cell.Lit("Why does it wait?")
	}
	return cell.Say("Why %s?", name(d.Target))
}

// longTitle adds which decision it was and what it was made by.
func longTitle(d *model.Decision) cell.Text {
	who := cell.Lit("a request without conversation")
	if !d.Conv.Keyless() {
		who = cell.Fit(d.Conv.ID, 32)
	}
	by := cell.Say("policy %s,", cell.Foreign(string(d.Policy)))
	if d.Selection != nil {
		by = cell.Say("mode %s,", cell.Foreign(string(d.Mode)))
	}
	return cell.Say("%s  decision %s of %s  %s v%s", title(d), cell.Full(d.ID), who, by, cell.Int(d.Version))
}

// airyRows is the height from which the pane of reasons has blank rows,
// formulas, and a part of its own for what happened then.
const airyRows = 21

// why paints h rows on why the decision under the cursor went where it did.
func (v *View) why(b *cell.Block, f *view.Frame, d *model.Decision, h int) {
	end := b.Height() + h
	s := v.explained(d)
	if h >= airyRows {
		v.airy(b, f, s, end)
	} else {
		v.dense(b, f, s, end-rowsOf(h >= 8))
	}
	for b.Height() < end {
		b.Blank(1)
	}
}

func rowsOf(blank bool) int {
	if blank {
		return 1
	}
	return 0
}

func (v *View) dense(b *cell.Block, f *view.Frame, s *story, end int) {
	w := b.Width()
	b.Begin(cell.Normal)
	b.Gap(1)
	b.Rule(w-2, title(s.d))
	lines := wrap(s.sentence(true), w-5, max(1, min(3, end-b.Height()-1)))
	for _, l := range lines {
		if b.Height() >= end {
			return
		}
		b.Begin(cell.Normal)
		b.Gap(3)
		b.Put(cell.Plain, l)
	}
	left := end - b.Height()
	if len(lines) == 1 && left >= 6 {
		b.Blank(1)
		left--
	}
	if t := newSheet(s, w); left >= 4 {
		t.paint(b, min(left-1, t.want()))
	}
	if b.Height() >= end {
		return
	}
	st, ok := f.Settled[s.d.ID]
	role, text := then(s.d, &st, ok)
	b.Begin(cell.Normal)
	b.Gap(3)
	b.Left(cell.Dim, 8, cell.Lit("then"))
	b.Left(role, w-b.At()-1, text)
}

// wrap breaks t into at most most lines; the last says with … that more follows.
func wrap(t cell.Text, w, most int) []cell.Text {
	lines := cell.Wrap(t, w)
	if len(lines) > most {
		lines = append(cell.Wrap(t, w-2)[:most-1:most-1], cell.Say("%s …", cell.Wrap(t, w-2)[most-1]))
	}
	return lines
}

func (v *View) airy(b *cell.Block, f *view.Frame, s *story, end int) {
	w := b.Width()
	b.Begin(cell.Normal)
	b.Gap(1)
	b.Rule(w-2, longTitle(s.d))
	b.Blank(1)
	for _, l := range cell.Wrap(s.sentence(false), min(w-6, 110)) {
		b.Begin(cell.Normal)
		b.Gap(3)
		b.Put(cell.Plain, l)
	}
	b.Blank(1)
	formulas := s.formulas(f)
	foot := 5
	if len(formulas) > 0 {
		foot += len(formulas) + 1
	}
	t := newSheet(s, w)
	t.paint(b, min(end-b.Height()-foot, t.want()))
	if len(formulas) > 0 {
		b.Blank(1)
		for _, x := range formulas {
			paintFormula(b, x)
		}
	}
	b.Blank(1)
	b.Begin(cell.Normal)
	b.Gap(1)
	b.Rule(w-2, cell.Lit("What happened then"))
	st, ok := f.Settled[s.d.ID]
	role, text := then(s.d, &st, ok)
	b.Begin(cell.Normal)
	b.Gap(3)
	b.Left(role, w-b.At()-1, text)
	b.Blank(1)
	keys(b, f)
}

// keys names what can be done with the decision.
func keys(b *cell.Block, f *view.Frame) {
	b.Begin(cell.Normal)
	b.Gap(3)
	for _, k := range [...]struct{ key, word cell.Text }{
		{f.KeyOf(command.Open), cell.Lit(" conversation   ")},
		{f.KeyOf(command.Copy), cell.Lit(" copy as JSON   ")},
		{f.KeyOf(command.Odd), cell.Lit(" next odd one   ")},
		{f.KeyOf(command.Follow), cell.Lit(" follow the newest   ")},
		{f.KeyOf(command.Side), cell.Lit(" tail alone")},
	} {
		b.Put(cell.Key, k.key)
		b.Put(cell.Dim, k.word)
	}
}
