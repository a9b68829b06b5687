package ranks

import (
	"slices"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

// The heat map of the tokens stands on screens of at least so many cells, and
// has at most so many rows: with more ranks several share one.
const (
	heatWidth, heatHeight = 120, 50
	heatRows              = 16
	heatFrame             = 3 // a blank row, the rule, the scale
)

// heatRow is one row of the map: ranks that follow each other.
type heatRow []*model.Rank

// heatGroups shares ranks, ordered by name, among at most heatRows rows. A row
// holds ranks of one worker, unless there are more workers than rows.
func heatGroups(ranks []*model.Rank) (rows []heatRow, per int) {
	ranks = slices.SortedFunc(slices.Values(ranks), func(a, b *model.Rank) int {
		if a.Target.Less(b.Target) {
			return -1
		}
		return 1
	})
	for per = max(1, (len(ranks)+heatRows-1)/heatRows); ; per++ {
		if rows = group(ranks, per, true); len(rows) <= heatRows {
			return rows, per
		}
		if per >= len(ranks) { // a row for each worker is still too many
			per = (len(ranks) + heatRows - 1) / heatRows
			return group(ranks, per, false), per
		}
	}
}

func group(ranks []*model.Rank, per int, apart bool) (rows []heatRow) {
	for i := 0; i < len(ranks); {
		to := i + 1
		for to < len(ranks) && to < i+per && (!apart || ranks[to].Target.Worker == ranks[i].Target.Worker) {
			to++
		}
		rows, i = append(rows, ranks[i:to]), to
	}
	return rows
}

// label is w0/3, w0/4–7 or w0/4–w1/3.
func (r heatRow) label() cell.Text {
	first, last := r[0].Target, r[len(r)-1].Target
	switch {
	case first == last:
		return target(first)
	case first.Worker == last.Worker:
		return cell.Say("%s–%s", target(first), cell.Int(last.Rank))
	}
	return cell.Say("%s–%s", target(first), target(last))
}

// values are the greatest tokens of the row's ranks in each of the last n
// seconds; unknown where none is known.
func (r heatRow) values(f *view.Frame, n int) []float64 {
	var out []float64
	for _, rank := range r {
		v := f.Trends.Tokens(rank.Target, n)
		if len(v) > len(out) { // the newest are at the end of both
			out = append(make([]float64, len(v)-len(out), len(v)), out...)
			for i := range len(v) - len(out) {
				out[i] = float64(model.Unknown())
			}
		}
		for i, x := range v {
			if at := i + len(out) - len(v); out[at] != out[at] || x > out[at] {
				out[at] = x
			}
		}
	}
	return out
}

// heat paints where the tokens sat: a row for each rank or few ranks, a column
// for each second.
func (v *View) heat(b *cell.Block, f *view.Frame, w int) {
	groups, per := heatGroups(v.list.Rows())
	nameW := 4
	for _, g := range groups {
		nameW = max(nameW, g.label().Width())
	}
	nameW = min(nameW, w/5)
	n := w - 3 - nameW - 1 - 9
	rows, hi, have := make([][]float64, len(groups)), 0.0, 0
	for i, g := range groups {
		rows[i] = g.values(f, n)
		have = max(have, len(rows[i]))
		for _, x := range rows[i] {
			if x == x {
				hi = max(hi, x)
			}
		}
	}
	title := cell.Say("Where the tokens sat, last %s (denser is fuller)", cell.Lasting(f.Trends.Span(max(1, have))))
	if per > 1 {
		title = cell.Say("Where the tokens sat, last %s (denser is fuller; a row is the fullest of %s ranks)", cell.Lasting(f.Trends.Span(max(1, have))), cell.Int(per))
	}
	b.Begin(cell.Normal)
	b.Gap(1)
	b.Rule(w-2, title)
	chosen, _ := v.list.Selected()
	for i, g := range groups {
		b.Begin(cell.Normal)
		b.Gap(1)
		mark, role := cell.Lit(" "), cell.Plain
		if slices.Contains(g, chosen) {
			mark, role = cell.Glyph(b.Ink().Glyphs.CursorMark), cell.Strong
		}
		b.Put(cell.Marked, mark)
		b.Gap(1)
		b.Left(role, nameW, g.label())
		b.Gap(1)
		b.Heat(cell.Trend, n, rows[i], hi)
		now := cell.Unknown()
		if r := slices.MaxFunc(g, func(a, b *model.Rank) int { return int(a.Tokens) - int(b.Tokens) }); known(r) {
			now = cell.Kilo(float64(r.Tokens))
		}
		b.Right(cell.Dim, 8, now)
	}
	b.Begin(cell.Normal)
	b.To(3 + nameW + 1 + n - have)
	if ago := cell.Say("%s ago", cell.Lasting(f.Trends.Span(max(1, have)))); have > ago.Width()+6 {
		b.Put(cell.Dim, ago)
	}
	b.To(3 + nameW + 1 + n - 3)
	b.Put(cell.Dim, cell.Lit("now"))
}

// events paints the newest events in h rows, the rule among them.
func (p *side) events(h int) {
	list := p.f.State.Events
	if h < 3 || len(list) == 0 {
		return
	}
	p.line()
	p.b.Rule(p.w, cell.Lit("Events"))
	for i := range list[:min(len(list), h-1)] {
		e := &list[i]
		p.line()
		p.b.Put(cell.Dim, cell.Clock(e.At))
		p.b.Gap(2)
		p.b.Left(cell.Dim, 8, cell.Fit(e.Who, 8))
		role := cell.Plain
		switch e.Level {
		case "error":
			role = cell.Crit
		case "warn":
			role = cell.Warn
		}
		p.b.Gap(1)
		p.b.Put(role, cell.Fit(e.What, max(0, p.w-19)))
	}
}
