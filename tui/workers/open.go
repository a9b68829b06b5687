package workers

import (
	"adpdeck/tui/cell"
	"adpdeck/tui/layout"
	"adpdeck/tui/view"
)

// leastOpen is the height of an open worker: below it parts of what matters are
// left out.
const leastOpen = 13

// open draws every worker, or as many as there is room for around the cursor,
// open at once: two beside each other, in h rows.
func (v *View) open(f *view.Frame, w, h int) []string {
	rows := v.list.Rows()
	lines := (len(rows) + 1) / 2
	shown := max(1, min(lines, h/leastOpen))
	from, to := layout.Window(lines, shown, v.list.Line()/2, v.topRow)
	v.topRow = from
	left := v.column(f, rows, 2*from, 2*to, w/2, h)
	for i, l := range v.column(f, rows, 2*from+1, 2*to, w-w/2, h) {
		left[i] += l
	}
	return left
}

// column draws every second worker from one on, below each other in h rows.
func (v *View) column(f *view.Frame, rows []*entry, from, to, w, h int) []string {
	b := cell.NewBlock(f.Ink, w)
	for i := from; i < min(to, len(rows)); i += 2 {
		each := (h - b.Height()) / ((to - i + 1) / 2)
		end := b.Height() + each
		b.Blank(1)
		p := painter{b: b, f: f, e: rows[i], end: end, airy: each >= 20}
		p.all(i == v.list.Line())
		b.Blank(end - b.Height())
	}
	return b.Lines(h)
}
