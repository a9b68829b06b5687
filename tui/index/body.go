package index

import (
	"cmp"
	"slices"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/layout"
	"adpdeck/tui/table"
	"adpdeck/tui/view"
)

// Draw returns h lines of w cells.
func (v *View) Draw(f *view.Frame, w, h int) []string {
	v.update(f)
	b := cell.NewBlock(f.Ink, w)
	if !kept(f.State) {
		none(b, f, h)
		return b.Lines(h)
	}
	if f.Form != layout.Full {
		v.compact(b, f, h)
		return b.Lines(h)
	}
	airy := h >= 30
	if airy {
		b.Blank(1)
	}
	v.totals(b, f)
	refused(b, f)
	if airy {
		b.Blank(1)
	}
	e, ok := v.list.Selected()
	room := h - b.Height() - 1
	rows := min(room, max(1, len(v.list.Rows())))
	if ok && !v.noSide {
		rows = max(1, min(rows, room-detailRows(room)))
	}
	v.table(b, f, rows)
	if ok && !v.noSide && h-b.Height() >= 3 {
		end := h - sharedRows(f, b.Width(), h-b.Height())
		v.detail(b, f, e, end)
		if end < h {
			b.Blank(max(0, end-b.Height()))
			shared(b, f, h)
		}
	}
	return b.Lines(h)
}

// detailRows is how many rows of room the detail wants at least.
func detailRows(room int) int {
	switch {
	case room >= 34:
		return 16
	case room >= 24:
		return 12
	case room >= 12:
		return 5
	}
	return 0
}

// none says that there is no index, and what would keep one.
func none(b *cell.Block, f *view.Frame, h int) {
	b.Blank(min(3, h/4))
	mode := f.State.Settings.RouterMode
	say := func(role cell.Role, t cell.Text) {
		for _, l := range cell.Wrap(t, min(b.Width()-6, 96)) {
			b.Begin(cell.Normal)
			b.Gap(3)
			b.Put(role, l)
		}
	}
	if mode == model.ModeKV || mode == model.ModeLockstep {
		say(cell.Plain, cell.Say("Mode %s keeps an index, and the router has reported nothing of it yet.", cell.Foreign(string(mode))))
		return
	}
	say(cell.Plain, cell.Say("The router keeps no index in mode %s: it sends requests to workers without looking into caches.", cell.Foreign(string(mode))))
	b.Blank(1)
	b.Begin(cell.Normal)
	b.Gap(3)
	b.Put(cell.Key, cell.Lit(":set router_mode kv"))
	b.Put(cell.Dim, cell.Say("  stages the mode that keeps one, %s applies it", f.KeyOf(command.Apply)))
}

// totals is the line on the index as a whole, or the filter.
func (v *View) totals(b *cell.Block, f *view.Frame) {
	b.Begin(cell.Normal)
	b.Gap(1)
	if v.list.Typing() || v.list.Filtered() {
		b.Runs(table.FilterLine(v.list)...)
		b.Gap(2)
		b.Put(cell.Dim, cell.Say("%s of %s ranks", cell.Full(len(v.list.Rows())), cell.Full(v.list.Total())))
		return
	}
	b.Put(cell.Title, cell.Lit("PREFIX INDEX"))
	b.Gap(3)
	t := f.State.IndexTotals
	if t == nil {
		b.Put(cell.Dim, cell.Lit("no totals reported"))
		return
	}
	parts := []cell.Text{
		cell.Say("%s blocks", cell.Full(t.Blocks)), bytesText(t.Bytes), cell.Say("%s events/s", cell.Count(float64(t.EventsPerSec))),
		cell.Say("%s held by ranks", cell.Full(t.Owned)), cell.Say("%s evicted to keep a bound", cell.Full(t.Evicted)),
	}
	for i, p := range parts {
		if b.Width()-b.At() < p.Width()+4 {
			break
		}
		if i > 0 {
			b.Put(cell.Dim, cell.Lit(" · "))
		}
		b.Put(cell.Plain, p)
	}
}

// refused is the line on requests that wait in the cluster tier's queue or were
// turned away, where there are any.
func refused(b *cell.Block, f *view.Frame) {
	t := &f.State.Totals
	if t.InQueue == 0 && t.Refused.Sum() == 0 {
		return
	}
	b.Begin(cell.Normal)
	b.Gap(1)
	b.Put(cell.Title, cell.Lit("NOT ROUTED"))
	b.Gap(3)
	role := cell.Plain
	if t.InQueue > 0 {
		role = cell.Warn
	}
	b.Put(role, cell.Say("%s wait in queue", cell.Full(t.InQueue)))
	n := &t.Refused
	if n.Sum() == 0 {
		return
	}
	sum := cell.Say(" · %s refused: ", cell.Full(n.Sum()))
	if b.Width() >= roomy {
		sum = cell.Say(" · %s refused since the start: ", cell.Full(n.Sum()))
	}
	b.Put(cell.Dim, sum)
	kinds := []refusalKind{
		{n.Overloaded, cell.Lit("overloaded")},
		{n.NoEligible, cell.Lit("no eligible rank")},
		{n.QueueFull, cell.Lit("queue full")},
		{n.NoRoom, cell.Lit("no room")},
		{n.LeftQueue, cell.Lit("left the queue")},
		{n.Other, cell.Lit("named none that can be had")},
	}
	slices.SortStableFunc(kinds, func(a, b refusalKind) int { return cmp.Compare(b.n, a.n) })
	for i, k := range kinds {
		text := cell.Say("%s %s", cell.Full(k.n), k.word)
		if k.n == 0 || b.Width()-b.At() < text.Width()+4 {
			return
		}
		if i > 0 {
			b.Put(cell.Dim, cell.Lit(", "))
		}
		b.Put(cell.Plain, text)
	}
}

// refusalKind is how many requests were refused for one reason.
type refusalKind struct {
	n    uint64
	word cell.Text
}

// fill says why there is nothing, and pads.
func (v *View) fill(b *cell.Block, f *view.Frame, rows, have int) {
	if have == 0 && rows > 0 {
		b.Begin(cell.Normal)
		b.Gap(3)
		text := cell.Say("no rank matches the filter: %s clears it", f.KeyOf(command.Back))
		if len(f.State.Index) == 0 {
			text = cell.Lit("no rank has joined the index yet")
		}
		b.Put(cell.Dim, text)
		have = 1
	}
	b.Blank(max(0, rows-have))
}

// compact paints one short line per rank: rank, feed, age, hit, reachable.
func (v *View) compact(b *cell.Block, f *view.Frame, h int) {
	from, to := v.list.Window(h)
	v.page = h
	nameW := max(6, b.Width()-3-8-7-6-7)
	for i, e := range v.list.Rows()[from:to] {
		begin(b, from+i == v.list.Line(), e)
		b.Left(cell.Strong, nameW-1, cell.Fit(e.Target.String(), nameW-1))
		b.Gap(1)
		role, feed := feedOf(e)
		b.Left(role, 8, feed)
		b.Right(cell.Plain, 6, ageText(f.Now, e.EventAt))
		b.Right(cell.Plain, 6, cell.PercentShort(float64(e.Hit)))
		b.Right(cell.Dim, 7, cell.PercentShort(float64(e.Reachable)))
	}
	v.fill(b, f, h, to-from)
}

// Status says what hit and reachable are, and how many findings there are.
func (v *View) Status(f *view.Frame) (left, right []cell.Run) {
	v.update(f)
	if n := len(f.State.Findings); n > 0 {
		text := cell.Say("%s findings", cell.Int(n))
		if n == 1 {
			text = cell.Lit("1 finding")
		}
		right = []cell.Run{{Role: cell.Warn, Text: text}}
	}
	switch {
	case !kept(f.State):
		return []cell.Run{{Role: cell.Dim, Text: cell.Lit("no index is kept")}}, right
	case f.Form != layout.Full && (v.list.Typing() || v.list.Filtered()):
		return table.FilterLine(v.list), nil
	case f.ScreenW >= layout.SideWidth:
		left = []cell.Run{{Role: cell.Dim, Text: cell.Lit("hit = tokens found where the request went; reachable = best over all ranks at that moment")}}
	case f.Form == layout.Full:
		left = []cell.Run{{Role: cell.Dim, Text: cell.Lit("hit: found where it went · reachable: on the best rank")}}
	default:
		left = []cell.Run{{Role: cell.Dim, Text: cell.Say("%s ranks", cell.Full(len(v.list.Rows())))}}
	}
	return left, right
}
