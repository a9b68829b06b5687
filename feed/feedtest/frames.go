package feedtest

import (
	"encoding/json"
	"fmt"
	"time"

	"adpdeck/router/model"
)

// The frames are written here by hand and not by package feed, so that a change
// of the wire format that nobody meant breaks a test.

// Hello is the frame that a server begins with; the period is a second.
func Hello(epoch string) []byte { return HelloEvery(epoch, time.Second) }

// HelloEvery is Hello with another period.
func HelloEvery(epoch string, period time.Duration) []byte {
	return fmt.Appendf(nil, `{"kind":"hello","epoch":%q,"role":"operator","server":"scripted","period_ms":%d}`, epoch, period.Milliseconds())
}

// Snapshot is a whole snapshot in one part.
func Snapshot(epoch string, seq uint64, s *model.State) []byte {
	return Part(epoch, seq, 1, false, s)
}

// Part is one part of a snapshot.
func Part(epoch string, seq uint64, part int, more bool, s *model.State) []byte {
	return fmt.Appendf(nil, `{"kind":"snapshot","epoch":%q,"seq":%d,"part":%d,"more":%t,"state":%s}`, epoch, seq, part, more, mustJSON(s))
}

// Change is one change.
func Change(epoch string, seq uint64, ch *model.Change) []byte {
	return fmt.Appendf(nil, `{"kind":"change","epoch":%q,"seq":%d,"change":%s}`, epoch, seq, mustJSON(ch))
}

// Decisions is a batch of decisions and outcomes.
func Decisions(epoch string, seq, leftOut uint64, list []*model.Decision, settled []model.Settled) []byte {
	return fmt.Appendf(nil, `{"kind":"decisions","epoch":%q,"seq":%d,"left_out":%d,"decisions":%s,"settled":%s}`,
		epoch, seq, leftOut, mustJSON(list), mustJSON(settled))
}

// Events is a batch of events.
func Events(epoch string, seq uint64, events ...model.Event) []byte {
	return fmt.Appendf(nil, `{"kind":"event","epoch":%q,"seq":%d,"events":%s}`, epoch, seq, mustJSON(events))
}

// Reply answers a command.
func Reply(r model.Reply) []byte { return fmt.Appendf(nil, `{"kind":"reply","reply":%s}`, mustJSON(r)) }

// mustJSON panics only on values that a test made unencodable.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
