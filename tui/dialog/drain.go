package dialog

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

// drainBody is of one rank, or where the target names none, of all ranks of a
// worker.
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

// NewDrainWorker asks before no rank of a worker takes new conversations.
func NewDrainWorker(f *view.Frame, worker string) *Box {
	return &Box{
		title: cell.Say("Drain all of %s", cell.Foreign(worker)), button: cell.Lit("Drain"),
		version: f.State.Version, body: &drainBody{model.Target{Worker: worker, Rank: model.NoRank}, model.VerbDrain},
	}
}

// NewReadyWorker asks before all ranks of a worker take new work again.
func NewReadyWorker(f *view.Frame, worker string) *Box {
	return &Box{
		title: cell.Say("Ready all of %s again", cell.Foreign(worker)), button: cell.Lit("Ready"),
		version: f.State.Version, body: &drainBody{model.Target{Worker: worker, Rank: model.NoRank}, model.VerbReady},
	}
}

func (d *drainBody) rows(*view.Frame) int { return 6 }

// has reports whether the dialog is about that rank.
func (d *drainBody) has(t model.Target) bool {
	return t == d.target || d.target.Rank == model.NoRank && t.Worker == d.target.Worker
}

// ranksSum is what some ranks run, and what room they have.
type ranksSum struct {
	ranks, reported                          int
	active, most, free, queued, tokens, pins int
}

func (s *ranksSum) add(r *model.Rank) {
	s.ranks++
	s.most += r.MaxActive
	s.free += max(0, r.MaxActive-r.Active)
	if !r.ReportedAt.IsZero() {
		s.reported++
	}
	s.active, s.queued, s.tokens, s.pins = s.active+r.Active, s.queued+r.Queued, s.tokens+r.Tokens, s.pins+r.Pins+r.OperatorPins
}

// sums are the ranks that the dialog is about, those that take new work among
// the others of the worker, and among those of other workers.
func (d *drainBody) sums(st *model.State) (mine, beside, elsewhere ranksSum, all int) {
	for i := range st.Ranks {
		r := &st.Ranks[i]
		takes := r.Availability == model.Ready && r.Weight > 0
		if r.Target.Worker == d.target.Worker {
			all++
		}
		switch {
		case d.has(r.Target):
			mine.add(r)
		case takes && r.Target.Worker == d.target.Worker:
			beside.add(r)
		case takes:
			elsewhere.add(r)
		}
	}
	return mine, beside, elsewhere, all
}

func (d *drainBody) paint(b *cell.Block, f *view.Frame, h int) {
	mine, beside, elsewhere, all := d.sums(f.State)
	if mine.ranks == 0 {
		line(b, &h, cell.Lit("rank"), cell.Warn, cell.Say("%s is gone", cell.Foreign(d.target.String())))
		return
	}
	now := cell.Lit("it has not reported yet")
	if mine.reported > 0 {
		now = cell.Say("%s of %s active, %s queued, %s tokens, %s pins", cell.Int(mine.active), cell.Int(mine.most), cell.Int(mine.queued),
			cell.Kilo(float64(mine.tokens)), cell.Full(mine.pins))
		if d.target.Rank == model.NoRank {
			now = cell.Say("%s ranks: %s", cell.Int(mine.ranks), now)
		}
	}
	line(b, &h, cell.Lit("now"), cell.Strong, now)
	gap(b, &h, 4)
	if d.verb == model.VerbReady {
		line(b, &h, cell.Lit("effect"), cell.Plain, cell.Lit("new conversations are placed here again"))
		line(b, &h, cell.Lit("undo"), cell.Plain, cell.Lit("U or D: drain again"))
		return
	}
	worker := cell.Foreign(d.target.Worker)
	line(b, &h, cell.Lit("effect"), cell.Plain, cell.Lit("no new conversations; bound ones and pins stay"))
	left := cell.Say("%s of %s ranks of %s take new work", cell.Int(beside.ranks), cell.Int(all), worker)
	room, places := cell.Lit("the others run"), beside
	if beside.ranks == 0 {
		left = cell.Say("no rank of %s takes new work, %s of other workers do", worker, cell.Int(elsewhere.ranks))
		room, places = cell.Lit("the other workers run"), elsewhere
	}
	line(b, &h, cell.Lit("left"), cell.Plain, left)
	switch {
	case beside.ranks+elsewhere.ranks == 0:
		line(b, &h, cell.Lit("warning"), cell.Warn, cell.Lit("no rank would take new work: the router will refuse"))
	case beside.ranks == 0 && f.State.Settings.RouterMode == model.ModeDirect:
		line(b, &h, cell.Lit("warning"), cell.Warn, cell.Say("in mode direct clients name %s: the router will refuse", worker))
	case mine.active > places.free:
		line(b, &h, cell.Lit("warning"), cell.Warn, cell.Say("its %s active do not fit into the %s free places of the others", cell.Int(mine.active), cell.Int(places.free)))
	default:
		line(b, &h, cell.Lit("room"), cell.Plain, cell.Say("%s %s and have %s places free", room, cell.Int(places.active), cell.Int(places.free)))
	}
	line(b, &h, cell.Lit("undo"), cell.Plain, cell.Lit("U or R: ready again"))
}

func (d *drainBody) key(*view.Frame, view.Key) {}

func (d *drainBody) fire(f *view.Frame) (view.Send, cell.Text) {
	if mine, _, _, _ := d.sums(f.State); mine.ranks == 0 {
		return view.Send{}, cell.Lit("the rank is gone")
	}
	t := d.target
	return view.Send{Command: model.Command{Verb: d.verb, Target: &t}}, cell.Text{}
}
