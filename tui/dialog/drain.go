package dialog

import (
	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// drainBody is about one rank, or with NoRank about all ranks of a worker.
type drainBody struct {
	target model.Target
	verb   model.Verb
}

// NewDrain asks before a rank takes no new conversations.
func NewDrain(f *view.Frame, r *model.Rank) *Box { return newDrain(f, r.Target, model.VerbDrain) }

// NewReady asks before a rank takes new work again.
func NewReady(f *view.Frame, r *model.Rank) *Box { return newDrain(f, r.Target, model.VerbReady) }

// NewDrainWorker asks before all ranks of a worker take no new conversations.
func NewDrainWorker(f *view.Frame, worker string) *Box {
	return newDrain(f, model.Target{Worker: worker, Rank: model.NoRank}, model.VerbDrain)
}

// NewReadyWorker asks before all ranks of a worker take new work again.
func NewReadyWorker(f *view.Frame, worker string) *Box {
	return newDrain(f, model.Target{Worker: worker, Rank: model.NoRank}, model.VerbReady)
}

func newDrain(f *view.Frame, t model.Target, verb model.Verb) *Box {
	d := &drainBody{t, verb}
	x := &Box{title: cell.Say("Drain %s", d.name()), button: cell.Lit("Drain"), version: f.State.Version, body: d}
	if verb == model.VerbReady {
		x.title, x.button = cell.Say("Ready %s again", d.name()), cell.Lit("Ready")
	}
	return x
}

// name is w0/3, or all of w0.
func (d *drainBody) name() cell.Text {
	if d.target.Rank == model.NoRank {
		return cell.Say("all of %s", cell.Foreign(d.target.Worker))
	}
	return cell.Foreign(d.target.String())
}

// has reports whether a rank is one that the command acts on.
func (d *drainBody) has(r *model.Rank) bool {
	return r.Target == d.target || d.target.Rank == model.NoRank && r.Target.Worker == d.target.Worker
}

// drainSums are the figures of the ranks meant, and of the others that would
// take their work: those of the same worker, or for a worker all others.
type drainSums struct {
	ranks, reported, draining      int
	active, most, queued, tokens   int
	left                           view.Left
	others, ready, running, free   int
	elsewhere                      int // ranks of other workers that take new work
	capsUnknown, othersCapsUnknown bool
}

func (d *drainBody) sums(s *model.State) (x drainSums) {
	for i := range s.Ranks {
		r := &s.Ranks[i]
		if !d.has(r) {
			if d.target.Rank == model.NoRank || r.Target.Worker == d.target.Worker {
				x.other(r)
			} else if r.Availability == model.Ready && r.Weight > 0 {
				x.elsewhere++
			}
			continue
		}
		x.ranks++
		x.left = x.left.Add(view.LeftOn(r))
		if r.Availability == model.Draining {
			x.draining++
		}
		if r.ReportedAt.IsZero() {
			continue
		}
		x.reported++
		x.active, x.queued, x.tokens, x.most = x.active+r.Active, x.queued+r.Queued, x.tokens+r.Tokens, x.most+r.MaxActive
		x.capsUnknown = x.capsUnknown || r.MaxActive <= 0
	}
	if d.target.Rank == model.NoRank {
		x.left = x.left.OnWorker(s, d.target.Worker)
	} else {
		x.others++ // the rank itself counts among those of its worker
	}
	return x
}

func (x *drainSums) other(r *model.Rank) {
	x.others++
	if r.Availability != model.Ready || r.Weight == 0 {
		return
	}
	x.ready++
	x.running += r.Active
	x.free += max(0, r.MaxActive-r.Active)
	x.othersCapsUnknown = x.othersCapsUnknown || r.MaxActive <= 0
}

func (d *drainBody) rows(*view.Frame) int { return 7 }

func (d *drainBody) paint(b *cell.Block, f *view.Frame, h int) {
	x := d.sums(f.State)
	if x.ranks == 0 {
		line(b, &h, cell.Lit("rank"), cell.Warn, cell.Say("%s is gone", d.name()))
		return
	}
	line(b, &h, cell.Lit("now"), cell.Strong, d.now(&x))
	line(b, &h, cell.Lit("to go"), cell.Plain, toGo(&x))
	gap(b, &h, 4)
	if d.verb == model.VerbReady {
		line(b, &h, cell.Lit("effect"), cell.Plain, cell.Lit("new conversations are placed here again"))
		line(b, &h, cell.Lit("undo"), cell.Plain, cell.Say("%s or %s: drain again", f.KeyOf(command.Undo), f.KeyOf(command.Drain)))
		return
	}
	if d.target.Rank != model.NoRank && view.EnginePicks(f.State, d.target.Worker) {
		w := cell.Fit(d.target.Worker, 16)
		line(b, &h, cell.Lit("warning"), cell.Warn, cell.Say("the engine of %s picks the rank: the router will refuse", w))
		line(b, &h, cell.Lit("next"), cell.Plain, cell.Say("drain all of %s: %s in 7 Workers, or :drain %s", w, f.KeyOf(command.Drain), w))
		return
	}
	line(b, &h, cell.Lit("effect"), cell.Plain, cell.Lit("no new conversations; bound ones and pins stay"))
	d.rest(b, &h, &x, f.State.Settings.RouterMode)
	line(b, &h, cell.Lit("undo"), cell.Plain, cell.Say("%s or %s: ready again", f.KeyOf(command.Undo), f.KeyOf(command.Ready)))
}

// now is what the ranks carry: 14 of 16 active, 3 queued, 61.2k tokens.
func (d *drainBody) now(x *drainSums) cell.Text {
	switch {
	case x.reported == 0 && d.target.Rank != model.NoRank:
		return cell.Lit("it has not reported yet")
	case x.reported == 0:
		return cell.Say("none of its %s ranks has reported yet", cell.Int(x.ranks))
	}
	active := cell.Say("%s of %s active", cell.Int(x.active), cell.Int(x.most))
	if x.capsUnknown {
		active = cell.Say("%s active", cell.Int(x.active))
	}
	t := cell.Say("%s, %s queued, %s tokens", active, cell.Int(x.queued), cell.Kilo(float64(x.tokens)))
	switch {
	case x.reported < x.ranks:
		t = cell.Say("%s (%s of %s ranks)", t, cell.Int(x.reported), cell.Int(x.ranks))
	case d.target.Rank == model.NoRank:
		t = cell.Say("%s ranks: %s", cell.Int(x.ranks), t)
	}
	return t
}

// toGo is the live count: drained when both are 0.
func toGo(x *drainSums) cell.Text {
	if x.left.Drained() {
		return cell.Lit("nothing: drained at once, safe to stop")
	}
	return cell.Say("%s open, %s pins; drained when both are 0", cell.Full(x.left.Open), cell.Full(x.left.Pins))
}

// rest says who is left to take new work, and whether they can.
func (d *drainBody) rest(b *cell.Block, h *int, x *drainSums, mode model.RouterMode) {
	worker := d.target.Rank == model.NoRank
	if worker {
		line(b, h, cell.Lit("left"), cell.Plain, cell.Say("%s of %s ranks of other workers take new work", cell.Int(x.ready), cell.Int(x.others)))
	} else {
		line(b, h, cell.Lit("left"), cell.Plain, cell.Say("%s of %s ranks of %s take new work", cell.Int(x.ready), cell.Int(x.others), cell.Foreign(d.target.Worker)))
	}
	switch {
	case x.ready+x.elsewhere == 0:
		line(b, h, cell.Lit("warning"), cell.Warn, cell.Lit("no rank would take new work: the router will refuse"))
	case mode == model.ModeDirect && (worker || x.ready == 0):
		line(b, h, cell.Lit("warning"), cell.Warn, cell.Say("in mode direct clients name %s: the router will refuse", cell.Foreign(d.target.Worker)))
	case x.ready == 0:
		line(b, h, cell.Lit("note"), cell.Plain, cell.Say("then %s takes nothing new; %s ranks of other workers do", cell.Foreign(d.target.Worker), cell.Int(x.elsewhere)))
	case x.othersCapsUnknown:
		line(b, h, cell.Lit("room"), cell.Plain, cell.Say("the others run %s; their places are not known", cell.Int(x.running)))
	case x.active > x.free:
		line(b, h, cell.Lit("warning"), cell.Warn, cell.Say("its %s active do not fit the %s free places of others", cell.Int(x.active), cell.Int(x.free)))
	default:
		line(b, h, cell.Lit("room"), cell.Plain, cell.Say("the others run %s and have %s places free", cell.Int(x.running), cell.Int(x.free)))
	}
}

func (d *drainBody) key(*view.Frame, view.Key) {}

func (d *drainBody) fire(f *view.Frame) (view.Send, cell.Text) {
	x := d.sums(f.State)
	if x.ranks == 0 {
		return view.Send{}, cell.Say("%s is gone", d.name())
	}
	t := d.target
	return view.Send{Command: model.Command{Verb: d.verb, Target: &t}}, cell.Text{}
}
