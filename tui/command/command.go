// Package command is the one table of what the console can do. Key handling,
// the hints row, the help overlay, the keys page of the documentation and the
// reasons why a command is off all come from it, so they cannot disagree.
//
// Lower case looks, upper case acts. The package is pure data and functions of
// their arguments; Table returns a fresh copy each time.
package command

import (
	"slices"

	"adpdeck/router/model"
)

// ID names a command; the same word stands in the palette, in scripts and in
// logs.
type ID string

// View names a view of the console.
type View string

// The views, in the order of their numbers.
const (
	Ranks     View = "ranks"
	Convs     View = "convs"
	Decisions View = "decisions"
	Index     View = "index"
	Tuning    View = "tuning"
	Events    View = "events"
	Workers   View = "workers"
)

// Views returns every view in the order of their numbers.
func Views() []View { return []View{Ranks, Convs, Decisions, Index, Tuning, Events, Workers} }

// Class says how carefully a command is treated.
type Class uint8

// The classes.
const (
	Look  Class = iota // changes nothing but the screen
	Local              // local or harmless: no question
	Moves              // moves some traffic and can be undone: a dialog with Cancel focused
	Wide               // wide or final: the dialog asks for a typed word too
)

// Group is the part of the help overlay where a command stands.
type Group uint8

// The groups.
const (
	GroupLook Group = iota
	GroupAct
	GroupMove
)

// Title returns the heading of the group.
func (g Group) Title() string {
	return [...]string{"LOOK", "ACT  (upper case)", "MOVE AROUND"}[g]
}

// Link is the condition of the figures on the screen.
type Link uint8

// The conditions.
const (
	LinkNone   Link = iota // nothing has arrived yet
	LinkLive               // figures are at most two periods old
	LinkSlow               // older than that
	LinkStale              // old: the feed is lost or broken
	LinkFrozen             // held by the operator
	LinkReplay             // from a recording
)

// Situation is everything that decides whether a command is on.
type Situation struct {
	View     View
	Link     Link
	ReadOnly bool // the role may only look
	// Selected says that the cursor is on something, Marked counts marks, Pinned
	// says that the selection is held by an operator's pin.
	Selected, Pinned bool
	Marked           int
	// Draining says that what is selected drains; Partly that it is a worker and
	// only some of its ranks do.
	Draining, Partly bool
	// Alerts counts findings, warnings and errors that were not looked at.
	Alerts   int
	Staged   int  // values staged and not applied
	Filtered bool // a filter is in force in the list
	Refused  bool // the last command met a conflict and can be asked again on top
	Compact  bool // the screen has room for few hints
	// KnobOff says why the selected knob is not used by the present policy,
	// "policy kv_aware does not use it"; empty when it is used.
	KnobOff   string
	Policy    model.Policy
	Simulated bool // the traffic's speed can be changed
	CanUndo   bool
	// Keys is the table whose keys reasons name; nil is the default one.
	Keys *Table
}

// key is the first key of a command as people write it.
func (s *Situation) key(id ID) string {
	t := s.Keys
	if t == nil {
		t = New()
	}
	return t.KeyOf(id)
}

// Command is one row of the table.
type Command struct {
	ID    ID
	Keys  []string // as Bubble Tea names them, first is shown in hints; none: by name only
	Class Class
	Group Group
	Views []View // where it applies; nil is everywhere
	// Help says in at most 40 cells what it does.
	Help string
	// Hint is its word in the hints row, empty for none; Weight says which hints
	// stay when width is short, the greatest first.
	Hint   string
	Weight int
	// Words are its words in the hints row of single views, in place of Hint.
	Words map[View]string
	// HintKey is printed in hints instead of the first key, which HintWith joins,
	// by HintJoin, with that of another command. HintAt moves a hint behind those
	// of lower numbers.
	HintKey  string
	HintWith ID
	HintJoin string
	HintAt   int
	// Leads are commands printed on the same line of the help overlay, and Line
	// the words for all of them.
	Leads []ID
	Line  string
	// Off says why the command cannot be used now; empty when it can. Nil: always.
	Off func(*Situation) string
}

// Applies reports whether c belongs to view v.
func (c *Command) Applies(v View) bool {
	if len(c.Views) == 0 {
		return true
	}
	for _, w := range c.Views {
		if w == v {
			return true
		}
	}
	return false
}

// Reason says why c is off in s; empty when it is on.
func (c *Command) Reason(s *Situation) string {
	if c.Off == nil {
		return ""
	}
	return c.Off(s)
}

// Table is the list of all commands with an index by key and view.
type Table struct {
	Commands []Command
	byID     map[ID]int
}

// New returns the table.
func New() *Table {
	t := &Table{byID: map[ID]int{}}
	t.Commands = append(append(append(t.Commands, looking()...), acting()...), moving()...)
	for i := range t.Commands {
		t.byID[t.Commands[i].ID] = i
	}
	return t
}

// Get returns the command named id, nil when there is none.
func (t *Table) Get(id ID) *Command {
	i, ok := t.byID[id]
	if !ok {
		return nil
	}
	return &t.Commands[i]
}

// KeyOf returns the first key of a command as people write it; :name when it
// has none.
func (t *Table) KeyOf(id ID) string {
	c := t.Get(id)
	if c == nil || len(c.Keys) == 0 {
		return ":" + string(id)
	}
	return KeyName(c.Keys[0])
}

// Starts reports whether key starts the command id.
func (t *Table) Starts(key string, id ID) bool {
	c := t.Get(id)
	return c != nil && slices.Contains(c.Keys, key)
}

// ByKey returns the command that key starts in view v, nil when there is none.
func (t *Table) ByKey(v View, key string) *Command {
	for i := range t.Commands {
		c := &t.Commands[i]
		if !c.Applies(v) {
			continue
		}
		for _, k := range c.Keys {
			if k == key {
				return c
			}
		}
	}
	return nil
}
