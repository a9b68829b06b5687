// Package view is the contract between the console's frame and its views.
//
// A view is a package of its own that draws a rectangle of cells from a Frame
// and turns commands and keys into Intents. It never sends, never waits, never
// asks the clock or the terminal, and knows nothing of Bubble Tea: the frame
// around it does that. What a Frame points to is never written again, so a view
// may keep it. All methods are called from one goroutine.
package view

import (
	"strings"
	"time"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/layout"
	"adpdeck/tui/trend"
)

// Frame is what a view draws from: one moment of the router, and the operator's
// own pending work.
type Frame struct {
	// State is never nil.
	State *model.State
	// Decisions are ordered by id, newest last; Settled holds what became of them.
	Decisions []*model.Decision
	Settled   map[uint64]model.Settled
	// Rev grows with every other State or Decisions; a view that sorts and filters
	// does so again only when it has changed.
	Rev uint64
	// Now is the router's time, for ages: State.At when frozen, and State.At moved
	// on by the age of the figures when they are stale.
	Now    time.Time
	Trends *trend.Book
	Ink    cell.Ink
	Link   command.Link
	// Lost tells of a broken link, for the lines that stand in place of the
	// totals; nil while the link is up.
	Lost *Lost
	// Screen is the whole terminal; Form how much of the console fits.
	ScreenW, ScreenH int
	Form             layout.Form
	// Staged are the values that are set here and not applied; the frame owns them.
	Staged []model.FieldValue
	// Keys is the table whose keys are in force.
	Keys *command.Table
	// Busy says that a dialog or an editor is open: a list holds its order.
	Busy bool
}

// Lost is what is known of a broken link.
type Lost struct {
	Since   time.Time // router time of the last figures
	Age     time.Duration
	Err     string // may hold foreign text
	Attempt int
	Next    time.Duration // until the next try; 0 while one is under way
}

// StagedValue returns the staged value of a field (and target, for weights).
func (f *Frame) StagedValue(field string, t *model.Target) (string, bool) {
	for _, s := range f.Staged {
		if s.Field == field && sameTarget(s.Target, t) {
			return s.Value, true
		}
	}
	return "", false
}

func sameTarget(a, b *model.Target) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// KeyOf is the first key of a command as it is drawn, :name when it has none.
func (f *Frame) KeyOf(id command.ID) cell.Text {
	key := f.Keys.KeyOf(id)
	if f.Ink.Glyphs.ASCII {
		key = strings.ReplaceAll(key, "⏎", "enter")
	}
	return cell.Foreign(key)
}

// Starts reports whether a key press starts the command id, for choosers, which
// move by the keys that lists move by.
func (f *Frame) Starts(k Key, id command.ID) bool { return f.Keys.Starts(k.Name, id) }

// Key is one key press.
type Key struct {
	// Name is Bubble Tea's name: "j", "G", "ctrl+d", "enter", "esc", "up", " ".
	Name string
	// Runes is what was typed, for text fields; nil for keys that type nothing.
	Runes []rune
}

// View is one of the console's views.
type View interface {
	// ID is its name in the command table.
	ID() command.View
	// Title is its name in the row of tabs: Ranks.
	Title() cell.Text
	// Draw returns exactly h lines of exactly w cells.
	Draw(f *Frame, w, h int) []string
	// Status is the view's part of the status row, left and right.
	Status(f *Frame) (left, right []cell.Run)
	// Situate adds what the view knows to s: what is selected, marked, unused.
	Situate(f *Frame, s *command.Situation)
	// Do carries out a command of the table that is on and belongs to the view;
	// the frame has handled its own. ok is false when it does not know it.
	Do(f *Frame, c command.ID) (in Intent, ok bool)
	// Typing reports that the view reads text: every key goes to Key until it
	// does not.
	Typing() bool
	// Key takes a key while the view is typing.
	Key(f *Frame, k Key) Intent
	// Back closes exactly one level (filter, marks, detail), and reports false
	// when there was none to close.
	Back(f *Frame) bool
}

// Runner is a view that also takes commands typed by name with arguments:
// filter, sort, pin CONV RANK. It answers why it cannot, or an Intent.
type Runner interface {
	Run(f *Frame, name command.ID, args []string) (in Intent, why string, ok bool)
}

// Copier is a view that can name what the cursor is on or what is marked, raw,
// one per line.
type Copier interface{ CopyText(f *Frame) string }

// Dialog is a box over the body. The frame draws its border and title, and
// closes it on esc.
type Dialog interface {
	// Title stands in the upper border, Foot in the lower one.
	Title() cell.Text
	Foot(f *Frame) cell.Text
	// Size is the size wanted inside the border; it may get less.
	Size(f *Frame) (w, h int)
	// Draw returns exactly h lines of exactly w cells.
	Draw(f *Frame, w, h int) []string
	// Key takes a key. done closes the dialog.
	Key(f *Frame, k Key) (in Intent, done bool)
	// Acts reports whether a key may start something: such a dialog ignores keys
	// for the first 150 ms, so that a held key never confirms.
	Acts() bool
}
