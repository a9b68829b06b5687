package zmtp_test

import (
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"adpdeck/router/engine/zmtp"
)

// wire is a network of bad quality between dialled pipes and a publisher. It
// lives in a bubble.
type wire struct {
	delay func(bytes int) time.Duration // of a chunk; order is kept
	rate  bool                          // delay is the time that sending takes, one chunk after the other
	hole  atomic.Bool                   // nothing passes
	seq   atomic.Uint64                 // of the batch that is published next
	stop  chan struct{}
	done  sync.WaitGroup
}

func (w *wire) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if w.hole.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	ours, nearEnd := net.Pipe()
	farEnd, theirs := net.Pipe()
	w.done.Go(func() { w.carry(nearEnd, farEnd) })
	w.done.Go(func() { w.carry(farEnd, nearEnd) })
	w.done.Go(func() { w.publish(theirs) })
	return ours, nil
}

type chunk struct {
	data []byte
	due  time.Time
}

func (w *wire) carry(from, to net.Conn) {
	chunks := make(chan chunk, 1000)
	w.done.Go(func() {
		defer to.Close()
		for c := range chunks {
			time.Sleep(time.Until(c.due))
			if _, err := to.Write(c.data); err != nil {
				io.Copy(io.Discard, from)
				return
			}
		}
	})
	defer close(chunks)
	last := time.Now()
	for {
		data := make([]byte, 256)
		n, err := from.Read(data)
		if err != nil {
			return
		}
		if w.hole.Load() {
			continue
		}
		due := time.Now().Add(w.delay(n))
		if w.rate {
			due = later(last, time.Now()).Add(w.delay(n))
		}
		last = later(last, due) // in order
		select {
		case chunks <- chunk{data[:n], last}:
		case <-w.stop:
			return
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// publish is an engine's rank: a batch each 200 ms while anyone listens.
func (w *wire) publish(nc net.Conn) {
	defer nc.Close()
	c, err := zmtp.Handshake(nc, zmtp.Config{Type: zmtp.PUB, Write: time.Minute})
	if err != nil {
		return
	}
	gone := make(chan struct{})
	subscribed := make(chan struct{}, 100)
	w.done.Go(func() {
		defer close(gone)
		for {
			if _, err := c.Read(); err != nil {
				nc.Close()
				return
			}
			subscribed <- struct{}{}
		}
	})
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	select {
	case <-subscribed:
	case <-gone:
		return
	}
	for {
		select {
		case <-tick.C:
			seq := binary.BigEndian.AppendUint64(nil, w.seq.Add(1)-1)
			if c.Write(nil, seq, make([]byte, 100)) != nil {
				return
			}
		case <-gone:
			return
		case <-w.stop:
			return
		}
	}
}

// Safety test 20 for this source, in virtual time: a bad line delays and cuts,
// and the subscriber neither flaps over the first nor sleeps through the second.
func TestSlowNetwork(t *testing.T) {
	for name, w := range map[string]*wire{
		"latency of 500 ms ± 500": {delay: func(int) time.Duration { return rand.N(time.Second) }},
		"1 KiB a second":          {delay: func(n int) time.Duration { return time.Duration(n) * time.Second / 1024 }, rate: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w.stop = make(chan struct{})
				var have atomic.Uint64
				s, stop := w.follow(t, func(b zmtp.Batch) {
					if b.Seq != have.Load() || b.Conn != 1 {
						t.Errorf("batch %d of connection %d, want %d", b.Seq, b.Conn, have.Load())
					}
					have.Add(1)
				})
				time.Sleep(time.Minute)
				if n := have.Load(); n < 280 {
					t.Errorf("%d batches in a minute", n)
				}
				if st := s.Status(); !st.Connected || st.Dials != 1 {
					t.Errorf("status %+v", st)
				}
				stop()
			})
		})
	}
}

func TestBlackHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{delay: func(int) time.Duration { return time.Millisecond }, stop: make(chan struct{})}
		var have atomic.Uint64
		s, stop := w.follow(t, func(zmtp.Batch) { have.Add(1) })
		time.Sleep(10 * time.Second)
		if n := have.Load(); n < 45 {
			t.Errorf("%d batches in ten seconds", n)
		}
		w.hole.Store(true)
		time.Sleep(3500 * time.Millisecond)
		if st := s.Status(); st.Connected {
			t.Errorf("not found in 3.5 s: %+v", st)
		}
		time.Sleep(26500 * time.Millisecond)
		w.hole.Store(false)
		n := have.Load()
		time.Sleep(5 * time.Second)
		if st := s.Status(); !st.Connected || st.Conn != 2 || have.Load() == n {
			t.Errorf("not back after 5 s: %+v", st)
		}
		stop()
	})
}

// follow runs a subscriber with its defaults over the wire; stop ends all.
func (w *wire) follow(t *testing.T, handle func(zmtp.Batch)) (s *zmtp.Subscriber, stop func()) {
	t.Helper()
	s, err := zmtp.NewSubscriber(zmtp.SubscriberOptions{Endpoint: "tcp://engine:5557", HandleBatch: handle, Dial: w.dial})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.done.Go(func() { s.Run(ctx) })
	return s, func() {
		cancel()
		close(w.stop)
		w.done.Wait()
	}
}
