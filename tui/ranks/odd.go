package ranks

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

// odd says what sets a rank apart, empty when nothing does.
func odd(s *model.State, x *facts, r *model.Rank) cell.Text {
	age, isOld := old(s, r)
	switch {
	case r.Down:
		return cell.Lit("does not answer")
	case !known(r):
		return cell.Lit("has not reported yet")
	case isOld:
		return cell.Say("last reported %s ago", cell.Age(age))
	case r.Availability == model.Draining:
		return view.LeftOn(r).Sentence()
	case r.Weight != model.DefaultWeight:
		return cell.Say("has weight %s", cell.Fixed(r.Weight, 2))
	case r.MaxActive > 0 && r.Active >= r.MaxActive:
		return cell.Say("is full, %s queued", cell.Full(r.Queued))
	case r == x.busiest && x.skew >= hotSkew:
		return cell.Say("holds every step of %s", cell.Foreign(r.Target.Worker))
	case x.hot(r):
		return cell.Say("has %s tokens, the mean is %s", cell.Kilo(float64(r.Tokens)), cell.Kilo(x.mean))
	}
	return cell.Text{}
}

// nextOdd puts the cursor on the next rank that something sets apart.
func (v *View) nextOdd(f *view.Frame) view.Intent {
	x := gather(f.State)
	r, ok := v.list.Seek(1, func(r *model.Rank) bool { return !odd(f.State, &x, r).Empty() })
	if !ok {
		return view.Toast{Level: view.Note, Text: cell.Lit("nothing odd: all shown are ready and near their share")}
	}
	return view.Toast{Level: view.Note, Text: cell.Say("%s %s", target(r.Target), odd(f.State, &x, r))}
}

// Export is every rank that passes the filter, in the order shown.
func (v *View) Export(f *view.Frame) view.Table {
	v.update(f)
	t := view.Table{Name: "ranks", Columns: []string{
		"rank", "worker", "dp_rank", "state", "weight", "active", "max_active", "queued", "tokens", "pending_tokens",
		"kv_used_blocks", "kv_total_blocks", "hit", "reachable", "pins", "operator_pins", "in_flight", "reported_at",
	}}
	for _, r := range v.list.Rows() {
		row := []any{r.Target.String(), r.Target.Worker, r.Target.Rank, string(r.Availability), r.Weight}
		if known(r) {
			row = append(row, r.Active, r.MaxActive, r.Queued, r.Tokens, r.PendingTokens, r.KVUsedBlocks, r.KVTotalBlocks)
		} else {
			row = append(row, nil, nil, nil, nil, nil, nil, nil)
		}
		t.Rows = append(t.Rows, append(row, float64(r.Hit), float64(r.Reachable), r.Pins, r.OperatorPins, r.InFlight, r.ReportedAt))
	}
	return t
}
