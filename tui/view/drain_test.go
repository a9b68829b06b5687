package view

import (
	"testing"
	"time"

	"adpdeck/router/model"
)

func TestWhatIsLeftOnARankThatDrains(t *testing.T) {
	at := time.Unix(1, 0)
	for name, c := range map[string]struct {
		rank     model.Rank
		short    string
		sentence string
	}{
		"both":        {model.Rank{InFlight: 6, Pins: 56, OperatorPins: 2}, "drain 64", "drains: 6 open and 58 pins to go until it is drained"},
		"pins alone":  {model.Rank{Pins: 1}, "drain 1", "drains: 0 open and 1 pins to go until it is drained"},
		"nothing":     {model.Rank{ReportedAt: at}, "drained", "is drained: nothing open, no pins; safe to stop"},
		"engine more": {model.Rank{ReportedAt: at, InFlight: 1, Active: 3, Queued: 2}, "drain 5", "drains: 5 open and 0 pins to go until it is drained"},
		"no report":   {model.Rank{Active: 3}, "drained", "is drained: nothing open, no pins; safe to stop"},
		"thousands":   {model.Rank{InFlight: 12, Pins: 1_851}, "drain 1.9k", "drains: 12 open and 1,851 pins to go until it is drained"},
	} {
		l := LeftOn(&c.rank)
		if got := l.Short().String(); got != c.short {
			t.Errorf("%s: short %q, want %q", name, got, c.short)
		}
		if got := l.Sentence().String(); got != c.sentence {
			t.Errorf("%s: %q, want %q", name, got, c.sentence)
		}
	}
}
