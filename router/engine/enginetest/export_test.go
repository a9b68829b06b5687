package enginetest

import (
	"encoding/json"
	"testing"

	"adpdeck/router/model"
)

// CountUp is the endpoint of a rank.
var CountUp = countUp

// Prompt is the token ids of a chat body, as the engine takes them.
func (e *Engine) Prompt(t *testing.T, chat any) []uint32 {
	t.Helper()
	raw, err := json.Marshal(chat)
	if err != nil {
		t.Fatal(err)
	}
	b := &body{}
	if bad := decode(raw, b); bad != nil {
		t.Fatal(bad.msg)
	}
	ids, bad := b.prompt(model.RouteChat, false)
	if bad != nil {
		t.Fatal(bad.msg)
	}
	return ids.ids
}

// Flush hands on all events of steps that are over: the answers of a step are seen
// before its events, as with engines.
func (e *Engine) Flush() { e.flush() }

// Quiet fails unless every event that there is was handed on.
func (e *Engine) Quiet(t *testing.T) {
	t.Helper()
	e.Flush()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, k := range e.ranks {
		if len(k.cache.diary) > 0 || k.open() > 0 {
			t.Errorf("rank %d: %d changes not published, %d requests open", k.at, len(k.cache.diary), k.open())
		}
	}
}
