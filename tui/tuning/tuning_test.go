package tuning

import (
	"fmt"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"adpdeck/router/model"
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
