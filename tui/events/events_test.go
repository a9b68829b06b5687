package events

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"adpdeck/router/model"
	"adpdeck/tui/command"
	"adpdeck/tui/fixture"
	"adpdeck/tui/view"
)

func sizes() [][2]int { return [][2]int{{40, 12}, {80, 24}, {120, 40}, {200, 60}} }

// at puts the cursor on the first event whose words contain what.
func at(what string) func(*View, *view.Frame) {
	return func(v *View, f *view.Frame) {
		for _, e := range v.list.Rows() {
			if strings.Contains(e.What, what) {
				v.list.Select(e.ID)
				return
			}
		}
		panic("no event " + what)
	}
}

func empty() *model.State {
	s := fixture.Fleet()
	s.Events, s.Revisions = nil, nil
	return s
}

func TestFrames(t *testing.T) {
	none := func(*View, *view.Frame) {}
	for name, c := range map[string]struct {
		state *model.State
		then  func(*View, *view.Frame)
	}{
		"normal":     {fixture.Fleet(), at("drain w1/2")},
		"drained":    {fixture.Fleet(), at("drain w1/1")},
		"machine":    {fixture.Fleet(), at("does not answer")},
		"undone":     {fixture.Fleet(), at("β 1.00")},
		"final":      {fixture.Fleet(), at("clear w0/4")},
		"no_engines": {fixture.Normal(), none},
		"empty":      {empty(), none},
		"stale":      {fixture.Fleet(), func(v *View, f *view.Frame) { at("gap of 2")(v, f); fixture.Lose(f) }},
		"hostile":    {fixture.HostileFleet(), none},
		"filtered":   {fixture.Fleet(), func(v *View, _ *view.Frame) { v.SetFilter("kind:engine level:warn | who:bob") }},
		"one_kind":   {fixture.Fleet(), func(v *View, f *view.Frame) { v.Do(f, command.OneKind); v.Do(f, command.OneKind) }},
		"no_match":   {fixture.Fleet(), func(v *View, _ *view.Frame) { v.SetFilter("who:nobody") }},
		"full":       {fixture.WideFleet(64), func(v *View, f *view.Frame) { v.Do(f, command.PageDown); v.Do(f, command.PageDown) }},
	} {
		for _, s := range sizes() {
			t.Run(fmt.Sprintf("%s_%dx%d", name, s[0], s[1]), func(t *testing.T) {
				f := fixture.Frame(c.state, s[0], s[1])
				v := New()
				v.Draw(f, s[0], s[1])
				c.then(v, f)
				golden.RequireEqual(t, fixture.Screen(v, f))
			})
		}
	}
}

func TestFilters(t *testing.T) {
	f := fixture.Frame(fixture.Fleet(), 80, 24)
	for filter, want := range map[string]int{
		"": 16, "kind:operator": 8, "kind:engine": 3, "kind:index": 2, "kind:router": 3, "level:warn": 3, "level:error": 1, "who:ann": 5,
		"who:bob kind:operator": 3, "verb:drain": 2, "rank:w1/2": 1, "worker:d0": 2, "version>1410": 4, "version:1412": 1, "kernel": 1,
		"age<60s": 6, "!kind:operator": 8,
	} {
		v := New()
		v.Draw(f, 80, 20)
		if err := v.list.SetFilter(filter); err != nil || len(v.list.Rows()) != want {
			t.Errorf("%s: %d rows, want %d (%v)", filter, len(v.list.Rows()), want, err)
		}
	}
}

// Routers of an older make tell no kind and no target.
func TestKindAndTargetOfOlderRouters(t *testing.T) {
	s := fixture.Fleet()
	for _, c := range []struct {
		e     model.Event
		kind  string
		about string
	}{
		{model.Event{Who: "ann", What: "drain w1/2", Version: 1412}, model.EventOperator, "w1/2"},
		{model.Event{Who: "router", What: "pin not honoured: a was sent to w0/3 and ran on w0/1"}, model.EventRouter, "w0/3"},
		{model.Event{Who: "w1/6", What: "no block events"}, model.EventEngine, "w1/6"},
		{model.Event{Who: "d0", What: "restarted"}, model.EventEngine, "d0"},
		{model.Event{Who: "feed", What: "gap"}, model.EventIndex, ""},
		{model.Event{Who: "ann", What: "joined as operator"}, model.EventOperator, ""},
		{model.Event{Who: "bob", What: `drain "w1/2",`, Version: 9}, model.EventOperator, "w1/2"},
		{model.Event{Who: "bob", What: "drain w9/9", Version: 9}, model.EventOperator, ""},
		{model.Event{Who: "x", Kind: "new"}, "new", ""},
	} {
		if got := kindOf(s, &c.e); got != c.kind {
			t.Errorf("%s %q: kind %s, want %s", c.e.Who, c.e.What, got, c.kind)
		}
		if got := name(find(s, &c.e).target); got != c.about && !(c.about == "" && find(s, &c.e).target.Worker == "") {
			t.Errorf("%q is about %q, want %q", c.e.What, got, c.about)
		}
	}
}

func TestEnterGoesThere(t *testing.T) {
	for what, want := range map[string]view.Intent{
		"drain w1/2":         view.Goto{View: command.Ranks, At: view.Subject{Target: fixture.T("w1", 2)}},
		"does not answer":    view.Goto{View: command.Workers, At: view.Subject{Target: fixture.T("x0", model.NoRank)}},
		"pin run-2291":       view.Goto{View: command.Convs, At: view.Subject{Conv: model.ConvKey{Tenant: "tenant-c", Model: "m-70b-chat", ID: "run-2291/agent-3"}}},
		"β 1.00 → 1.20":      view.Goto{View: command.Tuning},
		"no block events":    view.Goto{View: command.Ranks, At: view.Subject{Target: fixture.T("w1", 6)}},
		"w0/5 weight":        view.Goto{View: command.Ranks, At: view.Subject{Target: fixture.T("w0", 5)}},
		"refused: weight 3 ": view.Goto{View: command.Ranks, At: view.Subject{Target: fixture.T("w0", 5)}},
	} {
		f := fixture.Frame(fixture.Fleet(), 80, 24)
		v := New()
		v.Draw(f, 80, 20)
		if what == "β 1.00 → 1.20" {
			v.SetFilter("version:1410")
		} else {
			at(what)(v, f)
		}
		in, ok := v.Do(f, command.Open)
		if !ok || in != want {
			t.Errorf("%s: got %#v", what, in)
		}
	}
	f := fixture.Frame(fixture.Fleet(), 80, 24)
	v := New()
	v.Draw(f, 80, 20)
	at("evicted 214")(v, f)
	if in, _ := v.Do(f, command.Open); fmt.Sprintf("%T", in) != "view.Toast" {
		t.Errorf("an event about nothing leads to %#v", in)
	}
}

func TestUndoTakesTheSelectedVersionBack(t *testing.T) {
	for what, want := range map[string]string{
		"drain w1/2":      "Undo v1412",
		"undo v1410":      "Undo v1411",
		"evicted 214":     "this event changed no setting: there is nothing to take back",
		"clear w0/4":      "v1414 cannot be taken back: what it dropped is gone",
		"v1":              "v1 is too old: the history does not hold it any more",
		"β 1.00 → 1.20":   "v1410 was undone already: U on v1411 does it again",
		"does not answer": "this event changed no setting: there is nothing to take back",
	} {
		f := fixture.Frame(fixture.Fleet(), 80, 24)
		v := New()
		v.Draw(f, 80, 20)
		switch what {
		case "β 1.00 → 1.20":
			v.SetFilter("version:1410")
		case "v1":
			v.SetFilter("version:1")
		default:
			at(what)(v, f)
		}
		in, ok := v.Undo(f)
		got := ""
		switch in := in.(type) {
		case view.Show:
			got = in.Dialog.Title().String()
		case view.Toast:
			got = in.Text.String()
		}
		if !ok || got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
}

func TestUnreadUntilLookedAt(t *testing.T) {
	s := fixture.Fleet()
	f := fixture.Frame(s, 80, 24)
	v := New()
	if n := v.Unread(f); n != 0 {
		t.Errorf("%d unread before anything came", n)
	}
	more := *s
	more.Events = append([]model.Event{{ID: 18, At: s.At}, {ID: 17, At: s.At}}, s.Events...)
	f.State = &more
	f.Rev++
	if n := v.Unread(f); n != 2 {
		t.Errorf("%d unread, want 2", n)
	}
	frozen := fixture.Frame(s, 80, 24)
	frozen.Link = command.LinkFrozen
	if n := v.Unread(frozen); n != 0 {
		t.Errorf("%d unread of an older moment", n)
	}
	v.Draw(f, 80, 20)
	if n := v.Unread(f); n != 0 {
		t.Errorf("%d unread after a look", n)
	}
	v.Draw(frozen, 80, 20) // a look back makes nothing unread
	if n := v.Unread(f); n != 0 {
		t.Errorf("%d unread after a look back", n)
	}
	anew := *s
	anew.Events = []model.Event{{ID: 1, At: s.At.Add(time.Minute)}}
	f.State = &anew
	if n := v.Unread(f); n != 1 {
		t.Errorf("%d unread of a router that began anew, want 1", n)
	}
}

func TestTwoTailsHaveOneCursor(t *testing.T) {
	f := fixture.Frame(fixture.Fleet(), 200, 60)
	v := New()
	v.Draw(f, 200, 56)
	at("drain w1/2")(v, f)
	do := func(c command.ID, want string) {
		t.Helper()
		v.Do(f, c)
		v.Draw(f, 200, 56)
		if e, ok := v.list.Selected(); !ok || !strings.Contains(e.What, want) {
			t.Errorf("after %s the cursor is on %q, want %q", c, e.What, want)
		}
	}
	do(command.Down, "undo v1410")
	do(command.Up, "drain w1/2")
	do(command.Up, "drain w1/1")
	do(command.Last, "w0/5 weight")
	do(command.Down, "w0/5 weight")
	do(command.First, "clear w0/4")
	do(command.OtherTail, "pin not honoured")
	do(command.Down, "does not answer")
	do(command.OtherTail, "drain w1/1")
}

func TestOneKindAfterTheOther(t *testing.T) {
	f := fixture.Frame(fixture.Fleet(), 120, 40)
	v := New()
	v.Draw(f, 120, 36)
	v.SetFilter("level:warn")
	for _, want := range []string{"level:warn kind:operator", "level:warn kind:engine", "level:warn kind:index", "level:warn kind:router", "level:warn"} {
		v.Do(f, command.OneKind)
		if got, _ := v.list.FilterText(); got != want {
			t.Errorf("filter %q, want %q", got, want)
		}
	}
	v.SetFilter("who:bob | who:ann")
	v.Do(f, command.OneKind)
	if got, _ := v.list.FilterText(); got != "kind:operator" {
		t.Errorf("filter %q", got)
	}
}

func TestNextOddIsAWarningOrAnError(t *testing.T) {
	f := fixture.Frame(fixture.Fleet(), 80, 24)
	v := New()
	v.Draw(f, 80, 20)
	for _, want := range []string{"does not answer", "no block events", "refused: weight", "pin not honoured"} {
		v.Do(f, command.Odd)
		if e, _ := v.list.Selected(); !strings.Contains(e.What, want) {
			t.Errorf("on %q, want %q", e.What, want)
		}
	}
}

func TestCopyAndExport(t *testing.T) {
	f := fixture.Frame(fixture.HostileFleet(), 80, 24)
	v := New()
	v.Draw(f, 80, 20)
	if got := v.CopyText(f); strings.ContainsAny(got, "\n\r") || strings.Count(got, "\t") != 4 {
		t.Errorf("copied %q", got)
	}
	at("drain w1/2")(v, f)
	if got := v.CopyText(f); got != "2026-11-27T14:01:58.412Z\tinfo\toperator\tann\tdrain w1/2\tv1412" {
		t.Errorf("copied %q", got)
	}
	x := v.Export(f)
	for _, row := range x.Rows {
		if len(row) != len(x.Columns) {
			t.Fatalf("%d values for %d columns", len(row), len(x.Columns))
		}
	}
	if len(x.Rows) != 16 || x.Rows[4][10] != "kernel update" || x.Rows[4][7] != "w1/2" {
		t.Errorf("exported %v", x.Rows[4])
	}
}
