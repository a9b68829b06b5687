package event

import (
	"bytes"
	"errors"
	"testing"

	"github.com/tinylib/msgp/msgp"
)

// FuzzJSON: any bytes are refused or become JSON that the decoders read without
// harm.
func FuzzJSON(f *testing.F) {
	f.Add(msgp.AppendUint64(msgp.AppendString(msgp.AppendMapHeader(nil, 1), "worker_id"), 1<<64-1))
	f.Add(bytes.Repeat([]byte{0x91}, 1000))
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, p []byte) {
		text, err := JSON(p)
		if err != nil {
			if !errors.Is(err, ErrMessage) {
				t.Fatal(err)
			}
			return
		}
		var b Batch
		_ = new(Decoder).RouterEvents(text, &b)
		var refused Tally
		_, _ = Drain(text, nil, &refused)
	})
}

func TestJSONKeepsEveryDigit(t *testing.T) {
	p := msgp.AppendUint64(msgp.AppendString(msgp.AppendMapHeader(nil, 1), "worker_id"), 1<<64-1)
	if text, err := JSON(p); err != nil || string(text) != `{"worker_id":18446744073709551615}` {
		t.Fatalf("%s, %v", text, err)
	}
	for name, bad := range map[string][]byte{
		"nothing": nil, "cut short": p[:len(p)-1], "too deep": append(bytes.Repeat([]byte{0x91}, 100), 0xc0), "a lie": {0xdd, 0xff, 0xff, 0xff, 0xff},
	} {
		if _, err := JSON(bad); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
