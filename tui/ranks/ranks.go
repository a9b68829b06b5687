// Package ranks is the console's home view: one row per rank with its load
// against its fair share, the cluster's six figures above, and where there is
// room a side panel on the rank under the cursor, the newest decisions and the
// course of the skew.
//
// A figure that was never reported is a dash; a rank whose last report is old
// is dimmed and says its age. The view keeps a list's state and nothing of the
// router's.
package ranks

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/dialog"
	"adpdeck/tui/edit"
	"adpdeck/tui/layout"
	"adpdeck/tui/list"
	"adpdeck/tui/table"
	"adpdeck/tui/view"
)

// View is the ranks view.
type View struct {
	list   *list.List[model.Target, *model.Rank]
	rev    uint64
	of     *model.State
	busy   bool
	chosen bool // the operator chose the order
	form   layout.Form
	editor *edit.Value

	more, noSide bool
	page, hidden int

	heavyRev   uint64
	heavyFor   *model.State
	heavyAt    model.Target
	heavyConvs []*model.Conv
}

// New returns the view, ordered by rank.
func New() *View {
	return &View{page: 10, list: list.New(list.Config[model.Target, *model.Rank]{
		Key: func(r *model.Rank) model.Target { return r.Target }, Fields: fields(), Sort: "rank",
	})}
}

func fields() []list.Field[*model.Rank] {
	type field = list.Field[*model.Rank]
	num := func(name string, always bool, get func(r *model.Rank) float64) field {
		return field{Name: name, Falling: true, Number: func(r *model.Rank) float64 {
			if !always && !known(r) {
				return float64(model.Unknown())
			}
			return get(r)
		}}
	}
	return []field{
		{
			Name: "rank", Exact: true, Text: func(r *model.Rank) string { return r.Target.String() },
			Compare: func(a, b *model.Rank) int {
				switch {
				case a.Target.Less(b.Target):
					return -1
				case b.Target.Less(a.Target):
					return 1
				}
				return 0
			},
		},
		{Name: "worker", Exact: true, Text: func(r *model.Rank) string { return r.Target.Worker }},
		{Name: "state", Text: func(r *model.Rank) string {
			if r.Down {
				return "down"
			}
			return string(r.Availability)
		}},
		num("weight", true, func(r *model.Rank) float64 { return r.Weight }),
		num("active", false, func(r *model.Rank) float64 { return float64(r.Active) }),
		num("q", false, func(r *model.Rank) float64 { return float64(r.Queued) }),
		num("tokens", false, func(r *model.Rank) float64 { return float64(r.Tokens) }),
		num("kv", false, kvOf),
		num("hit", true, func(r *model.Rank) float64 { return float64(r.Hit) }),
		num("pins", true, func(r *model.Rank) float64 { return float64(r.Pins + r.OperatorPins) }),
	}
}

// ID is the view's name in the command table.
func (v *View) ID() command.View { return command.Ranks }

// Title is its name in the row of tabs.
func (v *View) Title() cell.Text { return cell.Lit("Ranks") }

// update brings the list up to the frame, only when something changed.
func (v *View) update(f *view.Frame) {
	if !v.chosen && v.form != f.Form {
		v.form = f.Form
		if f.Form == layout.Full {
			v.list.SortBy("rank")
		} else {
			v.list.SortBy("tokens")
		}
	}
	busy := f.Busy || v.editor != nil
	if v.rev == f.Rev && v.busy == busy && v.of == f.State {
		return
	}
	v.rev, v.busy, v.of = f.Rev, busy, f.State
	rows := make([]*model.Rank, len(f.State.Ranks))
	for i := range f.State.Ranks {
		rows[i] = &f.State.Ranks[i]
	}
	v.list.Update(rows, busy)
}

// Draw returns h lines of w cells.
func (v *View) Draw(f *view.Frame, w, h int) []string {
	v.update(f)
	if f.Form != layout.Full {
		return v.compact(f, w, h)
	}
	return v.full(f, w, h)
}

// Situate adds the rank under the cursor.
func (v *View) Situate(f *view.Frame, s *command.Situation) {
	v.update(f)
	r, ok := v.list.Selected()
	s.Selected, s.Filtered = ok, v.list.Filtered()
	s.Draining = ok && r.Availability == model.Draining
}

// Do carries out a command.
func (v *View) Do(f *view.Frame, c command.ID) (view.Intent, bool) {
	v.update(f)
	v.list.Touch()
	r, ok := v.list.Selected()
	switch c {
	case command.Columns:
		v.more = !v.more
	case command.Side:
		v.noSide = !v.noSide
	case command.Odd:
		return v.nextOdd(f), true
	case command.SortLeft, command.SortRight, command.Reverse:
		v.chosen = true
		return nil, v.list.Do(c, v.page)
	case command.Open, command.Weight, command.Drain, command.Ready:
		if ok {
			return v.act(f, c, r), true
		}
	default:
		return nil, v.list.Do(c, v.page)
	}
	return nil, true
}

// SortFields names the columns to sort by.
func (v *View) SortFields() (names []string, now string, falling bool) {
	now, falling = v.list.Order()
	return v.list.FieldNames(), now, falling
}

// SortBy orders by the named column.
func (v *View) SortBy(name string) bool {
	v.chosen = true
	return v.list.SortBy(name)
}

// act does what c does to rank r.
func (v *View) act(f *view.Frame, c command.ID, r *model.Rank) view.Intent {
	t := r.Target
	switch c {
	case command.Open:
		return view.Goto{View: command.Convs, Filter: filterFor(t)}
	case command.Weight:
		field, _ := model.FieldByName(model.FieldWeight)
		staged, _ := f.StagedValue(model.FieldWeight, &t)
		v.editor = edit.New(&f.State.Settings, field, &t, staged)
	case command.Drain:
		return view.Show{Dialog: dialog.NewDrain(f, r)}
	case command.Ready:
		return view.Send{Command: model.Command{Verb: model.VerbReady, Target: &t}}
	}
	return nil
}

// filterFor is the filter for the conversations of t, quoted where its name
// needs it.
func filterFor(t model.Target) string {
	return "rank:" + table.Quote(t.String())
}

// Typing reports that the filter or a weight is being typed.
func (v *View) Typing() bool { return v.editor != nil || v.list.Typing() }

// Key takes a key while typing.
func (v *View) Key(f *view.Frame, k view.Key) view.Intent {
	if v.editor == nil {
		v.list.Key(k)
		return nil
	}
	switch v.editor.Key(k) {
	case edit.Closed:
		v.editor = nil
	case edit.Staged:
		fv := v.editor.FieldValue()
		v.editor = nil
		return view.Stage{Values: []model.FieldValue{fv}}
	}
	return nil
}

// Back closes the filter.
func (v *View) Back(f *view.Frame) bool {
	if v.editor != nil {
		v.editor = nil
		return true
	}
	return v.list.Back()
}

// SetFilter takes a filter from another view; one that does not parse is
// dropped.
func (v *View) SetFilter(text string) { _ = v.list.SetFilter(text) }

// Seek puts the cursor on a rank; a filter that hides it goes.
func (v *View) Seek(f *view.Frame, s view.Subject) bool {
	v.update(f)
	if !v.list.Select(s.Target) {
		v.SetFilter("")
	}
	return v.list.Select(s.Target)
}

// CopyText is the rank under the cursor, raw.
func (v *View) CopyText(f *view.Frame) string {
	v.update(f)
	if r, ok := v.list.Selected(); ok {
		return r.Target.String()
	}
	return ""
}
