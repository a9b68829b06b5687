// Package events is the console's view of everything that happened: each event
// that the router keeps, newest first, joined with the revision that it made.
//
// What operators did stands apart from what befell the machine, by a word in
// every row and, on a large screen, in two tails beside each other. The detail
// says what was before and what came after, who did it and why, and whether it
// can be taken back; enter goes to the rank, the worker or the conversation
// that it is about. What came since the view was last looked at is counted.
//
// The list is never sorted otherwise than by time, and holds at most what a
// State carries (model.MaxEvents). The cursor belongs to an event.
package events

import (
	"cmp"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/dialog"
	"adpdeck/tui/list"
	"adpdeck/tui/view"
)

// View is the view of events.
type View struct {
	list   *list.List[uint64, *entry]
	rev    uint64
	of     *model.State
	busy   bool
	frame  *view.Frame // the one last drawn, for ages
	counts counts
	noSide bool
	page   int
	// split says that two tails are shown; tops are the first rows shown of them.
	split bool
	tops  [2]int
	// seen is the newest event when the view was last looked at; started says
	// that there was a first state, whose events count as seen.
	seen    uint64
	started bool
}

// New returns the view.
func New() *View {
	v := &View{page: 10}
	v.list = list.New(list.Config[uint64, *entry]{
		Key: func(e *entry) uint64 { return e.ID }, Fields: v.fields(), Sort: "event",
	})
	return v
}

func (v *View) fields() []list.Field[*entry] {
	type field = list.Field[*entry]
	text := func(name string, exact bool, get func(e *entry) string) field {
		return field{Name: name, Exact: exact, Text: get}
	}
	return []field{
		{
			Name: "event", Number: func(e *entry) float64 { return float64(e.ID) }, Falling: true,
			Compare: func(a, b *entry) int { return cmp.Compare(a.ID, b.ID) },
		},
		text("kind", true, func(e *entry) string { return e.kind }),
		text("level", true, func(e *entry) string { return e.Level }),
		text("who", false, func(e *entry) string { return e.Who }),
		text("what", false, func(e *entry) string { return e.What }),
		text("verb", true, func(e *entry) string { return e.verb() }),
		text("reason", false, func(e *entry) string { return e.reason() }),
		text("rank", true, func(e *entry) string { return v.about(e).rank() }),
		text("worker", true, func(e *entry) string { return v.about(e).target.Worker }),
		{
			Name: "version", Exact: true, Text: func(e *entry) string { return e.versionText() },
			Number: func(e *entry) float64 {
				if e.Version == 0 {
					return float64(model.Unknown())
				}
				return float64(e.Version)
			},
		},
		{Name: "age", Number: func(e *entry) float64 {
			if v.frame == nil {
				return float64(model.Unknown())
			}
			return max(0, v.frame.Now.Sub(e.At).Seconds())
		}},
	}
}

// ID is the view's name in the command table.
func (v *View) ID() command.View { return command.Events }

// Title is its name in the row of tabs.
func (v *View) Title() cell.Text { return cell.Lit("Events") }

// update brings the list up to the frame, only when something changed.
func (v *View) update(f *view.Frame) {
	v.frame = f
	if v.rev == f.Rev && v.busy == f.Busy && v.of == f.State {
		return
	}
	v.rev, v.busy, v.of = f.Rev, f.Busy, f.State
	rows := join(f.State)
	v.counts = count(rows)
	v.list.Update(rows, f.Busy)
}

// Unread counts the events since the view was last drawn. Those that were there
// when the console began are not news.
func (v *View) Unread(f *view.Frame) int {
	newest := newestID(f.State)
	frozen := f.Link == command.LinkFrozen
	switch {
	case !v.started:
		v.seen, v.started = newest, true
	case newest < v.seen && !frozen:
		v.seen = 0 // another router, or the same anew: it counts from 1
	}
	n := 0
	for i := range f.State.Events {
		if f.State.Events[i].ID > v.seen {
			n++
		}
	}
	return n
}

// look marks everything in the frame as seen.
func (v *View) look(f *view.Frame) {
	if newest := newestID(f.State); newest > v.seen || f.Link != command.LinkFrozen {
		v.seen, v.started = newest, true
	}
}

func newestID(s *model.State) uint64 {
	if len(s.Events) == 0 {
		return 0
	}
	return s.Events[0].ID
}

// Situate adds the event under the cursor.
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
			v.list.Touch()
			return v.open(f, e), true
		}
	case command.Side:
		v.noSide = !v.noSide
	case command.Odd:
		return v.nextOdd(), true
	case command.OneKind:
		v.nextKind()
	case command.OtherTail:
		return v.otherTail(), true
	case command.Down, command.Up, command.First, command.Last, command.PageDown, command.PageUp:
		if v.split {
			v.moveInTail(c)
			return nil, true
		}
		return nil, v.list.Do(c, v.page)
	case command.Filter, command.NextMatch, command.PrevMatch, command.Follow:
		return nil, v.list.Do(c, v.page)
	default:
		return nil, false
	}
	return nil, true
}

// Undo asks whether to take back what the event under the cursor did.
func (v *View) Undo(f *view.Frame) (in view.Intent, ok bool) {
	v.update(f)
	e, ok := v.list.Selected()
	if !ok {
		return nil, false
	}
	v.list.Touch()
	note := func(t cell.Text) (view.Intent, bool) { return view.Toast{Level: view.Note, Text: t}, true }
	switch {
	case e.Version == 0:
		return note(cell.Lit("this event changed no setting: there is nothing to take back"))
	case e.rev == nil:
		return note(cell.Say("v%s is too old: the history does not hold it any more", cell.Int(e.Version)))
	}
	return dialog.TakeBack(f, *e.rev), true
}

// nextOdd puts the cursor on the next warning or error.
func (v *View) nextOdd() view.Intent {
	e, ok := v.list.Seek(1, func(e *entry) bool { return e.odd() })
	if !ok {
		return view.Toast{Level: view.Note, Text: cell.Lit("nothing odd: no warning and no error among these")}
	}
	return view.Toast{Level: view.Note, Text: cell.Say("%s %s: %s", cell.Clock(e.At), cell.Fit(e.Who, 16), cell.Fit(e.What, 120))}
}

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

// Seek puts the cursor on an event; a filter that hides it goes.
func (v *View) Seek(f *view.Frame, s view.Subject) bool {
	v.update(f)
	if !v.list.Select(s.Event) {
		v.SetFilter("")
	}
	return v.list.Select(s.Event)
}
