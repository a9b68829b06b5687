package ranks

import (
	"math"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/trend"
	"adpdeck/tui/view"
)

// tail paints the newest decisions in h rows, the rule among them.
func tail(b *cell.Block, f *view.Frame, w, h int) {
	b.Begin(cell.Normal)
	b.Gap(1)
	b.Rule(w-2, cell.Lit("Decisions"))
	if h < 2 {
		return
	}
	toW := view.PlaceWidth(f.State, 7, 12)
	convW := max(10, min(28, w-60-toW))
	wide := w >= 120
	b.Begin(cell.Normal)
	b.Gap(3)
	b.Left(cell.Title, 10, cell.Lit("TIME"))
	b.Left(cell.Title, convW, cell.Lit("CONVERSATION"))
	if wide {
		b.Left(cell.Title, 14, cell.Lit("TENANT"))
	}
	b.Right(cell.Title, 8, cell.Lit("PROMPT"))
	b.Right(cell.Title, 8, cell.Lit("MATCH"))
	b.Gap(2)
	b.Left(cell.Title, toW+1, cell.Lit("WENT TO"))
	b.Right(cell.Title, 7, cell.Lit("MARGIN"))
	if wide {
		b.Right(cell.Title, 9, cell.Lit("TOOK"))
	}
	b.Gap(2)
	b.Put(cell.Title, cell.Lit("WHY"))
	n := min(h-2, len(f.Decisions))
	for i := range n {
		decision(b, f.Decisions[len(f.Decisions)-1-i], convW, toW, wide)
	}
	if n == 0 && h > 2 {
		b.Begin(cell.Normal)
		b.Gap(3)
		b.Put(cell.Dim, cell.Lit("none yet"))
		n = 1
	}
	b.Blank(h - 2 - n)
}

func decision(b *cell.Block, d *model.Decision, convW, toW int, wide bool) {
	b.Begin(cell.Normal)
	b.Gap(3)
	b.Left(cell.Dim, 10, cell.Clock(d.At))
	conv, tenant := cell.Unknown(), cell.Unknown()
	if !d.Conv.Keyless() {
		conv = cell.Fit(d.Conv.ID, convW)
		tenant = cell.Fit(d.Conv.Tenant, 14)
	}
	b.Left(cell.Plain, convW-1, conv)
	b.Gap(1)
	if wide {
		b.Left(cell.Dim, 13, tenant)
		b.Gap(1)
	}
	b.Right(cell.Plain, 8, cell.Full(d.Placement.PromptTokens))
	b.Right(cell.Plain, 8, match(d))
	b.Gap(2)
	b.Left(cell.Strong, toW, view.PlaceText(d.Target, toW))
	b.Gap(1)
	b.Right(cell.Dim, 7, margin(float64(d.Margin)))
	if wide {
		took := cell.Unknown()
		if d.TookNs > 0 {
			took = cell.Ms(float64(d.TookNs) / 1e6)
		}
		b.Right(cell.Dim, 9, took)
	}
	b.Gap(2)
	why := d.Why
	if d.Placement.Phase == model.PhaseEngine && !wide {
		why = "engine picks"
	}
	b.Left(cell.Plain, b.Width()-b.At()-1, cell.Fit(why, b.Width()))
}

// match is what the rank held of the prompt; unknown under the policies that
// look into no cache.
func match(d *model.Decision) cell.Text {
	if d.Placement.Phase == model.PhaseEngine || d.Placement.MatchTokens == 0 && d.Policy != model.PolicyKVAware {
		return cell.Unknown()
	}
	return cell.Full(d.Placement.MatchTokens)
}

// margin is how much worse the next best rank was, in points of the score.
func margin(v float64) cell.Text {
	if v != v || math.Abs(v) >= 1e6 {
		return cell.Count(v)
	}
	return cell.Full(int64(math.Round(v)))
}

// strip paints the skew of the last seconds: rule, chart and scale.
func strip(b *cell.Block, f *view.Frame, w int) {
	n := max(1, w-2)
	values := f.Trends.Total(trend.Skew, n)
	b.Begin(cell.Normal)
	b.Gap(1)
	b.Rule(w-2, cell.Say("Skew, last %s", cell.Lasting(f.Trends.Span(len(values)))))
	lo, hi := 1.0, 1.0
	for _, v := range values {
		if v == v {
			hi = max(hi, v)
		}
	}
	b.Begin(cell.Normal)
	b.Gap(1)
	b.Spark(cell.Trend, n, values, lo, max(hi, lo+0.1))
	b.Begin(cell.Normal)
	b.Gap(1)
	now := cell.Say("%s now · greatest %s", cell.Ratio(float64(f.State.Totals.Skew)), cell.Ratio(hi))
	if len(values) == 0 {
		now = cell.Lit("no figures yet")
	}
	b.Left(cell.Dim, max(0, w-2-now.Width()), cell.Lit("1.00× at the bottom"))
	b.Put(cell.Dim, now)
}
