package feedtest

import (
	"context"
	"net"
	"os"
	"sync"
	"time"
)

// Bad is a network that can be made bad while connections are open. It acts on
// every connection that Wrap, Listen or Dial made of it.
type Bad struct {
	mu       sync.Mutex // guards what follows
	latency  time.Duration
	slice    int
	garbage  []byte
	halfOpen bool
	conns    map[*badConn]struct{}
}

// NewBad makes a network on which all is still well.
func NewBad() *Bad { return &Bad{conns: make(map[*badConn]struct{})} }

// Latency delays every read by d.
func (n *Bad) Latency(d time.Duration) { n.with(func() { n.latency = d }) }

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
	b := &badConn{Conn: c, n: n, dead: n.halfOpen, read: newDeadline(), closed: make(chan struct{})}
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

type badConn struct {
	net.Conn
	n      *Bad
	dead   bool // half-open; guarded by n.mu
	read   *deadline
	once   sync.Once
	closed chan struct{}
}

func (c *badConn) Read(b []byte) (int, error) {
	if limit := c.limit(); limit > 0 && limit < len(b) {
		b = b[:limit]
	}
	got, err := c.Conn.Read(b)
	c.n.mu.Lock()
	dead, latency := c.dead, c.n.latency
	if err == nil && !dead && len(c.n.garbage) > 0 {
		got, c.n.garbage = copy(b, c.n.garbage), nil
	}
	c.n.mu.Unlock()
	switch {
	case dead: // whatever came, nobody hears of it
		select {
		case <-c.read.done():
			return 0, os.ErrDeadlineExceeded
		case <-c.closed:
			return 0, net.ErrClosed
		}
	case latency > 0 && err == nil:
		t := time.NewTimer(latency)
		defer t.Stop()
		select {
		case <-t.C:
		case <-c.closed:
			return 0, net.ErrClosed
		}
	}
	return got, err
}

func (c *badConn) Write(b []byte) (int, error) {
	limit := c.limit()
	if limit <= 0 {
		limit = max(len(b), 1)
	}
	written := 0
	for written < len(b) {
		c.n.mu.Lock()
		dead := c.dead
		c.n.mu.Unlock()
		if dead {
			return len(b), nil
		}
		n, err := c.Conn.Write(b[written:min(written+limit, len(b))])
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

func (c *badConn) limit() int {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	return c.n.slice
}

func (c *badConn) SetReadDeadline(t time.Time) error {
	c.read.set(t)
	return c.Conn.SetReadDeadline(t)
}

func (c *badConn) SetDeadline(t time.Time) error {
	c.read.set(t)
	return c.Conn.SetDeadline(t)
}

func (c *badConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	c.n.mu.Lock()
	delete(c.n.conns, c)
	c.n.mu.Unlock()
	return c.Conn.Close()
}
