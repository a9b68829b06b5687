package ranks

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
	colState
	colWeight
	colLoad
	colActive
	colQueue
	colTokens
	colKV
	colHit
	colReach
	colPins
	colTrend
	numColumns
)

// trendCells is the width of the small chart, three seconds a cell.
const trendCells = 10

// grid is the table's columns at one width.
type grid struct {
	widths [numColumns]int
	hidden int
}

// fit divides w cells among the columns. Widths hold the gap before a column;
// those of figures are aligned right, so the gap is what they leave.
func fit(s *model.State, w int, more bool) grid {
	nameW := 4
	for i := range s.Ranks {
		nameW = max(nameW, target(s.Ranks[i].Target).Width())
	}
	nameW = min(nameW, max(4, w/5))
	stateW := stateWidth(s)
	cols := make([]layout.Column, numColumns)
	set := func(c column, width, priority int) { cols[c] = layout.Column{Width: width, Priority: priority} }
	set(colMark, 3, 100)
	set(colRank, nameW, 100)
	set(colState, stateW, 60)
	set(colLoad, max(9, 18-(nameW-4)-(stateW-leastState)), 90)
	set(colActive, 8, 80)
	set(colQueue, 4, 55)
	set(colTokens, 8, 85)
	set(colHit, 6, 70)
	set(colPins, 6, 40)
	set(colTrend, 2+trendCells, 20)
	cols[colLoad].Grow, cols[colLoad].Most = 1, 18-(stateW-leastState)
	if w >= 100 {
		more = true
	}
	if more {
		set(colWeight, 8, 16)
		set(colKV, 7, 15)
		set(colReach, 8, 14)
	}
	if w >= 130 {
		cols[colLoad].Most = 25
		cols[colTrend].Grow, cols[colTrend].Most = 1, 2+36
	}
	widths, hidden := layout.Columns(w, cols)
	g := grid{hidden: hidden}
	copy(g.widths[:], widths)
	if !more {
		g.hidden += 3
	}
	return g
}

// Widths of the states with the gap before them: where a rank drains there is
// room for how far it has come, without a jump each time that a digit goes.
const (
	leastState = 10
	drainState = 12
	longState  = 13
)

func stateWidth(s *model.State) int {
	w := leastState
	for i := range s.Ranks {
		if r := &s.Ranks[i]; r.Availability == model.Draining {
			w = max(w, drainState)
			if l := view.LeftOn(r); l.Open+l.Pins >= 1000 {
				w = longState
			}
		}
	}
	return w
}

func headOf(c column) cell.Text {
	return [numColumns]cell.Text{
		colRank: cell.Lit("RANK"), colState: cell.Lit("   STATE"), colWeight: cell.Lit("WEIGHT"), colLoad: cell.Lit(" LOAD"),
		colActive: cell.Lit("ACTIVE"), colQueue: cell.Lit("Q"), colTokens: cell.Lit("TOKENS"), colKV: cell.Lit("KV"),
		colHit: cell.Lit("HIT"), colReach: cell.Lit("REACH"), colPins: cell.Lit("PINS"),
	}[c]
}

// leftAligned reports whether a column's text stands at its left edge.
func leftAligned(c column) bool {
	return c == colRank || c == colState || c == colLoad
}

func (g *grid) head(b *cell.Block, f *view.Frame) {
	b.Begin(cell.Normal)
	b.Gap(g.widths[colMark])
	for c := colRank; c < colTrend; c++ {
		if leftAligned(c) {
			b.Left(cell.Title, g.widths[c], headOf(c))
		} else {
			b.Right(cell.Title, g.widths[c], headOf(c))
		}
	}
	cells := g.widths[colTrend] - 2
	span := cell.Lasting(f.Trends.Span(3 * cells))
	title := cell.Say("  %s", span)
	if cells > 20 {
		title = cell.Say("  TOKENS, LAST %s", span)
	}
	b.Left(cell.Title, g.widths[colTrend], title)
}

// row paints one rank.
func (g *grid) row(b *cell.Block, f *view.Frame, x *facts, r *model.Rank, cursor bool) {
	kind := cell.Normal
	if _, isOld := old(f.State, r); isOld || r.Down || !known(r) {
		kind = cell.Stale
	}
	if cursor {
		kind = cell.Cursor
	}
	b.Begin(kind)
	g.mark(b, cursor)
	b.Left(cell.Strong, g.widths[colRank], target(r.Target))
	role, state := stateOf(f, r)
	b.Gap(min(3, g.widths[colState]))
	b.Left(role, g.widths[colState]-3, state)
	b.Right(weightRole(r), g.widths[colWeight], cell.Fixed(r.Weight, 2))
	g.load(b, x, r)
	b.Right(cell.Plain, g.widths[colActive], activeOf(r))
	b.Right(queueRole(r), g.widths[colQueue], count(r, cell.Count(float64(r.Queued))))
	b.Right(cell.Plain, g.widths[colTokens], count(r, cell.Kilo(float64(r.Tokens))))
	b.Right(cell.Plain, g.widths[colKV], cell.PercentShort(kvOf(r)))
	b.Right(cell.Plain, g.widths[colHit], cell.PercentShort(float64(r.Hit)))
	b.Right(cell.Dim, g.widths[colReach], cell.PercentShort(float64(r.Reachable)))
	b.Right(cell.Plain, g.widths[colPins], cell.Count(float64(r.Pins+r.OperatorPins)))
	g.trend(b, f, x, r)
}

func (g *grid) mark(b *cell.Block, cursor bool) {
	b.Gap(1)
	sign := cell.Lit(" ")
	if cursor {
		sign = cell.Glyph(b.Ink().Glyphs.CursorMark)
	}
	b.Left(cell.Marked, 2, sign)
}

func weightRole(r *model.Rank) cell.Role {
	if r.Weight != model.DefaultWeight {
		return cell.Staged
	}
	return cell.Dim
}

func queueRole(r *model.Rank) cell.Role {
	switch {
	case r.Queued == 0:
		return cell.Dim
	case r.Active >= r.MaxActive:
		return cell.Warn
	}
	return cell.Plain
}

// load paints the bar: active of the hard cap, the tick at the fair share.
func (g *grid) load(b *cell.Block, x *facts, r *model.Rank) {
	b.Gap(min(1, g.widths[colLoad]))
	b.Bar(g.widths[colLoad]-1, bar(x, r))
}

func bar(x *facts, r *model.Rank) cell.Bar {
	bar := cell.Bar{Value: float64(r.Active), Max: float64(r.MaxActive), Tick: x.share, Role: cell.BarFill}
	if !known(r) {
		return cell.Bar{Tick: -1, Role: cell.BarFill}
	}
	if x.hot(r) {
		bar.Role = cell.BarHot
	}
	return bar
}

// trend paints the rank's tokens, three seconds a cell, on a scale that all
// ranks share.
func (g *grid) trend(b *cell.Block, f *view.Frame, x *facts, r *model.Rank) {
	w := g.widths[colTrend] - 2
	if w <= 0 {
		return
	}
	b.Gap(2)
	role := cell.Trend
	if x.hot(r) {
		role = cell.BarHot
	}
	var buf [64]float64
	b.Spark(role, w, every(buf[:0], f, r.Target, w, 3), 0, 1.3*x.most)
}

// every returns up to n means over per samples each of a rank's tokens,
// appended to buf. Cells keep their samples while time goes on: the newest is
// the one that fills up.
func every(buf []float64, f *view.Frame, t model.Target, n, per int) []float64 {
	rest := f.Trends.Shown() % per
	if rest == 0 {
		rest = per
	}
	samples := f.Trends.Tokens(t, (n-1)*per+rest)
	rest = min(rest, len(samples))
	whole := (len(samples) - rest) / per * per
	samples = samples[len(samples)-rest-whole:]
	for i := 0; i < whole; i += per {
		buf = append(buf, mean(samples[i:i+per]))
	}
	if rest > 0 {
		buf = append(buf, mean(samples[whole:]))
	}
	return buf
}

// mean leaves unknown samples out; all unknown is unknown.
func mean(v []float64) float64 {
	sum, n := 0.0, 0
	for _, x := range v {
		if x == x {
			sum, n = sum+x, n+1
		}
	}
	if n == 0 {
		return float64(model.Unknown())
	}
	return sum / float64(n)
}
