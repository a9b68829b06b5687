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
	var out []string
	for i := from; i < to; i++ {
		each := (h - len(out)) / (to - i)
		out = append(out, v.pair(f, rows, 2*i, w, each)...)
	}
	return append(out, cell.NewBlock(f.Ink, w).Lines(h-len(out))...)
}

// pair draws the open workers i and i+1 in h rows.
func (v *View) pair(f *view.Frame, rows []*entry, i, w, h int) []string {
	left := v.one(f, rows, i, w/2, h)
	for j, l := range v.one(f, rows, i+1, w-w/2, h) {
		left[j] += l
	}
	return left
}

func (v *View) one(f *view.Frame, rows []*entry, i, w, h int) []string {
	b := cell.NewBlock(f.Ink, w)
	if i < len(rows) {
		b.Blank(1)
		p := painter{b: b, f: f, e: rows[i], end: h, airy: h >= 20}
		p.all(i == v.list.Line())
	}
	return b.Lines(h)
}
