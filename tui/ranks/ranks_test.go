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
	_ = command.Ranks
	_ = model.Ready
}
