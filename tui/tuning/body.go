package tuning

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/edit"
	"adpdeck/tui/layout"
	"adpdeck/tui/view"
)

// The knobs' pane beside the history takes this many cells.
const paneWidth = 70

// Draw returns h lines of w cells.
func (v *View) Draw(f *view.Frame, w, h int) []string {
	d := gather(f)
	it := v.cursor(f, &d)
	switch {
	case f.Form != layout.Full:
		return v.compact(f, &d, it, w, h)
	case f.ScreenW >= layout.SideWidth && h >= 26:
		return v.twoPanes(f, &d, it, w, h)
	}
	return v.onePane(f, &d, it, w, h)
}

// onePane stacks policy, knobs and history.
func (v *View) onePane(f *view.Frame, d *doc, it item, w, h int) []string {
	b := cell.NewBlock(f.Ink, w)
	v.policyLine(b, f)
	left := h - 2
	if h >= 14 {
		b.Blank(1)
		left--
	}
	history := 0
	if left >= 12 {
		history = min(max(5, left/3), len(f.State.Revisions)+1)
		left -= history + 1
	}
	g := fit(w)
	g.head(b, cell.Lit("KNOB"))
	lines := v.knobs(f, d, false)
	if history == 0 {
		lines = append(append(lines, line{title: cell.Lit("HISTORY")}), past(f)...)
	}
	v.list(b, f, d, &g, lines, it, left)
	if history > 0 {
		b.Blank(1)
		v.history(b, f, it, w, history)
	}
	return b.Lines(h)
}

// list paints the knobs in rows rows, around the cursor.
func (v *View) list(b *cell.Block, f *view.Frame, d *doc, g *grid, lines []line, it item, rows int) {
	at := lineOf(lines, it)
	if at < 0 && it.kind == kindRevision {
		at = -1 // the cursor is in the history: stay where the list was
	}
	from, to := layout.Window(len(lines), rows, at, v.top)
	if at >= 0 && from > 0 && at == from && lines[from-1].item.kind == kindNone {
		from, to = from-1, to-1 // keep a group's title above its first item
		if to <= at {
			to = at + 1
		}
	}
	v.top, v.page = from, rows
	for _, l := range lines[from:to] {
		if l.item.kind == kindRevision {
			v.revision(b, f, l.item, l.item == it, b.Width())
			continue
		}
		g.row(b, f, d, l, l.item == it && it.kind != kindNone)
	}
	b.Blank(rows - (to - from))
}

// policyLine names the policy, and what is staged.
func (v *View) policyLine(b *cell.Block, f *view.Frame) {
	b.Begin(cell.Normal)
	b.Gap(1)
	named(b, f, cell.Lit("MODE"), model.FieldRouterMode)
	named(b, f, cell.Lit("POLICY"), model.FieldPolicy)
	b.Put(cell.Key, f.KeyOf(command.Policy))
	b.Put(cell.Dim, cell.Lit(" change"))
	if n := len(f.Staged); n > 0 {
		v.stagedHint(b, f, n)
	}
}

// named paints a field with options and its value, staged after it.
func named(b *cell.Block, f *view.Frame, title cell.Text, name string) {
	field, _ := model.FieldByName(name)
	b.Put(cell.Title, title)
	b.Gap(2)
	b.Put(cell.Strong, edit.Pretty(&field, inForce(f, &field, nil)))
	if s, ok := f.StagedValue(name, nil); ok {
		b.Put(cell.Dim, cell.Lit(" → "))
		b.Put(cell.Staged, edit.Pretty(&field, s))
	}
	b.Gap(3)
}

// stagedHint says how many values are staged and, as far as there is room,
// what to do with them.
func (v *View) stagedHint(b *cell.Block, f *view.Frame, n int) {
	dim := func(t cell.Text) cell.Run { return cell.Run{Role: cell.Dim, Text: t} }
	runs := []cell.Run{
		{Role: cell.Staged, Text: cell.Say("%s staged", cell.Int(n))},
		dim(cell.Lit(" · ")),
		{Role: cell.Key, Text: f.KeyOf(command.Apply)},
		dim(cell.Lit(" apply…   ")),
		{Role: cell.Key, Text: f.KeyOf(command.Back)},
		dim(cell.Lit(" discard")),
	}
	w := 0
	for _, r := range runs {
		w += r.Text.Width()
	}
	room := b.Width() - b.At() - 2
	for ; len(runs) > 2 && w > room; runs = runs[:len(runs)-2] {
		w -= runs[len(runs)-1].Text.Width() + runs[len(runs)-2].Text.Width()
	}
	if at := b.Width() - w - 1; at > b.At() {
		b.To(at)
	}
	b.Runs(runs...)
}

// twoPanes puts the knobs left, the item under the cursor and the history
// right.
func (v *View) twoPanes(f *view.Frame, d *doc, it item, w, h int) []string {
	leftW := paneWidth + max(0, (w-120)/3)
	b := cell.NewBlock(f.Ink, leftW)
	b.Blank(1)
	v.policyLine(b, f)
	b.Blank(1)
	g := fit(leftW)
	g.head(b, cell.Lit("KNOB"))
	v.list(b, f, d, &g, v.knobs(f, d, true), it, h-4)
	left := b.Lines(h)
	right := v.side(f, d, it, w-leftW, h)
	for i := range left {
		left[i] += right[i]
	}
	return left
}

// compact paints one short line per item.
func (v *View) compact(f *view.Frame, d *doc, it item, w, h int) []string {
	b := cell.NewBlock(f.Ink, w)
	b.Begin(cell.Normal)
	b.Gap(1)
	field, _ := model.FieldByName(model.FieldPolicy)
	b.Put(cell.Strong, edit.Pretty(&field, current(f, &field, nil)))
	if d.steers() {
		b.Put(cell.Dim, cell.Say(" · mode %s", cell.Foreign(string(d.mode))))
	}
	if n := len(f.Staged); n > 0 {
		b.Put(cell.Staged, cell.Say("  %s staged", cell.Int(n)))
		b.Put(cell.Key, cell.Lit("  A"))
		b.Put(cell.Dim, cell.Lit(" apply…"))
	}
	lines := append(append(v.knobs(f, d, false), line{title: cell.Lit("HISTORY")}), past(f)...)
	g := grid{now: 6, staged: 9, left: w, defaultAt: w}
	v.list(b, f, d, &g, lines, it, h-1)
	return b.Lines(h)
}

// Status is the editor, what the knob under the cursor does, or what staging
// means.
func (v *View) Status(f *view.Frame) (left, right []cell.Run) {
	if v.editor != nil {
		return v.editor.Line(f.Ink), nil
	}
	d := gather(f)
	it := v.cursor(f, &d)
	field, _, ok := it.value()
	switch {
	case len(f.Staged) > 0:
		left = []cell.Run{{Role: cell.Dim, Text: cell.Lit("staged changes are local to you until applied")}}
	case ok:
		left = []cell.Run{{Role: cell.Dim, Text: cell.Foreign(field.Help)}}
	case it.kind == kindRevision:
		left = []cell.Run{{Role: cell.Dim, Text: cell.Say("%s or %s takes this change back; undoing an undo is the redo", f.KeyOf(command.Undo), opens(f))}}
	case it.kind == kindMore:
		left = []cell.Run{{Role: cell.Dim, Text: cell.Say("%s lists every rank, to stage its weight", opens(f))}}
	}
	return left, nil
}

// opens is the key that opens what is no value: enter where it still edits.
func opens(f *view.Frame) cell.Text {
	if f.Keys.Starts("enter", command.Edit) {
		return cell.Glyph(f.Ink.Glyphs.Enter)
	}
	return f.KeyOf(command.Edit)
}
