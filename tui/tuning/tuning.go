// Package tuning is the console's view of the settings: every field of the
// document with its value in force, the value staged here, its range and its
// default, the ranks' weights, and the history of changes.
//
// What is staged belongs to the frame and is not applied until the operator
// says so. A knob that the policy (in force, or staged) does not read is dim
// and says which policy reads it. The cursor belongs to a field, a rank or a
// revision, never to a line.
package tuning

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/dialog"
	"adpdeck/tui/edit"
	"adpdeck/tui/view"
)

// View is the view of the settings.
type View struct {
	at       item // under the cursor
	line     int  // where it stood, for when it is gone
	knob     item // where tab left the knobs
	allRanks bool // every rank's weight is listed
	editor   *edit.Value
	page     int
	top      int // first line shown of the knobs
	topPast  int // first revision shown
}

// New returns the view with the cursor on the first knob.
func New() *View { return &View{page: 10} }

// ID is the view's name in the command table.
func (v *View) ID() command.View { return command.Tuning }

// Title is its name in the row of tabs.
func (v *View) Title() cell.Text { return cell.Lit("Tuning") }

// Situate adds the item under the cursor.
func (v *View) Situate(f *view.Frame, s *command.Situation) {
	d := gather(f)
	it := v.cursor(f, &d)
	s.Selected = it.kind != kindNone
	if it.kind == kindKnob {
		s.KnobOff = d.off(it.field()).String()
	}
}

// Typing reports that a value is being typed.
func (v *View) Typing() bool { return v.editor != nil }

// Key takes a key for the value being typed.
func (v *View) Key(f *view.Frame, k view.Key) view.Intent {
	if v.editor == nil {
		return nil
	}
	switch v.editor.Key(k) {
	case edit.Closed:
		v.editor = nil
	case edit.Staged:
		e := v.editor
		v.editor = nil
		return stage(f, &e.Field, e.Target, e.FieldValue().Value)
	}
	return nil
}

// Back closes the editor, then the list of all ranks.
func (v *View) Back(f *view.Frame) bool {
	switch {
	case v.editor != nil:
		v.editor = nil
	case v.allRanks:
		v.allRanks = false
	default:
		return false
	}
	return true
}

// Do carries out a command.
func (v *View) Do(f *view.Frame, c command.ID) (view.Intent, bool) {
	d := gather(f)
	it := v.cursor(f, &d)
	switch c {
	case command.Down, command.Up, command.First, command.Last, command.PageDown, command.PageUp:
		v.move(f, &d, c)
	case command.NextPane:
		v.otherPane(f, &d, it)
	case command.StepLess, command.StepMore, command.LeapLess, command.LeapMore:
		return v.step(f, it, c), true
	case command.Edit:
		return v.edit(f, it), true
	case command.Default:
		if field, t, ok := it.value(); ok {
			return stage(f, &field, t, field.Default), true
		}
	case command.Unstage:
		return v.unstage(f, it), true
	case command.Policy:
		return view.Show{Dialog: dialog.NewChoice(f, model.FieldPolicy)}, true
	case command.Apply:
		if len(f.Staged) > 0 {
			return view.Show{Dialog: dialog.NewApply(f)}, true
		}
	default:
		return nil, false
	}
	return nil, true
}

// Undo asks whether to take back the revision under the cursor.
func (v *View) Undo(f *view.Frame) (in view.Intent, ok bool) {
	d := gather(f)
	rev, ok := revision(f, v.cursor(f, &d))
	if !ok {
		return nil, false
	}
	return dialog.TakeBack(f, rev), true
}

// move moves the cursor over the items, past titles and blank rows.
func (v *View) move(f *view.Frame, d *doc, c command.ID) {
	all := v.items(f, d)
	if len(all) == 0 {
		return
	}
	i := max(0, index(all, v.cursor(f, d)))
	switch c {
	case command.Down:
		i++
	case command.Up:
		i--
	case command.First:
		i = 0
	case command.Last:
		i = len(all) - 1
	case command.PageDown:
		i += max(1, v.page/2)
	case command.PageUp:
		i -= max(1, v.page/2)
	}
	v.line = min(max(i, 0), len(all)-1)
	v.at = all[v.line]
}

// otherPane puts the cursor on the newest revision, or from the history back on
// the knob where it was.
func (v *View) otherPane(f *view.Frame, d *doc, it item) {
	all := v.items(f, d)
	to := v.knob
	if it.kind != kindRevision {
		v.knob = it
		to = all[len(all)-1]
		if len(f.State.Revisions) > 0 {
			to = item{kind: kindRevision, version: f.State.Revisions[0].Version}
		}
	}
	if i := index(all, to); i >= 0 {
		v.at, v.line = to, i
		return
	}
	v.at, v.line = all[0], 0
}

// step stages the value one step away.
func (v *View) step(f *view.Frame, it item, c command.ID) view.Intent {
	field, t, ok := it.value()
	if !ok {
		return view.Toast{Level: view.Note, Text: cell.Lit("there is nothing to step here: choose a knob or a rank")}
	}
	up := c == command.StepMore || c == command.LeapMore
	large := c == command.LeapMore || c == command.LeapLess
	now := current(f, &field, t)
	next, ok := edit.Step(&field, now, up, large)
	if !ok && field.Optional {
		return view.Toast{Level: view.Note, Text: cell.Say("%s is unset: e types a value", cell.Foreign(field.Label))}
	}
	if !ok || edit.Same(&field, now, next) {
		return view.Toast{Level: view.Note, Text: cell.Say("%s: that is the end, %s", cell.Foreign(field.Label), cell.Foreign(field.Allowed()))}
	}
	return stage(f, &field, t, next)
}

// current is the staged value, else the one in force.
func current(f *view.Frame, field *model.Field, t *model.Target) string {
	if s, ok := f.StagedValue(field.Name, t); ok {
		return s
	}
	return inForce(f, field, t)
}

func inForce(f *view.Frame, field *model.Field, t *model.Target) string {
	at := model.Target{}
	if t != nil {
		at = *t
	}
	return model.FieldText(&f.State.Settings, field.Name, at)
}

// stage stages a value; the value in force is not staged but taken back.
func stage(f *view.Frame, field *model.Field, t *model.Target, value string) view.Intent {
	if edit.Same(field, inForce(f, field, t), value) {
		return view.Unstage{Field: field.Name, Target: t}
	}
	return view.Stage{Values: []model.FieldValue{{Field: field.Name, Target: t, Value: value}}}
}

// edit opens what fits the item: a choice, a switch, a line to type in, all
// ranks, or the question whether to take a revision back.
func (v *View) edit(f *view.Frame, it item) view.Intent {
	switch it.kind {
	case kindMore:
		v.allRanks = !v.allRanks
		return nil
	case kindRevision:
		if rev, ok := revision(f, it); ok {
			return dialog.TakeBack(f, rev)
		}
		return nil
	}
	field, t, ok := it.value()
	if !ok {
		return nil
	}
	switch field.Kind {
	case model.KindChoice:
		return view.Show{Dialog: dialog.NewChoice(f, field.Name)}
	case model.KindBool:
		next, _ := edit.Step(&field, "", current(f, &field, t) != "true", false)
		return stage(f, &field, t, next)
	}
	staged, _ := f.StagedValue(field.Name, t)
	v.editor = edit.New(&f.State.Settings, field, t, staged)
	return nil
}

// unstage takes back what is staged for the item, or says where it is.
func (v *View) unstage(f *view.Frame, it item) view.Intent {
	field, t, ok := it.value()
	if ok {
		if _, staged := f.StagedValue(field.Name, t); staged {
			return view.Unstage{Field: field.Name, Target: t}
		}
	}
	if _, staged := f.StagedValue(model.FieldPolicy, nil); staged && len(f.Staged) == 1 {
		return view.Unstage{Field: model.FieldPolicy}
	}
	return view.Toast{Level: view.Note, Text: cell.Say("nothing is staged here: %s discards all", f.KeyOf(command.Back))}
}

// revision is the revision of a history item.
func revision(f *view.Frame, it item) (model.Revision, bool) {
	if it.kind != kindRevision {
		return model.Revision{}, false
	}
	for _, r := range f.State.Revisions {
		if r.Version == it.version {
			return r, true
		}
	}
	return model.Revision{}, false
}

// Select puts the cursor on a field, for example from another view.
func (v *View) Select(field string) { v.at = item{kind: kindKnob, name: field} }
