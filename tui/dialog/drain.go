package dialog

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

type drainBody struct {
	target model.Target
	verb   model.Verb
}

// NewDrain asks before a rank takes no new conversations.
func NewDrain(f *view.Frame, r *model.Rank) *Box {
	return &Box{
		title: cell.Say("Drain %s", cell.Foreign(r.Target.String())), button: cell.Lit("Drain"),
		version: f.State.Version, body: &drainBody{r.Target, model.VerbDrain},
	}
}

// NewReady asks before a rank takes new work again.
func NewReady(f *view.Frame, r *model.Rank) *Box {
	return &Box{
		title: cell.Say("Ready %s again", cell.Foreign(r.Target.String())), button: cell.Lit("Ready"),
		version: f.State.Version, body: &drainBody{r.Target, model.VerbReady},
	}
}

func (d *drainBody) rows(*view.Frame) int { return 6 }

func (d *drainBody) paint(b *cell.Block, f *view.Frame, h int) {
	r := rankOf(f.State, d.target)
	if r == nil {
		line(b, &h, cell.Lit("rank"), cell.Warn, cell.Say("%s is gone", cell.Foreign(d.target.String())))
		return
	}
	now := cell.Lit("it has not reported yet")
	if !r.ReportedAt.IsZero() {
		now = cell.Say("%s of %s active, %s queued, %s tokens, %s pins", cell.Int(r.Active), cell.Int(r.MaxActive), cell.Int(r.Queued),
			cell.Kilo(float64(r.Tokens)), cell.Full(r.Pins+r.OperatorPins))
	}
	line(b, &h, cell.Lit("now"), cell.Strong, now)
	gap(b, &h, 4)
	if d.verb == model.VerbReady {
		line(b, &h, cell.Lit("effect"), cell.Plain, cell.Lit("new conversations are placed here again"))
		line(b, &h, cell.Lit("undo"), cell.Plain, cell.Lit("U or D: drain again"))
		return
	}
	ready, all, active, room := d.others(f.State)
	line(b, &h, cell.Lit("effect"), cell.Plain, cell.Lit("no new conversations; bound ones and pins stay"))
	line(b, &h, cell.Lit("left"), cell.Plain, cell.Say("%s of %s ranks of %s take new work", cell.Int(ready), cell.Int(all), cell.Foreign(d.target.Worker)))
	switch {
	case ready == 0:
		line(b, &h, cell.Lit("warning"), cell.Warn, cell.Say("the last ready rank of %s: the router will refuse", cell.Foreign(d.target.Worker)))
	case r.Active > room:
		line(b, &h, cell.Lit("warning"), cell.Warn, cell.Say("its %s active do not fit into the %s free places of the others", cell.Int(r.Active), cell.Int(room)))
	default:
		line(b, &h, cell.Lit("room"), cell.Plain, cell.Say("the others run %s and have %s places free", cell.Int(active), cell.Int(room)))
	}
	line(b, &h, cell.Lit("undo"), cell.Plain, cell.Lit("U or R: ready again"))
}

// others sums the other ranks of the worker that take new work.
func (d *drainBody) others(s *model.State) (ready, all, active, room int) {
	for i := range s.Ranks {
		r := &s.Ranks[i]
		if r.Target.Worker != d.target.Worker {
			continue
		}
		all++
		if r.Target == d.target || r.Availability != model.Ready || r.Weight == 0 {
			continue
		}
		ready++
		active += r.Active
		room += max(0, r.MaxActive-r.Active)
	}
	return ready, all, active, room
}

func (d *drainBody) key(*view.Frame, view.Key) {}

func (d *drainBody) fire(f *view.Frame) (view.Send, cell.Text) {
	if rankOf(f.State, d.target) == nil {
		return view.Send{}, cell.Lit("the rank is gone")
	}
	t := d.target
	return view.Send{Command: model.Command{Verb: d.verb, Target: &t}}, cell.Text{}
}
