package ranks

import (
	"math"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/layout"
	"adpdeck/tui/trend"
	"adpdeck/tui/view"
)

// plan says how many rows each part of the body gets.
type plan struct {
	airy             bool // blank rows around the figures
	figures, trends  bool
	rows             int // of the table
	decisions, strip int // rows with their rule; 0 for none
	heat             int // rows of the heat map with what frames it; 0 for none
}

// top returns the rows above the table's head.
func (p plan) top() int {
	n := 0
	if p.figures {
		n++
	}
	if p.trends {
		n++
	}
	if p.airy {
		n += 2
	}
	return n
}

// stripRows is the skew strip: rule, chart, scale.
const stripRows = 3

// divide plans a body of h rows, whose main part is w wide, for n ranks: the
// table first, the decisions and the skew below when there is room, and on a
// large screen the heat map.
func divide(w, h, n int) plan {
	p := plan{airy: h >= 30, figures: h >= 8, trends: h >= 12}
	avail := max(0, h-p.top()-1)
	if w >= heatWidth && h >= heatHeight && n > 0 {
		p.heat = min(n, heatRows) + heatFrame
		avail -= p.heat
	}
	p.rows = min(max(1, n), avail)
	if avail >= 24 && avail-p.rows < 8 {
		p.rows = avail - 8
	}
	left := avail - p.rows
	switch {
	case left >= 12:
		p.strip = stripRows
		p.decisions = left - stripRows - 1
	case left >= 5:
		p.decisions = left - 1
	}
	return p
}

// full draws the whole view: figures, table, decisions, skew, side panel.
func (v *View) full(f *view.Frame, w, h int) []string {
	body := layout.Rect{W: w, H: h}
	main, _, side, ok := layout.Side(body, f.ScreenW, f.ScreenH)
	r, selected := v.list.Selected()
	ok = ok && !v.noSide && selected
	if !ok {
		main = body
	}
	x := gather(f.State)
	p := divide(main.W, h, len(v.list.Rows()))
	top := cell.NewBlock(f.Ink, w)
	figures(top, f, p)
	lines := top.Lines(p.top())
	b := cell.NewBlock(f.Ink, main.W)
	v.table(b, f, &x, main.W, p.rows)
	if p.decisions > 0 {
		b.Blank(1)
		tail(b, f, main.W, p.decisions)
	}
	if p.heat > 0 {
		at := b.Height()
		b.Blank(1)
		v.heat(b, f, main.W)
		b.Blank(max(0, at+p.heat-b.Height()))
	}
	if p.strip > 0 {
		strip(b, f, main.W)
	}
	under := b.Lines(h - p.top())
	if ok {
		panel := v.panel(f, &x, r, side.W+1, h-p.top())
		for i := range under {
			under[i] += panel[i]
		}
	}
	return append(lines, under...)
}

func (v *View) table(b *cell.Block, f *view.Frame, x *facts, w, rows int) {
	g := fit(f.State, w, v.more)
	v.hidden = g.hidden
	g.head(b, f)
	from, to := v.list.Window(rows)
	v.page = rows
	for i, r := range v.list.Rows()[from:to] {
		g.row(b, f, x, r, from+i == v.list.Line())
	}
	if len(v.list.Rows()) == 0 {
		b.Begin(cell.Normal)
		b.Gap(3)
		b.Put(cell.Dim, nothing(f))
		rows--
	}
	b.Blank(rows - (to - from))
}

func nothing(f *view.Frame) cell.Text {
	if len(f.State.Ranks) == 0 {
		return cell.Lit("no worker has joined yet")
	}
	return cell.Say("no rank matches the filter: %s clears it", f.KeyOf(command.Back))
}

// figure is one of the six figures at the top.
type figure struct {
	value, unit cell.Text
	short       cell.Text // in place of a unit that does not fit
	long        cell.Text // follows the unit where there is room
	total       trend.Total
}

func figuresOf(s *model.State) [6]figure {
	t := &s.Totals
	queued := cell.Unknown()
	if t.RequestsPerSec.Known() || t.Queued > 0 {
		queued = cell.Full(t.Queued)
	}
	return [6]figure{
		{cell.Count(float64(t.RequestsPerSec)), cell.Lit(" req/s"), cell.Lit("/s"), cell.Text{}, trend.Requests},
		{cell.Ms(float64(t.TTFTMsP50)), cell.Lit(" ttft"), cell.Text{}, cell.Lit(" p50"), trend.TTFT},
		{cell.Percent(float64(t.Hit)), cell.Lit(" hit"), cell.Text{}, cell.Text{}, trend.Hit},
		{cell.Ratio(float64(t.Skew)), cell.Lit(" skew"), cell.Text{}, cell.Text{}, trend.Skew},
		{queued, cell.Lit(" queued"), cell.Lit(" q"), cell.Text{}, trend.Queued},
		{cell.Full(t.Pins + t.OperatorPins), cell.Lit(" pins"), cell.Lit(" p"), cell.Text{}, trend.Pins},
	}
}

// figures paints the figures and their trends, or the two lines that stand
// there while the feed is lost.
func figures(b *cell.Block, f *view.Frame, p plan) {
	if !p.figures {
		return
	}
	if p.airy {
		b.Blank(1)
	}
	if f.Lost != nil {
		lost(b, f, p.trends)
	} else {
		paintFigures(b, f, p.trends)
	}
	if p.airy {
		b.Blank(1)
	}
}

func paintFigures(b *cell.Block, f *view.Frame, trends bool) {
	step := b.Width() / 6
	all := figuresOf(f.State)
	b.Begin(cell.Normal)
	for i, g := range all {
		b.To(2 + i*step)
		room := step - 1
		unit := g.unit
		if g.value.Width()+unit.Width() > room {
			unit = g.short
		}
		b.Left(cell.Strong, min(room, g.value.Width()), g.value)
		b.Left(cell.Dim, min(room-g.value.Width(), unit.Width()), unit)
		if g.value.Width()+unit.Width()+g.long.Width() < room {
			b.Put(cell.Dim, g.long)
		}
	}
	if !trends {
		return
	}
	b.Begin(cell.Normal)
	w := max(step*4/5, min(11, step-2))
	for i, g := range all {
		b.To(2 + i*step)
		values := f.Trends.Total(g.total, w)
		lo, hi := spread(values)
		b.Spark(cell.Trend, w, values, lo, hi)
	}
}

// spread is the range of a small chart: that of its values, but never less than
// a fifth of the greatest, so that small changes look small and what never
// changes lies in the middle; nothing but zeros lie at the bottom.
func spread(values []float64) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if v == v {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	if math.IsInf(lo, 1) || hi <= 0 {
		return 0, 1
	}
	if least := hi / 5; hi-lo < least {
		middle := (lo + hi) / 2
		lo, hi = middle-least/2, middle+least/2
	}
	return lo, hi
}

// lost says since when the figures are old, why, and what happens next.
func lost(b *cell.Block, f *view.Frame, second bool) {
	b.Begin(cell.Normal)
	b.Gap(2)
	b.Put(cell.Crit, cell.Say("FEED LOST %s", cell.Clock(f.Lost.Since)))
	b.Gap(3)
	why := cell.Fit(f.Lost.Err, b.Width()-b.At()-1)
	if f.Lost.Err == "" {
		why = cell.Say("nothing came for %s", cell.Seconds(f.Lost.Age))
		if long := cell.Say("%s, but the connection stands", why); long.Width() < b.Width()-b.At() {
			why = long
		}
	}
	b.Put(cell.Plain, why)
	if !second {
		return
	}
	b.Begin(cell.Normal)
	b.Gap(2)
	enter := cell.Glyph(f.Ink.Glyphs.Enter)
	if f.Lost.Attempt == 0 {
		b.Put(cell.Dim, cell.Say("waiting · %s connects anew", enter))
		fine(b)
		return
	}
	next := cell.Lit("now")
	if f.Lost.Next > 0 {
		next = cell.Say("in %s", cell.Seconds(f.Lost.Next))
	}
	b.Put(cell.Dim, cell.Say("try %s %s · %s tries at once", cell.Int(f.Lost.Attempt), next, enter))
	fine(b)
}

// fine adds, where there is room, that a lost feed need not be a lost router.
func fine(b *cell.Block) {
	if t := cell.Lit(" · the router itself may be fine"); t.Width() < b.Width()-b.At() {
		b.Put(cell.Dim, t)
	}
}
