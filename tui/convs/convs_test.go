package convs

import (
	"fmt"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"adpdeck/router/model"
	"adpdeck/tui/command"
	"adpdeck/tui/fixture"
	"adpdeck/tui/view"
)

func sizes() [][2]int { return [][2]int{{40, 12}, {80, 24}, {120, 40}} }

func key(tenant, id string) model.ConvKey {
	return model.ConvKey{Tenant: tenant, Model: "m-70b-chat", ID: id}
}

func TestFrames(t *testing.T) {
	type setup func(v *View, f *view.Frame)
	filtered := func(v *View, f *view.Frame) { v.SetFilter("rank:w0/3") }
	scenarios := map[string]struct {
		state *model.State
		then  setup
	}{
		"normal": {fixture.Normal(), nil},
		"filtered_marked": {fixture.Normal(), func(v *View, f *view.Frame) {
			filtered(v, f)
			v.list.SetMarks([]model.ConvKey{key("tenant-a", "conv-90ab12fe-0c11"), key("tenant-b", "conv-5e5e0101-aa10"), key("tenant-a", "conv-31c2aa90-f001")})
			v.list.Select(key("tenant-a", "conv-77fd0031-1f0f"))
		}},
		"pinned": {fixture.Normal(), func(v *View, f *view.Frame) {
			filtered(v, f)
			v.list.Select(key("tenant-c", "run-2291/agent-3"))
		}},
		"detail": {fixture.Normal(), func(v *View, f *view.Frame) {
			v.list.Select(key("tenant-c", "run-2291/agent-3"))
			v.detail = true
		}},
		"typing_wrong": {fixture.Normal(), func(v *View, f *view.Frame) {
			v.Do(f, "filter")
			for _, r := range "foo:1" {
				v.Key(f, view.Key{Name: string(r), Runes: []rune{r}})
			}
		}},
		"hostile": {fixture.Hostile(), nil},
		"empty":   {fixture.Empty(), nil},
		"none":    {fixture.Normal(), func(v *View, f *view.Frame) { v.SetFilter("nothing-like-it") }},
	}
	for name, c := range scenarios {
		for _, s := range sizes() {
			t.Run(fmt.Sprintf("%s_%dx%d", name, s[0], s[1]), func(t *testing.T) {
				f := fixture.Frame(c.state, s[0], s[1])
				v := New()
				v.Draw(f, s[0], s[1])
				if c.then != nil {
					c.then(v, f)
				}
				golden.RequireEqual(t, fixture.Screen(v, f))
			})
		}
	}
}

func TestCommandsOpenTheirDialog(t *testing.T) {
	for name, c := range map[string]struct {
		do    command.ID
		marks int
		title string
	}{
		"pin":         {command.Pin, 0, "Pin run-2291/agent-3"},
		"unpin":       {command.Unpin, 0, "Remove the pin of run-2291/agent-3"},
		"evict":       {command.Evict, 0, "Evict run-2291/agent-3"},
		"migrate":     {command.Migrate, 0, "Migrate run-2291/agent-3"},
		"evict marks": {command.Evict, 3, "Evict 3 conversations"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.Frame(fixture.Normal(), 80, 24)
			v := New()
			v.Draw(f, 80, 20)
			v.Select(key("tenant-c", "run-2291/agent-3"))
			for range c.marks {
				v.Do(f, command.Mark)
			}
			in, ok := v.Do(f, c.do)
			s, isShow := in.(view.Show)
			if !ok || !isShow || s.Dialog.Title().String() != c.title {
				t.Errorf("got %#v", in)
			}
		})
	}
}

func TestEscClosesOneLevelAtATime(t *testing.T) {
	f := fixture.Frame(fixture.Normal(), 80, 24)
	v := New()
	v.Draw(f, 80, 20)
	v.SetFilter("rank:w0/3")
	v.Do(f, command.Mark)
	v.Do(f, command.Open)
	for i, want := range []struct{ detail, marks, filter bool }{{false, true, true}, {false, true, false}, {false, false, false}} {
		if !v.Back(f) {
			t.Fatalf("step %d closed nothing", i)
		}
		if v.detail != want.detail || (v.list.Marks() > 0) != want.marks || v.list.Filtered() != want.filter {
			t.Errorf("step %d: detail %v, marks %d, filter %v", i, v.detail, v.list.Marks(), v.list.Filtered())
		}
	}
	if v.Back(f) {
		t.Error("there was nothing left to close")
	}
}

func TestRefusedOnesStayMarked(t *testing.T) {
	f := fixture.Frame(fixture.Normal(), 80, 24)
	v := New()
	v.Draw(f, 80, 20)
	v.Do(f, command.Mark)
	v.Do(f, command.Mark)
	var items []model.ItemResult
	for i, c := range v.list.MarkedItems() {
		items = append(items, model.ItemResult{Conv: c.Key, Done: i == 0})
	}
	v.Answered(model.Command{Verb: model.VerbEvict}, model.Reply{Accepted: true, Items: items})
	if v.list.Marks() != 1 || !v.list.Marked(items[1].Conv) {
		t.Errorf("%d marks", v.list.Marks())
	}
}

func TestCopyIsRaw(t *testing.T) {
	f := fixture.Frame(fixture.Hostile(), 80, 24)
	v := New()
	v.Draw(f, 80, 20)
	v.Do(f, command.First)
	if got := v.CopyText(f); got != "conv\u202e\u200b-rtl" {
		t.Errorf("copied %q", got)
	}
}

func TestFilterByPinAndFigures(t *testing.T) {
	f := fixture.Frame(fixture.Normal(), 80, 24)
	for filter, want := range map[string]int{
		"pin:op": 2, "pin:lost": 1, "pin:moved": 1, "pin:none": 1, "rank:w1/2": 58, "idle<5s turns>20": 3, "hit>90% cached>13k": 3,
	} {
		v := New()
		v.Draw(f, 80, 20)
		v.SetFilter(filter)
		if got := len(v.list.Rows()); got != want {
			t.Errorf("%s: %d rows, want %d", filter, got, want)
		}
	}
}
