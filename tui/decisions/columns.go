package decisions

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
)

// column is one column of the candidates' table, aligned right in width cells
// with the gap before it.
type column struct {
	title cell.Text
	width int
	value func(*row) cell.Text
}

// columns are what the contest compared.
func (s *story) columns(wide bool) []column {
	match := column{cell.Lit("MATCH"), 7, func(r *row) cell.Text { return cell.Full(r.match) }}
	switch {
	case s.by == byScore && wide:
		return []column{
			match,
			{cell.Lit("TO PREFILL"), 13, func(r *row) cell.Text { return amount(r.prefill) }},
			{cell.Lit("+  β × LOAD"), 19, func(r *row) cell.Text { return amount(r.load) }},
			{cell.Lit("=   SCORE"), 15, func(r *row) cell.Text { return amount(r.total) }},
		}
	case s.by == byScore:
		return []column{
			match,
			{cell.Lit("PREFILL"), 9, func(r *row) cell.Text { return amount(r.prefill) }},
			{cell.Lit("+ LOAD"), 8, func(r *row) cell.Text { return amount(r.load) }},
			{cell.Lit("=  SCORE"), 10, func(r *row) cell.Text { return amount(r.total) }},
		}
	case s.by == byDynamo:
		return s.dynamoColumns(wide)
	case s.by == byLockstep:
		return s.lockstepColumns(wide)
	}
	out := []column{
		{cell.Lit("TOKENS"), 10, func(r *row) cell.Text { return amount(r.tokens) }},
		{cell.Lit("REQUESTS"), 10, func(r *row) cell.Text { return amount(r.count) }},
	}
	if s.anyMatch() {
		out = append(out, column{cell.Lit("MATCH"), 9, match.value})
	}
	return out
}

func (s *story) anyMatch() bool {
	for i := range s.rows {
		if s.rows[i].match > 0 {
			return true
		}
	}
	return false
}

// blocks is a number of matched blocks, nothing for none.
func blocks(n int) cell.Text {
	if n == 0 {
		return cell.Lit("·")
	}
	return cell.Full(n)
}

func (s *story) chance() column {
	return column{cell.Lit("CHANCE"), 8, func(r *row) cell.Text { return cell.PercentShort(r.chance) }}
}

func (s *story) dynamoColumns(wide bool) []column {
	total := column{cell.Lit("=  COST"), 9, func(r *row) cell.Text { return tenths(r.total) }}
	if !wide {
		out := []column{
			{cell.Lit("OVERLAP"), 9, func(r *row) cell.Text { return tenths(r.terms.Overlap) }},
			{cell.Lit("PREFILL"), 9, func(r *row) cell.Text { return tenths(r.terms.Prefill) }},
			{cell.Lit("+ LOAD"), 8, func(r *row) cell.Text { return tenths(r.load) }},
			total,
		}
		if s.d.Selection.By == model.ByTemperature {
			out = append(out, s.chance())
		}
		return out
	}
	out := []column{
		{cell.Lit("DEVICE"), 8, func(r *row) cell.Text { return blocks(r.terms.Device) }},
		{cell.Lit("HOST"), 6, func(r *row) cell.Text { return blocks(r.terms.Host) }},
		{cell.Lit("DISK"), 6, func(r *row) cell.Text { return blocks(r.terms.Disk) }},
	}
	if s.d.Selection.Config.SharedCacheType != model.SharedCacheNone {
		out = append(out, column{cell.Lit("SHARED"), 8, func(r *row) cell.Text { return blocks(r.terms.Shared) }})
	}
	return append(
		out,
		column{cell.Lit("OVERLAP"), 9, func(r *row) cell.Text { return tenths(r.terms.Overlap) }},
		column{cell.Lit("P × PREFILL"), 13, func(r *row) cell.Text { return tenths(r.terms.Prefill) }},
		column{cell.Lit("+ DECODE"), 10, func(r *row) cell.Text { return tenths(r.terms.DecodeBlocks + r.terms.RecentTerm) }},
		column{cell.Lit("+ q × REQ"), 11, func(r *row) cell.Text { return tenths(r.terms.Active) }},
		total, s.chance(),
	)
}

func (s *story) lockstepColumns(wide bool) []column {
	c := &s.d.Selection.Config
	fresh := column{cell.Lit("ν NEW"), 8, func(r *row) cell.Text { return amount(newCost(r.terms)) }}
	total := column{cell.Lit("=  COST"), 10, func(r *row) cell.Text { return amount(r.total) }}
	rise := func(r *row) float64 { return c.LockstepWeight * riseOfAll(r.terms) }
	wait := func(r *row) float64 { return c.WaitWeight * r.terms.Wait }
	pending := func(r *row) float64 { return c.PendingWeight * r.terms.Pending }
	if !wide {
		out := []column{
			{cell.Lit("MATCH"), 7, func(r *row) cell.Text { return cell.Full(r.match) }},
			fresh,
			{cell.Lit("+ RISE"), 8, func(r *row) cell.Text { return amount(rise(r)) }},
			{cell.Lit("+ LOAD"), 8, func(r *row) cell.Text { return amount(wait(r) + pending(r) + r.terms.HeldTerm + r.terms.RecentTerm) }},
			total,
		}
		if s.d.Selection.By == model.ByTemperature {
			out = append(out, s.chance())
		}
		return out
	}
	return []column{
		{cell.Lit("MATCH"), 7, func(r *row) cell.Text { return cell.Full(r.match) }},
		fresh,
		{cell.Lit("+ λ RISE"), 10, func(r *row) cell.Text { return amount(rise(r)) }},
		{cell.Lit("+ ω WAIT"), 12, func(r *row) cell.Text { return amount(wait(r)) }},
		{cell.Lit("+ μ PENDING"), 13, func(r *row) cell.Text { return amount(pending(r)) }},
		{cell.Lit("+ δ HELD"), 10, func(r *row) cell.Text { return amount(r.terms.HeldTerm + r.terms.RecentTerm) }},
		total, s.chance(),
	}
}
