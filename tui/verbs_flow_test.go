package tui

import (
	"strings"
	"testing"

	"adpdeck/router/model"
	"adpdeck/tui/fixture"
)

// A worker is drained and made ready by name, after a question; a rank's index
// is learned afresh at once, by key or by name, as nothing is lost by it.
func TestVerbsOfWorkersAndIndex(t *testing.T) {
	for name, c := range map[string]struct {
		typed  string
		keys   []string // pressed first
		asks   string   // in the dialog, empty for none
		verb   model.Verb
		target model.Target
	}{
		"drain a worker": {"drain w1", nil, "Drain all of w1", model.VerbDrain, fixture.T("w1", model.NoRank)},
		"ready a worker": {"ready w0", nil, "Ready all of w0 again", model.VerbReady, fixture.T("w0", model.NoRank)},
		"resync by name": {"resync w1/4", nil, "", model.VerbResync, fixture.T("w1", 4)},
		"resync by key":  {"", []string{"4", "j", "j", "X"}, "", model.VerbResync, fixture.T("w0", 2)},
	} {
		t.Run(name, func(t *testing.T) {
			s := screen(t, fixture.KV(), 80, 24)
			s.press(c.keys...)
			if c.typed != "" {
				s.press(":")
				s.typeText(c.typed)
				s.press("enter")
			}
			if text := strings.Join(s.Lines(), "\n"); c.asks != "" && !strings.Contains(text, c.asks) {
				t.Fatalf("%q is not asked in\n%s", c.asks, text)
			}
			if c.asks != "" {
				s.wait()
				s.press("y")
			}
			if len(s.client.sent) != 1 || s.client.sent[0].Verb != c.verb || *s.client.sent[0].Target != c.target {
				t.Fatalf("sent %+v", s.client.sent)
			}
		})
	}
	s := screen(t, fixture.KV(), 80, 24)
	s.press(":")
	s.typeText("drain w9")
	s.press("enter")
	if len(s.client.sent) != 0 {
		t.Errorf("sent %+v", s.client.sent)
	}
}
