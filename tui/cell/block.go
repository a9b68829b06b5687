package cell

import (
	"slices"
	"strings"
	"unicode/utf8"

	"adpdeck/themes"
)

// Ink is what rows are painted with.
type Ink struct {
	Theme  *themes.Theme
	Glyphs themes.Glyphs
	// Old says that the figures are stale: rows are dimmed and solid bars
	// become dashed.
	Old bool
}

// Row says how a whole row is painted.
type Row uint8

// The kinds of row.
const (
	Normal Row = iota
	Cursor     // the row under the cursor
	Stale      // dimmed: this row's own figures are old
)

// Block is a stack of rows of one width. Begin starts a row, the other methods
// paint it from left to right, Lines ends it all. Nothing ever paints past the
// width: what does not fit is cut.
type Block struct {
	ink  Ink
	w    int
	buf  []byte
	ends []int
	row  rowState
}

type rowState struct {
	open bool
	kind Row
	at   int    // cells painted
	role Role   // in force
	seq  string // its sequence
	set  bool   // a sequence was written, role is in force
}

// NewBlock returns an empty block of rows w cells wide.
func NewBlock(ink Ink, w int) *Block {
	w = max(w, 0)
	return &Block{ink: ink, w: w, buf: make([]byte, 0, 5*(w+16))}
}

// Width returns the width of the rows.
func (b *Block) Width() int { return b.w }

// Height returns the number of rows begun.
func (b *Block) Height() int {
	if b.row.open {
		return len(b.ends) + 1
	}
	return len(b.ends)
}

// Ink returns what the block is painted with.
func (b *Block) Ink() Ink { return b.ink }

// At returns the column that is painted next.
func (b *Block) At() int { return b.row.at }

// Begin ends the row before and starts one of kind k.
func (b *Block) Begin(k Row) {
	b.end()
	if b.ink.Old && k == Normal {
		k = Stale
	}
	if len(b.ends) == 1 { // more than one row: room for a screenful at once
		b.buf = slices.Grow(b.buf, 128*(b.w+16))
		b.ends = slices.Grow(b.ends, 48)
	}
	b.row = rowState{open: true, kind: k}
	if k == Cursor {
		b.use(Plain)
	}
}

// Blank adds n empty rows.
func (b *Block) Blank(n int) {
	for range n {
		b.Begin(Normal)
	}
}

// end pads the row and closes its style.
func (b *Block) end() {
	if !b.row.open {
		return
	}
	if b.row.at < b.w {
		b.blankInk()
		b.spaces(b.w - b.row.at)
	}
	if b.row.set {
		b.buf = append(b.buf, themes.Reset...)
	}
	b.ends = append(b.ends, len(b.buf))
	b.row = rowState{}
}

// use puts a role in force.
func (b *Block) use(r Role) {
	if b.row.set && b.row.role == r {
		return
	}
	var seq string
	switch b.row.kind {
	case Cursor:
		seq = b.ink.Theme.OnCursor(r)
	case Stale:
		seq = b.ink.Theme.Stale(r)
	default:
		seq = b.ink.Theme.SGR(r)
	}
	if !b.row.set || seq != b.row.seq {
		b.buf = append(b.buf, seq...)
	}
	b.row.role, b.row.seq, b.row.set = r, seq, true
}

// blankInk makes sure that blanks come out as such; most roles need no switch.
func (b *Block) blankInk() {
	if b.row.set && !b.ink.Theme.Quiet(b.row.role) {
		b.use(Plain)
	}
}

const blanks = "                                                                "

// spaces appends n blanks without regard to the width.
func (b *Block) spaces(n int) {
	b.row.at += max(n, 0)
	for n > 0 {
		k := min(n, len(blanks))
		b.buf = append(b.buf, blanks[:k]...)
		n -= k
	}
}

// Gap paints n blank cells.
func (b *Block) Gap(n int) {
	if n = min(n, b.w-b.row.at); n > 0 {
		b.blankInk()
		b.spaces(n)
	}
}

// To moves right to column col, counted from 0; it does nothing when the row
// is past it.
func (b *Block) To(col int) { b.Gap(col - b.row.at) }

// Put paints t as it is, cut with … where the row ends.
func (b *Block) Put(r Role, t Text) { b.Left(r, min(t.w, b.w-b.row.at), t) }

// Runs paints several texts after each other.
func (b *Block) Runs(runs ...Run) {
	for _, r := range runs {
		b.Put(r.Role, r.Text)
	}
}

// Left paints t into w cells, aligned left and cut with ….
func (b *Block) Left(r Role, w int, t Text) {
	if w = min(w, b.w-b.row.at); w <= 0 {
		return
	}
	if t.w == 0 {
		b.Gap(w)
		return
	}
	b.use(r)
	b.spaces(w - b.text(t, w))
}

// Right paints t into w cells, aligned right. A text that is too wide is cut
// with … like Left; figures should be given the room they need.
func (b *Block) Right(r Role, w int, t Text) {
	if w = min(w, b.w-b.row.at); w <= 0 {
		return
	}
	b.use(r)
	b.spaces(w - t.w)
	b.text(t, min(w, max(t.w, 0)))
}

// Repeat paints the one-cell glyph n times.
func (b *Block) Repeat(r Role, glyph string, n int) {
	if n = min(n, b.w-b.row.at); n <= 0 {
		return
	}
	b.use(r)
	b.glyphs(glyph, n)
}

// glyphs appends a one-cell sign n times.
func (b *Block) glyphs(glyph string, n int) {
	for range n {
		b.buf = append(b.buf, glyph...)
	}
	b.row.at += max(n, 0)
}

// text appends t, cut to w cells, and returns the cells it took.
func (b *Block) text(t Text, w int) int {
	if t.w <= w && !(t.cut && b.ink.Glyphs.ASCII) {
		b.put(t.s)
		b.row.at += t.w
		return t.w
	}
	w = min(w, t.w)
	dots := b.ink.Glyphs.Ellipsis
	dw := 1
	if b.ink.Glyphs.ASCII {
		dw = min(len(dots), w)
		dots = dots[:dw]
	}
	head, hw := prefix(t.s, w-dw)
	b.put(head)
	b.buf = append(b.buf, dots...)
	b.row.at += hw + dw
	return hw + dw
}

// put appends s, with ASCII stand-ins for the console's own signs when the
// glyph set is ASCII.
func (b *Block) put(s string) {
	if !b.ink.Glyphs.ASCII || isASCII(s) {
		b.buf = append(b.buf, s...)
		return
	}
	for _, r := range s {
		if c, ok := themes.Plain(r); ok {
			b.buf = append(b.buf, c)
		} else {
			b.buf = utf8.AppendRune(b.buf, r)
		}
	}
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// prefix returns the longest head of a safe text that fits into w cells.
func prefix(s string, w int) (string, int) {
	at := 0
	for i, r := range s {
		rw := 1
		if r >= 0x80 {
			rw = max(1, runeWidth(r))
		}
		if at+rw > w {
			return s[:i], at
		}
		at += rw
	}
	return s, at
}

// Lines ends the block and returns exactly h lines of exactly the block's
// width: missing rows are blank, rows too many are left out. The block may be
// continued afterwards.
func (b *Block) Lines(h int) []string {
	b.end()
	all := string(b.buf)
	out := make([]string, max(h, 0))
	from := 0
	for i := range out {
		if i < len(b.ends) {
			out[i] = all[from:b.ends[i]]
			from = b.ends[i]
			continue
		}
		out[i] = b.blank()
	}
	return out
}

func (b *Block) blank() string {
	if b.w <= len(blanks) {
		return blanks[:b.w]
	}
	return strings.Repeat(" ", b.w)
}
