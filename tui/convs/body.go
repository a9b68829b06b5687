package convs

import (
	"time"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/dialog"
	"adpdeck/tui/layout"
	"adpdeck/tui/table"
	"adpdeck/tui/view"
)

// detailRows is the height of the detail below the list, its rule included.
const detailRows = 18

// plan says how many rows each part of the body gets.
type plan struct {
	airy   bool // blank rows above and below the filter's line
	under  bool // one blank row below the filter's line
	rows   int
	bar    int // rows of the bar of marks: 3, or 1 where rows are few
	detail int
}

func (v *View) divide(f *view.Frame, h int) plan {
	p := plan{airy: h >= 30, under: h >= 14}
	left := h - 2 // filter and head
	if p.under {
		left--
	}
	if p.airy {
		left--
	}
	if v.list.Marks() > 0 {
		p.bar = 1
		if h >= 14 {
			p.bar = 3
		}
		left -= p.bar
	}
	if _, ok := v.list.Selected(); ok && h >= 30 && !v.noDetail {
		p.detail = detailRows
		left -= p.detail
	}
	p.rows = max(0, left)
	return p
}

// Draw returns h lines of w cells.
func (v *View) Draw(f *view.Frame, w, h int) []string {
	v.update(f)
	b := cell.NewBlock(f.Ink, w)
	c, ok := v.list.Selected()
	if v.detail && ok {
		v.drawDetail(b, f, c, h)
		return b.Lines(h)
	}
	p := v.divide(f, h)
	if p.airy {
		b.Blank(1)
	}
	v.filterLine(b, f)
	if p.under {
		b.Blank(1)
	}
	if f.Form == layout.Full {
		v.table(b, f, w, p.rows)
	} else {
		v.compact(b, f, w, p.rows+1)
	}
	if p.detail > 0 {
		v.drawDetail(b, f, c, p.detail)
	}
	if p.bar > 0 {
		v.bar(b, f, p.bar)
	}
	return b.Lines(h)
}

// filterLine paints the filter, how many pass, the order and whether it is
// held.
func (v *View) filterLine(b *cell.Block, f *view.Frame) {
	b.Begin(cell.Normal)
	b.Gap(1)
	right := cell.Say("%s of %s · %s", cell.Full(len(v.list.Rows())), cell.Full(v.list.Total()), table.OrderText(v.list))
	if !v.list.Filtered() && !v.list.Typing() {
		right = cell.Say("%s conversations · %s", cell.Full(v.list.Total()), table.OrderText(v.list))
	}
	switch {
	case v.list.Marks() > 0:
		right = cell.Say("%s · order held while marked", right)
	case v.list.Held():
		right = cell.Say("%s · order held", right)
	}
	if n := f.State.Totals.Convs; n > len(f.State.Convs) {
		right = cell.Say("%s · newest of %s", right, cell.Full(n))
	}
	if _, err := v.list.FilterText(); err != nil {
		right = cell.Text{} // what is wrong needs the room
	}
	at := b.Width() - right.Width() - 1
	for _, r := range table.FilterLine(v.list) {
		b.Left(r.Role, min(r.Text.Width(), max(8, at-b.At()-1)), r.Text)
	}
	if at > b.At() {
		b.To(at)
	} else {
		b.Gap(2)
	}
	b.Put(cell.Dim, right)
}

func (v *View) table(b *cell.Block, f *view.Frame, w, rows int) {
	g := fit(f.State, v.names, w, v.more)
	v.hidden = g.hidden
	g.head(b)
	from, to := v.list.Window(rows)
	v.page = rows
	for i, c := range v.list.Rows()[from:to] {
		g.row(b, f, c, from+i == v.list.Line(), v.list.Marked(c.Key))
	}
	v.fill(b, f, rows, to-from)
}

// fill says why there is nothing, and pads.
func (v *View) fill(b *cell.Block, f *view.Frame, rows, have int) {
	if have == 0 && rows > 0 {
		b.Begin(cell.Normal)
		b.Gap(3)
		switch {
		case len(f.State.Convs) == 0:
			b.Put(cell.Dim, cell.Lit("no conversation yet"))
		default:
			b.Put(cell.Dim, cell.Say("no conversation matches the filter: %s clears it", f.KeyOf(command.Back)))
		}
		have = 1
	}
	b.Blank(max(0, rows-have))
}

// compact paints one short line per conversation: id, rank, cached, hit, idle.
func (v *View) compact(b *cell.Block, f *view.Frame, w, rows int) {
	from, to := v.list.Window(rows)
	v.page = rows
	idW := max(6, w-3-26)
	for i, c := range v.list.Rows()[from:to] {
		cursor := from+i == v.list.Line()
		kind := cell.Normal
		if cursor {
			kind = cell.Cursor
		}
		b.Begin(kind)
		signs(b, cursor, v.list.Marked(c.Key))
		b.Left(cell.Strong, idW, cell.Fit(c.Key.ID, idW))
		b.Gap(1)
		role, _ := pinOf(c)
		b.Left(role, 6, cell.Fit(dialog.Where(c).String(), 6))
		b.Right(cell.Plain, 7, cachedOf(c))
		b.Right(cell.Plain, 6, cell.PercentShort(hitOf(c)))
		b.Right(cell.Dim, 5, idleOf(f, c))
	}
	v.fill(b, f, rows, to-from)
}

// bar sums up what is marked and names what can be done with it.
func (v *View) bar(b *cell.Block, f *view.Frame, h int) {
	if h > 1 {
		b.Begin(cell.Normal)
		b.Gap(1)
		b.Rule(b.Width()-2, cell.Text{})
	}
	b.Begin(cell.Normal)
	b.Gap(1)
	marked := v.list.MarkedItems()
	b.Put(cell.Marked, cell.Say("%s marked", cell.Full(len(marked))))
	b.Put(cell.Plain, sums(f, marked))
	if h < 3 {
		return
	}
	b.Begin(cell.Normal)
	b.Gap(1)
	for _, k := range [...]struct{ key, word cell.Text }{
		{f.KeyOf(command.Migrate), cell.Lit(" migrate…   ")},
		{f.KeyOf(command.Evict), cell.Lit(" evict…   ")},
		{f.KeyOf(command.Pin), cell.Lit(" pin…   ")},
		{f.KeyOf(command.Copy), cell.Lit(" copy ids   ")},
		{f.KeyOf(command.Export), cell.Lit(" export   ")},
		{f.KeyOf(command.MarkAll), cell.Say(" all %s   ", cell.Full(len(v.list.Rows())))},
		{f.KeyOf(command.Back), cell.Lit(" clear")},
	} {
		b.Put(cell.Key, k.key)
		b.Put(cell.Dim, k.word)
	}
}

// sums is · 10.2k tokens cached on w0/3 · all idle > 5 min.
func sums(f *view.Frame, marked []*model.Conv) cell.Text {
	cached, busy := 0, 0
	least := time.Duration(1<<63 - 1)
	where := map[model.Target]bool{}
	for _, c := range marked {
		cached += c.CachedTokens
		where[dialog.Where(c)] = true
		if c.Open > 0 {
			busy++
		}
		least = min(least, f.Now.Sub(c.LastAt))
	}
	on := cell.Say("%s ranks", cell.Int(len(where)))
	if len(where) == 1 {
		on = cell.Foreign(dialog.Where(marked[0]).String())
	}
	t := cell.Say(" · %s tokens cached on %s", cell.Kilo(float64(cached)), on)
	switch {
	case busy > 0:
		return cell.Say("%s · %s busy", t, cell.Full(busy))
	case least >= time.Minute:
		return cell.Say("%s · all idle > %s min", t, cell.Int(int(max(1, (least-1)/time.Minute))))
	}
	return t
}

// Status says what is odd about the conversation under the cursor, or how many
// there are.
func (v *View) Status(f *view.Frame) (left, right []cell.Run) {
	v.update(f)
	c, ok := v.list.Selected()
	var toGo view.Left
	drains := false
	if ok {
		toGo, drains = draining(f.State, dialog.Where(c))
	}
	switch {
	case ok && isLost(c):
		return []cell.Run{{Role: cell.Warn, Text: cell.Say("lost: the engine answered from %s although %s was asked for", cell.Foreign(c.Last.String()), cell.Foreign(c.Bound.String()))}}, nil
	case drains:
		left = []cell.Run{{Role: cell.Warn, Text: cell.Say("%s %s", cell.Fit(dialog.Where(c).String(), 24), toGo.Sentence())}}
	case ok && c.Pin == model.PinOperator:
		left = []cell.Run{{Role: cell.Plain, Text: cell.Say("pinned to %s by %s; operator pins are counted apart (%s of %s)",
			cell.Foreign(c.Bound.String()), cell.Fit(c.By, 20), cell.Full(f.State.Totals.OperatorPins), cell.Full(model.MaxOperatorPins))}}
	case f.Form != layout.Full:
		left = []cell.Run{{Role: cell.Plain, Text: cell.Say("%s shown · %s by hand", cell.Full(len(v.list.Rows())), cell.Full(f.State.Totals.OperatorPins))}}
	default:
		left = []cell.Run{{Role: cell.Plain, Text: cell.Say("%s conversations · %s bound · %s pinned by hand", cell.Full(f.State.Totals.Convs),
			cell.Full(f.State.Totals.Pins), cell.Full(f.State.Totals.OperatorPins))}}
	}
	if v.hidden > 0 && f.ScreenW < 79 && f.Form == layout.Full {
		left = append(left, cell.Run{Role: cell.Dim, Text: cell.Say(" · +%s columns: %s", cell.Int(v.hidden), f.KeyOf(command.Columns))})
	}
	return left, nil
}
