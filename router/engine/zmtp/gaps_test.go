package zmtp_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"adpdeck/router/engine/enginetest/zmq"
	"adpdeck/router/engine/zmtp"
)

// gapless is the least consumer that wants every batch once and in order: it
// asks for a replay when a number is ahead of the next.
type gapless struct {
	replay string
	next   uint64
	gaps   int
	err    error
	done   chan struct{} // closed when until was accepted
	until  uint64
	took   chan struct{} // one for each live batch, when it was taken
}

func (g *gapless) take(b zmtp.Batch) {
	defer func() { g.took <- struct{}{} }()
	if b.Seq > g.next && g.err == nil {
		g.gaps++
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_, err := zmtp.Replay(ctx, g.replay, g.next, g.accept)
		cancel()
		if err != nil {
			g.fail(err)
		}
	}
	if b.Seq == g.next {
		if err := g.accept(b.Seq, b.Payload); err != nil {
			g.fail(err)
		}
	}
}

func (g *gapless) accept(seq uint64, payload []byte) error {
	if seq != g.next || len(payload) < 8 || binary.BigEndian.Uint64(payload) != seq {
		return fmt.Errorf("batch %d with payload %.20x, want %d", seq, payload, g.next)
	}
	if g.next++; seq == g.until {
		close(g.done)
	}
	return nil
}

func (g *gapless) fail(err error) {
	if g.err == nil {
		g.err = err
		close(g.done)
	}
}

// Report A2 and safety test 12, as far as the wire goes: whatever is lost,
// doubled or out of order, a consumer that replays gaps has each number once and
// in order, in both framings.
func TestGapsAreClosedByReplay(t *testing.T) {
	gaps := 0
	rapid.Check(t, func(t *rapid.T) {
		rate := func(name string) float64 { return float64(rapid.IntRange(1, 20).Draw(t, name)) / 100 }
		p, err := zmq.Listen(zmq.Options{
			Replay: anyPort, Topic: rapid.SampledFrom([]string{"", "kv@pod"}).Draw(t, "topic"),
			TopicInReplay: rapid.Bool().Draw(t, "topic in replay"),
			Seed:          rapid.Uint64().Draw(t, "seed"),
			Faults:        zmq.Faults{Drop: rate("drop"), Duplicate: rate("duplicate"), Reorder: rate("reorder")},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		n := rapid.IntRange(1, 140).Draw(t, "batches")
		g := &gapless{replay: p.ReplayEndpoint(), until: uint64(n), done: make(chan struct{}), took: make(chan struct{}, 2*n+2)}
		s, err := zmtp.NewSubscriber(zmtp.SubscriberOptions{Endpoint: p.Endpoint(), HandleBatch: g.take})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		ended := make(chan struct{})
		go func() { defer close(ended); s.Run(ctx) }()
		if err := p.WaitSubscribers(ctx, 1); err != nil {
			t.Fatal(err)
		}
		taken := uint64(0)
		for seq := range n {
			p.Publish(append(binary.BigEndian.AppendUint64(nil, uint64(seq)), make([]byte, seq)...))
			if rapid.IntRange(0, 3).Draw(t, "pause") > 0 {
				continue
			}
			// What was sent arrives before more is, else one replay closes all.
			p.Flush()
			for f := p.Figures(); taken < f.Published-f.Dropped+f.Duplicated && ctx.Err() == nil; taken++ {
				select {
				case <-g.took:
				case <-ctx.Done():
				}
			}
		}
		p.SetFaults(zmq.Faults{}) // the last arrives, and shows what is missing
		p.Publish(binary.BigEndian.AppendUint64(nil, uint64(n)))
		select {
		case <-g.done:
		case <-ctx.Done():
		}
		cancel()
		<-ended
		if g.err != nil || g.next != uint64(n)+1 {
			t.Fatalf("got to %d of %d: %v (%+v, %+v)", g.next, n, g.err, p.Figures(), s.Status())
		}
		gaps += g.gaps
	})
	want := 100
	if testing.Short() { // rapid then tries a fifth
		want = 10
	}
	if !t.Failed() && gaps < want {
		t.Errorf("only %d gaps were tried, want %d", gaps, want)
	}
	t.Logf("%d gaps closed", gaps)
}
