package zmtp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// DialFunc opens a connection, as net.Dialer.DialContext does.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// keepAlive finds a vanished host in about ten seconds.
func keepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: 4 * time.Second, Interval: 2 * time.Second, Count: 3}
}

// Dial connects to e and shakes hands. The end of ctx ends it, not the
// connection that it returned. The dial and, again, the handshake may take
// cfg.Handshake. A dial of nil is a dialer whose keep-alive finds a vanished host
// in about ten seconds.
func Dial(ctx context.Context, e Endpoint, cfg Config, dial DialFunc) (*Conn, error) {
	cfg.defaults()
	if dial == nil {
		dial = (&net.Dialer{KeepAliveConfig: keepAlive()}).DialContext
	}
	timed, cancel := context.WithTimeout(ctx, cfg.Handshake)
	nc, err := dial(timed, e.Network, e.Address)
	cancel()
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", e, err)
	}
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	c, err := Handshake(nc, cfg)
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("handshake with %s: %w", e, err)
	}
	return c, nil
}

// Handshake exchanges greeting and READY over nc. NULL knows no sides: it serves
// who dialled and who accepted. On an error the caller closes nc.
func Handshake(nc net.Conn, cfg Config) (*Conn, error) {
	cfg.defaults()
	c := &Conn{cfg: cfg, nc: nc, dec: decoder{lim: cfg.Limits}}
	if err := nc.SetDeadline(time.Now().Add(cfg.Handshake)); err != nil {
		return nil, err
	}
	if err := c.shake(); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, silentError(cfg.Handshake, "it took the connection and does not shake hands; it hangs, or speaks another protocol")
		}
		return nil, err
	}
	if err := nc.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	c.heard = cfg.Now()
	switch {
	case cfg.Heartbeat <= 0:
	case c.they == 0:
		c.cfg.Heartbeat, c.cfg.Silence = 0, 0
	default:
		c.nextPing = c.heard.Add(cfg.Heartbeat)
	}
	return c, nil
}

func (c *Conn) shake() error {
	minor := byte(1)
	if c.cfg.OldMinor {
		minor = 0
	}
	if _, err := c.nc.Write(appendGreeting(nil, minor)); err != nil {
		return err
	}
	d := &c.dec
	for d.w < greetingBytes {
		if err := c.receive(); err != nil {
			// libzmq with PLAIN or CURVE hangs up on NULL before it tells its own.
			return closedEarly(err, "before its greeting was complete; it wants authentication, is going down, or is no event publisher")
		}
		if err := checkGreeting(d.buf[:min(d.w, greetingBytes)]); err != nil {
			return err
		}
	}
	var err error
	if c.they, err = readGreeting(d.buf[:greetingBytes]); err != nil {
		return err
	}
	d.r, d.p = greetingBytes, greetingBytes
	if _, err := c.nc.Write(appendReady(nil, c.cfg.Type)); err != nil {
		return err
	}
	d.lim.FrameBytes = min(mostReadyBytes, c.cfg.FrameBytes)
	for {
		it, ok, err := d.step()
		switch {
		case err != nil:
			return err
		case ok && !it.command:
			return protocolError("a message before READY")
		case ok:
			c.peer, err = readReady(it.body, c.cfg.Type)
			d.lim = c.cfg.Limits
			return err
		}
		if err := c.receive(); err != nil {
			return closedEarly(err, "before READY; it does not like a "+string(c.cfg.Type)+" socket, or wants authentication")
		}
	}
}

func closedEarly(err error, when string) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: the peer closed the connection %s", io.ErrUnexpectedEOF, when)
	}
	return err
}
