// Package cell paints rows of character cells.
//
// It promises two things. First, whatever text arrives from outside, a row
// stays as wide as it was asked to be and holds no control bytes but colour
// sequences: only Text can be painted, and a Text is made either from a
// constant in the program (Lit), from numbers, or by the sanitiser (Foreign).
// Second, it is cheap: a Block appends bytes to one buffer and a row of ten
// columns costs about a microsecond; no box, no style object per cell.
//
// Widths are cells as x/ansi measures them. Nothing here keeps state between
// frames, starts a goroutine or takes a lock; a Block belongs to one caller.
package cell

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Text is text that is safe to paint: no control bytes, no marks that join or
// reorder, a known width. The zero value is the empty text.
type Text struct {
	s string
	w int
	// cut says that s ends in … because something was left out: an ASCII painter
	// makes that three dots.
	cut bool
}

// literal is the type of Lit's parameter: outside this package only constants
// of a program can become one, so a foreign string cannot slip through.
type literal string

// Lit makes a Text from a constant in the program, trusted as it stands.
func Lit(s literal) Text { return trusted(string(s)) }

// trusted is for text that this package or a theme has made.
func trusted(s string) Text {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return Text{s: s, w: ansi.StringWidth(s)}
		}
	}
	return Text{s: s, w: len(s)}
}

// Glyph makes a Text from a sign of a theme's glyph set; anything that is not
// plainly printable is escaped.
func Glyph(s string) Text { return Foreign(s) }

// Width returns the number of cells that t takes.
func (t Text) Width() int { return t.w }

// String returns the text as it is painted.
func (t Text) String() string { return t.s }

// Empty reports whether there is nothing to paint.
func (t Text) Empty() bool { return t.s == "" }

// Concat joins texts.
func Concat(parts ...Text) Text {
	var b strings.Builder
	w := 0
	for _, p := range parts {
		b.WriteString(p.s)
		w += p.w
	}
	return Text{s: b.String(), w: w}
}

// Say is Concat for sentences: every %s of the constant format is replaced by
// the next part. A %s without a part paints as —.
func Say(format literal, parts ...Text) Text {
	var b strings.Builder
	w, rest := 0, string(format)
	for {
		before, after, found := strings.Cut(rest, "%s")
		p := trusted(before)
		b.WriteString(p.s)
		w += p.w
		if !found {
			return Text{s: b.String(), w: w}
		}
		arg := trusted("—")
		if len(parts) > 0 {
			arg, parts = parts[0], parts[1:]
		}
		b.WriteString(arg.s)
		w += arg.w
		rest = after
	}
}

// Run is a Text with the role it is painted in.
type Run struct {
	Role Role
	Text Text
}
