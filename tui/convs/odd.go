package convs

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/dialog"
	"adpdeck/tui/view"
)

// longPrompt is the prompt in tokens from which a turn that found nothing in
// cache is worth a look.
const longPrompt = 4096

// odd says what is wrong with a conversation, empty when nothing is.
func odd(c *model.Conv, draining map[model.Target]bool) cell.Text {
	where := dialog.Where(c)
	switch {
	case isLost(c):
		return cell.Say("lost: ran on %s, not on %s", cell.Foreign(c.Last.String()), cell.Foreign(c.Bound.String()))
	case c.Pin == model.PinOperator && draining[where]:
		return cell.Say("pinned to %s, which drains", cell.Foreign(where.String()))
	case c.Lost > 0:
		return cell.Say("%s of its turns ran elsewhere than the router said", cell.Full(c.Lost))
	case c.Turns > 1 && c.PromptTokens >= longPrompt && c.CachedTokens == 0:
		return cell.Say("turn %s found nothing of its %s tokens in cache", cell.Full(c.Turns), cell.Kilo(float64(c.PromptTokens)))
	}
	return cell.Text{}
}

// draining is what is left on a rank that drains, false for one that does not.
func draining(s *model.State, t model.Target) (left view.Left, ok bool) {
	for i := range s.Ranks {
		if r := &s.Ranks[i]; r.Target == t && r.Availability == model.Draining {
			return view.LeftOn(r), true
		}
	}
	return view.Left{}, false
}

// nextOdd puts the cursor on the next conversation that something is wrong with.
func (v *View) nextOdd(f *view.Frame) view.Intent {
	draining := map[model.Target]bool{}
	for i := range f.State.Ranks {
		if r := &f.State.Ranks[i]; r.Availability == model.Draining {
			draining[r.Target] = true
		}
	}
	c, ok := v.list.Seek(1, func(c *model.Conv) bool { return !odd(c, draining).Empty() })
	if !ok {
		return view.Toast{Level: view.Note, Text: cell.Lit("nothing odd: none is lost, none found nothing in cache")}
	}
	return view.Toast{Level: view.Note, Text: cell.Say("%s %s", cell.Fit(c.Key.ID, 24), odd(c, draining))}
}

// Export is every conversation that passes the filter, in the order shown.
func (v *View) Export(f *view.Frame) view.Table {
	v.update(f)
	t := view.Table{Name: "convs", Columns: []string{
		"conversation", "tenant", "model", "pin", "rank", "last_rank", "turns", "open", "cached_tokens", "prompt_tokens",
		"moves", "honoured", "lost", "first_at", "last_at", "reason",
	}}
	for _, c := range v.list.Rows() {
		t.Rows = append(t.Rows, []any{
			c.Key.ID, c.Key.Tenant, c.Key.Model, pinWord(c), dialog.Where(c).String(), c.Last.String(), c.Turns, c.Open,
			c.CachedTokens, c.PromptTokens, c.Moves, c.Honoured, c.Lost, c.FirstAt, c.LastAt, c.Reason,
		})
	}
	return t
}
