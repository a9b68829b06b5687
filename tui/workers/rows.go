package workers

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/layout"
	"adpdeck/tui/view"
)

// column names a column of the table.
type column uint8

const (
	colMark column = iota
	colWorker
	colEngine
	colState
	colRanks
	colActive
	colTokens
	colTTFT
	colFeeds
	colHonoured
	colRestarts
	colNote
	numColumns
)

// grid is the table's columns at one width.
type grid struct{ widths [numColumns]int }

// roomy is the width from which there are more columns.
const roomy = 100

func fit(rows []*entry, w int) grid {
	nameW, engineW := 6, 6
	for _, e := range rows {
		nameW = max(nameW, min(len(e.ID), 32))
		engineW = max(engineW, min(len(e.Engine), 16))
	}
	cols := make([]layout.Column, numColumns)
	set := func(c column, width, priority int) { cols[c] = layout.Column{Width: width, Priority: priority} }
	set(colMark, 3, 100)
	set(colWorker, min(nameW, max(6, w/7))+2, 99)
	set(colEngine, min(engineW, max(6, w/9))+2, 60)
	set(colState, 12, 96)
	set(colRanks, 7, 90)
	set(colActive, 9, 85)
	set(colTokens, 9, 70)
	set(colTTFT, 15, 50)
	set(colFeeds, 8, 95)
	if w >= roomy {
		set(colHonoured, 10, 40)
		set(colRestarts, 10, 20)
	}
	// The note is last and the first to go; the rest of the row is its.
	cols[colNote] = layout.Column{Width: 14, Priority: 10, Grow: 1}
	widths, _ := layout.Columns(w, cols)
	g := grid{}
	copy(g.widths[:], widths)
	return g
}

func headOf(c column) cell.Text {
	return [numColumns]cell.Text{
		colWorker: cell.Lit("WORKER"), colEngine: cell.Lit("ENGINE"), colState: cell.Lit("STATE"), colRanks: cell.Lit("RANKS"),
		colActive: cell.Lit("ACTIVE"), colTokens: cell.Lit("TOKENS"), colTTFT: cell.Lit("TTFT p50/p99"), colFeeds: cell.Lit("   FEEDS"),
		colHonoured: cell.Lit("HONOURED"), colRestarts: cell.Lit("RESTARTS"), colNote: cell.Lit("   NOTE"),
	}[c]
}

func leftAligned(c column) bool { return c <= colState || c == colFeeds || c == colNote }

func (g *grid) head(b *cell.Block) {
	b.Begin(cell.Normal)
	b.Gap(g.widths[colMark])
	for c := colWorker; c < numColumns; c++ {
		if leftAligned(c) {
			b.Left(cell.Title, g.widths[c], headOf(c))
		} else {
			b.Right(cell.Title, g.widths[c], headOf(c))
		}
	}
}

// begin starts a worker's row with the cursor's sign.
func begin(b *cell.Block, cursor bool) {
	kind, sign := cell.Normal, cell.Lit(" ")
	if cursor {
		kind, sign = cell.Cursor, cell.Glyph(b.Ink().Glyphs.CursorMark)
	}
	b.Begin(kind)
	b.Gap(1)
	b.Left(cell.Marked, 2, sign)
}

func (g *grid) row(b *cell.Block, f *view.Frame, e *entry, cursor bool) {
	begin(b, cursor)
	g.text(b, colWorker, cell.Strong, cell.Fit(e.ID, g.widths[colWorker]))
	g.text(b, colEngine, cell.Plain, cell.Fit(e.Engine, g.widths[colEngine]))
	role, state := e.state(f)
	g.text(b, colState, role, state)
	b.Right(readyRole(e), g.widths[colRanks], cell.Say("%s/%s", cell.Int(e.ready), cell.Int(max(e.Ranks, len(e.ranks)))))
	b.Right(figureRole(e), g.widths[colActive], e.activeText())
	b.Right(figureRole(e), g.widths[colTokens], e.tokensText())
	b.Right(figureRole(e), g.widths[colTTFT], ttft(e))
	if g.widths[colFeeds] > 0 {
		b.Gap(3)
		dots(b, e)
	}
	honoured, restarts := cell.PercentShort(e.honouredShare()), cell.Full(e.Restarts)
	if e.simulated() || e.Steering.EnginePicks() && e.honoured+e.ignored == 0 {
		honoured = cell.Text{}
	}
	if e.simulated() {
		restarts = cell.Text{}
	}
	b.Right(ignoredRole(e), g.widths[colHonoured], honoured)
	b.Right(restartRole(e), g.widths[colRestarts], restarts)
	role, note := e.odd(f)
	b.Gap(min(3, g.widths[colNote]))
	b.Left(role, g.widths[colNote]-4, note)
}

// text paints into a column whose last cell stays blank.
func (g *grid) text(b *cell.Block, c column, role cell.Role, t cell.Text) {
	if w := g.widths[c]; w > 0 {
		b.Left(role, w-1, t)
		b.Gap(1)
	}
}

// ttft is 181 ms 1.2 s; blank where a simulation measures none.
func ttft(e *entry) cell.Text {
	p50, p99 := measured(e.TTFTMsP50), measured(e.TTFTMsP99)
	if p50 != p50 && p99 != p99 {
		if e.simulated() {
			return cell.Text{}
		}
		return cell.Unknown()
	}
	return cell.Say("%s %s", cell.Ms(p50), cell.Ms(p99))
}

// dots paints the three feeds; what a worker does not have stays blank.
func dots(b *cell.Block, e *entry) {
	for i, name := range feedNames() {
		if i > 0 {
			b.Gap(1)
		}
		if x := e.feed(name); x != nil {
			role, sign := dot(b.Ink(), x.State)
			b.Left(role, 1, sign)
		} else {
			b.Gap(1)
		}
	}
}

// figureRole dims the figures of a worker that does not answer: they are old.
func figureRole(e *entry) cell.Role {
	if e.Liveness == model.LiveDown {
		return cell.Dim
	}
	return cell.Plain
}

func readyRole(e *entry) cell.Role {
	if e.ready < max(e.Ranks, len(e.ranks)) {
		return cell.Warn
	}
	return cell.Plain
}

func ignoredRole(e *entry) cell.Role {
	if e.ignored > 0 {
		return cell.Warn
	}
	return cell.Dim
}

func restartRole(e *entry) cell.Role {
	if e.Restarts > 0 {
		return cell.Warn
	}
	return cell.Dim
}
