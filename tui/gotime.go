package tui

import (
	"fmt"
	"strings"
	"time"

	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

// goTime asks for a moment of the past that is kept, while the screen is frozen.
type goTime struct {
	m    *Model
	text string
	err  string
}

// Title implements view.Dialog.
func (d *goTime) Title() cell.Text { return cell.Lit("Go to a time") }

// Foot implements view.Dialog.
func (d *goTime) Foot(*view.Frame) cell.Text { return cell.Lit("enter goes · esc") }

// Size implements view.Dialog.
func (d *goTime) Size(*view.Frame) (w, h int) { return 52, 4 }

// Acts implements view.Dialog.
func (d *goTime) Acts() bool { return false }

// Draw implements view.Dialog.
func (d *goTime) Draw(f *view.Frame, w, h int) []string {
	b := cell.NewBlock(f.Ink, w)
	b.Begin(cell.Normal)
	b.Gap(2)
	b.Put(cell.Input, cell.Foreign(d.text))
	b.Put(cell.Plain, cell.Glyph(f.Ink.Glyphs.Caret))
	b.Blank(1)
	b.Begin(cell.Normal)
	b.Gap(2)
	b.Put(cell.Dim, cell.Lit("14:02:31 or 14:02, or how long ago: 90s, 2m30s"))
	b.Begin(cell.Normal)
	b.Gap(2)
	ring := d.m.past.ring
	switch {
	case d.err != "":
		b.Put(cell.Crit, cell.Foreign(d.err))
	case len(ring) > 0:
		b.Put(cell.Dim, cell.Say("kept: %s to %s", cell.Clock(ring[0].state.At), cell.Clock(ring[len(ring)-1].state.At)))
	}
	return b.Lines(h)
}

// Key implements view.Dialog.
func (d *goTime) Key(_ *view.Frame, k view.Key) (view.Intent, bool) {
	d.err = ""
	switch k.Name {
	case "backspace":
		d.text = d.text[:max(0, len(d.text)-1)]
	case "ctrl+u":
		d.text = ""
	case "enter":
		if err := d.m.goToTime(d.text); err != nil {
			d.err = err.Error()
			return nil, false
		}
		return nil, true
	default:
		for _, r := range k.Runes {
			if strings.ContainsRune("0123456789:.hms-", r) && len(d.text) < 16 {
				d.text += string(r)
			}
		}
	}
	return nil, false
}

// goToTime shows the moment kept that is nearest to what text says: a time of the
// day of the newest moment, or a time ago.
func (m *Model) goToTime(text string) error {
	if len(m.past.ring) == 0 {
		return fmt.Errorf("nothing is kept yet")
	}
	first, last := m.past.ring[0].state.At, m.past.ring[len(m.past.ring)-1].state.At
	text = strings.TrimPrefix(strings.TrimSpace(text), "-")
	at := last
	if ago, err := time.ParseDuration(text); err == nil {
		at = last.Add(-ago.Abs())
	} else if day, err := clock(text); err == nil {
		y, mo, d := last.Date()
		at = time.Date(y, mo, d, day.Hour(), day.Minute(), day.Second(), 0, last.Location())
		if at.Sub(last) > 12*time.Hour { // 23:59 said just after midnight
			at = at.AddDate(0, 0, -1)
		}
	} else {
		return fmt.Errorf("%q: want a time or how long ago", text)
	}
	if at.Before(first.Add(-2*time.Second)) || at.After(last.Add(2*time.Second)) {
		return fmt.Errorf("%s is not kept", cell.Clock(at))
	}
	m.past.held = nil
	m.past.goTo(at)
	m.refresh()
	return nil
}

func clock(text string) (time.Time, error) {
	t, err := time.Parse(time.TimeOnly, text)
	if err != nil {
		return time.Parse("15:04", text)
	}
	return t, nil
}
