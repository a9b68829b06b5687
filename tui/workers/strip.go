package workers

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

// stripCell is the width of one rank in the strip.
const stripCell = 8

// stripRows is the height of the strip: names, active, tokens, and how far the
// ranks that drain have come.
func (p *painter) stripRows() int {
	switch {
	case len(p.e.ranks) == 0:
		return 0
	case p.e.draining > 0:
		return 4
	}
	return 3
}

// strip paints the worker's ranks side by side, as many as fit.
func (p *painter) strip() {
	ranks := p.e.ranks
	fits := max(1, (p.b.Width()-3-11-1)/stripCell)
	more := 0
	if len(ranks) > fits {
		fits = max(1, fits-1)
		more = len(ranks) - fits
		ranks = ranks[:fits]
	}
	p.stripRow(cell.Lit("rank"), ranks, func(r *model.Rank) {
		role := cell.Strong
		if r.Availability == model.Draining || r.Weight == 0 {
			role = cell.Warn
		}
		p.b.Left(role, stripCell-1, stripName(r))
		p.b.Gap(1)
	})
	if more > 0 {
		p.b.Put(cell.Dim, cell.Say("+%s", cell.Int(more)))
	}
	p.stripRow(cell.Lit("active"), ranks, func(r *model.Rank) {
		switch {
		case r.ReportedAt.IsZero():
			p.b.Left(cell.Dim, stripCell, cell.Unknown())
		case r.MaxActive <= 0:
			p.b.Left(cell.Plain, stripCell, cell.Int(r.Active))
		default:
			role := cell.BarFill
			if r.Active >= r.MaxActive {
				role = cell.BarHot
			}
			p.b.Bar(stripCell-3, cell.Bar{Value: float64(r.Active), Max: float64(r.MaxActive), Tick: -1, Role: role})
			p.b.Gap(3)
		}
	})
	p.stripRow(cell.Lit("tokens"), ranks, func(r *model.Rank) {
		t := cell.Unknown()
		if !r.ReportedAt.IsZero() {
			t = cell.Kilo(float64(r.Tokens))
		}
		p.b.Left(cell.Plain, stripCell, t)
	})
	if p.e.draining == 0 {
		return
	}
	p.stripRow(cell.Lit("to go"), ranks, func(r *model.Rank) {
		if r.Availability != model.Draining {
			p.b.Gap(stripCell)
			return
		}
		left := view.LeftOn(r)
		t := cell.Lit("drained")
		if !left.Drained() {
			t = cell.Say("%s+%s", cell.Count(float64(left.Open)), cell.Count(float64(left.Pins)))
		}
		p.b.Left(cell.Warn, stripCell, t)
	})
}

func (p *painter) stripRow(name cell.Text, ranks []*model.Rank, paint func(r *model.Rank)) {
	if !p.row() {
		return
	}
	p.b.Left(cell.Dim, 11, name)
	for _, r := range ranks {
		paint(r)
	}
}

// stripName is w0/3, or /3 where the worker's name is too long.
func stripName(r *model.Rank) cell.Text {
	if t := cell.Foreign(r.Target.String()); t.Width() < stripCell {
		return t
	}
	return cell.Say("/%s", cell.Int(r.Target.Rank))
}
