package decisions

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// begin starts a row of a list with the cursor's sign.
func begin(b *cell.Block, cursor bool) {
	kind, sign := cell.Normal, cell.Lit(" ")
	if cursor {
		kind, sign = cell.Cursor, cell.Glyph(b.Ink().Glyphs.CursorMark)
	}
	b.Begin(kind)
	b.Gap(1)
	b.Left(cell.Marked, 2, sign)
}

// columns of the tail at one width.
type tailGrid struct {
	time, conv, prompt, match, gap, to, score, margin, took int
	wide                                                    bool
}

func fitTail(w, to int) tailGrid {
	if w >= 112 {
		return tailGrid{time: 14, conv: 30 - max(8, to) + min(24, max(0, w-120)), prompt: 6, match: 8, gap: 3, to: max(8, to), score: 8, margin: 9, took: 8, wide: true}
	}
	return tailGrid{time: 10, conv: max(8, min(40, 27-max(7, to)+w-80)), prompt: 7, match: 7, gap: 2, to: max(7, to), score: 8}
}

// tail paints the decisions in rows rows below their head.
func (v *View) tail(b *cell.Block, f *view.Frame, rows int) {
	g := fitTail(b.Width(), 1+view.PlaceWidth(f.State, 6, 12))
	b.Begin(cell.Normal)
	b.Gap(3)
	b.Left(cell.Title, g.time, cell.Lit("TIME"))
	b.Left(cell.Title, g.conv, cell.Lit("CONVERSATION"))
	b.Right(cell.Title, g.prompt, cell.Lit("PROMPT"))
	b.Right(cell.Title, g.match, cell.Lit("MATCH"))
	b.Gap(g.gap)
	b.Left(cell.Title, g.to, cell.Lit("WENT TO"))
	b.Right(cell.Title, g.score, cell.Lit("SCORE"))
	b.Right(cell.Title, g.margin, cell.Lit("MARGIN"))
	b.Right(cell.Title, g.took, cell.Lit("TOOK"))
	b.Gap(g.gap)
	b.Put(cell.Title, cell.Lit("WHY"))
	rows = max(0, rows)
	from, to := v.list.Window(rows)
	v.page = rows
	for i, d := range v.list.Rows()[from:to] {
		g.row(b, f, d, from+i == v.list.Line())
	}
	v.fill(b, f, rows, to-from)
}

func (g *tailGrid) row(b *cell.Block, f *view.Frame, d *model.Decision, cursor bool) {
	begin(b, cursor)
	if g.wide {
		b.Left(cell.Dim, g.time, millis(d))
	} else {
		b.Left(cell.Dim, g.time, cell.Clock(d.At))
	}
	b.Left(cell.Plain, g.conv-1, convText(d, g.conv-1))
	b.Gap(1)
	b.Right(cell.Plain, g.prompt, cell.Full(d.Placement.PromptTokens))
	b.Right(cell.Plain, g.match, matchText(d))
	b.Gap(g.gap)
	b.Left(cell.Strong, g.to-1, view.PlaceText(d.Target, g.to-1))
	b.Gap(1)
	b.Right(cell.Plain, g.score, figure(d, scoreOf(d)))
	if g.wide {
		took := cell.Unknown()
		if d.TookNs > 0 {
			took = cell.Ms(float64(d.TookNs) / 1e6)
		}
		b.Right(cell.Dim, g.margin, figure(d, marginOf(d)))
		b.Right(cell.Dim, g.took, took)
	}
	b.Gap(g.gap)
	why, role := shortWhy(d), cell.Plain
	if g.wide {
		why = whyOf(d)
	}
	if odd(f, d) != "" {
		role = cell.Warn
	}
	room := b.Width() - b.At() - 1
	b.Left(role, room, cell.Fit(why, room))
}

// fill says why there is nothing, and pads.
func (v *View) fill(b *cell.Block, f *view.Frame, rows, have int) {
	if have == 0 && rows > 0 {
		b.Begin(cell.Normal)
		b.Gap(3)
		text := cell.Say("no decision matches the filter: %s clears it", f.KeyOf(command.Back))
		if len(f.Decisions) == 0 {
			text = cell.Lit("no request has been routed yet")
		}
		b.Put(cell.Dim, text)
		have = 1
	}
	b.Blank(max(0, rows-have))
}

func convText(d *model.Decision, w int) cell.Text {
	if d.Conv.Keyless() {
		return cell.Unknown()
	}
	return cell.Fit(d.Conv.ID, w)
}

func matchText(d *model.Decision) cell.Text {
	if n, ok := predicted(d); ok {
		return cell.Full(int(n))
	}
	return cell.Unknown()
}

// millis is the time of day with milliseconds.
func millis(d *model.Decision) cell.Text {
	if d.At.IsZero() {
		return cell.Unknown()
	}
	return cell.Foreign(d.At.Format("15:04:05.000"))
}

// figure writes a score, cost or margin of d: blocks with a decimal.
func figure(d *model.Decision, v float64) cell.Text {
	if compared(d.Selection) && d.Selection.Mode != model.ModeLockstep {
		return tenths(v)
	}
	return amount(v)
}
