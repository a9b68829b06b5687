package decisions

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/layout"
	"adpdeck/tui/table"
	"adpdeck/tui/view"
)

// besideW is the width from which the reasons stand beside the tail.
const besideW = 170

// Draw returns h lines of w cells.
func (v *View) Draw(f *view.Frame, w, h int) []string {
	v.update(f)
	d, ok := v.list.Selected()
	ok = ok && !v.noWhy
	switch {
	case f.Form != layout.Full:
		return v.compact(f, d, ok, w, h)
	case ok && w >= besideW && h >= 30:
		return v.beside(f, d, w, h)
	}
	b := cell.NewBlock(f.Ink, w)
	airy := h >= 30
	v.top(b, f, airy)
	rows, why := h-b.Height()-1, 0
	if ok {
		rows, why = share(rows, airy)
	}
	v.tail(b, f, rows)
	if why > 0 {
		if airy {
			b.Blank(1)
			why--
		}
		v.why(b, f, d, why)
	}
	return b.Lines(h)
}

// share divides rows between the tail and the reasons.
func share(rows int, airy bool) (tail, why int) {
	if airy {
		why = min(max(25, rows*7/10), rows-3)
		return rows - why, why
	}
	why = max(0, min(rows-2, 9+max(0, rows-12)/2))
	return rows - why, why
}

// beside puts the tail left and the reasons right, each as high as the body.
func (v *View) beside(f *view.Frame, d *model.Decision, w, h int) []string {
	leftW := min(100, w*45/100)
	b := cell.NewBlock(f.Ink, leftW)
	v.top(b, f, true)
	v.tail(b, f, h-b.Height()-1)
	left := b.Lines(h)
	bar := cell.NewBlock(f.Ink, 1)
	for range h {
		bar.Begin(cell.Normal)
		bar.Put(cell.RuleLine, cell.Glyph(f.Ink.Glyphs.VLine))
	}
	r := cell.NewBlock(f.Ink, w-leftW-1)
	r.Blank(1)
	v.why(r, f, d, h-1)
	lines := bar.Lines(h)
	for i, l := range r.Lines(h) {
		left[i] += lines[i] + l
	}
	return left
}

// top paints the filter's line, with room around it where there is some.
func (v *View) top(b *cell.Block, f *view.Frame, airy bool) {
	if airy {
		b.Blank(1)
	}
	b.Begin(cell.Normal)
	b.Gap(1)
	right := v.kept(f)
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
	if airy {
		b.Blank(1)
	}
}

// kept says how many decisions are listed, how many of the time between were
// not sent, and whether the cursor follows the newest.
func (v *View) kept(f *view.Frame) cell.Text {
	t := cell.Say("%s kept", cell.Full(v.list.Total()))
	if v.list.Filtered() || v.list.Typing() {
		t = cell.Say("%s of %s kept", cell.Full(len(v.list.Rows())), cell.Full(v.list.Total()))
	}
	if n := len(v.items); n > 0 {
		if all := v.items[0].ID - v.items[n-1].ID + 1; all > uint64(n) {
			t = cell.Say("%s · %s between not sent", t, cell.Full(all-uint64(n)))
		}
	}
	switch {
	case f.Busy:
		return cell.Say("held · %s", t)
	case v.follow:
		return cell.Say("following · %s", t)
	}
	return t
}

// compact paints one short line per decision, and the sentence on the one under
// the cursor below.
func (v *View) compact(f *view.Frame, d *model.Decision, ok bool, w, h int) []string {
	b := cell.NewBlock(f.Ink, w)
	foot := 0
	var lines []cell.Text
	if ok && h >= 6 {
		lines = wrap(v.explained(d).sentence(true), w-2, 3)
		foot = len(lines)
	}
	rows := max(0, h-foot)
	from, to := v.list.Window(rows)
	v.page = rows
	idW := max(6, w-3-9-8-8)
	for i, d := range v.list.Rows()[from:to] {
		begin(b, from+i == v.list.Line())
		b.Left(cell.Dim, 9, cell.Clock(d.At))
		b.Left(cell.Plain, idW-1, convText(d, idW-1))
		b.Gap(1)
		b.Left(cell.Strong, 7, view.PlaceText(d.Target, 7))
		b.Gap(1)
		b.Right(cell.Plain, 7, matchText(d))
	}
	v.fill(b, f, rows, to-from)
	for _, l := range lines {
		b.Begin(cell.Normal)
		b.Gap(1)
		b.Put(cell.Plain, l)
	}
	return b.Lines(h)
}

// Status says what scores are, or what is odd about the decision.
func (v *View) Status(f *view.Frame) (left, right []cell.Run) {
	v.update(f)
	if f.Form != layout.Full && (v.list.Typing() || v.list.Filtered()) {
		return table.FilterLine(v.list), nil
	}
	d, ok := v.list.Selected()
	if !ok {
		return []cell.Run{{Role: cell.Dim, Text: cell.Lit("every routed request is listed here, the newest first")}}, nil
	}
	if why := odd(f, d); why != "" {
		right = []cell.Run{{Role: cell.Warn, Text: cell.Foreign(why)}}
	}
	text := cell.Lit("no score: nothing was compared")
	switch s := v.explained(d); {
	case s.by == byScore || s.by == byLockstep:
		text = cell.Lit("scores are in tokens; lower is better")
	case s.by == byDynamo:
		text = cell.Lit("costs are in KV blocks; lower is better")
	case s.by == byTokens:
		text = cell.Lit("loads are in tokens; the fewest wins")
	case s.by == byCount:
		text = cell.Lit("loads are in requests; the fewest wins")
	case s.by == byTurn:
		text = cell.Lit("ranks take turns; loads are shown, not compared")
	}
	return []cell.Run{{Role: cell.Dim, Text: text}}, right
}
