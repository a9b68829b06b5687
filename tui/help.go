package tui

import (
	"strings"

	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// help is the overlay of keys, written from the command table.
type help struct {
	m      *Model
	s      command.Situation
	title  cell.Text
	search string
	at     int // line chosen while searching
	top    int // first line shown
}

func newHelp(m *Model) *help {
	d := &help{m: m, s: *m.situation(), title: cell.Lit("Keys")}
	if v := m.current(); v != nil {
		d.title = cell.Say("Keys · %s", v.Title())
	}
	return d
}

// Title implements view.Dialog.
func (d *help) Title() cell.Text { return d.title }

// Foot implements view.Dialog.
func (d *help) Foot(*view.Frame) cell.Text { return cell.Lit("type to search · esc closes") }

// Acts implements view.Dialog.
func (d *help) Acts() bool { return false }

const helpWidth = 72

// Size implements view.Dialog.
func (d *help) Size(*view.Frame) (w, h int) {
	left, right := d.columns()
	return helpWidth - 2, max(len(left), len(right)) + 4
}

// columns are the two halves of the overlay: looking left, acting and moving
// right, each with its headings as lines without keys.
func (d *help) columns() (left, right []command.Line) {
	heading := func(g command.Group) command.Line { return command.Line{Group: g, Help: g.Title()} }
	left = append(left, heading(command.GroupLook))
	var act, move []command.Line
	for _, l := range d.m.table.Lines(&d.s, "") {
		switch l.Group {
		case command.GroupLook:
			left = append(left, l)
		case command.GroupAct:
			act = append(act, l)
		default:
			move = append(move, l)
		}
	}
	right = append(append(right, heading(command.GroupAct)), act...)
	return left, append(append(right, heading(command.GroupMove)), move...)
}

// Draw implements view.Dialog.
func (d *help) Draw(f *view.Frame, w, h int) []string {
	b := cell.NewBlock(f.Ink, w)
	b.Begin(cell.Normal)
	b.Gap(2)
	b.Put(cell.Key, cell.Lit("/ "))
	b.Put(cell.Input, cell.Foreign(d.search))
	b.Put(cell.Plain, cell.Glyph(f.Ink.Glyphs.Caret))
	note := cell.Say("%s commands · from one table, also in the docs", cell.Int(d.m.table.Count(d.s.View)))
	if more := d.below(w, h-4); more > 0 && d.search == "" {
		note = cell.Say("%s more: ↓", cell.Int(more))
	}
	if left := w - 2 - note.Width(); left > b.At()+2 {
		b.To(left)
		b.Put(cell.Dim, note)
	}
	b.Begin(cell.Normal)
	if d.search != "" {
		d.found(b, h-2)
		return b.Lines(h)
	}
	if w >= helpWidth-2 {
		d.halves(b, h-4)
	} else {
		d.narrow(b, h-4)
	}
	b.Begin(cell.Normal)
	d.reason(b)
	return b.Lines(h)
}

// below counts the lines that lie below the h shown.
func (d *help) below(w, h int) int {
	left, right := d.columns()
	n := max(len(left), len(right))
	if w < helpWidth-2 {
		n = len(left) + len(right)
	}
	return n - min(max(d.top, 0), max(0, n-h)) - h
}

// halves paints both columns side by side.
func (d *help) halves(b *cell.Block, h int) {
	left, right := d.columns()
	d.top = max(0, min(d.top, max(len(left), len(right))-h))
	for i := d.top; i < max(len(left), len(right)) && i < d.top+h; i++ {
		b.Begin(cell.Normal)
		b.Gap(2)
		if i < len(left) {
			helpLine(b, left[i], 12, 36)
		}
		b.To(37)
		if i < len(right) {
			helpLine(b, right[i], 8, b.Width())
		}
	}
	for b.Height() < h+2 {
		b.Begin(cell.Normal)
	}
}

// narrow paints one column below the other.
func (d *help) narrow(b *cell.Block, h int) {
	left, right := d.columns()
	all := append(left, right...)
	d.top = max(0, min(d.top, len(all)-h))
	for i := d.top; i < len(all) && i < d.top+h; i++ {
		b.Begin(cell.Normal)
		b.Gap(1)
		helpLine(b, all[i], 12, b.Width())
	}
}

// helpLine paints keys and words, up to column end; what is off is dim.
func helpLine(b *cell.Block, l command.Line, keysW, end int) {
	if len(l.Keys) == 0 {
		b.Put(cell.Title, cell.Foreign(l.Help))
		return
	}
	keys, words := cell.Key, cell.Plain
	if l.Off != "" {
		keys, words = cell.Dim, cell.Dim
	}
	text := keyText(b.Ink(), strings.Join(l.Keys, " "))
	b.Left(keys, max(keysW, text.Width()), text)
	b.Gap(1)
	help := cell.Foreign(l.Help)
	b.Left(words, max(0, min(help.Width(), end-b.At())), help)
}

// reason says why the first command that is off is off.
func (d *help) reason(b *cell.Block) {
	for _, want := range []command.Group{command.GroupAct, command.GroupLook} {
		for _, l := range d.m.table.Lines(&d.s, "") {
			if l.Off != "" && l.Group == want {
				b.Begin(cell.Normal)
				b.Gap(2)
				b.Put(cell.Dim, cell.Say("%s is off: %s", keyText(b.Ink(), l.Keys[0]), cell.Foreign(l.Off)))
				return
			}
		}
	}
}

// found paints what the search finds, one command a line, with the reason of
// those that are off.
func (d *help) found(b *cell.Block, h int) {
	lines := d.m.table.Lines(&d.s, d.search)
	if len(lines) == 0 {
		b.Begin(cell.Normal)
		b.Gap(2)
		b.Put(cell.Dim, cell.Lit("no command has that; backspace takes a letter back"))
		return
	}
	d.at = min(d.at, len(lines)-1)
	from := max(0, min(d.at-h+1, len(lines)-h))
	for i := from; i < len(lines) && i < from+h; i++ {
		kind, mark := cell.Normal, cell.Lit("   ")
		if i == d.at {
			kind, mark = cell.Cursor, cell.Say(" %s ", cell.Glyph(b.Ink().Glyphs.CursorMark))
		}
		b.Begin(kind)
		b.Put(cell.Plain, mark)
		l := lines[i]
		if len(l.Keys) == 0 {
			l.Keys = []string{":" + string(l.ID)}
		}
		helpLine(b, l, 10, b.Width())
		if l.Off != "" {
			b.Put(cell.Dim, cell.Say(" · off: %s", cell.Foreign(l.Off)))
		}
	}
}

// Key implements view.Dialog.
func (d *help) Key(_ *view.Frame, k view.Key) (view.Intent, bool) {
	switch k.Name {
	case "down", "pgdown":
		d.at, d.top = d.at+1, d.top+1
	case "up", "pgup":
		d.at, d.top = max(d.at-1, 0), max(d.top-1, 0)
	case "backspace":
		if r := []rune(d.search); len(r) > 0 {
			d.search = string(r[:len(r)-1])
		}
	case "enter":
		lines := d.m.table.Lines(&d.s, d.search)
		if d.search == "" || len(lines) == 0 {
			return nil, true
		}
		return view.Perform{Command: lines[min(d.at, len(lines)-1)].ID}, true
	default:
		if d.search == "" && d.m.table.Starts(k.Name, command.Help) {
			return nil, true // the key that opened it closes it
		}
		if len(k.Runes) > 0 && len(d.search) < 40 {
			d.search += string(k.Runes)
			d.at = 0
		}
	}
	return nil, false
}
