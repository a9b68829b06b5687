package events

import (
	"slices"
	"strings"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/table"
	"adpdeck/tui/view"
)

// subject is the rank or worker that an event is about; an empty worker is none.
type subject struct {
	target model.Target
	// there says that the state still has it.
	there bool
}

// rank is w1/2, empty for a worker or nothing.
func (s *subject) rank() string {
	if s.target.Worker == "" || s.target.Rank == model.NoRank {
		return ""
	}
	return s.target.String()
}

// about is what an event is about: its target, or else the first rank or worker
// that it names in words.
func (v *View) about(e *entry) *subject {
	if e.subject == nil {
		e.subject = find(v.of, e.Event)
	}
	return e.subject
}

func find(s *model.State, e *model.Event) *subject {
	if s == nil {
		return &subject{}
	}
	if e.Target != nil {
		return &subject{*e.Target, has(s, *e.Target)}
	}
	for _, w := range append([]string{e.Who}, strings.Fields(e.What)...) {
		w = strings.Trim(w, `.,:;()"'`)
		t, err := model.ParseTarget(w)
		if err != nil {
			t = model.Target{Worker: w, Rank: model.NoRank}
		}
		if has(s, t) {
			return &subject{t, true}
		}
	}
	return &subject{}
}

// has reports whether the state knows a rank, or with NoRank a worker.
func has(s *model.State, t model.Target) bool {
	if t.Rank == model.NoRank {
		return slices.ContainsFunc(s.Workers, func(w model.Worker) bool { return w.ID == t.Worker })
	}
	return rankOf(s, t) != nil
}

func rankOf(s *model.State, t model.Target) *model.Rank {
	for i := range s.Ranks {
		if s.Ranks[i].Target == t {
			return &s.Ranks[i]
		}
	}
	return nil
}

// open goes to what an event is about.
func (v *View) open(f *view.Frame, e *entry) view.Intent {
	x := v.about(e)
	switch {
	case e.onConvs():
		return v.openConv(f, e, x)
	case x.target.Worker == "" && e.verb() == string(model.VerbSet):
		return view.Goto{View: command.Tuning}
	case x.target.Worker == "":
		return view.Toast{Level: view.Note, Text: cell.Lit("this event names no rank, worker or conversation")}
	case !x.there:
		return view.Toast{Level: view.Note, Text: cell.Say("%s is not there any more", cell.Fit(name(x.target), 48))}
	case x.target.Rank == model.NoRank:
		return view.Goto{View: command.Workers, At: view.Subject{Target: x.target}}
	}
	return view.Goto{View: command.Ranks, At: view.Subject{Target: x.target}}
}

// openConv goes to the conversation that the event names, or else to those of
// its rank.
func (v *View) openConv(f *view.Frame, e *entry, x *subject) view.Intent {
	var named *model.Conv
	for _, c := range f.State.Convs {
		if id := c.Key.ID; id != "" && strings.Contains(e.What, id) && (named == nil || len(id) > len(named.Key.ID)) {
			named = c
		}
	}
	switch {
	case named != nil:
		return view.Goto{View: command.Convs, At: view.Subject{Conv: named.Key}}
	case x.rank() != "":
		return view.Goto{View: command.Convs, Filter: "rank:" + table.Quote(x.rank())}
	}
	return view.Goto{View: command.Convs}
}

// name is w1/2, or w1 for a worker.
func name(t model.Target) string {
	if t.Rank == model.NoRank {
		return t.Worker
	}
	return t.String()
}
