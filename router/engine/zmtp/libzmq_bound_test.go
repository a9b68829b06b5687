package zmtp_test

import (
	"strings"
	"testing"
	"time"

	"adpdeck/router/engine/zmtp"
)

// Real publishers that connect, as vLLM's do where their endpoint names a host:
// two on one socket, one of which crashes and comes back, with a replay by its
// own endpoint.
func TestLibzmqConnects(t *testing.T) {
	for _, heartbeat := range []int{0, 50} {
		b, to, batches := bind(t, zmtp.BoundOptions{
			Topics: []string{"kv@"}, QueueBytes: 256 << 20, Heartbeat: 100 * time.Millisecond, Silence: 5 * time.Second,
		})
		first := startEngine(t, "connect:"+to, "tcp://127.0.0.1:*", "old", heartbeat, 1000)
		a := first.catch(batches)
		second := startEngine(t, "connect:"+to, "tcp://127.0.0.1:*", "old", heartbeat, 1000)
		z := second.catch(batches)
		if a.conn == z.conn {
			t.Fatalf("both by connection %d", a.conn)
		}
		for _, size := range []int{0, 255, 256, 100_000, 3 << 20} {
			first.do("publish 20 %d", size)
			second.do("publish 20 %d", size)
		}
		first.do("other")
		for range 200 {
			g := next(t, batches)
			is := map[uint64]*got{a.conn: &a, z.conn: &z}[g.conn]
			if is == nil || g.seq != is.seq+1 || !strings.HasPrefix(g.payload, strings.SplitN(batch(g.seq, 0), ":", 2)[0]+":") {
				t.Fatalf("batch %d of connection %d after %+v", g.seq, g.conn, is)
			}
			is.seq = g.seq
		}
		first.kill()
		until(t, "one is left", func() bool { return b.Status().Peers == 1 })
		first = startEngine(t, "connect:"+to, "tcp://127.0.0.1:*", "topic", heartbeat, 1000)
		again := first.catch(batches)
		if again.conn <= z.conn || again.seq > 200 {
			t.Errorf("after the restart batch %d of connection %d", again.seq, again.conn)
		}
		got, err := zmtp.Replay(within(t), first.replay, 0, func(uint64, []byte) error { return nil })
		if err != nil || got.Count == 0 || got.First != 0 {
			t.Errorf("replay %+v, %v", got, err)
		}
		if st := b.Status(); st.Dropped+st.Malformed+st.Failed+st.TurnedAway != 0 {
			t.Errorf("%+v", st)
		}
	}
}
