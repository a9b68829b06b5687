package tui

import (
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/convs"
	"adpdeck/tui/decisions"
	"adpdeck/tui/dialog"
	"adpdeck/tui/events"
	"adpdeck/tui/index"
	"adpdeck/tui/ranks"
	"adpdeck/tui/tuning"
	"adpdeck/tui/view"
	"adpdeck/tui/workers"
)

// Views returns the console's views, new, in the order of their numbers.
func Views() []view.View {
	return []view.View{ranks.New(), convs.New(), decisions.New(), index.New(), tuning.New(), events.New(), workers.New()}
}

// askFor opens the dialog that a key would open, for a command that was typed
// with its objects.
func (m *Model) askFor(c model.Command) (view.Intent, error) {
	f := &m.frame
	var named []*model.Conv
	for _, conv := range f.State.Convs {
		for _, k := range c.Convs {
			if conv.Key == k {
				named = append(named, conv)
			}
		}
	}
	if len(named) > 0 {
		switch c.Verb {
		case model.VerbPin:
			return view.Show{Dialog: dialog.NewPin(f, named, c.Target)}, nil
		case model.VerbUnpin:
			return view.Show{Dialog: dialog.NewUnpin(f, named)}, nil
		case model.VerbEvict:
			return view.Show{Dialog: dialog.NewEvict(f, named)}, nil
		case model.VerbMigrate:
			return view.Show{Dialog: dialog.NewMigrate(f, named, c.Target)}, nil
		}
	}
	if in := workerDialog(f, &c); in != nil {
		return in, nil
	}
	for i := range f.State.Ranks {
		if c.Target == nil || f.State.Ranks[i].Target != *c.Target {
			continue
		}
		switch c.Verb {
		case model.VerbDrain:
			return view.Show{Dialog: dialog.NewDrain(f, &f.State.Ranks[i])}, nil
		case model.VerbReady:
			return view.Show{Dialog: dialog.NewReady(f, &f.State.Ranks[i])}, nil
		case model.VerbClear:
			return view.Show{Dialog: dialog.NewClear(f, &f.State.Ranks[i])}, nil
		case model.VerbResync: // harmless: no question
			return view.Send{Command: model.Command{Verb: c.Verb, Target: c.Target, Reason: c.Reason}}, nil
		}
	}
	return nil, fmt.Errorf("%s: there is nothing of that name", c.Verb)
}

// workerDialog asks for a command on a whole worker, nil when c is none.
func workerDialog(f *view.Frame, c *model.Command) view.Intent {
	if c.Target == nil || c.Target.Rank != model.NoRank {
		return nil
	}
	for i := range f.State.Workers {
		if f.State.Workers[i].ID != c.Target.Worker {
			continue
		}
		switch c.Verb {
		case model.VerbDrain:
			return view.Show{Dialog: dialog.NewDrainWorker(f, c.Target.Worker)}
		case model.VerbReady:
			return view.Show{Dialog: dialog.NewReadyWorker(f, c.Target.Worker)}
		}
	}
	return nil
}

// askAgain opens the question for a command that met a conflict, against the
// version that is on the screen now and with the reason that was typed.
func (m *Model) askAgain(c model.Command) tea.Cmd {
	m.toast.shown = false
	if c.Verb == model.VerbUndo {
		rev, ok := toUndo(m.frame.State.Revisions, c.Undo)
		if !ok {
			m.say(view.Note, cell.Lit("nothing to undo any more"))
			return nil
		}
		return m.carry(view.Show{Dialog: dialog.NewUndo(&m.frame, rev).WithReason(c.Reason)})
	}
	in, err := m.askFor(c)
	if err != nil {
		m.say(view.Failed, cell.Foreign(err.Error()))
		return nil
	}
	if s, ok := in.(view.Show); ok {
		if box, ok := s.Dialog.(*dialog.Box); ok {
			box.WithReason(c.Reason)
		}
	}
	return m.carry(in)
}
