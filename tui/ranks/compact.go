package ranks

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/table"
	"adpdeck/tui/view"
)

// compact draws one line per rank between a line of figures and a count.
func (v *View) compact(f *view.Frame, w, h int) []string {
	x := gather(f.State)
	b := cell.NewBlock(f.Ink, w)
	short(b, f)
	rows := max(1, h-2)
	v.page = rows
	nameW := 4
	for i := range f.State.Ranks {
		nameW = max(nameW, target(f.State.Ranks[i].Target).Width())
	}
	nameW = min(nameW, max(4, w/4))
	from, to := v.list.Window(rows)
	for i, r := range v.list.Rows()[from:to] {
		compactRow(b, f, &x, r, nameW, from+i == v.list.Line())
	}
	if from == to {
		b.Begin(cell.Normal)
		b.Gap(1)
		b.Put(cell.Dim, nothing(f))
	}
	for b.Height() < h-1 {
		b.Blank(1)
	}
	b.Begin(cell.Normal)
	b.Gap(1)
	b.Put(cell.Dim, cell.Say("%s of %s · %s", cell.Int(to-from), cell.Int(len(f.State.Ranks)), table.OrderText(v.list)))
	return b.Lines(h)
}

func compactRow(b *cell.Block, f *view.Frame, x *facts, r *model.Rank, nameW int, cursor bool) {
	kind := cell.Normal
	if _, isOld := old(f.State, r); isOld || r.Down || !known(r) {
		kind = cell.Stale
	}
	sign := cell.Lit(" ")
	if cursor {
		kind, sign = cell.Cursor, cell.Glyph(f.Ink.Glyphs.CursorMark)
	}
	b.Begin(kind)
	b.Gap(1)
	b.Left(cell.Marked, 2, sign)
	b.Left(cell.Strong, nameW, target(r.Target))
	b.Gap(2)
	b.Bar(max(4, b.Width()-nameW-26), bar(x, r))
	b.Right(cell.Plain, 6, activeOf(r))
	if r.Availability == model.Draining { // how far it has come matters more than what it holds
		b.Right(cell.Warn, 12, view.LeftOn(r).Short())
		return
	}
	b.Right(cell.Plain, 7, count(r, cell.Kilo(float64(r.Tokens))))
	b.Right(cell.Plain, 5, cell.PercentShort(float64(r.Hit)))
}

// short paints the figures in one line: 412/s 183ms 87% 1.38× q8.
func short(b *cell.Block, f *view.Frame) {
	t := &f.State.Totals
	b.Begin(cell.Normal)
	b.Gap(1)
	queued := cell.Unknown()
	if t.RequestsPerSec.Known() || t.Queued > 0 {
		queued = cell.Count(float64(t.Queued))
	}
	b.Put(cell.Plain, cell.Say("%s/s %s %s %s q%s", cell.Count(float64(t.RequestsPerSec)), cell.Ms(float64(t.TTFTMsP50)),
		cell.PercentShort(float64(t.Hit)), cell.Ratio(float64(t.Skew)), queued))
}
