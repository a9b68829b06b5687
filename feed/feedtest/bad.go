package feedtest

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Bad is a network that can be made bad while connections are open. It acts on
// every connection that Wrap, Listen or Dial made of it.
type Bad struct {
	mu        sync.Mutex // guards what follows
	latency   time.Duration
	jitter    time.Duration
	bandwidth int // bytes a second, 0: no bound
	slice     int
	reset     int // bytes after which a connection is reset, 0: never
	garbage   []byte
	halfOpen  bool
	hole      chan struct{} // while nothing gets through: closed when that ends
	conns     map[*badConn]struct{}
}

// NewBad makes a network on which all is still well.
func NewBad() *Bad { return &Bad{conns: make(map[*badConn]struct{})} }

// Latency delays every read by d.
func (n *Bad) Latency(d time.Duration) { n.Jitter(d, 0) }

// Jitter delays every read by d, give or take up to spread.
func (n *Bad) Jitter(d, spread time.Duration) {
	n.with(func() { n.latency, n.jitter = d, spread })
}

// Bandwidth makes the reads of each connection bring no more than so many bytes
// a second; 0 ends it.
func (n *Bad) Bandwidth(bytes int) { n.with(func() { n.bandwidth = bytes }) }

// ResetAfter resets each connection once so many more bytes have been read from
// it, with what TCP has for that: what was still under way is lost, and the other
// end's next call fails at once. 0 ends it for all that are open.
func (n *Bad) ResetAfter(bytes int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reset = bytes
	for c := range n.conns {
		c.left = bytes
	}
}

// Blackhole lets no packet through, in either direction, and tells nobody, until
// false ends it: then connections that are still wanted go on where they stood, as
// TCP sends again what was lost. A read whose deadline passes meanwhile loses what
// came.
func (n *Bad) Blackhole(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case on && n.hole == nil:
		n.hole = make(chan struct{})
	case !on && n.hole != nil:
		close(n.hole)
		n.hole = nil
	}
}

// Slice makes every read and write move at most so many bytes; 0 moves all.
func (n *Bad) Slice(bytes int) { n.with(func() { n.slice = bytes }) }

// Garbage gives the next read these bytes instead of what was sent.
func (n *Bad) Garbage(b []byte) { n.with(func() { n.garbage = b }) }

// HalfOpen swallows everything that is sent from now on, in both directions,
// and tells nobody; false ends it for connections made later.
func (n *Bad) HalfOpen(on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.halfOpen = on
	for c := range n.conns {
		c.dead = c.dead || on
	}
}

// Cut breaks all open connections.
func (n *Bad) Cut() {
	n.mu.Lock()
	list := make([]*badConn, 0, len(n.conns))
	for c := range n.conns {
		list = append(list, c)
	}
	n.mu.Unlock()
	for _, c := range list {
		c.Close()
	}
}

// Open counts the connections that are open.
func (n *Bad) Open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns)
}

func (n *Bad) with(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

// Wrap puts a connection on this network.
func (n *Bad) Wrap(c net.Conn) net.Conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := &badConn{Conn: c, n: n, dead: n.halfOpen, left: n.reset, read: newDeadline(), write: newDeadline(), closed: make(chan struct{})}
	n.conns[b] = struct{}{}
	return b
}

// Listen puts the connections that ln accepts on this network.
func (n *Bad) Listen(ln net.Listener) net.Listener { return badListener{ln, n} }

// Dial puts the connections that dial makes on this network; it fits
// feed.ClientOptions.Dial.
func (n *Bad) Dial(dial func(ctx context.Context, network, addr string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return n.Wrap(c), nil
	}
}

// late is the delay of one read.
func (n *Bad) late() time.Duration {
	if n.latency <= 0 || n.jitter <= 0 {
		return n.latency
	}
	return max(0, n.latency-n.jitter+rand.N(2*n.jitter))
}

type badListener struct {
	net.Listener
	n *Bad
}

func (l badListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.n.Wrap(c), nil
}
