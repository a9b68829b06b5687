package ranks

import (
	"fmt"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"adpdeck/router/model"
	"adpdeck/tui/command"
	"adpdeck/tui/fixture"
	"adpdeck/tui/view"
)

func sizes() [][2]int { return [][2]int{{40, 12}, {80, 24}, {120, 40}, {200, 60}} }

func TestFrames(t *testing.T) {
	scenarios := map[string]func(w, h int) *view.Frame{
		"normal":  func(w, h int) *view.Frame { return fixture.Frame(fixture.Normal(), w, h) },
		"hot":     func(w, h int) *view.Frame { return fixture.Frame(fixture.Hot(), w, h) },
		"wide64":  func(w, h int) *view.Frame { return fixture.Frame(fixture.Wide(64), w, h) },
		"empty":   func(w, h int) *view.Frame { f := fixture.Frame(fixture.Empty(), w, h); f.Decisions = nil; return f },
		"hostile": func(w, h int) *view.Frame { return fixture.Frame(fixture.Hostile(), w, h) },
		"stale":   func(w, h int) *view.Frame { return fixture.Lose(fixture.Frame(fixture.Normal(), w, h)) },
		"oneold":  func(w, h int) *view.Frame { return fixture.Frame(fixture.OneOld(), w, h) },
	}
	for name, frame := range scenarios {
		for _, s := range sizes() {
			t.Run(fmt.Sprintf("%s_%dx%d", name, s[0], s[1]), func(t *testing.T) {
				f := frame(s[0], s[1])
				v := New()
				v.Draw(f, s[0], s[1])
				if len(f.State.Ranks) > 3 {
					v.list.Select(f.State.Ranks[3].Target)
				}
				golden.RequireEqual(t, fixture.Screen(v, f))
			})
		}
	}
}

func key(name string) view.Key {
	k := view.Key{Name: name}
	if len([]rune(name)) == 1 {
		k.Runes = []rune(name)
	}
	return k
}

func TestCommands(t *testing.T) {
	w03 := fixture.T("w0", 3)
	for name, c := range map[string]struct {
		do   command.ID
		at   model.Target
		want func(in view.Intent) bool
	}{
		"open": {command.Open, w03, func(in view.Intent) bool {
			return in == view.Intent(view.Goto{View: command.Convs, Filter: "rank:w0/3"})
		}},
		"drain": {command.Drain, w03, func(in view.Intent) bool { _, ok := in.(view.Show); return ok }},
		"ready": {command.Ready, fixture.T("w1", 2), func(in view.Intent) bool {
			s, ok := in.(view.Send)
			return ok && s.Command.Verb == model.VerbReady && *s.Command.Target == fixture.T("w1", 2)
		}},
		"side": {command.Side, w03, func(in view.Intent) bool { return in == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.Frame(fixture.Normal(), 80, 24)
			v := New()
			v.Draw(f, 80, 20)
			v.list.Select(c.at)
			in, ok := v.Do(f, c.do)
			if !ok || !c.want(in) {
				t.Errorf("got %#v, %v", in, ok)
			}
		})
	}
}

func TestWeightIsTypedInTheStatusRow(t *testing.T) {
	f := fixture.Frame(fixture.Normal(), 80, 24)
	v := New()
	v.Draw(f, 80, 20)
	v.Do(f, command.Weight)
	if !v.Typing() {
		t.Fatal("not typing")
	}
	for _, k := range []string{"9", "enter"} {
		v.Key(f, key(k))
	}
	if !v.Typing() {
		t.Fatal("a weight of 9 was taken")
	}
	v.Key(f, key("backspace"))
	v.Key(f, key("0"))
	in := v.Key(f, key("enter"))
	s, ok := in.(view.Stage)
	if !ok || v.Typing() || s.Values[0].Value != "0" || *s.Values[0].Target != fixture.T("w0", 0) {
		t.Errorf("got %#v", in)
	}
}

// A worker's name can hold what filters are made of.
func TestOpenQuotesTheFilter(t *testing.T) {
	if got := filterFor(model.Target{Worker: "a b|c", Rank: 1}); got != `rank:"a b|c/1"` {
		t.Errorf("got %s", got)
	}
}

func TestTheCursorStaysOnItsRank(t *testing.T) {
	f := fixture.Frame(fixture.Normal(), 80, 24)
	v := New()
	v.Draw(f, 80, 20)
	v.list.Select(fixture.T("w0", 3))
	v.SortBy("tokens")
	if r, ok := v.list.Selected(); !ok || r.Target != fixture.T("w0", 3) || v.list.Line() != 0 {
		t.Errorf("cursor on %v, line %d", r.Target, v.list.Line())
	}
}

func TestCellsOfTheSmallChartKeepTheirSamples(t *testing.T) {
	s := fixture.Normal()
	f := fixture.Frame(s, 80, 24)
	target := fixture.T("w0", 3)
	before := every(nil, f, target, 10, 3)
	f.Trends.Sample(s)
	after := every(nil, f, target, 10, 3)
	if len(before) != 10 || len(after) != 10 {
		t.Fatalf("%d and %d cells", len(before), len(after))
	}
	for i := range 8 {
		if before[i+1] != after[i] {
			t.Fatalf("cell %d changed from %v to %v", i+1, before[i+1], after[i])
		}
	}
}
