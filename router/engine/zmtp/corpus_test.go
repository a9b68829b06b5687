package zmtp_test

import (
	"bytes"
	"context"
	"net"
	"runtime"
	"testing"

	"adpdeck/router/engine/zmtp"
)

// TestHostileReplays: whatever a MiB of an answer to a replay holds, reading it
// allocates at most 64 MiB, all together.
func TestHostileReplays(t *testing.T) {
	const most = 1 << 20
	hello := append(greeting(3, 1, "NULL"), command("READY", property("Socket-Type", "ROUTER")+"\x08Identity\x00\x00\x00\x00")...)
	num := func(n byte) []byte { return []byte{0, 0, 0, 0, 0, 0, 0, n} }
	fill := func(one []byte) []byte { return bytes.Repeat(one, most/len(one)) }
	for name, says := range map[string][]byte{
		"empty messages":   fill([]byte{0, 0}),
		"empty frames":     fill([]byte{1, 0}),
		"64 empty frames":  fill(append(bytes.Repeat([]byte{1, 0}, 63), 0, 0)),
		"empty commands":   fill([]byte{4, 1, 0}),
		"pings":            fill(command("PING", "\x00\x00")),
		"pings, in frames": fill(append([]byte{1, 0}, command("PING", "\x00\x00")...)),
		"tiny batches":     fill(zmtp.AppendMessage(nil, nil, num(1), []byte{1})),
		"malformed":        fill(zmtp.AppendMessage(nil, nil, nil, nil)),
		"a frame of a MiB": zmtp.AppendMessage(nil, nil, num(1), make([]byte, most-64)),
		"a frame that is announced": append([]byte{2, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff},
			make([]byte, most)...),
		"long headers":   fill([]byte{2, 0, 0, 0, 0, 0, 0, 0, 0}),
		"errors":         fill(command("ERROR", "\x04nope")),
		"half a message": append([]byte{1, 0}, bytes.Repeat([]byte{1, 0}, 30)...),
		"all bits":       bytes.Repeat([]byte{0xff}, most),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		d := zmtp.Dealer{Dial: func(context.Context, string, string) (net.Conn, error) {
			return canned{r: bytes.NewReader(append(hello[:len(hello):len(hello)], says...))}, nil
		}}
		_, err := d.Replay(t.Context(), "tcp://h:1", 0, func(uint64, []byte) error { return nil })
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 || err == nil {
			t.Errorf("%s: %d MiB are allocated, error %v", name, n>>20, err)
		}
	}
}
