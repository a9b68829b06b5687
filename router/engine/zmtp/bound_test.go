package zmtp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"adpdeck/router/engine/enginetest/zmq"
	"adpdeck/router/engine/zmtp"
)

// bind runs a bound socket until the test ends, and returns where it listens.
func bind(t *testing.T, opt zmtp.BoundOptions) (b *zmtp.Bound, endpoint string, batches <-chan got) {
	t.Helper()
	out := make(chan got, 1<<16)
	if opt.Handle == nil && opt.HandleBatch == nil {
		opt.HandleBatch = func(b zmtp.Batch) { out <- got{b.Conn, b.Seq, string(b.Topic), string(b.Payload)} }
	}
	if opt.Endpoint == "" {
		opt.Endpoint = "tcp://127.0.0.1:0"
	}
	b, err := zmtp.NewBound(opt)
	if err != nil {
		t.Fatal(err)
	}
	run(t, b)
	until(t, "listening", func() bool { return b.Status().Listening })
	scheme, _, _ := strings.Cut(opt.Endpoint, "://")
	return b, scheme + "://" + b.Status().Address, out
}

func connect(t *testing.T, to, topic string) *zmq.Publisher {
	t.Helper()
	p := listen(t, zmq.Options{Endpoint: to, Connect: true, Topic: topic})
	if err := p.WaitSubscribers(within(t), 1); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPublishersConnect has several publishers on one socket: each keeps its own
// order and count, and is told from the others by its connection and its topic.
func TestPublishersConnect(t *testing.T) {
	for name, at := range map[string]string{"tcp": "tcp://127.0.0.1:0", "ipc": "ipc://" + filepath.Join(t.TempDir(), "kv")} {
		t.Run(name, func(t *testing.T) {
			b, to, batches := bind(t, zmtp.BoundOptions{Endpoint: at, Topics: []string{"kv@"}, Heartbeat: 20 * time.Millisecond, Silence: 5 * time.Second})
			const publishers, each = 5, 200
			var publishing sync.WaitGroup
			for i := range publishers {
				p := connect(t, to, fmt.Sprintf("kv@pod%d", i))
				publishing.Go(func() {
					for k := range each {
						p.Publish(fmt.Appendf(nil, "pod%d:%d", i, k))
					}
				})
			}
			publishing.Wait()
			conns, next1 := map[string]uint64{}, map[uint64]uint64{}
			for range publishers * each {
				g := next(t, batches)
				if c, there := conns[g.topic]; there && c != g.conn {
					t.Fatalf("%s came by connection %d and %d", g.topic, c, g.conn)
				}
				conns[g.topic] = g.conn
				if g.seq != next1[g.conn] || g.payload != fmt.Sprintf("%s:%d", g.topic[3:], g.seq) {
					t.Fatalf("%+v, want number %d", g, next1[g.conn])
				}
				next1[g.conn]++
			}
			if len(conns) != publishers || len(next1) != publishers {
				t.Errorf("topics %v, connections %v", conns, next1)
			}
			st := b.Status()
			if st.Peers != publishers || st.Messages != publishers*each || st.Dropped+st.Malformed+st.Foreign+st.TurnedAway+st.Failed != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestPublisherRestarts: a new process has a new and higher connection, and what
// the old one had said is not lost.
func TestPublisherRestarts(t *testing.T) {
	b, to, batches := bind(t, zmtp.BoundOptions{})
	p := connect(t, to, "")
	p.Publish([]byte("before"))
	was := next(t, batches)
	if err := p.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := p.WaitSubscribers(within(t), 1); err != nil {
		t.Fatal(err)
	}
	p.Publish([]byte("after"))
	is := next(t, batches)
	if was.seq != 0 || is.seq != 0 || is.conn <= was.conn || is.payload != "after" {
		t.Errorf("%+v, then %+v", was, is)
	}
	until(t, "the old one is gone", func() bool { return b.Status().Peers == 1 })
	if err := b.Status().LastError; !errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "publisher at ") {
		t.Errorf("last error %v", err)
	}
}

// TestListensAgain: an address that is taken is tried until it is free.
func TestListensAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b, err := zmtp.NewBound(zmtp.BoundOptions{
		Endpoint: "tcp://" + l.Addr().String(), Handle: func(zmtp.Message) {}, MinRetry: time.Millisecond, MaxRetry: 5 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, b)
	until(t, "an error", func() bool {
		err := b.Status().LastError
		return err != nil && strings.Contains(err.Error(), "address already in use")
	})
	if b.Status().Listening {
		t.Error("it says that it listens")
	}
	l.Close()
	until(t, "listening", func() bool { return b.Status().Listening })
}

// TestHostilePeers: whatever a peer does, it does to itself alone.
func TestHostilePeers(t *testing.T) {
	hello := append(greeting(3, 1, "NULL"), command("READY", property("Socket-Type", "PUB"))...)
	for name, c := range map[string]struct {
		says   []byte
		is     error // how its connection ends; nil: the test ends it
		shaken bool
	}{
		"says nothing":         {is: zmtp.ErrSilent},
		"half a greeting":      {says: hello[:30], is: zmtp.ErrSilent},
		"no READY":             {says: hello[:64], is: zmtp.ErrSilent},
		"HTTP":                 {says: []byte("GET / HTTP/1.1\r\n\r\n"), is: zmtp.ErrProtocol},
		"PLAIN":                {says: greeting(3, 1, "PLAIN"), is: zmtp.ErrMechanism},
		"CURVE":                {says: greeting(3, 1, "CURVE"), is: zmtp.ErrMechanism},
		"another subscriber":   {says: append(hello[:64:64], command("READY", property("Socket-Type", "SUB"))...), is: zmtp.ErrSocketType},
		"a huge frame":         {says: append(hello[:len(hello):len(hello)], 2, 0xff, 0, 0, 0, 0, 0, 0, 0), is: zmtp.ErrTooLarge, shaken: true},
		"too many frames":      {says: append(hello[:len(hello):len(hello)], bytes.Repeat([]byte{1, 0}, 100)...), is: zmtp.ErrTooLarge, shaken: true},
		"unknown flags":        {says: append(hello[:len(hello):len(hello)], 0x80, 1, 1), is: zmtp.ErrProtocol, shaken: true},
		"a message that stops": {says: append(hello[:len(hello):len(hello)], 1, 200, 1), is: zmtp.ErrSilent, shaken: true},
	} {
		t.Run(name, func(t *testing.T) {
			b, to, batches := bind(t, zmtp.BoundOptions{
				Handshake: 150 * time.Millisecond, Heartbeat: 30 * time.Millisecond, Silence: 200 * time.Millisecond,
			})
			good := connect(t, to, "")
			nc, err := net.Dial("tcp", strings.TrimPrefix(to, "tcp://"))
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if _, err := nc.Write(c.says); err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() { defer close(done); io.Copy(io.Discard, nc) }()
			for seq := range uint64(20) { // while the other holds its connection
				good.Publish([]byte("good"))
				if g := next(t, batches); g.seq != seq || g.payload != "good" {
					t.Fatalf("%+v", g)
				}
			}
			<-done // the socket has hung up
			until(t, "the reason", func() bool { return errors.Is(b.Status().LastError, c.is) })
			st := b.Status()
			if want := uint64(1); c.shaken == (st.Failed == want) || st.Peers != 1 || good.Subscribers() != 1 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestTooManyPeers: who comes on top is turned away, by host and in all, and room
// that becomes free is given anew.
func TestTooManyPeers(t *testing.T) {
	b, to, batches := bind(t, zmtp.BoundOptions{MaxPeers: 4, MaxHostPeers: 3})
	var pubs []*zmq.Publisher
	for range 3 {
		pubs = append(pubs, connect(t, to, ""))
	}
	more := listen(t, zmq.Options{Endpoint: to, Connect: true})
	until(t, "one is turned away", func() bool { return b.Status().TurnedAway > 0 })
	if err := b.Status().LastError; !errors.Is(err, zmtp.ErrTooMany) || !strings.Contains(err.Error(), "127.0.0.1 is turned away: 3 connections") {
		t.Errorf("last error %v", err)
	}
	pubs[0].Stop()
	if err := more.WaitSubscribers(within(t), 1); err != nil {
		t.Fatal(err)
	}
	more.Publish([]byte("in"))
	if g := next(t, batches); g.payload != "in" {
		t.Errorf("%+v", g)
	}
}

// TestFloodOfOne: a publisher that sends faster than anybody can take loses its
// own batches, not those of others.
func TestFloodOfOne(t *testing.T) {
	gate, seen := make(chan struct{}), make(chan got, 1<<16)
	b, to, _ := bind(t, zmtp.BoundOptions{
		QueueMessages: 50,
		HandleBatch: func(m zmtp.Batch) {
			<-gate
			seen <- got{m.Conn, m.Seq, string(m.Topic), ""}
		},
	})
	loud, calm := connect(t, to, "loud"), connect(t, to, "calm")
	for range 5000 {
		loud.Publish([]byte("x"))
	}
	until(t, "its queue is full", func() bool { return b.Status().Dropped > 4000 })
	for range 10 {
		calm.Publish([]byte("x"))
	}
	until(t, "all came", func() bool { return b.Status().Messages == 5010 })
	close(gate)
	heard := 0
	for heard < 10 {
		if g := next(t, seen); g.topic == "calm" {
			if g.seq != uint64(heard) {
				t.Fatalf("calm batch %d, want %d", g.seq, heard)
			}
			heard++
		}
	}
}

// TestRecordedPublisherConnects has the bytes that libzmq writes as a publisher
// come from the side that dialled: NULL knows no sides.
func TestRecordedPublisherConnects(t *testing.T) {
	for _, name := range []string{"sub-pub", "sub-pub-heartbeat"} {
		t.Run(name, func(t *testing.T) {
			messages := make(chan int, 100)
			_, to, _ := bind(t, zmtp.BoundOptions{Heartbeat: -1, Handle: func(m zmtp.Message) { messages <- len(m.Frames) }})
			nc, err := net.Dial("tcp", strings.TrimPrefix(to, "tcp://"))
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			go io.Copy(io.Discard, nc)
			for _, l := range recorded(t, name) {
				if !l.ours {
					if _, err := nc.Write(l.data); err != nil {
						t.Fatal(err)
					}
				}
			}
			select {
			case <-messages:
			case <-time.After(10 * time.Second):
				t.Fatal("no message came")
			}
		})
	}
}

// TestRecordedWrongSocket: what libzmq says as a socket of another type is turned
// away with the cause.
func TestRecordedWrongSocket(t *testing.T) {
	b, to, _ := bind(t, zmtp.BoundOptions{})
	nc, err := net.Dial("tcp", strings.TrimPrefix(to, "tcp://"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for _, l := range recorded(t, "router-dealer") {
		if !l.ours {
			if _, err := nc.Write(l.data); err != nil {
				break
			}
		}
	}
	until(t, "the refusal shows", func() bool { return errors.Is(b.Status().LastError, zmtp.ErrSocketType) })
}

func TestBadBinds(t *testing.T) {
	none := func(zmtp.Message) {}
	for name, c := range map[string]struct {
		opt  zmtp.BoundOptions
		says string
	}{
		"no scheme":    {zmtp.BoundOptions{Endpoint: "127.0.0.1:1", Handle: none}, "want tcp://HOST:PORT"},
		"a name":       {zmtp.BoundOptions{Endpoint: "tcp://router:5557", Handle: none}, "no address to listen at"},
		"an interface": {zmtp.BoundOptions{Endpoint: "tcp://eth0:5557", Handle: none}, "or * for all"},
		"no port":      {zmtp.BoundOptions{Endpoint: "tcp://*", Handle: none}, "want tcp://HOST:PORT"},
		"port":         {zmtp.BoundOptions{Endpoint: "tcp://*:70000", Handle: none}, "want 1 to 65535"},
		"no handler":   {zmtp.BoundOptions{Endpoint: "tcp://*:1"}, "exactly one"},
		"topics":       {zmtp.BoundOptions{Endpoint: "tcp://*:1", Handle: none, Topics: make([]string, 65)}, "65 topics"},
		"retries":      {zmtp.BoundOptions{Endpoint: "tcp://*:1", Handle: none, MinRetry: time.Hour}, "MaxRetry"},
	} {
		if _, err := zmtp.NewBound(c.opt); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, at := range []string{"tcp://*:5557", "tcp://[::]:5557", "tcp://0.0.0.0:5557", "ipc:///tmp/x"} {
		if _, err := zmtp.NewBound(zmtp.BoundOptions{Endpoint: at, Handle: none}); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// pipes is a listener whose connections are made by hand.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// hungUp says when the other side has closed.
type hungUp struct {
	canned
	done chan struct{}
	once *sync.Once
}

func (h hungUp) Close() error { h.once.Do(func() { close(h.done) }); return nil }

// FuzzAccept has a peer connect to a bound socket and say anything: it ends by
// itself, and a good publisher is heard after it.
func FuzzAccept(f *testing.F) {
	hello := append(greeting(3, 1, "NULL"), command("READY", property("Socket-Type", "PUB"))...)
	for _, name := range []string{"sub-pub", "sub-pub-heartbeat", "pub-sub", "sub-plain", "router-dealer"} {
		var said []byte
		for _, l := range recorded(f, name) {
			if !l.ours {
				said = append(said, l.data...)
			}
		}
		f.Add(said)
	}
	f.Add(hello)
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	good := zmtp.AppendMessage(append([]byte(nil), hello...), []byte("good"), make([]byte, 8), []byte("x"))
	p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	heard := make(chan struct{}, 1)
	b, err := zmtp.NewBound(zmtp.BoundOptions{
		Endpoint: "tcp://*:0", MaxPeers: 64, MaxHostPeers: 64, Heartbeat: -1,
		Limits: zmtp.Limits{FrameBytes: 1 << 20},
		Listen: func(string, string) (net.Listener, error) { return p, nil },
		HandleBatch: func(b zmtp.Batch) {
			if string(b.Topic) == "good" && string(b.Payload) == "x" {
				select {
				case heard <- struct{}{}:
				default:
				}
			}
		},
	})
	if err != nil {
		f.Fatal(err)
	}
	run(f, b)
	f.Fuzz(func(t *testing.T, said []byte) {
		for _, s := range [][]byte{said, good} {
			c := hungUp{says(s), make(chan struct{}), new(sync.Once)}
			select {
			case <-heard:
			default:
			}
			p.conns <- c
			select {
			case <-c.done:
			case <-time.After(10 * time.Second):
				t.Fatalf("the peer is not gone after %x", s)
			}
		}
		select {
		case <-heard:
		case <-time.After(10 * time.Second):
			t.Fatalf("a good publisher is not heard after %x: %+v", said, b.Status())
		}
	})
}
