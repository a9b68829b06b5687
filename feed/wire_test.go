package feed

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"adpdeck/router/model"
)

func TestDecode(t *testing.T) {
	tests := map[string]struct {
		msg     string
		unknown bool
		damaged bool
	}{
		"hello":                   {msg: `{"kind":"hello","epoch":"e","role":"operator","server":"1","period_ms":1000}`},
		"hello without epoch":     {msg: `{"kind":"hello"}`, damaged: true},
		"snapshot":                {msg: `{"kind":"snapshot","epoch":"e","seq":1,"part":1,"state":{}}`},
		"snapshot without state":  {msg: `{"kind":"snapshot","epoch":"e","seq":1,"part":1}`, damaged: true},
		"snapshot part 0":         {msg: `{"kind":"snapshot","epoch":"e","seq":1,"state":{}}`, damaged: true},
		"null conversation":       {msg: `{"kind":"snapshot","epoch":"e","seq":1,"part":1,"state":{"convs":[null]}}`, damaged: true},
		"change":                  {msg: `{"kind":"change","epoch":"e","seq":1,"change":{}}`},
		"change without change":   {msg: `{"kind":"change","epoch":"e","seq":1}`, damaged: true},
		"kind last":               {msg: `{"epoch":"e","seq":1,"change":{},"kind":"change"}`},
		"escaped kind":            {msg: `{"kind":"ch\u0061nge","epoch":"e","seq":1,"change":{}}`},
		"null decision":           {msg: `{"kind":"decisions","epoch":"e","decisions":[null]}`, damaged: true},
		"event":                   {msg: `{"kind":"event","epoch":"e","seq":1,"events":[{"id":1}]}`},
		"reply":                   {msg: `{"kind":"reply","reply":{"id":"x"}}`},
		"reply without reply":     {msg: `{"kind":"reply"}`, damaged: true},
		"command":                 {msg: `{"kind":"command","command":{"id":"x","verb":"pin"}}`},
		"resync":                  {msg: `{"kind":"resync"}`},
		"resync with more fields": {msg: `{"kind":"resync","seq":"anything"}`},
		"unknown kind":            {msg: `{"kind":"weather","seq":"sunny"}`, unknown: true},
		"no kind":                 {msg: `{}`, unknown: true},
		"kind is a number":        {msg: `{"kind":7}`, damaged: true},
		"array":                   {msg: `[]`, damaged: true},
		"null":                    {msg: `null`, unknown: true},
		"not JSON":                {msg: "\x00\xff", damaged: true},
		"empty":                   {msg: ``, damaged: true},
		"torn":                    {msg: `{"kind":"change","epoch":"e","se`, damaged: true},
		"wrong type":              {msg: `{"kind":"change","epoch":"e","seq":-1,"change":{}}`, damaged: true},
		"number too big":          {msg: `{"kind":"change","epoch":"e","seq":1,"change":{"ranks":[{"hit":1e999}]}}`, damaged: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := decode([]byte(tt.msg))
			if tt.damaged != errors.Is(err, errDecode) || (err != nil) != tt.damaged {
				t.Errorf("error %v, damaged should be %v", err, tt.damaged)
			}
			if (f == nil) != (tt.unknown || tt.damaged) {
				t.Errorf("frame %#v, unknown should be %v", f, tt.unknown)
			}
		})
	}
}

// TestDecodeMemory holds decoding to 64 MiB of heap for any message of 1 MiB:
// short values that become long structs are refused by their number.
func TestDecodeMemory(t *testing.T) {
	fill := func(head, value, tail string) string {
		return head + strings.Repeat(value+",", (MaxMessageBytes-len(head)-len(tail))/(len(value)+1)-1) + value + tail
	}
	tests := map[string]string{
		"conversations": fill(`{"kind":"snapshot","epoch":"e","part":1,"state":{"convs":[`, `{}`, `]}}`),
		"ranks":         fill(`{"kind":"change","epoch":"e","change":{"ranks":[`, `{}`, `]}}`),
		"null ranks":    fill(`{"kind":"change","epoch":"e","change":{"ranks":[`, `null`, `]}}`),
		"candidates":    fill(`{"kind":"decisions","epoch":"e","decisions":[{"placement":{"candidates":[`, `{}`, `]}}]}`),
		"decisions":     fill(`{"kind":"decisions","epoch":"e","decisions":[`, `{}`, `]}`),
		"numbers":       fill(`{"kind":"decisions","epoch":"e","decisions":[{"placement":{"tied":[`, `1`, `]}}]}`),
		"nesting":       strings.Repeat(`[`, MaxMessageBytes),
		"half as many":  fill(`{"kind":"change","epoch":"e","change":{"ranks":[`, `{"weight":1.0000000000000000000}`, `]}}`),
		"one string":    `{"kind":"hello","epoch":"` + strings.Repeat(`\u0000`, 170_000) + `"}`,
		"too long":      fill(`{"kind":"hello","epoch":"`, `x`, `"}`) + "  ",
	}
	for name, msg := range tests {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			_, err := decode([]byte(msg))
			runtime.ReadMemStats(&after)
			used := after.TotalAlloc - before.TotalAlloc // all of it, as if nothing had been collected
			t.Logf("%d KiB of message: %d KiB allocated, error %v", len(msg)>>10, used>>10, err)
			if used > 64<<20 {
				t.Errorf("%d MiB allocated, at most 64", used>>20)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"kind":"hello","epoch":"e","role":"operator","server":"1","period_ms":1000}`,
		`{"kind":"snapshot","epoch":"e","seq":1,"part":1,"more":true,"state":{"convs":[{"key":{"id":"a"}}],"ranks":[{}]}}`,
		`{"kind":"snapshot","epoch":"e","seq":1,"part":2,"state":{"events":[{"id":1}]}}`,
		`{"kind":"change","epoch":"e","seq":2,"change":{"gone":[{"id":"a"}],"convs":[{"key":{"id":"b"}},{"key":{"id":"b"}}]}}`,
		`{"kind":"decisions","epoch":"e","seq":2,"left_out":3,"decisions":[{"id":9}],"settled":[{"decision":9}]}`,
		`{"kind":"event","epoch":"e","seq":2,"events":[{"id":2}]}`, `{"kind":"reply","reply":{"id":"x"}}`,
		`{"kind":"command","command":{"id":"x","set":[{"field":"β"}]}}`, `{"kind":"resync"}`, `{"kind":"?"}`, "\x00",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		// One message after a good beginning, and the message as the beginning.
		for _, begun := range []bool{false, true} {
			var s stream
			if begun {
				for _, m := range []string{
					`{"kind":"hello","epoch":"e"}`,
					`{"kind":"snapshot","epoch":"e","seq":1,"part":1,"state":{"convs":[{"key":{"id":"a"}}]}}`,
				} {
					if _, err := s.apply([]byte(m)); err != nil {
						t.Fatal(err)
					}
				}
			}
			_, err := s.apply(msg)
			if err != nil && s.synced {
				t.Errorf("in step after %v", err)
			}
			if s.synced && s.merger.State() == nil {
				t.Error("in step without a state")
			}
			_, _ = s.apply(msg)
			var v View
			s.fill(&v)
		}
	})
}

func FuzzEncode(f *testing.F) {
	f.Add("id", "tenant", "what \x9b31m \x00 \u202e", int64(0))
	f.Fuzz(func(t *testing.T, id, tenant, what string, unix int64) {
		s := bigState(1, 1)
		s.Convs[0].Key = model.ConvKey{Tenant: tenant, ID: id}
		s.Convs[0].Reason = what
		s.Convs[0].Turns = int(unix)
		snap := newSnapshot("e", 7, s)
		var got stream
		got.hello.Epoch = "e"
		for more := true; more; {
			msg, next, err := snap.next()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := got.apply(msg); err != nil {
				t.Fatal(err)
			}
			more = next
		}
		if len(got.merger.State().Convs)+int(snap.leftOut) != 1 {
			t.Error("the conversation is neither sent nor counted")
		}
		r := model.Reply{ID: id, What: what, Items: []model.ItemResult{{Conv: s.Convs[0].Key}}}
		if msg := encodeReply(r); !json.Valid(msg) {
			t.Errorf("reply %q", msg)
		}
	})
}

// The client reads every message into one buffer: a frame must hold nothing of
// the message that it was decoded from.
func TestFramesHoldNothingOfTheirMessage(t *testing.T) {
	ch := change64(1)
	ch.Events = []model.Event{{ID: 1, Who: "ann", What: "drain w0/1"}}
	ch.Convs = []*model.Conv{{Key: model.ConvKey{ID: "conv-1", Tenant: "a"}}}
	msgs, _, err := encodeChange("epoch", 1, ch)
	if err != nil {
		t.Fatal(err)
	}
	decisions, _ := encodeDecisions("epoch", 1, []*model.Decision{{ID: 1, Conv: model.ConvKey{ID: "conv-1"}}}, 0, nil)
	for _, msg := range append(msgs, decisions...) {
		f, err := decode(msg)
		if err != nil {
			t.Fatal(err)
		}
		was, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		for i := range msg {
			msg[i] = 'x'
		}
		if now, err := json.Marshal(f); err != nil || string(now) != string(was) {
			t.Errorf("%v: the frame changed with its message", err)
		}
	}
}
