package feedtest

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// Network is a listener and its dialer in memory. Each direction of a
// connection buffers a number of bytes, then writes block, as with TCP.
type Network struct {
	buffer  int
	waiting chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

// NewNetwork makes a network whose connections buffer so many bytes each way.
func NewNetwork(buffer int) *Network {
	return &Network{buffer: max(buffer, 1), waiting: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial connects to the listener; network and address do not matter. It fails
// once the listener is closed.
func (n *Network) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	a, b := newPipe(n.buffer), newPipe(n.buffer)
	select {
	case n.waiting <- &conn{in: a, out: b, read: newDeadline(), write: newDeadline()}:
		return &conn{in: b, out: a, read: newDeadline(), write: newDeadline()}, nil
	case <-n.closed:
		return nil, &net.OpError{Op: "dial", Net: "mem", Err: os.ErrClosed}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (n *Network) Accept() (net.Conn, error) {
	select {
	case c := <-n.waiting:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. Open connections stay open.
func (n *Network) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

// Addr implements net.Listener: a loopback address.
func (n *Network) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// conn is one end of a connection.
type conn struct {
	in, out     *pipe
	read, write *deadline
}

func (c *conn) Read(b []byte) (int, error)  { return c.in.take(b, c.read) }
func (c *conn) Write(b []byte) (int, error) { return c.out.put(b, c.write) }
func (c *conn) LocalAddr() net.Addr         { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (c *conn) RemoteAddr() net.Addr        { return c.LocalAddr() }

func (c *conn) Close() error {
	c.in.shut(net.ErrClosed, io.ErrClosedPipe)
	c.out.shut(io.EOF, net.ErrClosed)
	return nil
}

func (c *conn) SetDeadline(t time.Time) error {
	c.read.set(t)
	c.write.set(t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.read.set(t)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.write.set(t)
	return nil
}

// pipe is one direction of a connection.
type pipe struct {
	room int

	mu       sync.Mutex // guards what follows
	buf      []byte
	readErr  error         // what a reader gets when buf is empty, nil while open
	writeErr error         // what a writer gets, nil while open
	moved    chan struct{} // closed and replaced at every change
}

func newPipe(room int) *pipe { return &pipe{room: room, moved: make(chan struct{})} }

func (p *pipe) wakeAll() {
	close(p.moved)
	p.moved = make(chan struct{})
}

func (p *pipe) shut(readErr, writeErr error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.readErr == nil {
		p.readErr = readErr
	}
	if p.writeErr == nil {
		p.writeErr = writeErr
	}
	p.wakeAll()
}

func (p *pipe) take(b []byte, d *deadline) (int, error) {
	for {
		p.mu.Lock()
		moved := p.moved
		switch {
		case d.passed():
			p.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case len(p.buf) > 0:
			n := copy(b, p.buf)
			p.buf = p.buf[n:]
			p.wakeAll()
			p.mu.Unlock()
			return n, nil
		case p.readErr != nil:
			p.mu.Unlock()
			return 0, p.readErr
		}
		p.mu.Unlock()
		select {
		case <-moved:
		case <-d.done():
		}
	}
}

func (p *pipe) put(b []byte, d *deadline) (written int, err error) {
	for {
		p.mu.Lock()
		moved := p.moved
		switch {
		case p.writeErr != nil:
			p.mu.Unlock()
			return written, p.writeErr
		case d.passed():
			p.mu.Unlock()
			return written, os.ErrDeadlineExceeded
		}
		if n := min(p.room-len(p.buf), len(b)); n > 0 {
			p.buf = append(p.buf, b[:n]...)
			b, written = b[n:], written+n
			p.wakeAll()
			moved = p.moved
		}
		p.mu.Unlock()
		if len(b) == 0 {
			return written, nil
		}
		select {
		case <-moved:
		case <-d.done():
		}
	}
}

// deadline is a channel that is closed when a time has come.
type deadline struct {
	mu    sync.Mutex // guards what follows
	timer *time.Timer
	moves int // how often the deadline has been moved
	over  chan struct{}
}

func newDeadline() *deadline { return &deadline{over: make(chan struct{})} }

// set moves the deadline; whoever waits for the old one is woken by nothing, as
// the new one may be earlier they look again through done.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop() // it may be running already: moves tells it that it is late
		d.timer = nil
	}
	d.moves++
	if closed(d.over) {
		d.over = make(chan struct{})
	}
	if t.IsZero() {
		return
	}
	mine := d.moves
	if left := time.Until(t); left > 0 {
		d.timer = time.AfterFunc(left, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.moves == mine {
				close(d.over)
			}
		})
		return
	}
	close(d.over)
}

func (d *deadline) done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

func (d *deadline) passed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return closed(d.over)
}

func closed(ch chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
