package zmtp

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// Config says how a connection is held; zero fields take the defaults named.
type Config struct {
	Type SocketType
	Limits
	// Handshake (3 s) is how long greeting and READY may take.
	Handshake time.Duration
	// Write (3 s) is how long the peer may refuse to take what is written.
	Write time.Duration
	// Heartbeat is how often a PING is sent; 0 sends none. A peer of ZMTP 3.0
	// knows no PING: with it there is neither heartbeat nor silence, and only the
	// network's own keep-alive finds it gone.
	Heartbeat time.Duration
	// Silence is how long the peer may send nothing at all before Read fails with
	// [ErrSilent], and what a PING tells the peer to allow this side; 0 is for
	// ever.
	Silence time.Duration
	// OldMinor makes this side a peer of ZMTP 3.0, which answers no PING.
	OldMinor bool
	// OnCommand takes the peer's commands other than PING and PONG; data holds
	// until it returns. Without it they are ignored.
	OnCommand func(name string, data []byte) error
	// Now (time.Now) is the clock.
	Now func() time.Time
}

func (c *Config) defaults() {
	c.Limits.defaults()
	orDuration(&c.Handshake, 3*time.Second)
	orDuration(&c.Write, 3*time.Second)
	if c.Now == nil {
		c.Now = time.Now
	}
}

func orDuration(d *time.Duration, standard time.Duration) {
	if *d <= 0 {
		*d = standard
	}
}

// grace is how much longer than Silence a read waits before the peer counts as
// silent, so that a stall of this process is not taken for one of the peer.
const grace = 100 * time.Millisecond

// Conn is a connection after its handshake. One goroutine may read; any may
// write or close.
type Conn struct {
	cfg  Config
	nc   net.Conn
	dec  decoder
	peer SocketType
	they byte // their minor version

	writing sync.Mutex // held over a write
	out     []byte     // guarded by writing

	// Of the reading goroutine:
	heard    time.Time     // bytes came last
	nextPing time.Time     // zero without heartbeat
	ttl      time.Duration // the peer promised to speak within it; 0: no promise
	late     bool          // silent for too long, waiting out the grace
	armed    time.Time     // the read deadline, by the config's clock
}

// receive reads once, under whatever deadline is set.
func (c *Conn) receive() error {
	n, err := c.nc.Read(c.dec.space())
	c.dec.wrote(n)
	if n > 0 {
		return nil
	}
	return err
}

// Peer returns the type of the peer's socket and its minor version of ZMTP 3.
func (c *Conn) Peer() (t SocketType, minor int) { return c.peer, int(c.they) }

// Heard returns when bytes last came. It belongs to the reading goroutine.
func (c *Conn) Heard() time.Time { return c.heard }

// Close closes the connection; a Read or Write under way fails.
func (c *Conn) Close() error { return c.nc.Close() }

// Read returns the frames of the next message; they hold until the next call.
// PINGs are answered and sent meanwhile. After an error the connection is of no
// more use, and the caller closes it.
func (c *Conn) Read() ([][]byte, error) {
	for {
		it, ok, err := c.dec.step()
		switch {
		case err != nil:
			return nil, err
		case ok && !it.command:
			return it.frames, nil
		case ok:
			err = c.command(it.body)
		default:
			err = c.fill()
		}
		if err != nil {
			return nil, err
		}
	}
}

func (c *Conn) command(body []byte) error {
	name, data, err := splitCommand(body)
	if err != nil {
		return err
	}
	switch {
	case name == "PING" && c.cfg.OldMinor, name == "PONG":
		return nil
	case name == "PING":
		ttl, context, err := readPing(data)
		if err != nil {
			return err
		}
		c.ttl = ttl
		return c.write(func(p []byte) []byte { return appendCommand(p, "PONG", context) })
	case name == "ERROR":
		return refusedError(data)
	case c.cfg.OnCommand != nil:
		return c.cfg.OnCommand(name, data)
	}
	return nil
}

// fill waits for bytes, however few, and sends PINGs meanwhile.
func (c *Conn) fill() error {
	for {
		if err := c.tend(); err != nil {
			return err
		}
		err := c.receive()
		if err == nil {
			c.heard, c.ttl, c.late = c.cfg.Now(), 0, false
			return nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		c.armed = time.Time{}
	}
}

// tend sends a PING if one is due, notices silence, and sets the deadline of the
// next read to whatever is due next.
func (c *Conn) tend() error {
	now := c.cfg.Now()
	if !c.nextPing.IsZero() && !now.Before(c.nextPing) {
		c.nextPing = now.Add(c.cfg.Heartbeat)
		if err := c.write(func(p []byte) []byte { return appendPing(p, c.cfg.Silence) }); err != nil {
			return err
		}
	}
	due := c.nextPing
	if end, ok := c.silentAt(); ok {
		if c.late {
			end = end.Add(grace)
		}
		if !now.Before(end) {
			if c.late {
				return silentError(now.Sub(c.heard), c.why())
			}
			c.late, end = true, now.Add(grace)
		}
		if due.IsZero() || end.Before(due) {
			due = end
		}
	}
	// A deadline that comes early only costs a turn of the loop in fill, while
	// setting one for each read would cost as much as the read.
	if due.Equal(c.armed) || c.armed.After(now) && c.armed.Before(due) {
		return nil
	}
	c.armed = due
	if due.IsZero() {
		return c.nc.SetReadDeadline(time.Time{})
	}
	return c.nc.SetReadDeadline(time.Now().Add(due.Sub(now)))
}

// silentAt returns when the peer will have been silent for too long.
func (c *Conn) silentAt() (time.Time, bool) {
	limit := c.cfg.Silence
	if c.ttl > 0 && (limit <= 0 || c.ttl < limit) {
		limit = c.ttl
	}
	return c.heard.Add(limit), limit > 0
}

func (c *Conn) why() string {
	if c.nextPing.IsZero() {
		return "no answer"
	}
	return "no answer to PING; it hangs or is cut off (if it is alive and knows no heartbeat, turn the heartbeat off)"
}

// Write sends one message.
func (c *Conn) Write(frames ...[]byte) error {
	return c.write(func(p []byte) []byte { return AppendMessage(p, frames...) })
}

// WriteRaw sends bytes that are already framed (see [AppendMessage]).
func (c *Conn) WriteRaw(p []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.flush(p)
}

// Subscribe asks the peer for the messages whose first frame begins with one of
// topics.
func (c *Conn) Subscribe(topics ...string) error {
	return c.write(func(p []byte) []byte {
		for _, t := range topics {
			p = AppendSubscribe(p, t)
		}
		return p
	})
}

func (c *Conn) write(add func([]byte) []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.out = add(c.out[:0])
	err := c.flush(c.out)
	if cap(c.out) > keepBytes {
		c.out = nil
	}
	return err
}

func (c *Conn) flush(p []byte) error {
	if err := c.nc.SetWriteDeadline(time.Now().Add(c.cfg.Write)); err != nil {
		return err
	}
	_, err := c.nc.Write(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return silentError(c.cfg.Write, "it does not take what is written to it")
	}
	return err
}
