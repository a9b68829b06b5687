package cell

// Bar is a thin horizontal bar, like ━━━━━━━━━━━┿╸────.
type Bar struct {
	// Value of Max is filled; a Max of 0 or less paints an empty track.
	Value, Max float64
	// Tick is where the fair share stands, on the same scale; negative for no
	// tick.
	Tick float64
	// Role paints the filled part: BarFill, or BarHot above its limit.
	Role Role
}

// Bar paints x into w cells. Every half cell counts; a value above 0 always
// shows at least half a cell. On old figures the bar is dashed.
func (b *Block) Bar(w int, x Bar) {
	if w = min(w, b.w-b.row.at); w <= 0 {
		return
	}
	halves := portion(x.Value, x.Max, 2*w)
	tick := -1
	if x.Tick >= 0 && x.Max > 0 {
		tick = min(int(x.Tick/x.Max*float64(w)), w-1)
	}
	if b.ink.Old || b.row.kind == Stale {
		b.dashed(w, (halves+1)/2, tick, x.Role)
		return
	}
	g := &b.ink.Glyphs
	full, half := halves/2, halves%2
	b.segment(0, full, tick, x.Role, g.BarFull, g.TickFull)
	b.segment(full, full+half, tick, x.Role, g.BarHalf, g.TickFull)
	b.segment(full+half, w, tick, BarTrack, g.BarEmpty, g.TickEmpty)
}

// dashed paints a bar of old figures: its tick shows in the track only.
func (b *Block) dashed(w, full, tick int, r Role) {
	g := &b.ink.Glyphs
	b.segment(0, full, -1, r, g.BarStale, "")
	b.segment(full, w, tick, BarTrack, g.BarEmpty, g.TickEmpty)
}

// segment paints cells from to to-1 of a bar with one sign, and the tick among
// them.
func (b *Block) segment(from, to, tick int, r Role, sign, tickSign string) {
	if tick < from || tick >= to {
		b.run(r, sign, to-from)
		return
	}
	b.run(r, sign, tick-from)
	b.run(BarTick, tickSign, 1)
	b.run(r, sign, to-tick-1)
}

func (b *Block) run(r Role, sign string, n int) {
	if n > 0 {
		b.use(r)
		b.glyphs(sign, n)
	}
}

// portion returns how many of n parts value fills of limit, between 0 and n.
func portion(value, limit float64, n int) int {
	if !(limit > 0) || !(value > 0) {
		return 0
	}
	if value >= limit {
		return n
	}
	return max(1, int(value/limit*float64(n)))
}

// Slider is a knob on its range, like 0─●──◆─────────16.
type Slider struct {
	Lo, Hi         float64
	LoText, HiText Text
	// Now is the value in force; Staged the one that is not applied yet, shown
	// only when HasStaged.
	Now, Staged float64
	HasStaged   bool
	// Off dims the whole slider: the present policy does not use the knob.
	Off bool
}

// Slider paints x into w cells: its ends as text, the rest as a track.
func (b *Block) Slider(w int, x Slider) {
	if w = min(w, b.w-b.row.at); w <= 0 {
		return
	}
	track := w - x.LoText.w - x.HiText.w
	ends, line, now, staged := Dim, BarTrack, BarFill, Staged
	if x.Off {
		line, now, staged = Dim, Dim, Dim
	}
	if track < 3 {
		b.Left(ends, w, x.LoText)
		return
	}
	b.Put(ends, x.LoText)
	nowAt, stagedAt := -1, -1
	if x.Now == x.Now {
		nowAt = slot(x.Now, x.Lo, x.Hi, track)
	}
	if x.HasStaged {
		stagedAt = slot(x.Staged, x.Lo, x.Hi, track)
	}
	for i := range track {
		switch i {
		case stagedAt:
			b.run(staged, b.ink.Glyphs.StagedDot, 1)
		case nowAt:
			b.run(now, b.ink.Glyphs.Now, 1)
		default:
			b.run(line, b.ink.Glyphs.BarEmpty, 1)
		}
	}
	b.Put(ends, x.HiText)
}

// slot returns the cell of n in which v stands between lo and hi.
func slot(v, lo, hi float64, n int) int {
	if !(hi > lo) {
		return 0
	}
	return min(n-1, max(0, int((v-lo)/(hi-lo)*float64(n-1)+0.5)))
}

// Spark paints the last w of values as a small chart from lo to hi, newest at
// the right edge. An unknown value (NaN) and what is older than the first value
// stay blank. hi at or below lo takes the chart's range from the values.
func (b *Block) Spark(r Role, w int, values []float64, lo, hi float64) {
	if w = min(w, b.w-b.row.at); w <= 0 {
		return
	}
	if len(values) > w {
		values = values[len(values)-w:]
	}
	if !(hi > lo) {
		lo, hi = span(values)
	}
	b.use(r)
	b.spaces(w - len(values))
	for _, v := range values {
		if v != v {
			b.spaces(1)
			continue
		}
		b.glyphs(b.ink.Glyphs.Spark[level(v, lo, hi, 8)], 1)
	}
}

// Heat paints the last w of values, newest at the right edge, as shades between
// 0 and hi. What is unknown and what is older than the first value stays blank.
func (b *Block) Heat(r Role, w int, values []float64, hi float64) {
	if w = min(w, b.w-b.row.at); w <= 0 {
		return
	}
	values = values[max(0, len(values)-w):]
	b.use(r)
	b.spaces(w - len(values))
	for _, v := range values {
		if v != v {
			b.spaces(1)
			continue
		}
		b.glyphs(b.ink.Glyphs.Heat[level(v, 0, hi, len(b.ink.Glyphs.Heat))], 1)
	}
}

// level returns which of n steps v reaches between lo and hi; equal ends give
// the lowest.
func level(v, lo, hi float64, n int) int {
	if !(hi > lo) {
		return 0
	}
	return min(n-1, max(0, int((v-lo)/(hi-lo)*float64(n))))
}

// span returns the least and greatest known value.
func span(values []float64) (lo, hi float64) {
	first := true
	for _, v := range values {
		switch {
		case v != v:
		case first:
			lo, hi, first = v, v, false
		default:
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	return lo, hi
}

// Chart paints row number row of rows, counted from the top, of a filled chart
// of the last w values from lo to hi.
func (b *Block) Chart(r Role, w, row, rows int, values []float64, lo, hi float64) {
	if w = min(w, b.w-b.row.at); w <= 0 || rows <= 0 {
		return
	}
	if len(values) > w {
		values = values[len(values)-w:]
	}
	b.use(r)
	b.spaces(w - len(values))
	for _, v := range values {
		if v != v {
			b.spaces(1)
			continue
		}
		eighths := portion(v-lo, hi-lo, 8*rows) - 8*(rows-1-row)
		if eighths <= 0 {
			b.spaces(1)
			continue
		}
		b.glyphs(b.ink.Glyphs.Spark[min(eighths, 8)-1], 1)
	}
}

// Rule fills the row with a line that carries a title: ─ Decisions ───. The
// empty title gives a bare line.
func (b *Block) Rule(w int, title Text) {
	if w = min(w, b.w-b.row.at); w <= 0 {
		return
	}
	end, line := b.row.at+w, b.ink.Glyphs.HLine
	if !title.Empty() && w >= 6 {
		b.run(RuleLine, line, 1)
		b.Gap(1)
		b.Left(Title, min(title.w, w-4), title)
		b.Gap(1)
	}
	b.run(RuleLine, line, end-b.row.at)
}
