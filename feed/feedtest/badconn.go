package feedtest

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// badConn is one connection of a bad network.
type badConn struct {
	net.Conn
	n           *Bad
	dead        bool // half-open; guarded by n.mu
	left        int  // bytes until a reset, 0: none, -1: now; guarded by n.mu
	read, write *deadline
	once        sync.Once
	closed      chan struct{}
}

func (c *badConn) Read(b []byte) (int, error) {
	limit, bandwidth, left := c.limits()
	if left < 0 {
		c.reset()
		return 0, syscall.ECONNRESET
	}
	for _, most := range []int{limit, bandwidth / 10, left} { // a tenth of a second at a time
		if most > 0 && most < len(b) {
			b = b[:most]
		}
	}
	got, err := c.Conn.Read(b)
	c.n.mu.Lock()
	late := c.n.late()
	if err == nil && !c.dead && len(c.n.garbage) > 0 {
		got, c.n.garbage = copy(b, c.n.garbage), nil
	}
	c.n.mu.Unlock()
	if err == nil && bandwidth > 0 {
		late += time.Duration(got) * time.Second / time.Duration(bandwidth)
	}
	if late > 0 && err == nil {
		t := time.NewTimer(late)
		defer t.Stop()
		select {
		case <-t.C:
		case <-c.closed:
			return 0, net.ErrClosed
		}
	}
	if stop := c.carried(c.read); stop != nil { // whatever came, nobody hears of it
		return 0, stop
	}
	c.used(got)
	return got, err
}

func (c *badConn) Write(b []byte) (int, error) {
	limit, _, _ := c.limits()
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
		if stop := c.carried(c.write); stop != nil {
			return written, stop
		}
		n, err := c.Conn.Write(b[written:min(written+limit, len(b))])
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// carried waits until the network carries packets of this connection, which a
// half-open one never sees again.
func (c *badConn) carried(d *deadline) error {
	for {
		c.n.mu.Lock()
		dead, hole := c.dead, c.n.hole
		c.n.mu.Unlock()
		if !dead && hole == nil {
			return nil
		}
		if dead {
			hole = nil
		}
		select {
		case <-hole:
		case <-d.done():
			return os.ErrDeadlineExceeded
		case <-c.closed:
			return net.ErrClosed
		}
	}
}

// used counts bytes that came; after the last the next read resets.
func (c *badConn) used(bytes int) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if c.left > 0 {
		if c.left -= bytes; c.left <= 0 {
			c.left = -1
		}
	}
}

// reset breaks the connection without a word of farewell.
func (c *badConn) reset() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

func (c *badConn) limits() (slice, bandwidth, left int) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	return c.n.slice, c.n.bandwidth, c.left
}

func (c *badConn) SetReadDeadline(t time.Time) error {
	c.read.set(t)
	return c.Conn.SetReadDeadline(t)
}

func (c *badConn) SetWriteDeadline(t time.Time) error {
	c.write.set(t)
	return c.Conn.SetWriteDeadline(t)
}

func (c *badConn) SetDeadline(t time.Time) error {
	c.read.set(t)
	c.write.set(t)
	return c.Conn.SetDeadline(t)
}

func (c *badConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	c.n.mu.Lock()
	delete(c.n.conns, c)
	c.n.mu.Unlock()
	return c.Conn.Close()
}
