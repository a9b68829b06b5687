package zmq

import (
	"net"
	"sync"
)

// Faults are bad habits; the zero value has none. Those of batches are drawn
// anew for each and leave the replay whole.
type Faults struct {
	// Drop, Duplicate and Reorder are probabilities, 0 to 1, that a batch takes
	// its number and is not sent, is sent twice, or is sent after the next.
	Drop, Duplicate, Reorder float64
	// CutAfter closes a connection after so many bytes written to it, in the
	// middle of whatever is being written; 0 never does.
	CutAfter int64
	// OneByte writes every byte by itself.
	OneByte bool
	// HalfOpen makes it a process that hangs: connections are accepted, by the
	// kernel, and nothing is read or written, those that stand included.
	HalfOpen bool
}

// SetFaults changes the faults from now on. A batch that waits to be out of
// order is sent.
func (p *Publisher) SetFaults(f Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release()
	p.faults = f
	switch {
	case f.HalfOpen && p.thaw == nil:
		p.thaw = make(chan struct{})
	case !f.HalfOpen && p.thaw != nil:
		close(p.thaw)
		p.thaw = nil
	}
}

// send passes a message to the subscribers as the faults will have it; the lock
// is held.
func (p *Publisher) send(topic, message []byte) {
	p.figures.Published++
	switch f := p.faults; {
	case p.rand.Float64() < f.Drop:
		p.figures.Dropped++
	case p.held == nil && p.rand.Float64() < f.Reorder:
		p.figures.Reordered++
		p.held, p.heldOf = message, topic
		return
	case p.rand.Float64() < f.Duplicate:
		p.figures.Duplicated++
		p.offer(topic, message)
		fallthrough
	default:
		p.offer(topic, message)
	}
	p.release()
}

func (p *Publisher) release() {
	if p.held != nil {
		p.offer(p.heldOf, p.held)
		p.held, p.heldOf = nil, nil
	}
}

func (p *Publisher) offer(topic, message []byte) {
	if p.pub != nil {
		p.figures.BeyondHWM += p.pub.offer(topic, message)
	}
}

// faultyConn is a connection under the publisher's faults.
type faultyConn struct {
	net.Conn
	pub    *Publisher
	once   sync.Once
	closed chan struct{}

	mu      sync.Mutex // guards written
	written int64
}

func (c *faultyConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// wait returns the faults in force, once the process does not hang.
func (c *faultyConn) wait() (Faults, error) {
	for {
		c.pub.mu.Lock()
		f, thaw := c.pub.faults, c.pub.thaw
		c.pub.mu.Unlock()
		if thaw == nil {
			return f, nil
		}
		select {
		case <-thaw:
		case <-c.closed:
			return f, net.ErrClosed
		}
	}
}

// Read reads, but holds back what came while the process hangs.
func (c *faultyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if _, hung := c.wait(); hung != nil {
		return 0, hung
	}
	return n, err
}

func (c *faultyConn) Write(p []byte) (int, error) {
	f, err := c.wait()
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	cut := false
	if left := f.CutAfter - c.written; f.CutAfter > 0 && left < int64(len(p)) {
		p, cut = p[:max(0, left)], true
	}
	step := len(p)
	if f.OneByte {
		step = 1
	}
	n := 0
	for n < len(p) && err == nil {
		var m int
		m, err = c.Conn.Write(p[n:min(n+step, len(p))])
		n += m
	}
	c.written += int64(n)
	if cut {
		c.Close()
		return n, net.ErrClosed
	}
	return n, err
}
