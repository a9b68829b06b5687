package index

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
	colRank
	colFeed
	colSeq
	colAge
	colGaps
	colBlocks
	colBar
	colTiers
	colMemory
	colHit
	colReach
	colAgreed
	colNote
	numColumns
)

// grid is the table's columns at one width.
type grid struct{ widths [numColumns]int }

// roomy is the width from which titles are spelled out.
const roomy = 100

func fit(s *model.State, w int) grid {
	nameW := 4
	for i := range s.Index {
		nameW = max(nameW, cell.Foreign(s.Index[i].Target.String()).Width())
	}
	nameW = min(nameW, max(4, w/6))
	cols := make([]layout.Column, numColumns)
	set := func(c column, width, priority int) { cols[c] = layout.Column{Width: width, Priority: priority} }
	set(colMark, 3, 100)
	set(colRank, max(7, nameW+1), 100)
	set(colFeed, 8, 95)
	set(colAge, 6, 90)
	set(colGaps, 6, 70)
	set(colBlocks, 8, 85)
	set(colHit, 6, 88)
	set(colReach, 7, 87)
	set(colAgreed, 8, 60)
	if w >= roomy {
		set(colBlocks, 9, 85)
		set(colHit, 7, 88)
		set(colReach, 11, 87)
		set(colAgreed, 9, 60)
		set(colSeq, 10, 30)
		set(colBar, 14, 20)
		cols[colBar].Grow, cols[colBar].Most = 1, 14
	}
	if w >= 150 {
		set(colTiers, 18, 15)
		set(colMemory, 10, 14)
	}
	// The note is last and the first to go; the rest of the row is its.
	cols[colNote] = layout.Column{Width: 12, Priority: 10, Grow: 4}
	widths, _ := layout.Columns(w, cols)
	g := grid{}
	copy(g.widths[:], widths)
	return g
}

func headOf(c column, short bool) cell.Text {
	if short && c == colReach {
		return cell.Lit("REACH")
	}
	return [numColumns]cell.Text{
		colRank: cell.Lit("RANK"), colFeed: cell.Lit("FEED"), colSeq: cell.Lit("SEQ"), colAge: cell.Lit("AGE"), colGaps: cell.Lit("GAPS"),
		colBlocks: cell.Lit("BLOCKS"), colBar: cell.Lit("   OF CAP"), colTiers: cell.Lit("HOST    DISK"), colMemory: cell.Lit("MEMORY"),
		colHit: cell.Lit("HIT"), colReach: cell.Lit("REACHABLE"), colAgreed: cell.Lit("AGREED"), colNote: cell.Lit("   NOTE"),
	}[c]
}

func leftAligned(c column) bool { return c == colRank || c == colFeed || c == colBar || c == colNote }

func (v *View) table(b *cell.Block, f *view.Frame, rows int) {
	g := fit(f.State, b.Width())
	b.Begin(cell.Normal)
	b.Gap(g.widths[colMark])
	for c := colRank; c < numColumns; c++ {
		if leftAligned(c) {
			b.Left(cell.Title, g.widths[c], headOf(c, false))
		} else {
			b.Right(cell.Title, g.widths[c], headOf(c, b.Width() < roomy))
		}
	}
	from, to := v.list.Window(rows)
	v.page = rows
	for i, e := range v.list.Rows()[from:to] {
		g.row(b, f, e, from+i == v.list.Line())
	}
	v.fill(b, f, rows, to-from)
}

// begin starts a rank's row with the cursor's sign; what is not known first
// hand is dimmed.
func begin(b *cell.Block, cursor bool, e *entry) {
	kind, sign := cell.Normal, cell.Lit(" ")
	if e.Feed == model.FeedNone || e.Feed == model.FeedSilent {
		kind = cell.Stale
	}
	if cursor {
		kind, sign = cell.Cursor, cell.Glyph(b.Ink().Glyphs.CursorMark)
	}
	b.Begin(kind)
	b.Gap(1)
	b.Left(cell.Marked, 2, sign)
}

func (g *grid) row(b *cell.Block, f *view.Frame, e *entry, cursor bool) {
	begin(b, cursor, e)
	b.Left(cell.Strong, g.widths[colRank]-1, cell.Fit(e.Target.String(), g.widths[colRank]-1))
	b.Gap(1)
	role, feed := feedOf(e)
	b.Left(role, g.widths[colFeed], feed)
	seq := cell.Unknown()
	if !e.EventAt.IsZero() {
		seq = cell.Full(e.Seq)
	}
	b.Right(cell.Dim, g.widths[colSeq], seq)
	b.Right(cell.Plain, g.widths[colAge], ageText(f.Now, e.EventAt))
	b.Right(warnAbove(e.Gaps), g.widths[colGaps], cell.Full(e.Gaps))
	b.Right(cell.Plain, g.widths[colBlocks], blocksOf(e))
	g.bar(b, e)
	if w := g.widths[colTiers]; w > 0 {
		b.Right(cell.Dim, w-8, cell.Full(e.Host))
		b.Right(cell.Dim, 8, cell.Full(e.Disk))
	}
	b.Right(cell.Dim, g.widths[colMemory], bytesText(e.Bytes))
	b.Right(cell.Plain, g.widths[colHit], cell.PercentShort(float64(e.Hit)))
	b.Right(cell.Plain, g.widths[colReach], cell.PercentShort(float64(e.Reachable)))
	b.Right(agreedRole(e), g.widths[colAgreed], agreedText(e))
	role, text := note(e)
	b.Gap(min(3, g.widths[colNote]))
	b.Left(role, g.widths[colNote]-4, text)
}

func warnAbove(n uint64) cell.Role {
	if n > 0 {
		return cell.Warn
	}
	return cell.Dim
}

// blocksOf is what the rank holds on the device, the only tier that routing is
// mostly about; unknown for one that says nothing.
func blocksOf(e *entry) cell.Text {
	if e.Feed == model.FeedNone {
		return cell.Unknown()
	}
	return cell.Full(e.Device)
}

// agreedText shows how often a match was as predicted, with a decimal where it
// is not all.
func agreedText(e *entry) cell.Text {
	if v := float64(e.Agreed); v < 1 && v > 0.985 {
		return cell.Percent(v)
	}
	return cell.PercentShort(float64(e.Agreed))
}

func agreedRole(e *entry) cell.Role {
	if e.Agreed.Known() && e.Agreed < 0.99 {
		return cell.Warn
	}
	return cell.Plain
}

// bar paints device blocks of the rank's cache.
func (g *grid) bar(b *cell.Block, e *entry) {
	w := g.widths[colBar]
	if w == 0 {
		return
	}
	b.Gap(3)
	most := e.capacity()
	if most <= 0 {
		b.Left(cell.Dim, w-3, cell.Unknown())
		return
	}
	b.Bar(w-3, cell.Bar{Value: float64(e.Device), Max: float64(most), Tick: -1, Role: cell.BarFill})
}

// capacity is how many blocks fit on the rank's device: as its engine reports
// them, or as they are declared for the worker; 0 is not known.
func (e *entry) capacity() int {
	switch {
	case e.rank != nil && e.rank.KVTotalBlocks > 0:
		return e.rank.KVTotalBlocks
	case e.worker != nil:
		return e.worker.KVBlocks
	}
	return 0
}

// picked reports that the rank's engine picks it itself.
func (e *entry) picked() bool { return e.worker != nil && e.worker.Steering.EnginePicks() }
