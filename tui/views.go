package tui

import (
	"fmt"

	"adpdeck/router/model"
	"adpdeck/tui/convs"
	"adpdeck/tui/decisions"
	"adpdeck/tui/dialog"
	"adpdeck/tui/index"
	"adpdeck/tui/ranks"
	"adpdeck/tui/tuning"
	"adpdeck/tui/view"
)

// Views returns the console's views, new, in the order of their numbers.
func Views() []view.View {
	return []view.View{ranks.New(), convs.New(), decisions.New(), index.New(), tuning.New()}
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
	for i := range f.State.Ranks {
		if c.Target == nil || f.State.Ranks[i].Target != *c.Target {
			continue
		}
		switch c.Verb {
		case model.VerbDrain:
			return view.Show{Dialog: dialog.NewDrain(f, &f.State.Ranks[i])}, nil
		case model.VerbReady:
			return view.Show{Dialog: dialog.NewReady(f, &f.State.Ranks[i])}, nil
		}
	}
	return nil, fmt.Errorf("%s: there is nothing of that name", c.Verb)
}
