package decisions

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"adpdeck/router/model"
	"adpdeck/tui/command"
	"adpdeck/tui/fixture"
	"adpdeck/tui/view"
)

func sizes() [][2]int { return [][2]int{{40, 12}, {80, 24}, {120, 40}, {200, 60}} }

// policy is Normal under a policy of the engine tier.
func policy(p model.Policy) *model.State {
	s := fixture.Normal()
	s.Settings.AttentionDpConfig = s.Settings.AttentionDpConfig.WithPolicy(p)
	return s
}

// down moves the cursor n decisions back in time.
func down(n int) func(*View, *view.Frame) {
	return func(v *View, f *view.Frame) {
		for range n {
			v.Do(f, command.Down)
		}
	}
}

func TestFrames(t *testing.T) {
	for name, c := range map[string]struct {
		state *model.State
		then  func(*View, *view.Frame)
	}{
		"normal":       {fixture.Normal(), down(0)},
		"lightest":     {fixture.Normal(), down(1)},
		"operator":     {fixture.Normal(), down(2)},
		"lost":         {fixture.Normal(), down(5)},
		"hostile":      {fixture.Hostile(), func(v *View, f *view.Frame) { hostile(f) }},
		"stale":        {fixture.Normal(), func(v *View, f *view.Frame) { fixture.Lose(f) }},
		"empty":        {fixture.Empty(), func(v *View, f *view.Frame) { f.Decisions, f.Rev = nil, 2 }},
		"none":         {fixture.Normal(), func(v *View, f *view.Frame) { v.SetFilter("nothing-like-it") }},
		"filtered":     {fixture.Normal(), func(v *View, f *view.Frame) { v.SetFilter("tenant-a match>1000") }},
		"elsewhere":    {fixture.Normal(), func(v *View, f *view.Frame) { astray(f); v.Do(f, command.Odd) }},
		"balanced":     {policy(model.PolicyDefault), down(0)},
		"tie":          {policy(model.PolicyDefault), down(1)},
		"waits":        {policy(model.PolicyDefault), down(3)},
		"pinned":       {fixture.Conversation(), down(0)},
		"placed_turn":  {fixture.Conversation(), down(1)},
		"placed":       {fixture.Conversation(), down(2)},
		"overflow":     {fixture.Conversation(), down(4)},
		"kv":           {fixture.KV(), down(0)},
		"kv_required":  {fixture.KV(), down(1)},
		"kv_bound":     {fixture.KV(), down(2)},
		"kv_drawn":     {fixture.KV(), down(3)},
		"lockstep":     {fixture.Indexed(model.ModeLockstep), down(0)},
		"lockstep_far": {fixture.Indexed(model.ModeLockstep), down(4)},
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

// hostile puts names from outside that try to break the screen into f.
func hostile(f *view.Frame) {
	ds := make([]*model.Decision, 0, len(f.Decisions))
	for _, d := range f.Decisions {
		c := *d
		c.Conv.ID, c.Conv.Tenant = "conv\u202e-\x1b[31mrtl\n会話", "ten\x1b]0;x\aant"
		c.Target.Worker, c.Why = "w\x1b[31m\n0", "pin (a\u202en\nn)"
		c.Conflict = "asked for \x9b31m"
		c.Placement.Candidates = append([]model.Candidate(nil), c.Placement.Candidates...)
		for i := range c.Placement.Candidates {
			if i == 1 {
				c.Placement.Candidates[i].Excluded = "soft\x1b[2J cap"
			}
		}
		ds = append(ds, &c)
	}
	f.Decisions, f.Rev = ds, 2
}

// astray makes one decision run elsewhere and another find less than predicted.
func astray(f *view.Frame) {
	n := len(f.Decisions)
	a, b := f.Settled[f.Decisions[n-3].ID], f.Settled[f.Decisions[n-2].ID]
	a.Ran = fixture.T("w0", 4)
	b.CachedTokens, b.Outcome = 64, ""
	f.Settled[a.Decision], f.Settled[b.Decision] = a, b
}

// more is f with n newer decisions.
func more(f *view.Frame, n int) {
	last := f.Decisions[len(f.Decisions)-1]
	ds := append([]*model.Decision(nil), f.Decisions...)
	for i := range n {
		d := *last
		d.ID += uint64(i + 1)
		ds = append(ds, &d)
	}
	f.Decisions = ds
	f.Rev++
}

func TestCursorFollowsTheNewestUntilItIsMoved(t *testing.T) {
	f := fixture.Frame(fixture.Normal(), 80, 24)
	v := New()
	at := func() uint64 {
		v.Draw(f, 80, 20)
		d, _ := v.list.Selected()
		return d.ID
	}
	newest := func() uint64 { return f.Decisions[len(f.Decisions)-1].ID }
	if at() != newest() {
		t.Fatal("begins elsewhere")
	}
	more(f, 3)
	if at() != newest() {
		t.Error("does not follow")
	}
	v.Do(f, command.Down)
	held := at()
	more(f, 5)
	if at() != held {
		t.Error("moved off its decision")
	}
	f.Busy = true
	v.Do(f, command.Follow)
	more(f, 1)
	if at() == newest() {
		t.Error("moves under an open dialog")
	}
	f.Busy = false
	if at() != newest() {
		t.Error("f does not follow again")
	}
}

// A frozen screen hands over older decisions; the list is theirs.
func TestFreezeAndBack(t *testing.T) {
	f := fixture.Frame(fixture.Normal(), 80, 24)
	v := New()
	v.Draw(f, 80, 20)
	all := f.Decisions
	f.Decisions, f.Rev = all[:4], 1<<63
	v.Draw(f, 80, 20)
	if v.list.Total() != 4 {
		t.Errorf("%d decisions", v.list.Total())
	}
	f.Decisions, f.Rev = all, 3
	v.Draw(f, 80, 20)
	if d, _ := v.list.Selected(); d.ID != all[len(all)-1].ID {
		t.Errorf("follows %d", d.ID)
	}
}

func TestCommands(t *testing.T) {
	for name, c := range map[string]struct {
		at   int
		do   command.ID
		want string
	}{
		"conversation": {0, command.Open, "convs conversation:conv-8f2c91e0-41aa"},
		"keyless":      {3, command.Open, "toast"},
		"nothing odd":  {0, command.Odd, "toast"},
		"moves":        {0, command.Down, "nothing"},
		"tail alone":   {0, command.Side, "nothing"},
		"not a list's": {0, command.Mark, "unknown"},
		"no order":     {0, command.Reverse, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.Frame(fixture.Normal(), 80, 24)
			v := New()
			v.Draw(f, 80, 20)
			down(c.at)(v, f)
			in, ok := v.Do(f, c.do)
			got := "nothing"
			switch in := in.(type) {
			case view.Goto:
				got = string(in.View) + " " + in.Filter
			case view.Toast:
				got = "toast"
			}
			if !ok {
				got = "unknown"
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestNextOddStopsWhereItShould(t *testing.T) {
	f := fixture.Frame(fixture.Conversation(), 80, 24)
	v := New()
	v.Draw(f, 80, 20)
	v.Do(f, command.Odd)
	if d, _ := v.list.Selected(); d.Placement.Phase != model.PhaseOverflow {
		t.Errorf("stopped at %s", d.Why)
	}
}

func TestFilters(t *testing.T) {
	f := fixture.Frame(fixture.Normal(), 80, 24)
	for filter, want := range map[string]int{
		"rank:w0/3": 7, "phase:operator": 5, "prompt>8k": 4, "score>0 match<1": 2, "margin>1000": 3, "tenant-a": 4, "why:lost": 1, "ttft>1000": 1,
	} {
		v := New()
		v.Draw(f, 80, 20)
		v.SetFilter(filter)
		if got := len(v.list.Rows()); got != want {
			t.Errorf("%s: %d rows, want %d", filter, got, want)
		}
	}
}

func TestCopyIsTheRawRecord(t *testing.T) {
	f := fixture.Frame(fixture.Normal(), 80, 24)
	v := New()
	v.Draw(f, 80, 20)
	v.Do(f, command.Down)
	var out struct {
		Decision model.Decision
		Settled  model.Settled
	}
	text := v.CopyText(f)
	if err := json.Unmarshal([]byte(text), &out); err != nil || out.Decision.ID != out.Settled.Decision || out.Decision.ID == 0 {
		t.Errorf("copied %q: %v", text, err)
	}
	if strings.Contains(text, "\n") {
		t.Error("one line is copied")
	}
}
