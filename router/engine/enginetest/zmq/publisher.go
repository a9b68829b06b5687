package zmq

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"adpdeck/router/engine/zmtp"
)

// Options say what a publisher is like; zero fields take the defaults named,
// which are vLLM's.
type Options struct {
	// Endpoint (tcp://127.0.0.1:0) is where it binds: tcp://HOST:PORT, where the
	// host may be * and the port 0, or ipc://PATH.
	Endpoint string
	// Connect makes it connect to Endpoint instead, as engines do whose endpoint
	// names a host to send to: its subscriber must bind. It dials again and again.
	// The replay binds all the same.
	Connect bool
	// Replay is where the replay is asked for; empty offers none.
	Replay string
	// Topic is the first frame of each batch.
	Topic string
	// Buffer (10,000) is how many batches are kept for the replay.
	Buffer int
	// HWM (100,000) is how many messages may wait for a subscriber.
	HWM int
	// TopicInReplay puts the topic before the number in a replay's answers, as
	// newer publishers do; without it they begin with the number.
	TopicInReplay bool
	// OldMinor makes it a peer of ZMTP 3.0, which knows no heartbeat.
	OldMinor bool
	// Heartbeat is how often it pings its subscribers; 0 is never.
	Heartbeat time.Duration
	// Seed starts the faults' randomness.
	Seed   uint64
	Faults Faults
}

// Publisher is one process of an engine's rank, as its subscribers see it.
type Publisher struct {
	opt  Options
	life sync.Mutex // held over Start and Stop
	done sync.WaitGroup

	mu     sync.Mutex // guards what follows
	pub    *socket
	router *socket // nil without replay, or while stopped
	seq    uint64
	kept   [][]byte // payloads of the batches seq-len(kept) … seq-1
	rand   *rand.Rand
	faults Faults
	thaw   chan struct{} // not nil while half-open; closed when that ends
	held   []byte        // a batch that waits to be out of order
	heldOf []byte        // its topic

	moved   chan struct{} // closed and made anew when a subscriber comes or goes
	figures Figures
}

// Figures count what a publisher did since it was made.
type Figures struct {
	Published  uint64 // batches and other messages
	Dropped    uint64 // by Faults.Drop
	Duplicated uint64
	Reordered  uint64
	BeyondHWM  uint64 // not queued, once for each subscriber
	Replays    uint64 // answered
}

// Listen binds and begins to serve.
func Listen(opt Options) (*Publisher, error) {
	opt.Endpoint = cmp.Or(opt.Endpoint, "tcp://127.0.0.1:0")
	if opt.Buffer <= 0 {
		opt.Buffer = 10_000
	}
	if opt.HWM <= 0 {
		opt.HWM = 100_000
	}
	p := &Publisher{opt: opt, rand: rand.New(rand.NewPCG(opt.Seed, 0x7a6d74)), moved: make(chan struct{})}
	p.SetFaults(opt.Faults)
	if err := p.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

// Start begins a new process after Stop, at the same endpoints: it counts from 0
// and keeps nothing of before. It does nothing while the publisher runs.
func (p *Publisher) Start() error {
	p.life.Lock()
	defer p.life.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pub != nil {
		return nil
	}
	pub, err := p.open()
	if err != nil {
		return err
	}
	var router *socket
	if p.opt.Replay != "" {
		if router, err = p.bind(&p.opt.Replay); err != nil {
			pub.close()
			return err
		}
		p.done.Go(func() { p.accept(router, p.serveReplay) })
	}
	if p.opt.Connect {
		p.done.Go(func() { p.dial(pub) })
	} else {
		p.done.Go(func() { p.accept(pub, p.servePub) })
	}
	p.pub, p.router, p.seq, p.kept, p.held = pub, router, 0, nil, nil
	return nil
}

// Stop ends the process: its connections break and its ports refuse.
func (p *Publisher) Stop() {
	p.life.Lock()
	defer p.life.Unlock()
	p.mu.Lock()
	pub, router := p.pub, p.router
	p.pub, p.router = nil, nil
	p.mu.Unlock()
	for _, s := range []*socket{pub, router} {
		if s != nil {
			s.close()
		}
	}
	p.done.Wait()
}

// Restart is Stop and Start.
func (p *Publisher) Restart() error {
	p.Stop()
	return p.Start()
}

// Close ends the publisher and returns when its goroutines have ended.
func (p *Publisher) Close() { p.Stop() }

// Endpoint returns where subscribers dial, with the port that was bound, or where
// it connects to.
func (p *Publisher) Endpoint() string { return p.opt.Endpoint }

// ReplayEndpoint returns where a replay is asked for, empty without one.
func (p *Publisher) ReplayEndpoint() string { return p.opt.Replay }

// Figures returns what was counted so far.
func (p *Publisher) Figures() Figures {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.figures
}

// Publish numbers a batch, keeps it for the replay, sends it to all who
// subscribed to its topic, faults permitting, and returns its number. A stopped
// publisher publishes nothing and returns 0.
func (p *Publisher) Publish(payload []byte) (seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pub == nil {
		return 0
	}
	seq = p.seq
	p.seq++
	payload = append([]byte(nil), payload...)
	p.kept = append(p.kept, payload)
	if n := len(p.kept) - p.opt.Buffer; n > 0 {
		clear(p.kept[:n])
		p.kept = p.kept[n:]
	}
	topic := []byte(p.opt.Topic)
	p.send(topic, zmtp.AppendMessage(nil, topic, binary.BigEndian.AppendUint64(nil, seq), payload))
	return seq
}

// PublishFrames sends a message of any frames, by the first of which
// subscribers choose. It takes no number and is not kept.
func (p *Publisher) PublishFrames(frames ...[]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pub != nil && len(frames) > 0 {
		p.send(append([]byte(nil), frames[0]...), zmtp.AppendMessage(nil, frames...))
	}
}

// Flush sends the batch that Faults.Reorder holds back, if there is one.
func (p *Publisher) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release()
}

// bind listens at *endpoint, and writes the port that it got back to it, so that
// a restart finds it again.
func (p *Publisher) bind(endpoint *string) (*socket, error) {
	network, address := "tcp", strings.TrimPrefix(*endpoint, "tcp://")
	if path, ok := strings.CutPrefix(*endpoint, "ipc://"); ok {
		network, address = "unix", path
	}
	if network == "tcp" && address == *endpoint {
		return nil, fmt.Errorf("bind %q: want tcp://HOST:PORT or ipc://PATH", *endpoint)
	}
	l, err := net.Listen(network, strings.Replace(address, "*:", ":", 1))
	if err != nil {
		return nil, fmt.Errorf("bind %q: %w", *endpoint, err)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); ok {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			l.Close()
			return nil, fmt.Errorf("bind %q: %w", *endpoint, err)
		}
		*endpoint = fmt.Sprintf("tcp://%s", net.JoinHostPort(host, fmt.Sprint(tcp.Port)))
	}
	return newSocket(l), nil
}

// open is the publishing socket, bound or about to connect.
func (p *Publisher) open() (*socket, error) {
	if !p.opt.Connect {
		return p.bind(&p.opt.Endpoint)
	}
	if _, err := zmtp.ParseEndpoint(p.opt.Endpoint); err != nil {
		return nil, err
	}
	return newSocket(nil), nil
}

// accept serves connections until the socket closes.
func (p *Publisher) accept(s *socket, serve func(*socket, net.Conn)) {
	for {
		nc, err := s.listener.Accept()
		if err != nil {
			return
		}
		fc := &faultyConn{Conn: nc, pub: p, closed: make(chan struct{})}
		if !s.add(fc) {
			fc.Close()
			return
		}
		p.done.Go(func() {
			defer s.remove(fc)
			serve(s, fc)
		})
	}
}

// redial is how long a publisher that connects waits before it tries again;
// libzmq waits 100 ms.
const redial = 20 * time.Millisecond

// dial connects, serves the connection, and connects anew until the socket
// closes.
func (p *Publisher) dial(s *socket) {
	to, err := zmtp.ParseEndpoint(p.opt.Endpoint)
	for err == nil {
		if nc, refused := net.DialTimeout(to.Network, to.Address, time.Second); refused == nil {
			fc := &faultyConn{Conn: nc, pub: p, closed: make(chan struct{})}
			if s.add(fc) {
				p.servePub(s, fc)
				s.remove(fc)
			} else {
				fc.Close()
			}
		}
		select {
		case <-s.ended:
			return
		case <-time.After(redial):
		}
	}
}

// config is how both sockets hold a connection. As with libzmq, a subscriber
// that does not read only fills its queue.
func (p *Publisher) config(t zmtp.SocketType) zmtp.Config {
	return zmtp.Config{
		Type: t, OldMinor: p.opt.OldMinor, Write: time.Hour,
		Heartbeat: p.opt.Heartbeat, Silence: 3 * p.opt.Heartbeat,
	}
}
