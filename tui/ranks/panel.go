package ranks

import (
	"math"
	"slices"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

// panel draws the side panel of rank r with the line that parts it from the
// table: w cells with the line, h rows.
func (v *View) panel(f *view.Frame, x *facts, r *model.Rank, w, h int) []string {
	b := cell.NewBlock(f.Ink, w)
	p := side{b: b, f: f, x: x, r: r, w: w - 2}
	if view.EnginePicks(f.State, r.Target.Worker) {
		p.picker = view.WorkerOf(f.State, r.Target.Worker)
	}
	p.head()
	p.line()
	p.figures()
	p.line()
	if h >= 24 {
		p.chart(max(2, min(6, h-28)))
		p.line()
	}
	p.heaviest(v.heavy(f, r.Target), min(5, max(2, h-p.b.Height()-9)))
	p.line()
	p.why()
	if h >= heatHeight-6 {
		p.line()
		p.events(min(10, h-3-b.Height()))
	}
	for p.b.Height() < h-2 {
		p.line()
	}
	p.keys()
	for p.b.Height() < h {
		p.line()
	}
	return b.Lines(h)
}

// side paints one panel.
type side struct {
	b *cell.Block
	f *view.Frame
	x *facts
	r *model.Rank
	w int // cells for text

	picker *model.Worker // its worker where the engine picks the rank, else nil
}

// line starts a row after the dividing line.
func (p *side) line() {
	p.b.Begin(cell.Normal)
	p.b.Put(cell.RuleLine, cell.Glyph(p.b.Ink().Glyphs.VLine))
	p.b.Gap(1)
}

func (p *side) head() {
	p.line()
	p.b.Put(cell.Strong, target(p.r.Target))
	p.b.Gap(3)
	role, state := stateOf(p.f, p.r)
	p.b.Put(role, state)
	if p.r == p.x.busiest && float64(p.f.State.Totals.Skew) >= even {
		note := cell.Concat(cell.Glyph(p.b.Ink().Glyphs.Up), cell.Lit(" holds every step"))
		if room := p.w - (p.b.At() - 2); room > note.Width() {
			p.b.Gap(room - note.Width())
			p.b.Put(cell.Warn, note)
		}
	}
}

// fact paints a name, a value and a remark.
func (p *side) fact(name, value, remark cell.Text) {
	p.line()
	p.b.Left(cell.Dim, 10, name)
	p.b.Left(cell.Plain, max(11, value.Width()+1), value)
	p.b.Put(cell.Dim, remark)
}

func (p *side) figures() {
	r, x := p.r, p.x
	active, queued, tokens := cell.Unknown(), cell.Unknown(), cell.Unknown()
	var share, pending, against cell.Text
	if known(r) {
		active = cell.Say("%s of %s", cell.Int(r.Active), cell.Int(r.MaxActive))
		queued = cell.Full(r.Queued)
		pending = cell.Say("%s to prefill", cell.Count(float64(r.PendingTokens)))
		tokens = cell.Full(r.Tokens)
		against = over(float64(r.Tokens), x.mean)
	}
	if x.share >= 0 {
		share = cell.Say("fair share %s", fairShare(x.share))
	}
	p.fact(cell.Lit("active"), active, share)
	p.fact(cell.Lit("queued"), queued, pending)
	p.fact(cell.Lit("tokens"), tokens, against)
	p.line()
	p.b.Left(cell.Dim, 10, cell.Lit("kv used"))
	p.b.Left(cell.Plain, 11, percent(kvOf(r)))
	if kv := kvOf(r); kv == kv {
		p.b.Bar(10, cell.Bar{Value: kv, Max: 1, Tick: -1, Role: cell.BarFill})
	}
	p.fact(cell.Lit("hit"), percent(float64(r.Hit)), cell.Say("reachable %s", percent(float64(r.Reachable))))
	p.fact(cell.Lit("weight"), cell.Fixed(r.Weight, 2), p.weightNote())
	report := cell.Lit("none yet")
	if known(r) {
		report = cell.Say("%s ago", cell.Seconds(max(0, p.f.State.At.Sub(r.ReportedAt))))
	}
	open, pins := cell.Say("%s open here", cell.Int(r.InFlight)), cell.Full(r.Pins+r.OperatorPins)
	if w := p.picker; w != nil {
		open = cell.Say("%s open on %s", cell.Int(w.Open), cell.Fit(w.ID, 12))
		if r.Pins+r.OperatorPins == 0 {
			pins = cell.Unknown()
		}
	}
	p.fact(cell.Lit("report"), report, open)
	p.fact(cell.Lit("pins"), pins, cell.Say("%s by hand", cell.Int(r.OperatorPins)))
}

// fairShare has a decimal where there are few.
func fairShare(v float64) cell.Text {
	if v < 9.95 {
		return cell.Fixed(v, 1)
	}
	return cell.Int(int(v))
}

func (p *side) weightNote() cell.Text {
	t := p.r.Target
	if staged, ok := p.f.StagedValue(model.FieldWeight, &t); ok {
		return cell.Say("staged %s", cell.Fit(staged, 8))
	}
	if p.r.Weight == model.DefaultWeight {
		return cell.Lit("default")
	}
	return cell.Say("default %s", cell.Fixed(model.DefaultWeight, 2))
}

// percent is a share of 1 as 87 %.
func percent(v float64) cell.Text {
	if v != v {
		return cell.Unknown()
	}
	return cell.Say("%s %", cell.Int(int(math.Round(v*100))))
}

// over compares v with a mean: mean 44.3k, +38 %.
func over(v, mean float64) cell.Text {
	if !(mean > 0) {
		return cell.Text{}
	}
	d := int(math.Round((v/mean - 1) * 100))
	sign := cell.Lit("+")
	if d < 0 {
		sign, d = cell.Lit("−"), -d
	}
	return cell.Say("mean %s, %s%s %", cell.Kilo(mean), sign, cell.Int(d))
}

// chart paints the rank's tokens, one second a cell, over rows rows.
func (p *side) chart(rows int) {
	values := p.f.Trends.Tokens(p.r.Target, p.w)
	lo, hi := math.Inf(1), 0.0
	for _, v := range values {
		if v == v {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	p.line()
	now := count(p.r, cell.Kilo(float64(p.r.Tokens)))
	title := cell.Say("tokens, last %s", cell.Lasting(p.f.Trends.Span(p.w)))
	p.b.Left(cell.Title, p.w-now.Width(), title)
	p.b.Put(cell.Strong, now)
	if math.IsInf(lo, 1) {
		p.line()
		p.b.Put(cell.Dim, cell.Lit("no figures yet"))
		return
	}
	lo = floor(lo * 0.6)
	hi = max(hi, lo+(hi-lo)*headroom)
	role := cell.Trend
	if p.x.hot(p.r) {
		role = cell.BarHot
	}
	for i := range rows {
		p.line()
		p.b.Chart(role, p.w, i, rows, values, lo, hi)
	}
	p.line()
	p.b.Rule(p.w, cell.Text{})
	p.line()
	p.b.Left(cell.Dim, p.w-3, foot(lo))
	p.b.Put(cell.Dim, cell.Lit("now"))
}

// headroom is how far a chart reaches above its greatest value: what never
// changes is no full block.
const headroom = 1.15

// foot is the value at the foot of the chart, which has one digit: 30k.
func foot(v float64) cell.Text {
	if v >= 1e3 && v < 1e6 {
		return cell.Say("%sk", cell.Int(int(v/1e3)))
	}
	return cell.Count(v)
}

// floor rounds v down to one significant digit.
func floor(v float64) float64 {
	if v <= 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	return math.Floor(v/unit) * unit
}

func (p *side) heaviest(convs []*model.Conv, n int) {
	p.line()
	p.b.Left(cell.Title, p.w-6, cell.Lit("heaviest conversations"))
	p.b.Right(cell.Title, 6, cell.Lit("cached"))
	if len(convs) == 0 {
		none := cell.Lit("none here")
		if p.picker != nil {
			none = cell.Say("not known: only that they are on %s", cell.Fit(p.picker.ID, 8))
		}
		p.line()
		p.b.Put(cell.Dim, none)
		return
	}
	for _, c := range convs[:min(n, len(convs))] {
		p.line()
		name := max(6, p.w-18)
		p.b.Left(cell.Plain, name, cell.Fit(c.Key.ID, name))
		turns := cell.Say("%s turns", cell.Count(float64(c.Turns)))
		if c.Turns == 1 {
			turns = cell.Lit("1 turn")
		}
		p.b.Right(cell.Dim, 10, turns)
		p.b.Right(cell.Plain, 8, cell.Kilo(float64(c.CachedTokens)))
	}
}

// heavy returns the conversations on t with the most cached tokens; it looks
// through the list again only when that has changed.
func (v *View) heavy(f *view.Frame, t model.Target) []*model.Conv {
	if v.heavyRev == f.Rev && v.heavyAt == t && v.heavyFor == f.State {
		return v.heavyConvs
	}
	top := make([]*model.Conv, 0, 8)
	for _, c := range f.State.Convs {
		if c.Last != t || (len(top) == 5 && c.CachedTokens <= top[4].CachedTokens) {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, c, func(a, b *model.Conv) int {
			if a.CachedTokens >= b.CachedTokens {
				return -1
			}
			return 1
		})
		top = slices.Insert(top, at, c)
		top = top[:min(5, len(top))]
	}
	v.heavyRev, v.heavyAt, v.heavyFor, v.heavyConvs = f.Rev, t, f.State, top
	return top
}
