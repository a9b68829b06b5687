package dialog

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/edit"
	"adpdeck/tui/view"
)

type applyBody struct{ changes []model.FieldValue }

// NewApply asks before the staged values of the frame, at least one, are
// applied. A switch of policy or mode under live traffic wants its
// name typed.
func NewApply(f *view.Frame) *Box {
	a := &applyBody{changes: f.Staged}
	title := cell.Say("Apply %s changes", cell.Int(len(a.changes)))
	if len(a.changes) == 1 {
		title = cell.Lit("Apply 1 change")
	}
	x := &Box{title: title, button: cell.Lit("Apply"), version: f.State.Version, next: true, body: a}
	x.wants(len(a.changes))
	for _, c := range a.changes {
		if f.State.Source.Kind != "live" {
			continue
		}
		switch c.Field {
		case model.FieldPolicy:
			x.word, x.focus, x.ask = c.Value, onWord, cell.Lit("Live traffic gets another policy. Type")
		case model.FieldRouterMode:
			x.word, x.focus, x.ask = c.Value, onWord, cell.Lit("Live traffic gets another mode. Type")
		}
	}
	return x
}

// shownChanges is how many changes are listed before the rest is counted.
const shownChanges = 10

func (a *applyBody) rows(*view.Frame) int { return min(len(a.changes), shownChanges) + 3 }

func (a *applyBody) paint(b *cell.Block, f *view.Frame, h int) {
	notes := min(3, max(0, h-2))
	n := min(len(a.changes), h-notes, shownChanges)
	whole := n
	if n < len(a.changes) {
		whole = n - 1
	}
	for _, c := range a.changes[:max(whole, 0)] {
		a.change(b, f, c)
	}
	if whole < n {
		b.Begin(cell.Normal)
		b.Gap(pad)
		b.Put(cell.Dim, cell.Say("… and %s more", cell.Int(len(a.changes)-whole)))
	}
	h -= n
	gap(b, &h, 2)
	if why := a.refusal(f); !why.Empty() {
		line(b, &h, cell.Lit("refused"), cell.Warn, why)
	} else {
		line(b, &h, cell.Lit("effect"), cell.Plain, cell.Lit("from the next decision on, all together; pins are kept"))
	}
	line(b, &h, cell.Lit("undo"), cell.Plain, cell.Say("%s restores every value as it is now", f.KeyOf(command.Undo)))
}

func (a *applyBody) change(b *cell.Block, f *view.Frame, c model.FieldValue) {
	field, ok := model.FieldByName(c.Field)
	b.Begin(cell.Normal)
	b.Gap(pad)
	label, at := cell.Foreign(c.Field), model.Target{}
	if ok {
		label = cell.Foreign(field.Label)
	}
	if c.Target != nil {
		at = *c.Target
		label = cell.Say("%s %s", cell.Foreign(at.String()), label)
	}
	now := edit.Pretty(&field, model.FieldText(&f.State.Settings, c.Field, at))
	b.Left(cell.Plain, min(21, b.Width()/2), label)
	b.Put(cell.Dim, now)
	b.Put(cell.Dim, cell.Lit(" → "))
	b.Put(cell.Staged, edit.Pretty(&field, c.Value))
}

// refusal is what the router would say to the changes taken together.
func (a *applyBody) refusal(f *view.Frame) cell.Text {
	trial := f.State.Settings
	if _, err := model.SetFields(&trial, a.changes); err != nil {
		return cell.Foreign(err.Error())
	}
	return cell.Text{}
}

func (a *applyBody) key(*view.Frame, view.Key) {}

func (a *applyBody) fire(f *view.Frame) (view.Send, cell.Text) {
	if why := a.refusal(f); !why.Empty() {
		return view.Send{}, cell.Lit("these cannot stand together")
	}
	return view.Send{Command: model.Command{Verb: model.VerbSet, Set: a.changes}, ClearStaged: true}, cell.Text{}
}
