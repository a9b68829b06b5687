package zmtp_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"adpdeck/router/engine/enginetest/zmq"
	"adpdeck/router/engine/zmtp"
)

func TestSubscriberOptions(t *testing.T) {
	handle := func(zmtp.Message) {}
	tests := map[string]struct {
		opt  zmtp.SubscriberOptions
		says string
	}{
		"no endpoint":  {zmtp.SubscriberOptions{Handle: handle}, "want tcp://HOST:PORT"},
		"no handler":   {zmtp.SubscriberOptions{Endpoint: "tcp://a:1"}, "exactly one of Handle and HandleBatch"},
		"two handlers": {zmtp.SubscriberOptions{Endpoint: "tcp://a:1", Handle: handle, HandleBatch: func(zmtp.Batch) {}}, "exactly one"},
		"topics":       {zmtp.SubscriberOptions{Endpoint: "tcp://a:1", Handle: handle, Topics: make([]string, 65)}, "65 topics"},
		"long topic":   {zmtp.SubscriberOptions{Endpoint: "tcp://a:1", Handle: handle, Topics: []string{strings.Repeat("x", 4097)}}, "a topic of 4097 bytes"},
		"retry":        {zmtp.SubscriberOptions{Endpoint: "tcp://a:1", Handle: handle, MinRetry: 2 * time.Second}, "MaxRetry 1.5s is below MinRetry 2s"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := zmtp.NewSubscriber(tt.opt); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want one that says %q", err, tt.says)
			}
		})
	}
}

// A publisher that is not there is dialled with growing pauses, for as long as
// it takes; one that hangs up at once too.
func TestRedialBacksOff(t *testing.T) {
	for name, dial := range map[string]zmtp.DialFunc{
		"refused": func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("connection refused") },
		"hangs up": func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				defer theirs.Close()
				play(theirs, []line{
					{true, greeting(3, 1, "NULL")},
					{false, append(greeting(3, 1, "NULL"), command("READY", property("Socket-Type", "PUB"))...)},
					{true, append(command("READY", property("Socket-Type", "SUB")), 0, 1, 1)},
				}, false)
			}()
			return ours, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var at []time.Duration
				counting := func(ctx context.Context, network, address string) (net.Conn, error) {
					at = append(at, time.Since(began))
					return dial(ctx, network, address)
				}
				s, err := zmtp.NewSubscriber(zmtp.SubscriberOptions{
					Endpoint: "tcp://engine:5557", Handle: func(zmtp.Message) {}, Dial: counting,
					Rand: func() float64 { return 0.5 },
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				s.Run(ctx)
				ms := time.Millisecond
				want := []time.Duration{0, 75 * ms, 225 * ms, 525 * ms, 1125 * ms, 2250 * ms, 3375 * ms, 4500 * ms}
				if fmt.Sprint(at) != fmt.Sprint(want) {
					t.Errorf("dialled at %v, want %v", at, want)
				}
				st := s.Status()
				if st.Connected || st.Dials != 8 || st.LastError == nil || !st.NextDial.IsZero() {
					t.Errorf("status %+v", st)
				}
				if name == "refused" && (st.Conn != 0 || !st.Since.Equal(began)) {
					t.Errorf("status %+v", st)
				}
				if name == "hangs up" && (st.Conn != 8 || !strings.Contains(st.LastError.Error(), "closed")) {
					t.Errorf("status %+v", st)
				}
			})
		})
	}
}

// Over real sockets: restart of the publisher, with its port closed meanwhile.
func TestRestart(t *testing.T) {
	for _, endpoint := range []string{"tcp://127.0.0.1:0", "ipc://" + filepath.Join(t.TempDir(), "kv")} {
		p := listen(t, zmq.Options{Endpoint: endpoint, Topic: "kv@pod"})
		s, batches := follow(t, zmtp.SubscriberOptions{Endpoint: p.Endpoint(), Topics: []string{"kv@"}, MaxRetry: 150 * time.Millisecond})
		for conn := uint64(1); conn <= 3; conn++ {
			if err := p.WaitSubscribers(within(t), 1); err != nil {
				t.Fatal(err)
			}
			p.PublishFrames([]byte("other"), []byte("not asked for"))
			for seq := range uint64(3) {
				want := got{conn, seq, "kv@pod", fmt.Sprintf("%d of %d", seq, conn)}
				p.Publish([]byte(want.payload))
				if g := next(t, batches); g != want {
					t.Errorf("got %+v, want %+v", g, want)
				}
			}
			p.Stop()
			until(t, "the loss shows", func() bool { st := s.Status(); return !st.Connected && st.Dials > conn })
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
		}
		if st := s.Status(); st.Messages != 9 || st.Dropped+st.Malformed+st.Foreign != 0 || st.LastMessage.IsZero() {
			t.Errorf("status %+v", st)
		}
	}
}

// A handler that stands still costs messages, not the connection, and no more
// memory than the bounds.
func TestSlowHandlerDropsTheNewest(t *testing.T) {
	const most = 50
	p := listen(t, zmq.Options{})
	seen, release := make(chan uint64, 1000), make(chan struct{})
	s, _ := follow(t, zmtp.SubscriberOptions{
		Endpoint: p.Endpoint(), QueueMessages: most,
		HandleBatch: func(b zmtp.Batch) { seen <- b.Seq; <-release },
	})
	if err := p.WaitSubscribers(within(t), 1); err != nil {
		t.Fatal(err)
	}
	p.Publish([]byte("first"))
	if seq := <-seen; seq != 0 {
		t.Fatal(seq)
	}
	for range 200 {
		p.Publish([]byte("x"))
	}
	until(t, "all came", func() bool { return s.Status().Messages == 201 })
	st := s.Status()
	if st.Waiting != most || st.Dropped != 200-most {
		t.Errorf("%d wait, %d dropped", st.Waiting, st.Dropped)
	}
	close(release)
	for want := uint64(1); want <= most; want++ {
		if seq := <-seen; seq != want {
			t.Fatalf("batch %d, want %d", seq, want)
		}
	}
	p.Publish([]byte("last"))
	if seq := <-seen; seq != 201 {
		t.Errorf("after the gap comes %d, want 201", seq)
	}
}

func TestQueueBytes(t *testing.T) {
	p := listen(t, zmq.Options{})
	seen, release := make(chan int, 100), make(chan struct{})
	s, _ := follow(t, zmtp.SubscriberOptions{
		Endpoint: p.Endpoint(), QueueBytes: 1000,
		HandleBatch: func(b zmtp.Batch) { seen <- len(b.Payload); <-release },
	})
	if err := p.WaitSubscribers(within(t), 1); err != nil {
		t.Fatal(err)
	}
	p.Publish(make([]byte, 5000)) // alone it passes, whatever its size
	<-seen
	for range 10 {
		p.Publish(make([]byte, 292)) // 300 with its number
	}
	until(t, "all came", func() bool { return s.Status().Messages == 11 })
	if st := s.Status(); st.Waiting != 3 || st.Dropped != 7 {
		t.Errorf("%d wait, %d dropped", st.Waiting, st.Dropped)
	}
	close(release)
}

// Safety test 20 for this source: whatever the network does, the subscriber is
// connected again soon after it ends.
func TestBadNetwork(t *testing.T) {
	fast := zmtp.SubscriberOptions{
		Heartbeat: 50 * time.Millisecond, Silence: 150 * time.Millisecond,
		Handshake: 200 * time.Millisecond, MaxRetry: 150 * time.Millisecond,
	}
	tests := map[string]struct {
		faults zmq.Faults
		opt    zmq.Options
		says   string // in the status's last error; empty: no loss
	}{
		"slices of one byte":     {faults: zmq.Faults{OneByte: true}},
		"ZMTP 3.0":               {opt: zmq.Options{OldMinor: true}},
		"reset after 1 KiB":      {faults: zmq.Faults{CutAfter: 1024}, says: "EOF"},
		"reset in the handshake": {faults: zmq.Faults{CutAfter: 70}, says: "closed the connection before READY"},
		"half-open":              {faults: zmq.Faults{HalfOpen: true}, says: "does not shake hands"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := listen(t, tt.opt)
			opt := fast
			if tt.says == "" { // a stall of this machine is no loss
				opt = zmtp.SubscriberOptions{}
			}
			opt.Endpoint = p.Endpoint()
			s, batches := follow(t, opt)
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("status %+v, publisher %+v", s.Status(), p.Figures())
				}
			})
			if err := p.WaitSubscribers(within(t), 1); err != nil {
				t.Fatal(err)
			}
			p.SetFaults(tt.faults)
			payload := strings.Repeat("x", 700)
			for range 3 {
				p.Publish([]byte(payload))
			}
			if tt.says == "" {
				for seq := range uint64(3) {
					if g := next(t, batches); g.seq != seq || g.conn != 1 || g.payload != payload {
						t.Errorf("got batch %d of connection %d", g.seq, g.conn)
					}
				}
			} else {
				until(t, "the loss shows", func() bool {
					err := s.Status().LastError
					if err == nil || !strings.Contains(err.Error(), tt.says) {
						p.Publish([]byte(payload))
						return false
					}
					return true
				})
			}
			p.SetFaults(zmq.Faults{})
			ended := time.Now()
			for {
				if err := p.WaitSubscribers(within(t), 1); err != nil {
					t.Fatal(err)
				}
				p.Publish([]byte("recovered"))
				select {
				case g := <-batches:
					if g.payload != "recovered" {
						continue
					}
				case <-time.After(50 * time.Millisecond):
					continue
				}
				break
			}
			if took := time.Since(ended); took > 5*time.Second {
				t.Errorf("back after %v", took)
			}
		})
	}
}

// A publisher that hangs after the handshake is found by its silence.
func TestHungPublisherIsFound(t *testing.T) {
	p := listen(t, zmq.Options{})
	s, _ := follow(t, zmtp.SubscriberOptions{
		Endpoint: p.Endpoint(), Heartbeat: 50 * time.Millisecond, Silence: 200 * time.Millisecond, Handshake: 200 * time.Millisecond,
	})
	if err := p.WaitSubscribers(within(t), 1); err != nil {
		t.Fatal(err)
	}
	p.SetFaults(zmq.Faults{HalfOpen: true})
	until(t, "the loss shows", func() bool { return errors.Is(s.Status().LastError, zmtp.ErrSilent) && !s.Status().Connected })
}

func TestForeignTopicsAreFiltered(t *testing.T) {
	ours, theirs := net.Pipe()
	go play(theirs, []line{
		{true, greeting(3, 1, "NULL")},
		{false, append(greeting(3, 1, "NULL"), command("READY", property("Socket-Type", "PUB"))...)},
		{true, append(command("READY", property("Socket-Type", "SUB")), 0, 2, 1, 'k')},
		{false, zmtp.AppendMessage(zmtp.AppendMessage(nil, []byte("z")), []byte("kv"), []byte("2"))},
	}, true)
	defer theirs.Close()
	seen := make(chan string, 10)
	s, _ := follow(t, zmtp.SubscriberOptions{
		Endpoint: "tcp://engine:5557", Topics: []string{"k"}, Dial: once(ours), Heartbeat: -1,
		Handle: func(m zmtp.Message) { seen <- fmt.Sprintf("%d %s", m.Conn, m.Frames) },
	})
	if m := <-seen; m != "1 [kv 2]" {
		t.Errorf("message %q", m)
	}
	if st := s.Status(); st.Messages != 2 || st.Foreign != 1 {
		t.Errorf("status %+v", st)
	}
}
