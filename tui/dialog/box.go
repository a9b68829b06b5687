// Package dialog holds the boxes in which the console asks before it acts: pin,
// migrate, evict, drain, apply, policy, undo, and the choice of an order.
//
// Every dialog that moves traffic names its exact targets and the version it
// was opened against, has Cancel in focus, and takes y or enter on the other
// button; a wide one wants a word typed as well. A dialog only makes the
// Intent; the frame draws the border, holds keys back for the first moment and
// sends. Figures are those of the frame being drawn, the version is that of
// the frame it was opened on.
package dialog

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

// width is the width wanted inside the border.
const width = 68

// pad is the room left and right of the text.
const pad = 2

// manyItems is the count above which a dialog wants the count typed.
const manyItems = 10

// content is the part of a box that differs.
type content interface {
	// rows is how many rows paint would like.
	rows(f *view.Frame) int
	// paint fills at most h rows; it begins each itself.
	paint(b *cell.Block, f *view.Frame, h int)
	// key takes a key that the box has no use for.
	key(f *view.Frame, k view.Key)
	// fire is what the button does, or in words why it cannot.
	fire(f *view.Frame) (c view.Send, why cell.Text)
}

// focus is the part of a box that takes keys.
type focus uint8

const (
	onCancel focus = iota
	onButton
	onReason
	onWord
)

// Box is a dialog with two buttons.
type Box struct {
	title, button cell.Text
	hint          func(*view.Frame) cell.Text // keys of the content, before the buttons; nil without
	version       uint64
	next          bool // the foot says v1412 → v1413
	body          content
	focus         focus
	reason, typed string
	word          string // to be typed; empty for none
	counted       bool   // the word is the count of items
	ask           cell.Text
	noReason      bool
}

// WithReason puts in the reason that was typed the last time, and returns x.
func (x *Box) WithReason(reason string) *Box {
	x.reason = reason
	return x
}

// Title stands in the upper border.
func (x *Box) Title() cell.Text { return x.title }

// Foot names the version that the dialog is against.
func (x *Box) Foot(f *view.Frame) cell.Text {
	now := f.State.Version
	switch {
	case now != x.version:
		return cell.Say("against v%s, now v%s", cell.Int(x.version), cell.Int(now))
	case x.next:
		return cell.Say("v%s → v%s", cell.Int(x.version), cell.Int(x.version+1))
	}
	return cell.Say("against v%s", cell.Int(x.version))
}

// Acts reports that the dialog can start something.
func (x *Box) Acts() bool { return true }

// Size is the size wanted inside the border.
func (x *Box) Size(f *view.Frame) (w, h int) { return width, x.body.rows(f) + x.footRows() + 1 }

// footRows is the reason, the word, the buttons and the blank rows between.
func (x *Box) footRows() int {
	n := 2
	if !x.noReason {
		n++
	}
	if x.word != "" {
		n++
	}
	return n
}

// Draw returns h lines of w cells: the content and, always, the buttons.
func (x *Box) Draw(f *view.Frame, w, h int) []string {
	b := cell.NewBlock(f.Ink, w)
	room := h - 1
	airy := h >= x.body.rows(f)+x.footRows()+1
	if airy {
		b.Blank(1)
	}
	showReason := !x.noReason && (room > 5 || x.focus == onReason)
	if showReason {
		room--
	}
	if x.word != "" {
		room--
	}
	if airy {
		room -= 2
	}
	x.body.paint(b, f, max(0, room))
	for b.Height() < h-1-rows(showReason)-rows(x.word != "")-rows(airy) {
		b.Blank(1)
	}
	if x.word != "" {
		x.wordLine(b)
	}
	if showReason {
		x.reasonLine(b)
	}
	if airy {
		b.Blank(1)
	}
	x.buttons(b, f)
	return b.Lines(h)
}

func rows(shown bool) int {
	if shown {
		return 1
	}
	return 0
}

func (x *Box) wordLine(b *cell.Block) {
	b.Begin(cell.Normal)
	b.Gap(pad)
	ask, colon := x.ask, cell.Lit(" to confirm: ")
	if b.Width() < ask.Width()+colon.Width()+2*len(x.word)+2*pad+2 {
		ask, colon = cell.Lit("Type"), cell.Lit(": ")
	}
	b.Put(cell.Warn, ask)
	b.Gap(1)
	b.Put(cell.Strong, cell.Foreign(x.word))
	b.Put(cell.Dim, colon)
	b.Put(cell.Input, cell.Foreign(x.typed))
	if x.focus == onWord {
		b.Put(cell.Key, cell.Glyph(b.Ink().Glyphs.Caret))
	}
}

func (x *Box) reasonLine(b *cell.Block) {
	b.Begin(cell.Normal)
	b.Gap(pad)
	b.Left(cell.Dim, 9, cell.Lit("reason"))
	switch {
	case x.focus == onReason:
		room := b.Width() - b.At() - pad - 1
		b.Put(cell.Input, tailOf(x.reason, room))
		b.Put(cell.Key, cell.Glyph(b.Ink().Glyphs.Caret))
	case x.reason != "":
		b.Put(cell.Plain, cell.Fit(x.reason, b.Width()-b.At()-pad))
	default:
		b.Put(cell.Dim, cell.Lit("none"))
		b.Gap(2)
		b.Put(cell.Key, cell.Lit("r"))
		b.Put(cell.Dim, cell.Lit(" types one"))
	}
}

// tailOf is the end of a text being typed, at most w cells of it.
func tailOf(s string, w int) cell.Text {
	t := cell.Foreign(s)
	for t.Width() > max(w, 1) && len(s) > 1 {
		s = s[1:]
		t = cell.Foreign(s)
	}
	return t
}

// buttons paints the last row: what the keys do, Cancel, and the button.
func (x *Box) buttons(b *cell.Block, f *view.Frame) {
	b.Begin(cell.Normal)
	cancel, act := cell.Lit("  Cancel  "), cell.Say("  %s  ", x.button)
	if x.focus == onButton {
		act = cell.Say("[ %s ]", x.button)
	} else {
		cancel = cell.Lit("[ Cancel ]")
	}
	left := b.Width() - cancel.Width() - act.Width() - pad - 1
	hint := x.hintText(f)
	b.Gap(pad)
	if left-b.At() > hint.Width() {
		b.Put(cell.Dim, hint)
	}
	b.To(left)
	cancelRole, actRole := cell.ButtonFocus, cell.Plain
	if x.focus == onButton {
		cancelRole, actRole = cell.Plain, cell.ButtonFocus
	}
	_, why := x.body.fire(f)
	if !why.Empty() {
		actRole = cell.Dim
	}
	b.Put(cancelRole, cancel)
	b.Gap(1)
	b.Put(actRole, act)
}

func (x *Box) hintText(f *view.Frame) cell.Text {
	enter := cell.Glyph(f.Ink.Glyphs.Enter)
	switch {
	case x.focus == onReason:
		return cell.Say("%s done", enter)
	case x.word != "" && x.typed != x.word:
		return cell.Say("%s or esc keeps things as they are", enter)
	}
	if _, why := x.body.fire(f); !why.Empty() {
		return why
	}
	var own cell.Text
	if x.hint != nil {
		own = x.hint(f)
	}
	if x.word != "" {
		return cell.Say("%s%s on %s", own, enter, x.button)
	}
	return cell.Say("%s%s on %s, or y", own, enter, x.button)
}

// send gives the command the box's version and reason.
func (x *Box) send(f *view.Frame) (view.Intent, bool) {
	if x.word != "" && x.typed != x.word {
		return nil, false
	}
	s, why := x.body.fire(f)
	if !why.Empty() {
		return view.Toast{Level: view.Note, Text: why}, false
	}
	s.Command.Expect, s.Command.Reason = x.version, x.reason
	return s, true
}

// state is the short way to a frame's ranks.
func rankOf(s *model.State, t model.Target) *model.Rank {
	for i := range s.Ranks {
		if s.Ranks[i].Target == t {
			return &s.Ranks[i]
		}
	}
	return nil
}
