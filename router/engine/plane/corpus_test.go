package plane

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/tinylib/msgp/msgp"
)

// TestHostilePayloads: whatever a payload of a MiB holds, reading it allocates at
// most 64 MiB, all together.
func TestHostilePayloads(t *testing.T) {
	const most = 1 << 20
	listOf := func(one func(i int) []byte) []byte {
		var body []byte
		n := 0
		for ; n < MaxEvents; n++ {
			e := one(n)
			if len(body)+len(e) > most-16 {
				break
			}
			body = append(body, e...)
		}
		return append(msgp.AppendArrayHeader(nil, uint32(n)), body...)
	}
	event := raw(obj("a", 1))
	for name, payload := range map[string][]byte{
		"a worker an event":   listOf(func(i int) []byte { return obj("worker_id", i) }),
		"a rank an event":     listOf(func(i int) []byte { return obj("worker_id", 1, "event", raw(obj("dp_rank", i))) }),
		"one worker":          listOf(func(int) []byte { return obj("worker_id", 1, "event", event) }),
		"two workers by turn": listOf(func(i int) []byte { return obj("worker_id", i&1, "event", event) }),
		"a field often":       append(msgp.AppendMapHeader(nil, MaxFields), bytes.Repeat(msgp.AppendInt(msgp.AppendString(nil, "worker_id"), 1), MaxFields)...),
		"a list bomb":         {0xdd, 0xff, 0xff, 0xff, 0xff},
		"a map bomb":          {0xdf, 0xff, 0xff, 0xff, 0xff},
		"a list of bombs":     append([]byte{0xdd, 0, 1, 0, 0}, bytes.Repeat([]byte{0xdf, 0xff, 0xff, 0xff, 0xff}, 1<<16)...),
		"deep lists":          bytes.Repeat([]byte{0x91}, most),
		"deep maps":           bytes.Repeat([]byte{0x81, 0xa1, 'a'}, most/3),
		"a deep field":        append([]byte{0x81, 0xa1, 'a'}, bytes.Repeat([]byte{0x91}, most)...),
		"wide values":         obj("worker_id", 1, "x", raw(append(msgp.AppendArrayHeader(nil, most-64), make([]byte, most-64)...))),
		"zeros":               make([]byte, most),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = KVEvents(payload)
		_, _ = ForwardPass(payload)
		_, _ = ActiveLoad(payload)
		_, _ = ParseNATS(payload)
		_, _ = ParseZMQ(frames(TopicKVEvents, payload))
		BatchRank(payload)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
			t.Errorf("%s: %d MiB are allocated", name, n>>20)
		}
	}
}
