package workers

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/layout"
	"adpdeck/tui/table"
	"adpdeck/tui/view"
)

// The screen from which all workers are open at once.
const (
	openWidth  = 180
	openHeight = 40
)

// Draw returns h lines of w cells.
func (v *View) Draw(f *view.Frame, w, h int) []string {
	v.update(f)
	b := cell.NewBlock(f.Ink, w)
	if f.Form != layout.Full {
		v.compact(b, f, h)
		return b.Lines(h)
	}
	airy := h >= 30
	if airy {
		b.Blank(1)
	}
	v.heading(b)
	if airy {
		b.Blank(1)
	}
	n := max(1, len(v.list.Rows()))
	room := h - b.Height() - 1
	loose := airy || room-n >= looseDetail+2 // blank rows around the table
	if loose && !airy {
		b.Blank(1)
		room--
	}
	e, ok := v.list.Selected()
	switch open := w >= openWidth && h >= openHeight; {
	case !ok || v.noSide:
		v.table(b, f, room)
	case open:
		v.table(b, f, min(n, max(4, room/4)))
		lines := b.Lines(b.Height())
		return append(lines, v.open(f, w, h-len(lines))...)
	default:
		rows := max(1, min(n, room-detailRows(room)))
		v.table(b, f, rows)
		if h-b.Height() >= 3 {
			if loose {
				b.Blank(1)
			}
			d := painter{b: b, f: f, e: e, end: h, airy: h-b.Height() >= 18}
			d.all(false)
		}
	}
	return b.Lines(h)
}

// looseDetail is the height from which the detail has all that matters.
const looseDetail = 14

// detailRows is how many rows of room the detail wants at least.
func detailRows(room int) int {
	switch {
	case room >= 30:
		return 22
	case room >= 22:
		return 15
	case room >= 16:
		return 11
	case room >= 10:
		return 5
	}
	return 0
}

// heading counts workers and ranks, or is the filter.
func (v *View) heading(b *cell.Block) {
	b.Begin(cell.Normal)
	b.Gap(1)
	right := table.OrderText(v.list)
	if _, err := v.list.FilterText(); err != nil {
		right = cell.Text{}
	}
	at := b.Width() - right.Width() - 1
	if v.list.Typing() || v.list.Filtered() {
		for _, r := range table.FilterLine(v.list) {
			b.Left(r.Role, min(r.Text.Width(), max(8, at-b.At()-1)), r.Text)
		}
		b.Gap(2)
	}
	b.Runs(v.sums(b.Width() < 100)...)
	if at > b.At() {
		b.To(at)
		b.Put(cell.Dim, right)
	}
}

// sums is 2 workers · 16 ranks · 15 ready, 1 draining · 1 down.
func (v *View) sums(short bool) []cell.Run {
	workers, ranks, ready, draining, down := 0, 0, 0, 0, 0
	for _, e := range v.list.Rows() {
		workers++
		ranks, ready, draining = ranks+max(e.Ranks, len(e.ranks)), ready+e.ready, draining+e.draining
		if e.Liveness == model.LiveDown {
			down++
		}
	}
	count := cell.Say("%s workers", cell.Full(workers))
	switch {
	case workers != v.list.Total():
		count = cell.Say("%s of %s workers", cell.Full(workers), cell.Full(v.list.Total()))
	case workers == 1:
		count = cell.Lit("1 worker")
	}
	out := []cell.Run{{Role: cell.Plain, Text: cell.Say("%s · %s ranks · %s ready", count, cell.Full(ranks), cell.Full(ready))}}
	if draining > 0 {
		out = append(out, cell.Run{Role: cell.Warn, Text: cell.Say(", %s draining", cell.Full(draining))})
	}
	if down > 0 {
		out = append(out, cell.Run{Role: cell.Crit, Text: cell.Say(" · %s down", cell.Full(down))})
	}
	if short {
		return out
	}
	var active, tokens int
	for _, e := range v.list.Rows() {
		if e.reported == 0 || e.partly() {
			return out // a sum without some of its parts is none
		}
		active, tokens = active+e.active, tokens+e.tokens
	}
	return append(out, cell.Run{Role: cell.Dim, Text: cell.Say(" · %s active, %s tokens", cell.Full(active), cell.Kilo(float64(tokens)))})
}

func (v *View) table(b *cell.Block, f *view.Frame, rows int) {
	g := fit(v.list.Rows(), b.Width())
	g.head(b)
	from, to := v.list.Window(rows)
	v.page = rows
	for i, e := range v.list.Rows()[from:to] {
		g.row(b, f, e, from+i == v.list.Line())
	}
	v.fill(b, f, rows, to-from)
}

// fill says why there is nothing, and pads.
func (v *View) fill(b *cell.Block, f *view.Frame, rows, have int) {
	if have == 0 && rows > 0 {
		b.Begin(cell.Normal)
		b.Gap(3)
		text := cell.Say("no worker matches the filter: %s clears it", f.KeyOf(command.Back))
		if v.list.Total() == 0 {
			text = cell.Lit("no worker has joined yet")
		}
		b.Put(cell.Dim, text)
		have = 1
	}
	b.Blank(max(0, rows-have))
}

// compact paints one short line per worker: name, state, active, tokens, feeds.
func (v *View) compact(b *cell.Block, f *view.Frame, h int) {
	from, to := v.list.Window(h)
	v.page = h
	nameW := max(5, b.Width()-3-9-8-8-7)
	for i, e := range v.list.Rows()[from:to] {
		begin(b, from+i == v.list.Line())
		b.Left(cell.Strong, nameW-1, cell.Fit(e.ID, nameW-1))
		b.Gap(1)
		role, state := e.state(f)
		b.Left(role, 9, state)
		b.Right(figureRole(e), 8, e.activeText())
		b.Right(figureRole(e), 8, e.tokensText())
		b.Gap(2)
		dots(b, e)
	}
	v.fill(b, f, h, to-from)
}

// Status says what is wrong with the worker under the cursor, else what the
// signs of the feeds mean.
func (v *View) Status(f *view.Frame) (left, right []cell.Run) {
	v.update(f)
	e, ok := v.list.Selected()
	switch {
	case f.Form != layout.Full && (v.list.Typing() || v.list.Filtered()):
		return table.FilterLine(v.list), nil
	case !ok:
		return []cell.Run{{Role: cell.Dim, Text: cell.Lit("no worker to look at")}}, nil
	}
	if role, t := e.odd(f); !t.Empty() {
		left = []cell.Run{{Role: role, Text: cell.Say("%s: %s", cell.Fit(e.ID, 24), t)}}
		if f.ScreenW >= 150 {
			right = legend(f.Ink)
		}
		return left, right
	}
	if f.Form != layout.Full {
		return []cell.Run{{Role: cell.Dim, Text: cell.Say("%s workers", cell.Full(len(v.list.Rows())))}}, nil
	}
	return append([]cell.Run{{Role: cell.Dim, Text: cell.Lit("feeds: ")}}, legend(f.Ink)...), nil
}
