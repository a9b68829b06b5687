// Package workers is the console's view of the workers: which engine serves
// each, whether it answers, what its ranks carry together, how fresh the three
// things are that it tells (requests, metrics, KV events), and whether it runs
// requests on the ranks that it was asked for.
//
// Liveness is apart from load, and each state of a feed has a shape of its own.
// A sum over ranks of which one has not reported is not known, and is shown as
// what is known at least. A simulated worker has no address, no feeds and
// nothing to steer; its row leaves those blank. On a large screen every worker
// is open at once. Drain and ready act on all ranks of a worker.
package workers

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/dialog"
	"adpdeck/tui/list"
	"adpdeck/tui/table"
	"adpdeck/tui/view"
)

// View is the view of workers.
type View struct {
	list   *list.List[string, *entry]
	rev    uint64
	of     *model.State
	busy   bool
	noSide bool
	page   int
	topRow int // first row of open workers shown on a large screen
}

// New returns the view, ordered by name.
func New() *View {
	v := &View{page: 10}
	v.list = list.New(list.Config[string, *entry]{
		Key: func(e *entry) string { return e.ID }, Fields: fields(), Sort: "worker",
	})
	return v
}

func fields() []list.Field[*entry] {
	type field = list.Field[*entry]
	text := func(name string, get func(e *entry) string) field { return field{Name: name, Text: get} }
	num := func(name string, get func(e *entry) float64) field {
		return field{Name: name, Number: get, Falling: true}
	}
	return []field{
		{
			Name: "worker", Exact: true, Text: func(e *entry) string { return e.ID },
			Compare: func(a, b *entry) int { return model.Target{Worker: a.ID}.Compare(model.Target{Worker: b.ID}) },
		},
		text("engine", func(e *entry) string { return e.Engine }),
		text("state", stateWord),
		text("feeds", feedWords),
		text("address", func(e *entry) string { return e.Address }),
		text("models", modelWords),
		num("ranks", func(e *entry) float64 { return float64(e.Ranks) }),
		num("ready", func(e *entry) float64 { return float64(e.ready) }),
		num("draining", func(e *entry) float64 { return float64(e.draining) }),
		num("active", func(e *entry) float64 { return e.whole(e.active) }),
		num("tokens", func(e *entry) float64 { return e.whole(e.tokens) }),
		num("ttft", func(e *entry) float64 { return measured(e.TTFTMsP50) }),
		num("p99", func(e *entry) float64 { return measured(e.TTFTMsP99) }),
		num("honoured", func(e *entry) float64 { return e.honouredShare() }),
		num("ignored", func(e *entry) float64 { return float64(e.ignored) }),
		num("restarts", func(e *entry) float64 { return float64(e.Restarts) }),
		num("findings", func(e *entry) float64 { return float64(len(e.findings)) }),
	}
}

// ID is the view's name in the command table.
func (v *View) ID() command.View { return command.Workers }

// Title is its name in the row of tabs.
func (v *View) Title() cell.Text { return cell.Lit("Workers") }

// update brings the list up to the frame, only when something changed.
func (v *View) update(f *view.Frame) {
	if v.rev == f.Rev && v.busy == f.Busy && v.of == f.State {
		return
	}
	v.rev, v.busy, v.of = f.Rev, f.Busy, f.State
	v.list.Update(gather(f.State), f.Busy)
}

// Situate adds the worker under the cursor.
func (v *View) Situate(f *view.Frame, s *command.Situation) {
	v.update(f)
	e, ok := v.list.Selected()
	s.Selected, s.Filtered = ok, v.list.Filtered()
	if ok {
		s.Draining, s.Partly = e.draining > 0, e.draining > 0 && e.draining < len(e.ranks)
	}
}

// Do carries out a command.
func (v *View) Do(f *view.Frame, c command.ID) (view.Intent, bool) {
	v.update(f)
	v.list.Touch()
	e, ok := v.list.Selected()
	switch c {
	case command.Side:
		v.noSide = !v.noSide
	case command.Odd:
		return v.nextOdd(f), true
	case command.Open, command.Drain, command.Ready:
		if ok {
			return act(f, c, e), true
		}
	case command.Mark, command.MarkRange, command.MarkAll:
		return nil, false
	default:
		return nil, v.list.Do(c, v.page)
	}
	return nil, true
}

// act does what c does to a worker.
func act(f *view.Frame, c command.ID, e *entry) view.Intent {
	switch c {
	case command.Open:
		return view.Goto{View: command.Ranks, Filter: "worker:" + table.Quote(e.ID)}
	case command.Drain:
		return view.Show{Dialog: dialog.NewDrainWorker(f, e.ID)}
	}
	return view.Send{Command: model.Command{Verb: model.VerbReady, Target: &model.Target{Worker: e.ID, Rank: model.NoRank}}}
}

// nextOdd puts the cursor on the next worker that something is wrong with.
func (v *View) nextOdd(f *view.Frame) view.Intent {
	e, ok := v.list.Seek(1, func(e *entry) bool { _, t := e.odd(f); return !t.Empty() })
	if !ok {
		return view.Toast{Level: view.Note, Text: cell.Lit("nothing odd: all answer, feeds are whole, ranks are honoured")}
	}
	_, t := e.odd(f)
	return view.Toast{Level: view.Note, Text: cell.Say("%s: %s", cell.Fit(e.ID, 24), t)}
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

// Seek puts the cursor on the worker of a target; a filter that hides it goes.
func (v *View) Seek(f *view.Frame, s view.Subject) bool {
	v.update(f)
	if !v.list.Select(s.Target.Worker) {
		v.SetFilter("")
	}
	return v.list.Select(s.Target.Worker)
}

// CopyText is the worker under the cursor, raw.
func (v *View) CopyText(f *view.Frame) string {
	v.update(f)
	if e, ok := v.list.Selected(); ok {
		return e.ID
	}
	return ""
}
