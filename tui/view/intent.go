package view

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
)

// Intent is what a view or a dialog wants done; nil is nothing.
type Intent interface{ intent() }

// Send sends a command to the router. The frame fills ID and Actor, and Expect
// with the version shown when it is 0.
type Send struct {
	Command model.Command
	// ClearStaged drops the staged values when the router accepts.
	ClearStaged bool
}

// Show opens a dialog over what is there.
type Show struct{ Dialog Dialog }

// Stage sets values that are not applied yet, replacing those of the same field
// and target.
type Stage struct{ Values []model.FieldValue }

// Unstage drops a staged value; an empty Field drops all.
type Unstage struct {
	Field  string
	Target *model.Target
}

// Level says how urgent a toast is; the newest error outranks the rest.
type Level uint8

// The levels.
const (
	Done Level = iota
	Note
	Alert
	Failed
)

// Toast shows a sentence in the status row for six seconds.
type Toast struct {
	Level Level
	Text  cell.Text
}

// Goto shows another view; Filter, when not empty, becomes its filter, and the
// cursor goes on At where there is such a row.
type Goto struct {
	View   command.View
	Filter string
	At     Subject
}

// Subject is what a row is about, for views that hand the cursor on; the zero
// value is nothing.
type Subject struct {
	Target model.Target // a rank, or with NoRank a worker
	Conv   model.ConvKey
	Event  uint64 // an event's id
}

// Empty reports whether s is nothing.
func (s Subject) Empty() bool { return s == Subject{} }

// Seeker is a view whose cursor can be put on a subject. It drops a filter that
// hides it, and reports whether the subject is listed.
type Seeker interface {
	Seek(f *Frame, s Subject) bool
}

// Unreader is a view that counts what came since it was last looked at, for the
// small digit on its tab.
type Unreader interface{ Unread(f *Frame) int }

// Perform runs a command of the table as if its key were pressed.
type Perform struct{ Command command.ID }

// Copy puts text on the operator's clipboard, raw.
type Copy struct {
	Text string
	What cell.Text // for the toast: "3 ids"
}

// All carries out several intents in order.
type All []Intent

func (Send) intent()    {}
func (Show) intent()    {}
func (Stage) intent()   {}
func (Unstage) intent() {}
func (Toast) intent()   {}
func (Goto) intent()    {}
func (Perform) intent() {}
func (Copy) intent()    {}
func (All) intent()     {}

// Filterer is a view that takes a filter from another view.
type Filterer interface{ SetFilter(text string) }

// Table is what a view exports: raw values, not what is painted. A nil, an
// unknown number and the zero time are left empty.
type Table struct {
	Name    string // for the file's name: ranks
	Columns []string
	Rows    [][]any // strings, ints, floats and times, as many as Columns
}

// Exporter is a view whose filtered rows can be written to a file.
type Exporter interface{ Export(f *Frame) Table }

// Sorter is a view whose order the frame's chooser can change.
type Sorter interface {
	// SortFields names the columns to sort by, the present one, and whether its
	// greatest comes first.
	SortFields() (names []string, now string, falling bool)
	// SortBy orders by the named column.
	SortBy(name string) bool
}

// Answered is a view that wants to see the answers to commands, for example to
// leave the refused conversations marked.
type Answered interface {
	Answered(cmd model.Command, reply model.Reply)
}

// Undoer is a view whose cursor can be on one change: undo then means that one
// and not the newest. ok is false when it is not.
type Undoer interface {
	Undo(f *Frame) (in Intent, ok bool)
}
