package events

import (
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/layout"
	"adpdeck/tui/table"
	"adpdeck/tui/view"
)

// The screen from which operators' and the machine's events stand beside each
// other.
const (
	splitWidth  = 180
	splitHeight = 36
)

// Draw returns h lines of w cells.
func (v *View) Draw(f *view.Frame, w, h int) []string {
	v.update(f)
	v.look(f)
	b := cell.NewBlock(f.Ink, w)
	if f.Form != layout.Full {
		v.split = false
		v.compact(b, f, h)
		return b.Lines(h)
	}
	v.split = w >= splitWidth && h >= splitHeight
	airy := h >= 30
	if airy {
		b.Blank(1)
	}
	v.heading(b)
	if f.ScreenW >= layout.SideWidth {
		v.chips(b, f)
	}
	if airy {
		b.Blank(1)
	}
	e, ok := v.list.Selected()
	detail := 0
	if ok && !v.noSide {
		detail = detailRows(h)
	}
	rows := max(1, h-b.Height()-1-detail)
	if !v.split {
		v.table(b, f, rows)
		if detail >= 2 {
			v.detail(b, f, e, h)
		}
		return b.Lines(h)
	}
	lines := append(b.Lines(b.Height()), v.tails(f, w, rows)...)
	under := cell.NewBlock(f.Ink, w)
	if detail >= 2 {
		v.detail(under, f, e, detail)
	}
	return append(lines, under.Lines(h-len(lines))...)
}

// detailRows is how many rows of h the detail gets, a blank one and its rule
// among them.
func detailRows(h int) int {
	switch {
	case h >= 44:
		return 14
	case h >= 30:
		return 12
	case h >= 18:
		return 8
	case h >= 13:
		return 5
	}
	return 0
}

// heading is the filter, and how many events there are.
func (v *View) heading(b *cell.Block) {
	b.Begin(cell.Normal)
	b.Gap(1)
	n, all := len(v.list.Rows()), v.list.Total()
	right := cell.Say("%s events · newest first", cell.Full(all))
	switch {
	case n != all:
		right = cell.Say("%s of %s · newest first", cell.Full(n), cell.Full(all))
	case all == 1:
		right = cell.Lit("1 event")
	}
	if v.list.Held() {
		right = cell.Say("%s · order held", right)
	}
	if _, err := v.list.FilterText(); err != nil {
		right = cell.Text{} // what is wrong needs the room
	}
	at := b.Width() - right.Width() - 1
	if v.list.Typing() || v.list.Filtered() {
		for _, r := range table.FilterLine(v.list) {
			b.Left(r.Role, min(r.Text.Width(), max(8, at-b.At()-1)), r.Text)
		}
	} else {
		b.Put(cell.Title, cell.Lit("EVENTS"))
	}
	if at > b.At() {
		b.To(at)
		b.Put(cell.Dim, right)
	}
}

// table paints one list of all.
func (v *View) table(b *cell.Block, f *view.Frame, rows int) {
	g := fit(v.list.Rows(), b.Width(), false)
	g.head(b, cell.Text{})
	from, to := v.list.Window(rows)
	v.page = rows
	for i, e := range v.list.Rows()[from:to] {
		cursor := from+i == v.list.Line()
		b.Begin(rowKind(cursor))
		g.row(b, f, e, cursor)
	}
	v.fill(b, f, rows, to-from)
}

func rowKind(cursor bool) cell.Row {
	if cursor {
		return cell.Cursor
	}
	return cell.Normal
}

// fill says why there is nothing, and pads.
func (v *View) fill(b *cell.Block, f *view.Frame, rows, have int) {
	if have == 0 && rows > 0 {
		b.Begin(cell.Normal)
		b.Gap(3)
		text := cell.Say("no event matches the filter: %s clears it", f.KeyOf(command.Back))
		if v.list.Total() == 0 {
			text = cell.Lit("nothing has happened yet")
		}
		b.Put(cell.Dim, text)
		have = 1
	}
	b.Blank(max(0, rows-have))
}

// compact paints one short line per event: time, who, what.
func (v *View) compact(b *cell.Block, f *view.Frame, h int) {
	from, to := v.list.Window(h)
	v.page = h
	for i, e := range v.list.Rows()[from:to] {
		cursor := from+i == v.list.Line()
		b.Begin(rowKind(cursor))
		signs(b, e, cursor)
		b.Left(cell.Dim, 9, when(f.Now, e.At))
		b.Left(whoRole(e), 6, cell.Fit(e.Who, 6))
		b.Gap(1)
		b.Left(whatRole(e), b.Width()-b.At(), cell.Fit(e.What, b.Width()))
	}
	v.fill(b, f, h, to-from)
}

// Status says what is kept, and counts warnings and errors.
func (v *View) Status(f *view.Frame) (left, right []cell.Run) {
	v.update(f)
	if f.Form != layout.Full && (v.list.Typing() || v.list.Filtered()) {
		return table.FilterLine(v.list), nil
	}
	c := &v.counts
	if c.errors > 0 {
		right = append(right, cell.Run{Role: cell.Crit, Text: plural(c.errors, cell.Lit("error"), cell.Lit("errors"))})
	}
	if c.warn > 0 {
		if len(right) > 0 {
			right = append(right, cell.Run{Role: cell.Dim, Text: cell.Lit(" · ")})
		}
		right = append(right, cell.Run{Role: cell.Warn, Text: plural(c.warn, cell.Lit("warning"), cell.Lit("warnings"))})
	}
	text := cell.Lit("every change is here, also those made by other consoles and scripts")
	switch {
	case f.Form != layout.Full:
		text = cell.Say("%s events", cell.Full(len(v.list.Rows())))
	case f.ScreenW < 100:
		text = cell.Lit("every change is here, also those of other consoles")
	}
	return []cell.Run{{Role: cell.Dim, Text: text}}, right
}

func plural(n int, one, many cell.Text) cell.Text {
	if n == 1 {
		return cell.Say("1 %s", one)
	}
	return cell.Say("%s %s", cell.Full(n), many)
}
