package dialog

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

type clearBody struct{ target model.Target }

// NewClear asks before the phantom load of a rank is dropped.
func NewClear(f *view.Frame, r *model.Rank) *Box {
	return &Box{
		title: cell.Say("Clear the phantom load of %s", cell.Foreign(r.Target.String())), button: cell.Lit("Clear"),
		version: f.State.Version, body: &clearBody{r.Target},
	}
}

func (d *clearBody) rows(*view.Frame) int { return 4 }

func (d *clearBody) paint(b *cell.Block, f *view.Frame, h int) {
	role, now := cell.Plain, cell.Lit("no load here counts as phantom: the router will refuse")
	for i := range f.State.Findings {
		if n := &f.State.Findings[i]; n.Code == model.FindingPhantom && n.Target == d.target {
			role, now = cell.Strong, cell.Foreign(n.Message)
		}
	}
	line(b, &h, cell.Lit("now"), role, now)
	gap(b, &h, 2)
	line(b, &h, cell.Lit("effect"), cell.Plain, cell.Lit("their load no longer keeps new requests away"))
	line(b, &h, cell.Lit("undo"), cell.Warn, cell.Lit("none; the requests themselves stay open"))
}

func (d *clearBody) key(*view.Frame, view.Key) {}

func (d *clearBody) fire(f *view.Frame) (view.Send, cell.Text) {
	if rankOf(f.State, d.target) == nil {
		return view.Send{}, cell.Lit("the rank is gone")
	}
	t := d.target
	return view.Send{Command: model.Command{Verb: model.VerbClear, Target: &t}}, cell.Text{}
}
