package events

import (
	"time"

	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/layout"
	"adpdeck/tui/view"
)

// column names a column of the table.
type column uint8

const (
	colMark column = iota
	colTime
	colWho
	colKind
	colWhat
	colVersion
	colUndo
	numColumns
)

// grid is the table's columns at one width.
type grid struct{ widths [numColumns]int }

// roomy is the width from which names have room and undo has a column.
const roomy = 95

// fit divides w cells; tail says that the list is one of two, where the kind
// of the operators' is plain.
func fit(rows []*entry, w int, tail bool) grid {
	whoW := 5
	for _, e := range rows {
		whoW = max(whoW, min(len(e.Who), 24))
	}
	most := 9
	if w >= roomy {
		most = 17
	}
	cols := make([]layout.Column, numColumns)
	set := func(c column, width, priority int) { cols[c] = layout.Column{Width: width, Priority: priority} }
	set(colMark, 3, 100)
	set(colTime, 10, 95)
	set(colWho, min(most, whoW+2), 90)
	if !tail {
		set(colKind, 10, 40)
	}
	cols[colWhat] = layout.Column{Width: 20, Priority: 99, Grow: 1}
	set(colVersion, 8, 60)
	if w >= roomy {
		set(colUndo, 14, 30)
	}
	widths, _ := layout.Columns(w, cols)
	g := grid{}
	copy(g.widths[:], widths)
	return g
}

// head paints the titles; title stands in place of WHAT where it is not empty.
func (g *grid) head(b *cell.Block, title cell.Text) {
	b.Begin(cell.Normal)
	g.heads(b, title)
}

func (g *grid) heads(b *cell.Block, title cell.Text) {
	if title.Empty() {
		title = cell.Lit("WHAT")
	}
	b.Gap(g.widths[colMark])
	b.Left(cell.Title, g.widths[colTime], cell.Lit("TIME"))
	b.Left(cell.Title, g.widths[colWho], cell.Lit("WHO"))
	b.Left(cell.Title, g.widths[colKind], cell.Lit("KIND"))
	b.Left(cell.Title, g.widths[colWhat], title)
	b.Left(cell.Title, g.widths[colVersion], cell.Lit("VERSION"))
	b.Left(cell.Title, g.widths[colUndo], cell.Lit("  UNDO"))
}

// signs paints the cursor and the level into the first three cells.
func signs(b *cell.Block, e *entry, cursor bool) {
	role, sign := e.sign(b.Ink())
	b.Gap(1)
	if !cursor {
		b.Left(role, 2, sign)
		return
	}
	b.Put(cell.Marked, cell.Glyph(b.Ink().Glyphs.CursorMark))
	b.Left(role, 1, sign)
}

func whoRole(e *entry) cell.Role {
	if e.machine() {
		return cell.Dim
	}
	return cell.Strong
}

func whatRole(e *entry) cell.Role {
	switch {
	case e.Level == "error":
		return cell.Crit
	case e.odd():
		return cell.Warn
	case e.rev != nil && e.rev.UndoneBy != 0:
		return cell.Dim
	}
	return cell.Plain
}

// when is the time of day, and of what is more than a day old its age.
func when(now, at time.Time) cell.Text {
	if d := now.Sub(at); d >= 24*time.Hour && !at.IsZero() {
		return cell.Say("%s ago", cell.Age(d))
	}
	return cell.Clock(at)
}

// row paints one event into a row that is begun.
func (g *grid) row(b *cell.Block, f *view.Frame, e *entry, cursor bool) {
	signs(b, e, cursor)
	b.Left(cell.Dim, g.widths[colTime], when(f.Now, e.At))
	g.text(b, colWho, whoRole(e), cell.Fit(e.Who, g.widths[colWho]))
	g.text(b, colKind, cell.Dim, cell.Fit(e.kind, g.widths[colKind]))
	g.text(b, colWhat, whatRole(e), cell.Fit(e.What, g.widths[colWhat]))
	version := cell.Text{}
	if e.Version != 0 {
		version = cell.Say("v%s", cell.Int(e.Version))
	}
	b.Left(cell.Dim, g.widths[colVersion], version)
	if w := g.widths[colUndo]; w > 2 {
		role, _, short := e.undo(f.KeyOf(command.Undo))
		b.Gap(2)
		b.Left(role, w-2, short)
	}
}

// text paints into a column whose last cell stays blank.
func (g *grid) text(b *cell.Block, c column, role cell.Role, t cell.Text) {
	if w := g.widths[c]; w > 0 {
		b.Left(role, w-1, t)
		b.Gap(1)
	}
}
