// Package index is the console's view of the prefix index: how well the router
// knows what each rank holds in its cache, and what that knowledge was worth.
//
// A rank's feed is live, has a gap, is in doubt since events were lost, is silent, was never heard, or is guessed
// from what was routed; a rank without blocks is never taken for one that says
// nothing. Hit is what requests found where they went, reachable what the best
// rank held at that moment, and the difference is split by what it was given up
// for. Findings stand with their cause and what to do. Where the router keeps
// no index the view says so, and what to set.
package index

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/list"
	"adpdeck/tui/table"
	"adpdeck/tui/view"
)

// View is the view of the index.
type View struct {
	list   *list.List[model.Target, *entry]
	rev    uint64
	of     *model.State
	busy   bool
	frame  *view.Frame // the one last drawn, for ages
	noSide bool
	page   int
}

// entry is one rank: what the index knows, and what the rank itself says.
type entry struct {
	*model.IndexRank
	rank     *model.Rank   // nil where the state has none of that name
	worker   *model.Worker // likewise
	findings []*model.Finding
}

// New returns the view, ordered by rank.
func New() *View {
	v := &View{page: 10}
	v.list = list.New(list.Config[model.Target, *entry]{
		Key: func(e *entry) model.Target { return e.Target }, Fields: v.fields(), Sort: "rank",
	})
	return v
}

func (v *View) fields() []list.Field[*entry] {
	type field = list.Field[*entry]
	num := func(name string, get func(e *entry) float64) field {
		return field{Name: name, Number: get, Falling: true}
	}
	return []field{
		{
			Name: "rank", Exact: true, Text: func(e *entry) string { return e.Target.String() },
			Compare: func(a, b *entry) int { return a.Target.Compare(b.Target) },
		},
		{Name: "worker", Exact: true, Text: func(e *entry) string { return e.Target.Worker }},
		{Name: "feed", Text: func(e *entry) string { return string(e.Feed) }},
		num("age", v.age),
		num("gaps", func(e *entry) float64 { return float64(e.Gaps) }),
		num("blocks", func(e *entry) float64 { return float64(e.Device + e.Host + e.Disk) }),
		num("memory", func(e *entry) float64 { return float64(e.Bytes) }),
		num("hit", func(e *entry) float64 { return float64(e.Hit) }),
		num("reachable", func(e *entry) float64 { return float64(e.Reachable) }),
		num("lost", lostShare),
		num("agreed", func(e *entry) float64 { return float64(e.Agreed) }),
		num("refused", func(e *entry) float64 { return float64(e.Refused) }),
	}
}

// age is how long ago the last batch came, in seconds; unknown before one.
func (v *View) age(e *entry) float64 {
	if v.frame == nil || e.EventAt.IsZero() {
		return float64(model.Unknown())
	}
	return max(0, v.frame.Now.Sub(e.EventAt).Seconds())
}

// lostShare is the share of prompt tokens that was cached elsewhere only.
func lostShare(e *entry) float64 {
	if !e.Hit.Known() || !e.Reachable.Known() {
		return float64(model.Unknown())
	}
	return max(0, float64(e.Reachable-e.Hit))
}

// ID is the view's name in the command table.
func (v *View) ID() command.View { return command.Index }

// Title is its name in the row of tabs.
func (v *View) Title() cell.Text { return cell.Lit("Index") }

// kept reports whether the router keeps an index at all.
func kept(s *model.State) bool { return len(s.Index) > 0 || s.IndexTotals != nil }

// update brings the list up to the frame, only when something changed.
func (v *View) update(f *view.Frame) {
	v.frame = f
	if v.rev == f.Rev && v.busy == f.Busy && v.of == f.State {
		return
	}
	v.rev, v.busy, v.of = f.Rev, f.Busy, f.State
	ranks := make(map[model.Target]*model.Rank, len(f.State.Ranks))
	for i := range f.State.Ranks {
		ranks[f.State.Ranks[i].Target] = &f.State.Ranks[i]
	}
	found := make(map[model.Target][]*model.Finding, len(f.State.Findings))
	for i := range f.State.Findings {
		x := &f.State.Findings[i]
		found[x.Target] = append(found[x.Target], x)
	}
	entries := make([]entry, len(f.State.Index))
	rows := make([]*entry, len(entries))
	for i := range entries {
		x := &f.State.Index[i]
		entries[i] = entry{IndexRank: x, rank: ranks[x.Target], worker: view.WorkerOf(f.State, x.Target.Worker), findings: found[x.Target]}
		rows[i] = &entries[i]
	}
	v.list.Update(rows, f.Busy)
}

// Situate adds the rank under the cursor.
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
		if e, ok := v.list.Selected(); ok {
			return view.Goto{View: command.Decisions, Filter: "rank:" + table.Quote(e.Target.String())}, true
		}
	case command.Resync:
		if e, ok := v.list.Selected(); ok {
			t := e.Target
			return view.Send{Command: model.Command{Verb: model.VerbResync, Target: &t}}, true
		}
	case command.Side:
		v.noSide = !v.noSide
	case command.Odd:
		return v.nextOdd(), true
	case command.Mark, command.MarkRange, command.MarkAll:
		return nil, false
	default:
		return nil, v.list.Do(c, v.page)
	}
	return nil, true
}

// odd says what is wrong with a rank's feed or its predictions, empty when
// nothing is.
func odd(e *entry) cell.Text {
	switch {
	case len(e.findings) > 0 || e.Feed == model.FeedGap || e.Feed == model.FeedDoubt || e.Feed == model.FeedSilent:
		_, text := note(e)
		return text
	case e.Agreed.Known() && e.Agreed < 0.99:
		return cell.Say("%s of its matches were as predicted", agreedText(e))
	}
	return cell.Text{}
}

// nextOdd puts the cursor on the next rank that something is wrong with.
func (v *View) nextOdd() view.Intent {
	e, ok := v.list.Seek(1, func(e *entry) bool { return !odd(e).Empty() })
	if !ok {
		return view.Toast{Level: view.Note, Text: cell.Lit("nothing odd: every feed is whole and matches are as predicted")}
	}
	return view.Toast{Level: view.Note, Text: cell.Say("%s: %s", cell.Fit(e.Target.String(), 24), odd(e))}
}

// Export is every rank that passes the filter, in the order shown.
func (v *View) Export(f *view.Frame) view.Table {
	v.update(f)
	t := view.Table{Name: "index", Columns: []string{
		"rank", "feed", "event_at", "seq", "gaps", "restarts", "refused", "last_error", "device_blocks", "host_blocks", "disk_blocks",
		"waiting_blocks", "holes", "bytes", "hit", "reachable", "agreed", "lost_load", "lost_cap", "lost_pin", "lost_filter", "lost_tie",
		"lost_temperature", "lost_mode", "finding", "next", "unplaced_blocks",
		"doubtful_blocks",
	}}
	for _, e := range v.list.Rows() {
		row := []any{
			e.Target.String(), string(e.Feed), e.EventAt, e.Seq, e.Gaps, e.Restarts, e.Refused, e.LastError, e.Device, e.Host, e.Disk,
			e.Waiting, e.Holes, e.Bytes, float64(e.Hit), float64(e.Reachable), float64(e.Agreed), e.Lost.Load, e.Lost.Cap, e.Lost.Pin,
			e.Lost.Filter, e.Lost.Tie, e.Lost.Temperature, e.Lost.Mode, nil, nil, e.Unplaced,
			e.Doubtful,
		}
		if len(e.findings) > 0 {
			row[24], row[25] = e.findings[0].Message, e.findings[0].Next
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// SortFields names the columns to sort by.
func (v *View) SortFields() (names []string, now string, falling bool) {
	now, falling = v.list.Order()
	return v.list.FieldNames(), now, falling
}

// SortBy orders by the named column.
func (v *View) SortBy(name string) bool { return v.list.SortBy(name) }

// Typing reports that the filter is being typed.
func (v *View) Typing() bool { return v.list.Typing() }

// Key takes a key while typing.
func (v *View) Key(_ *view.Frame, k view.Key) view.Intent {
	v.list.Key(k)
	return nil
}

// Back closes the filter.
func (v *View) Back(*view.Frame) bool { return v.list.Back() }

// SetFilter takes a filter from another view; one that does not parse is
// dropped.
func (v *View) SetFilter(text string) { _ = v.list.SetFilter(text) }

// Select puts the cursor on a rank, and reports whether it is listed.
func (v *View) Select(t model.Target) bool { return v.list.Select(t) }

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
	if e, ok := v.list.Selected(); ok {
		return e.Target.String()
	}
	return ""
}
