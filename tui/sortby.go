package tui

import (
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// sortBy chooses the column that orders a list.
type sortBy struct {
	v     view.Sorter
	names []string
	at    int
}

func newSortBy(v view.Sorter) *sortBy {
	names, now, _ := v.SortFields()
	d := &sortBy{v: v, names: names}
	for i, n := range names {
		if n == now {
			d.at = i
		}
	}
	return d
}

// Title implements view.Dialog.
func (d *sortBy) Title() cell.Text { return cell.Lit("Sort by") }

// Foot implements view.Dialog.
func (d *sortBy) Foot(*view.Frame) cell.Text { return cell.Lit("enter sorts · esc") }

// Size implements view.Dialog.
func (d *sortBy) Size(*view.Frame) (w, h int) { return 30, len(d.names) }

// Acts implements view.Dialog.
func (d *sortBy) Acts() bool { return false }

// Draw implements view.Dialog.
func (d *sortBy) Draw(f *view.Frame, w, h int) []string {
	b := cell.NewBlock(f.Ink, w)
	from := max(0, min(d.at-h/2, len(d.names)-h))
	for i := from; i < len(d.names) && i < from+h; i++ {
		kind, mark := cell.Normal, cell.Lit("   ")
		if i == d.at {
			kind, mark = cell.Cursor, cell.Say(" %s ", cell.Glyph(f.Ink.Glyphs.CursorMark))
		}
		b.Begin(kind)
		b.Put(cell.Plain, mark)
		b.Put(cell.Plain, cell.Foreign(d.names[i]))
	}
	return b.Lines(h)
}

// Key implements view.Dialog.
func (d *sortBy) Key(f *view.Frame, k view.Key) (view.Intent, bool) {
	switch {
	case k.Name == "down", f.Starts(k, command.Down):
		d.at = min(d.at+1, len(d.names)-1)
	case k.Name == "up", f.Starts(k, command.Up):
		d.at = max(d.at-1, 0)
	case k.Name == "q", f.Starts(k, command.Sort):
		return nil, true
	case k.Name == "enter":
		if d.at < len(d.names) {
			d.v.SortBy(d.names[d.at])
		}
		return nil, true
	}
	return nil, false
}
