package convs

import (
	"strings"
	"testing"

	"adpdeck/tui/fixture"
)

// A conversation on a rank that drains says how far that has come.
func TestAConversationOnARankThatDrains(t *testing.T) {
	s := fixture.Normal()
	f := fixture.Frame(s, 120, 40)
	v := New()
	v.Draw(f, 120, 36)
	v.SetFilter("rank:w1/2")
	text := fixture.Screen(v, f)
	for _, want := range []string{"w1/2   drain 64", "w1/2 drains: 6 open and 58 pins to go until it is drained"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	s.Ranks[10].Active, s.Ranks[10].InFlight, s.Ranks[10].Pins = 0, 0, 0
	if text = fixture.Screen(v, f); !strings.Contains(text, "w1/2 is drained: nothing open") {
		t.Errorf("not drained in\n%s", text)
	}
}
