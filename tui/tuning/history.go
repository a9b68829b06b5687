package tuning

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/edit"
	"adpdeck/tui/layout"
	"adpdeck/tui/view"
)

// history paints the revisions in h rows, its rule among them.
func (v *View) history(b *cell.Block, f *view.Frame, it item, w, h int) {
	b.Begin(cell.Normal)
	b.Gap(1)
	b.Rule(w-2, cell.Lit("History"))
	v.revisions(b, f, it, w, h-1)
}

// revisions paints rows revisions around the cursor.
func (v *View) revisions(b *cell.Block, f *view.Frame, it item, w, rows int) {
	lines := past(f)
	from, to := layout.Window(len(lines), rows, lineOf(lines, it), v.topPast)
	v.topPast = from
	for _, l := range lines[from:to] {
		v.revision(b, f, l.item, l.item == it, w)
	}
	if len(lines) == 0 && rows > 0 {
		b.Begin(cell.Normal)
		b.Gap(3)
		b.Put(cell.Dim, cell.Lit("nothing was changed yet"))
		to = 1
	}
	b.Blank(rows - (to - from))
}

// revision paints v1412  14:01:58  ann   drain w1/2, and whether it stands.
func (v *View) revision(b *cell.Block, f *view.Frame, it item, cursor bool, w int) {
	r, ok := revision(f, it)
	if !ok {
		return
	}
	end := b.Width()
	begin(b, cursor)
	plain := cell.Plain
	if r.UndoneBy != 0 {
		plain = cell.Dim
	}
	version := cell.Say("v%s", cell.Int(r.Version))
	b.Left(plain, max(7, version.Width()+1), version)
	if w >= 60 || end >= 50 {
		b.Left(cell.Dim, 10, cell.Clock(r.At))
	}
	b.Left(plain, 6, cell.Fit(r.Actor, 6))
	b.Gap(1)
	role, mark := mark(&r, end < 64)
	room := end - b.At() - 1
	if mark.Width() > 0 {
		room -= mark.Width() + 2
	}
	b.Left(plain, max(room, 0), view.Change(f.State.Revisions, r, max(room, 0)))
	b.Gap(2)
	b.Put(role, mark)
}

// mark says what became of a revision.
func mark(r *model.Revision, short bool) (cell.Role, cell.Text) {
	switch {
	case short && r.UndoneBy != 0:
		return cell.Warn, cell.Lit("undone")
	case short && r.Undoes != 0:
		return cell.Dim, cell.Lit("undo")
	case r.UndoneBy != 0:
		return cell.Warn, cell.Say("undone by v%s", cell.Int(r.UndoneBy))
	case r.Undoes != 0:
		return cell.Dim, cell.Say("undoes v%s", cell.Int(r.Undoes))
	}
	return cell.Dim, cell.Text{}
}

// side draws the right pane: facts of the item under the cursor, then the
// history, behind a line.
func (v *View) side(f *view.Frame, d *doc, it item, w, h int) []string {
	b := cell.NewBlock(f.Ink, w-1)
	b.Blank(1)
	facts(b, f, d, it)
	for b.Height() < 13 {
		b.Blank(1)
	}
	b.Begin(cell.Normal)
	b.Gap(1)
	b.Rule(w-3, cell.Lit("History"))
	v.revisions(b, f, it, w, h-b.Height()-2)
	b.Blank(1)
	b.Begin(cell.Normal)
	b.Gap(3)
	b.Put(cell.Key, f.KeyOf(command.Undo))
	b.Put(cell.Dim, cell.Lit(" undo (undo it again = redo)"))
	lines := b.Lines(h)
	bar := cell.NewBlock(f.Ink, 1)
	for range h {
		bar.Begin(cell.Normal)
		bar.Put(cell.RuleLine, cell.Glyph(f.Ink.Glyphs.VLine))
	}
	for i, l := range bar.Lines(h) {
		lines[i] = l + lines[i]
	}
	return lines
}

// facts says in full what is under the cursor.
func facts(b *cell.Block, f *view.Frame, d *doc, it item) {
	say := func(name cell.Text, role cell.Role, t cell.Text) {
		b.Begin(cell.Normal)
		b.Gap(2)
		b.Left(cell.Dim, 10, name)
		b.Left(role, b.Width()-b.At()-1, t)
	}
	wrap := func(role cell.Role, t cell.Text) {
		for _, l := range cell.Wrap(t, b.Width()-3) {
			b.Begin(cell.Normal)
			b.Gap(2)
			b.Put(role, l)
		}
	}
	if rev, ok := revision(f, it); ok {
		wrap(cell.Strong, view.Change(f.State.Revisions, rev, 200))
		say(cell.Lit("version"), cell.Plain, cell.Say("v%s at %s", cell.Int(rev.Version), cell.Clock(rev.At)))
		say(cell.Lit("by"), cell.Plain, cell.Fit(rev.Actor, 40))
		say(cell.Lit("reason"), cell.Plain, reasonOf(&rev))
		if role, m := mark(&rev, false); !m.Empty() {
			say(cell.Lit("state"), role, m)
		}
		return
	}
	field, t, ok := it.value()
	if !ok {
		wrap(cell.Dim, cell.Say("%s lists every rank, to stage its weight.", opens(f)))
		return
	}
	name := cell.Foreign(field.Label)
	if t != nil {
		name = cell.Say("%s %s", cell.Foreign(t.String()), name)
	}
	wrap(cell.Strong, name)
	wrap(cell.Dim, cell.Foreign(field.Name))
	wrap(cell.Plain, cell.Foreign(field.Help))
	b.Blank(1)
	say(cell.Lit("now"), cell.Plain, edit.Pretty(&field, inForce(f, &field, t)))
	if s, staged := f.StagedValue(field.Name, t); staged {
		say(cell.Lit("staged"), cell.Staged, edit.Pretty(&field, s))
	}
	at := model.Target{}
	if t != nil {
		at = *t
	}
	say(cell.Lit("at start"), cell.Plain, edit.Pretty(&field, model.FieldText(&f.State.Initial, field.Name, at)))
	say(cell.Lit("allowed"), cell.Plain, cell.Foreign(field.Allowed()))
	if off := d.off(&field); !off.Empty() {
		say(cell.Lit("unused"), cell.Warn, off)
	}
}

func reasonOf(r *model.Revision) cell.Text {
	if r.Reason == "" {
		return cell.Unknown()
	}
	return cell.Fit(r.Reason, 80)
}
