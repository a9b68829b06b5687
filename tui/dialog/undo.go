package dialog

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// TakeBack asks whether to undo a revision, or says that it cannot be.
func TakeBack(f *view.Frame, rev model.Revision) view.Intent {
	switch {
	case rev.Version <= 1:
		return view.Toast{Level: view.Note, Text: cell.Say("v%s is how the router started: there is nothing before it", cell.Int(rev.Version))}
	case !rev.Verb.Undoable():
		return view.Toast{Level: view.Note, Text: cell.Say("v%s cannot be taken back: what it dropped is gone", cell.Int(rev.Version))}
	case rev.UndoneBy != 0:
		return view.Toast{Level: view.Note, Text: cell.Say("v%s was undone already: %s on v%s does it again", cell.Int(rev.Version), f.KeyOf(command.Undo), cell.Int(rev.UndoneBy))}
	}
	return view.Show{Dialog: NewUndo(f, rev)}
}

type undoBody struct{ rev model.Revision }

// NewUndo asks before one revision is taken back.
func NewUndo(f *view.Frame, rev model.Revision) *Box {
	return &Box{
		title: cell.Say("Undo v%s", cell.Int(rev.Version)), button: cell.Lit("Undo"), version: f.State.Version, next: true,
		body: &undoBody{rev},
	}
}

func (u *undoBody) rows(*view.Frame) int { return 5 }

func (u *undoBody) paint(b *cell.Block, f *view.Frame, h int) {
	r := &u.rev
	line(b, &h, cell.Lit("change"), cell.Strong, view.Change(f.State.Revisions, *r, b.Width()))
	line(b, &h, cell.Lit("made"), cell.Plain, cell.Say("%s by %s", cell.Clock(r.At), cell.Fit(r.Actor, 24)))
	if r.Reason != "" {
		line(b, &h, cell.Lit("reason"), cell.Plain, cell.Fit(r.Reason, b.Width()))
	}
	gap(b, &h, 1)
	switch {
	case u.undone(f):
		line(b, &h, cell.Lit("state"), cell.Warn, cell.Lit("it was taken back already"))
	case r.Undoes != 0:
		line(b, &h, cell.Lit("restores"), cell.Plain, cell.Say("what v%s had set (redo)", cell.Int(r.Undoes)))
	default:
		line(b, &h, cell.Lit("restores"), cell.Plain, cell.Say("everything v%s changed to what it was before", cell.Int(r.Version)))
	}
}

// undone looks the revision up again: someone else may have been faster.
func (u *undoBody) undone(f *view.Frame) bool {
	for i := range f.State.Revisions {
		if f.State.Revisions[i].Version == u.rev.Version {
			return f.State.Revisions[i].UndoneBy != 0
		}
	}
	return u.rev.UndoneBy != 0
}

func (u *undoBody) key(*view.Frame, view.Key) {}

func (u *undoBody) fire(f *view.Frame) (view.Send, cell.Text) {
	if u.undone(f) {
		return view.Send{}, cell.Lit("already undone")
	}
	return view.Send{Command: model.Command{Verb: model.VerbUndo, Undo: u.rev.Version}}, cell.Text{}
}
