package tuning

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

func staged() []model.FieldValue {
	t := fixture.T("w0", 5)
	return []model.FieldValue{
		{Field: model.FieldLoadBalanceWeight, Value: "4"},
		{Field: model.FieldRouterMode, Value: string(model.ModeLeastLoaded)},
		{Field: model.FieldWeight, Target: &t, Value: "0.6"},
	}
}

func TestFrames(t *testing.T) {
	scenarios := map[string]struct {
		state *model.State
		then  func(v *View, f *view.Frame)
	}{
		"normal": {fixture.Normal(), nil},
		"staged": {fixture.OneOld(), func(v *View, f *view.Frame) { f.Staged = staged() }},
		"policy_staged": {fixture.Normal(), func(v *View, f *view.Frame) {
			f.Staged = []model.FieldValue{{Field: model.FieldPolicy, Value: "conversation"}}
			v.Select(model.FieldMaxSessions)
		}},
		"conversation": {fixture.Conversation(), func(v *View, f *view.Frame) { v.Select(model.FieldLoadBalanceWeight) }},
		"history":      {fixture.Normal(), func(v *View, f *view.Frame) { v.at = item{kind: kindRevision, version: 1410} }},
		"all_ranks": {fixture.Wide(64), func(v *View, f *view.Frame) {
			v.allRanks = true
			v.at = item{kind: kindWeight, target: fixture.T("w2", 3)}
		}},
		"kv":       {fixture.KV(), nil},
		"lockstep": {fixture.Indexed(model.ModeLockstep), func(v *View, f *view.Frame) { v.Select("router_queue_threshold") }},
		"mode_staged": {fixture.Normal(), func(v *View, f *view.Frame) {
			f.Staged = []model.FieldValue{{Field: model.FieldRouterMode, Value: "kv"}, {Field: "router_queue_threshold", Value: "4"}}
			v.Select("router_queue_threshold")
		}},
		"empty":   {fixture.Empty(), nil},
		"hostile": {fixture.Hostile(), func(v *View, f *view.Frame) { v.at = item{kind: kindRevision, version: 1412} }},
		"editing": {fixture.Normal(), func(v *View, f *view.Frame) {
			v.Do(f, "set")
			for _, r := range "40" {
				v.Key(f, view.Key{Name: string(r), Runes: []rune{r}})
			}
		}},
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

// staging says in a word what an intent stages.
func staging(in view.Intent) string {
	switch in := in.(type) {
	case nil:
		return "nothing"
	case view.Stage:
		v := in.Values[0]
		if v.Target != nil {
			return v.Target.String() + " " + v.Value
		}
		return v.Field + " " + v.Value
	case view.Unstage:
		return "unstage " + in.Field
	case view.Show:
		return "show " + in.Dialog.Title().String()
	case view.Toast:
		return "toast"
	}
	return "?"
}

func TestCommands(t *testing.T) {
	beta, switchOn := model.FieldLoadBalanceWeight, model.FieldColdStartWarmup
	for name, c := range map[string]struct {
		at     string
		staged string // of the field under the cursor
		do     command.ID
		want   string
	}{
		"small step up":             {beta, "", command.StepMore, beta + " 1.05"},
		"large step down":           {beta, "", command.LeapLess, beta + " 0.5"},
		"steps start at the staged": {beta, "4", command.StepMore, beta + " 4.25"},
		"a step back to now":        {beta, "1.05", command.StepLess, "unstage " + beta},
		"the end":                   {beta, "16", command.StepMore, "toast"},
		"default is in force":       {beta, "4", command.Default, "unstage " + beta},
		"unstage":                   {beta, "4", command.Unstage, "unstage " + beta},
		"nothing to unstage":        {beta, "", command.Unstage, "toast"},
		"a switch turns":            {switchOn, "", command.Edit, switchOn + " true"},
		"and turns back":            {switchOn, "true", command.Edit, "unstage " + switchOn},
		"a choice asks":             {model.FieldNewConvPlacement, "", command.Edit, "show Choose new placement"},
		"a number is typed":         {beta, "", command.Edit, "nothing"},
		"policy":                    {beta, "", command.Policy, "show Choose policy"},
		"apply":                     {beta, "4", command.Apply, "show Apply 1 change"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.Frame(fixture.Normal(), 80, 24)
			if c.staged != "" {
				f.Staged = []model.FieldValue{{Field: c.at, Value: c.staged}}
			}
			v := New()
			v.Select(c.at)
			in, ok := v.Do(f, c.do)
			if got := staging(in); !ok || got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestWhichKnobsAreOff(t *testing.T) {
	for name, c := range map[string]struct {
		state  *model.State
		staged []model.FieldValue
		at     string
		want   string
	}{
		"used":                       {fixture.Normal(), nil, model.FieldLoadBalanceWeight, ""},
		"other policy":               {fixture.Normal(), nil, model.FieldMaxSessions, "policy conversation uses it"},
		"other policy staged":        {fixture.Normal(), []model.FieldValue{{Field: model.FieldPolicy, Value: "conversation"}}, model.FieldMaxSessions, ""},
		"not with the staged policy": {fixture.Normal(), []model.FieldValue{{Field: model.FieldPolicy, Value: "conversation"}}, model.FieldLoadBalanceWeight, "policy kv_aware uses it"},
		"gate off":                   {fixture.Normal(), nil, model.FieldTimeoutIters, "needs the balance gate on"},
		"kv cost in round_robin":     {fixture.Normal(), nil, "router_prefill_load_scale", "mode kv uses it"},
		"kv cost, mode staged":       {fixture.Normal(), []model.FieldValue{{Field: model.FieldRouterMode, Value: "kv"}}, "router_prefill_load_scale", ""},
		"policy where ranks are set": {fixture.KV(), nil, model.FieldLoadBalanceWeight, "mode kv picks ranks itself"},
		"bindings hold everywhere":   {fixture.KV(), nil, model.FieldMaxSessions, ""},
		"both scored modes":          {fixture.Normal(), nil, "router_temperature", "modes kv, lockstep use it"},
		"lockstep only":              {fixture.KV(), nil, "lockstep_weight", "mode lockstep uses it"},
		"no shared cache":            {fixture.KV(), nil, "shared_cache_multiplier", "needs a shared cache"},
		"gate staged":                {fixture.Normal(), []model.FieldValue{{Field: model.FieldEnableBalance, Value: "true"}}, model.FieldTimeoutIters, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := fixture.Frame(c.state, 80, 24)
			f.Staged = c.staged
			v := New()
			v.Select(c.at)
			var s command.Situation
			v.Situate(f, &s)
			if s.KnobOff != c.want || !s.Selected {
				t.Errorf("off %q, want %q", s.KnobOff, c.want)
			}
		})
	}
}

// Every field of the document is on the screen, and the cursor reaches it.
func TestEveryFieldIsReached(t *testing.T) {
	f := fixture.Frame(fixture.Normal(), 80, 24)
	v := New()
	v.Do(f, command.First)
	seen := map[string]bool{model.FieldPolicy: true, model.FieldWeight: true} // the policy's line; ranks have theirs
	for range 90 {
		seen[v.at.name] = true
		v.Do(f, command.Down)
	}
	for _, field := range model.Fields() {
		if !seen[field.Name] {
			t.Errorf("%s is not reached", field.Name)
		}
	}
	if v.at.kind != kindRevision || v.at.version != 1408 {
		t.Errorf("the last is %+v", v.at)
	}
	in, ok := v.Undo(f)
	if got := staging(in); !ok || got != "show Undo v1408" {
		t.Errorf("undo gives %s", got)
	}
	v.Do(f, command.First)
	if _, ok := v.Undo(f); ok {
		t.Error("on a knob, undo is the frame's")
	}
}

// A value that can be unset is: by its word, and by the default.
func TestUnsettingAValue(t *testing.T) {
	s := fixture.KV()
	x := 4.0
	s.Settings.ClusterConfig.QueueThreshold = &x
	f := fixture.Frame(s, 80, 24)
	v := New()
	v.Select("router_queue_threshold")
	if in, _ := v.Do(f, command.Default); staging(in) != "router_queue_threshold none" {
		t.Errorf("default stages %s", staging(in))
	}
	v.Do(f, command.Edit)
	var in view.Intent
	for _, k := range []string{"n", "o", "n", "e", "enter"} {
		in = v.Key(f, view.Key{Name: k, Runes: []rune(k)[:1]})
	}
	if v.Typing() || staging(in) != "router_queue_threshold none" {
		t.Errorf("typing none stages %s", staging(in))
	}
	v.Select("active_prefill_tokens_threshold")
	if in, _ := v.Do(f, command.StepMore); staging(in) != "toast" {
		t.Errorf("a step from none stages %s", staging(in))
	}
	v.Do(f, command.Edit)
	for _, k := range []string{"9", "enter"} {
		in = v.Key(f, view.Key{Name: k, Runes: []rune(k)[:1]})
	}
	if staging(in) != "active_prefill_tokens_threshold 9" {
		t.Errorf("typing 9 stages %s", staging(in))
	}
}

func TestAnyRanksWeightCanBeStaged(t *testing.T) {
	f := fixture.Frame(fixture.Normal(), 80, 24)
	v := New()
	v.at = item{kind: kindMore}
	v.Do(f, command.Edit)
	v.at = item{kind: kindWeight, target: fixture.T("w1", 7)}
	in, _ := v.Do(f, command.StepLess)
	if got := staging(in); got != "w1/7 0.95" {
		t.Errorf("got %s", got)
	}
	if !v.Back(f) || v.allRanks {
		t.Error("esc closes the list of all ranks")
	}
}

func TestUndoOfASelectedRevisionAsksOrSaysWhyNot(t *testing.T) {
	f := fixture.Frame(fixture.Normal(), 120, 40)
	f.State.Revisions = []model.Revision{{Version: 4, Undoes: 3}, {Version: 3, UndoneBy: 4}, {Version: 2}, {Version: 1}}
	for version, want := range map[uint64]string{
		4: "", 2: "",
		3: "v3 was undone already: U on v4 does it again",
		1: "v1 is how the router started: there is nothing before it",
	} {
		v := New()
		v.at = item{kind: kindRevision, version: version}
		in, ok := v.Undo(f)
		got := ""
		if toast, is := in.(view.Toast); is {
			got = toast.Text.String()
		}
		if !ok || got != want {
			t.Errorf("v%d: %q, want %q", version, got, want)
		}
	}
}
