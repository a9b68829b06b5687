package convs

import (
	"fmt"
	"testing"

	"github.com/charmbracelet/x/exp/golden"

	"adpdeck/router/model"
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
