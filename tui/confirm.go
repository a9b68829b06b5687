package tui

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

// confirm asks before a command that was typed by name is sent. Cancel has the
// focus.
type confirm struct {
	cmd model.Command
	yes bool
}

// Title implements view.Dialog.
func (d *confirm) Title() cell.Text { return cell.Foreign(string(d.cmd.Verb)) }

// Foot implements view.Dialog.
func (d *confirm) Foot(*view.Frame) cell.Text {
	return cell.Say("against v%s", cell.Int(d.cmd.Expect))
}

// Size implements view.Dialog.
func (d *confirm) Size(*view.Frame) (w, h int) { return 60, 6 }

// Acts implements view.Dialog.
func (d *confirm) Acts() bool { return true }

// effect says in a sentence what the command does.
func (d *confirm) effect() cell.Text {
	switch d.cmd.Verb {
	case model.VerbPin:
		return cell.Lit("held there until unpinned; outranks policy and binding")
	case model.VerbUnpin:
		return cell.Lit("the policy decides again from the next turn on")
	case model.VerbEvict:
		return cell.Lit("pin and binding are forgotten; the engine's blocks stay")
	case model.VerbMigrate:
		return cell.Lit("the next turn goes there and starts without its cache")
	case model.VerbDrain:
		return cell.Lit("no new conversations; those bound to it stay")
	}
	return cell.Lit("the rank takes new work again")
}

// Draw implements view.Dialog.
func (d *confirm) Draw(f *view.Frame, w, h int) []string {
	b := cell.NewBlock(f.Ink, w)
	b.Begin(cell.Normal)
	b.Begin(cell.Normal)
	b.Gap(2)
	for i, k := range d.cmd.Convs {
		if i > 0 {
			b.Gap(1)
		}
		b.Put(cell.Strong, cell.Fit(k.ID, 40))
	}
	if d.cmd.Target != nil {
		if len(d.cmd.Convs) > 0 {
			b.Put(cell.Plain, cell.Lit(" → "))
		}
		b.Put(cell.Strong, cell.Foreign(d.cmd.Target.String()))
	}
	b.Begin(cell.Normal)
	b.Gap(2)
	b.Put(cell.Dim, d.effect())
	b.Begin(cell.Normal)
	b.Begin(cell.Normal)
	b.Gap(2)
	b.Put(cell.Dim, cell.Lit("y, or enter on the button"))
	b.To(w - 26)
	button(b, cell.Lit("Cancel"), !d.yes)
	b.Gap(2)
	button(b, cell.Foreign(string(d.cmd.Verb)), d.yes)
	return b.Lines(h)
}

// Key implements view.Dialog.
func (d *confirm) Key(_ *view.Frame, k view.Key) (view.Intent, bool) {
	switch k.Name {
	case "left", "right", "tab", "shift+tab", "h", "l":
		d.yes = !d.yes
	case "y":
		return view.Send{Command: d.cmd}, true
	case "enter":
		if d.yes {
			return view.Send{Command: d.cmd}, true
		}
		return nil, true
	case "n", "q":
		return nil, true
	}
	return nil, false
}
