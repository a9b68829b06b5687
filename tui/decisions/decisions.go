// Package decisions is the console's view of what the router decided: the
// newest decisions, and for the one under the cursor why it went where it did.
//
// Everything it says about a decision is computed from the decision's own
// record: the numbers of every candidate, which were excluded and why, the
// runner-up, and for which values of the weights in force the choice would
// have been the same. What was not recorded is said to be unknown; what was
// predicted is set against what the engine reported, once it has.
//
// The newest stands at the top. While the view follows, the cursor is on the
// newest; once moved it stays with its decision.
package decisions

import (
	"encoding/json"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/list"
	"adpdeck/tui/table"
	"adpdeck/tui/view"
)

// maxKept is how many of the newest decisions are listed.
const maxKept = 2000

// View is the view of decisions.
type View struct {
	list   *list.List[uint64, *model.Decision]
	rev    uint64
	of     *model.Decision // the newest of the list
	busy   bool
	frame  *view.Frame // the one last drawn, for what filters look up
	items  []*model.Decision
	follow bool
	noWhy  bool
	page   int
	story  *story // of the decision last explained
}

// New returns the view, following the newest decision.
func New() *View {
	v := &View{page: 10, follow: true}
	v.list = list.New(list.Config[uint64, *model.Decision]{
		Key: func(d *model.Decision) uint64 { return d.ID }, Fields: v.fields(), Sort: "id",
	})
	return v
}

func (v *View) fields() []list.Field[*model.Decision] {
	type field = list.Field[*model.Decision]
	num := func(name string, get func(d *model.Decision) float64) field {
		return field{Name: name, Number: get, Falling: true}
	}
	return []field{
		num("id", func(d *model.Decision) float64 { return float64(d.ID) }),
		{Name: "conversation", Text: func(d *model.Decision) string { return d.Conv.ID }},
		{Name: "tenant", Text: func(d *model.Decision) string { return d.Conv.Tenant }},
		{Name: "model", Text: func(d *model.Decision) string { return d.Conv.Model }},
		{Name: "rank", Exact: true, Text: func(d *model.Decision) string { return d.Target.String() }},
		{Name: "worker", Exact: true, Text: func(d *model.Decision) string { return d.Target.Worker }},
		{Name: "policy", Text: func(d *model.Decision) string { return string(d.Policy) }},
		{Name: "mode", Text: func(d *model.Decision) string { return string(d.Mode) }},
		{Name: "phase", Text: func(d *model.Decision) string { return string(d.Placement.Phase) }},
		{Name: "why", Text: func(d *model.Decision) string { return whyOf(d) + " " + d.Conflict }},
		{Name: "lost", Text: func(d *model.Decision) string { return d.LostTo }},
		num("prompt", func(d *model.Decision) float64 { return float64(d.Placement.PromptTokens) }),
		num("match", func(d *model.Decision) float64 { n, _ := predicted(d); return n }),
		num("score", func(d *model.Decision) float64 { return scoreOf(d) }),
		num("margin", func(d *model.Decision) float64 { return marginOf(d) }),
		num("version", func(d *model.Decision) float64 { return float64(d.Version) }),
		num("ttft", v.ttftOf),
	}
}

func (v *View) ttftOf(d *model.Decision) float64 {
	if v.frame != nil {
		if s, ok := v.frame.Settled[d.ID]; ok {
			return float64(s.TTFTMs)
		}
	}
	return float64(model.Unknown())
}

// ID is the view's name in the command table.
func (v *View) ID() command.View { return command.Decisions }

// Title is its name in the row of tabs.
func (v *View) Title() cell.Text { return cell.Lit("Decisions") }

// update brings the list up to the frame, only when decisions have come.
func (v *View) update(f *view.Frame) {
	v.frame = f
	var newest *model.Decision
	if n := len(f.Decisions); n > 0 {
		newest = f.Decisions[n-1]
	}
	if v.rev == f.Rev && v.busy == f.Busy && v.of == newest {
		return
	}
	same := v.of == newest && v.busy == f.Busy && len(v.items) == min(len(f.Decisions), maxKept)
	v.rev, v.busy, v.of = f.Rev, f.Busy, newest
	if same && !v.list.Filtered() {
		return // only figures of other kinds have changed
	}
	n := min(len(f.Decisions), maxKept)
	v.items = make([]*model.Decision, n)
	for i := range v.items {
		v.items[i] = f.Decisions[len(f.Decisions)-1-i]
	}
	v.list.Update(v.items, f.Busy)
	if v.follow && !f.Busy {
		v.list.Do(command.First, 0)
	}
}

// Situate adds the decision under the cursor.
func (v *View) Situate(f *view.Frame, s *command.Situation) {
	v.update(f)
	_, s.Selected = v.list.Selected()
	s.Filtered = v.list.Filtered()
}

// Do carries out a command.
func (v *View) Do(f *view.Frame, c command.ID) (view.Intent, bool) {
	v.update(f)
	switch c {
	case command.Open:
		return v.open(), true
	case command.Side:
		v.noWhy = !v.noWhy
	case command.Odd:
		return v.nextOdd(f), true
	case command.Follow:
		if v.follow = !v.follow; v.follow {
			v.list.Do(command.First, v.page)
		}
	case command.Down, command.Up, command.First, command.Last, command.PageDown, command.PageUp:
		v.follow = false
		return nil, v.list.Do(c, v.page)
	case command.NextMatch, command.PrevMatch:
		v.follow = false
		return nil, v.list.Do(c, v.page)
	case command.Filter:
		return nil, v.list.Do(c, v.page)
	default:
		return nil, false
	}
	return nil, true
}

// open shows the conversation of the decision under the cursor.
func (v *View) open() view.Intent {
	d, ok := v.list.Selected()
	switch {
	case !ok:
		return view.Toast{Level: view.Note, Text: cell.Lit("nothing selected")}
	case d.Conv.Keyless():
		return view.Toast{Level: view.Note, Text: cell.Lit("this request named no conversation")}
	}
	v.follow = false
	return view.Goto{View: command.Convs, Filter: "conversation:" + table.Quote(d.Conv.ID)}
}

// nextOdd moves to the next older decision that did not go as it should, round
// about.
func (v *View) nextOdd(f *view.Frame) view.Intent {
	d, ok := v.list.Seek(1, func(d *model.Decision) bool { return odd(f, d) != "" })
	if !ok {
		return view.Toast{Level: view.Note, Text: cell.Lit("nothing odd: all ran where they were sent and found what was predicted")}
	}
	v.follow = false
	return view.Toast{Level: view.Note, Text: cell.Say("decision %s: %s", cell.Full(d.ID), cell.Foreign(odd(f, d)))}
}

// Export is every decision that passes the filter, in the order shown.
func (v *View) Export(f *view.Frame) view.Table {
	v.update(f)
	t := view.Table{Name: "decisions", Columns: []string{
		"decision", "at", "conversation", "tenant", "model", "mode", "policy", "version", "phase", "target", "why", "conflict", "lost_to",
		"prompt_tokens", "predicted_tokens", "score", "margin", "runner_up", "took_ns", "ran", "cached_tokens", "ttft_ms", "outcome",
	}}
	for _, d := range v.list.Rows() {
		want, _ := predicted(d)
		row := []any{
			d.ID, d.At, d.Conv.ID, d.Conv.Tenant, d.Conv.Model, string(d.Mode), string(d.Policy), d.Version, string(d.Placement.Phase),
			d.Target.String(), whyOf(d), d.Conflict, d.LostTo, d.Placement.PromptTokens, want, scoreOf(d), marginOf(d), nil, d.TookNs,
			nil, nil, nil, nil,
		}
		if t := runnerUp(d); t.Rank != model.NoRank {
			row[17] = t.String()
		}
		if s, ok := f.Settled[d.ID]; ok {
			row[19], row[20], row[21], row[22] = s.Ran.String(), s.CachedTokens, float64(s.TTFTMs), string(s.Outcome)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// Typing reports that the filter is being typed.
func (v *View) Typing() bool { return v.list.Typing() }

// Key takes a key while typing.
func (v *View) Key(f *view.Frame, k view.Key) view.Intent {
	if k.Name == "down" || k.Name == "up" {
		v.follow = false
	}
	v.list.Key(k)
	return nil
}

// Back closes the filter.
func (v *View) Back(*view.Frame) bool { return v.list.Back() }

// SetFilter takes a filter from another view; one that does not parse is
// dropped.
func (v *View) SetFilter(text string) { _ = v.list.SetFilter(text) }

// Select puts the cursor on a decision, and reports whether it is listed.
func (v *View) Select(id uint64) bool {
	ok := v.list.Select(id)
	if ok {
		v.follow = false
	}
	return ok
}

// CopyText is the decision under the cursor and what became of it, as JSON.
func (v *View) CopyText(f *view.Frame) string {
	v.update(f)
	d, ok := v.list.Selected()
	if !ok {
		return ""
	}
	out := struct {
		Decision *model.Decision `json:"decision"`
		Settled  *model.Settled  `json:"settled,omitempty"`
	}{Decision: d}
	if s, ok := f.Settled[d.ID]; ok {
		out.Settled = &s
	}
	b, err := json.Marshal(out)
	if err != nil {
		return ""
	}
	return string(b)
}
