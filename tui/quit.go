package tui

import (
	"adpdeck/themes"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

// leaveIntent ends the program; themeIntent puts a theme in force. They are the
// frame's own: no view can ask for them.
type (
	leaveIntent struct{ view.Intent }
	themeIntent struct {
		view.Intent
		file *themes.File
	}
)

// quitDialog asks before traffic that runs through this process is stopped.
// Stay has the focus.
type quitDialog struct {
	m    *Model
	stop bool // the focus
}

// Title implements view.Dialog.
func (d *quitDialog) Title() cell.Text { return cell.Lit("Quit") }

// Foot implements view.Dialog.
func (d *quitDialog) Foot(*view.Frame) cell.Text { return cell.Lit("y stops · esc stays") }

// Size implements view.Dialog.
func (d *quitDialog) Size(*view.Frame) (w, h int) { return 58, 6 }

// Acts implements view.Dialog.
func (d *quitDialog) Acts() bool { return true }

// Draw implements view.Dialog.
func (d *quitDialog) Draw(f *view.Frame, w, h int) []string {
	b := cell.NewBlock(d.m.ink, w)
	b.Begin(cell.Normal)
	b.Begin(cell.Normal)
	b.Gap(2)
	rate := cell.Unknown()
	if f.State != nil {
		rate = cell.Count(float64(f.State.Totals.RequestsPerSec))
	}
	b.Put(cell.Plain, cell.Say("%s requests per second run through this process.", rate))
	b.Begin(cell.Normal)
	b.Gap(2)
	b.Put(cell.Dim, cell.Lit("Stopping ends them; settings and pins are forgotten."))
	b.Begin(cell.Normal)
	b.Begin(cell.Normal)
	b.Gap(2)
	button(b, cell.Lit("Stay"), !d.stop)
	b.Gap(3)
	button(b, cell.Lit("Stop"), d.stop)
	return b.Lines(h)
}

// button paints a button; brackets mark the focus in every theme.
func button(b *cell.Block, name cell.Text, focus bool) {
	if focus {
		b.Put(cell.ButtonFocus, cell.Say("[ %s ]", name))
		return
	}
	b.Put(cell.Plain, cell.Say("  %s  ", name))
}

// Key implements view.Dialog.
func (d *quitDialog) Key(_ *view.Frame, k view.Key) (view.Intent, bool) {
	switch k.Name {
	case "left", "right", "tab", "shift+tab", "h", "l":
		d.stop = !d.stop
	case "y", "ctrl+c":
		return leaveIntent{}, true
	case "enter":
		if d.stop {
			return leaveIntent{}, true
		}
		return nil, true
	case "n", "q":
		return nil, true
	}
	return nil, false
}
