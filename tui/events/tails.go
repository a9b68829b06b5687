package events

import (
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/layout"
	"adpdeck/tui/view"
)

// tail is the rows of one of the two tails, and where the cursor stands in it,
// -1 for not.
func (v *View) tail(side int) (rows []*entry, at int) {
	at = -1
	for i, e := range v.list.Rows() {
		if tailOf(e) != side {
			continue
		}
		if i == v.list.Line() {
			at = len(rows)
		}
		rows = append(rows, e)
	}
	return rows, at
}

// tails paints operators' events left and the machine's right: a head and rows
// rows.
func (v *View) tails(f *view.Frame, w, rows int) []string {
	v.page = rows
	left, right := cell.NewBlock(f.Ink, w/2), cell.NewBlock(f.Ink, w-w/2)
	v.oneTail(left, f, 0, rows)
	v.oneTail(right, f, 1, rows)
	lines := left.Lines(rows + 1)
	for i, l := range right.Lines(rows + 1) {
		lines[i] += l
	}
	return lines
}

func (v *View) oneTail(b *cell.Block, f *view.Frame, side, rows int) {
	list, at := v.tail(side)
	b.Begin(cell.Normal)
	w := b.Width() - 1 // for the line between
	title, none := cell.Lit("OPERATORS DID"), cell.Lit("operators did nothing yet")
	if side == 1 {
		b.Put(cell.RuleLine, cell.Glyph(b.Ink().Glyphs.VLine))
		title, none = cell.Lit("THE MACHINE TOLD"), cell.Lit("the machine told nothing yet")
	}
	g := fit(list, w, side == 0)
	if side == 1 {
		g.widths[colWhat] += g.widths[colVersion] + g.widths[colUndo]
		g.widths[colVersion], g.widths[colUndo] = 0, 0
	}
	g.heads(b, title)
	from, to := layout.Window(len(list), rows, at, v.tops[side])
	v.tops[side] = from
	for i := range rows {
		cursor := from+i == at && from+i < to
		b.Begin(rowKind(cursor))
		if side == 1 {
			b.Put(cell.RuleLine, cell.Glyph(b.Ink().Glyphs.VLine))
		}
		switch {
		case from+i < to:
			g.row(b, f, list[from+i], cursor)
		case i == 0:
			if v.list.Filtered() {
				none = cell.Lit("none of these matches the filter")
			}
			b.Gap(3)
			b.Put(cell.Dim, none)
		}
	}
}

// moveInTail moves the cursor among the events of its own tail.
func (v *View) moveInTail(c command.ID) {
	e, ok := v.list.Selected()
	if !ok {
		return
	}
	rows, at := v.tail(tailOf(e))
	switch c {
	case command.Down:
		at++
	case command.Up:
		at--
	case command.First:
		at = 0
	case command.Last:
		at = len(rows) - 1
	case command.PageDown:
		at += max(1, v.page/2)
	case command.PageUp:
		at -= max(1, v.page/2)
	}
	v.list.Select(rows[min(max(at, 0), len(rows)-1)].ID)
}

// otherTail puts the cursor on the event of the other tail that is nearest in
// time.
func (v *View) otherTail() view.Intent {
	e, ok := v.list.Selected()
	if !ok {
		return nil
	}
	rows, _ := v.tail(1 - tailOf(e))
	if len(rows) == 0 {
		return view.Toast{Level: view.Note, Text: cell.Lit("none of the other kind is shown")}
	}
	best := rows[0]
	for _, r := range rows {
		if r.At.Sub(e.At).Abs() < best.At.Sub(e.At).Abs() {
			best = r
		}
	}
	v.list.Select(best.ID)
	return nil
}
