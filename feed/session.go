package feed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"adpdeck/router/model"
)

// agePeriod bounds how long an answer to "how old is this" may be out.
const agePeriod = time.Second

// session is one connection of a client. Its reader is the goroutine that made
// it; its writer ends when quit is closed.
type session struct {
	c    *Client
	conn *websocket.Conn
	out  chan []byte // messages for the writer
	quit chan struct{}

	pinged int64 // when the newest ping was sent, in ns; guarded by c.mu

	mu    sync.Mutex // guards what follows
	cause error      // why this side cut the connection, nil when it did not
}

// connect dials, follows the feed until it breaks and returns why it broke.
func (c *Client) connect(ctx context.Context) error {
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	s := &session{c: c, conn: conn, out: make(chan []byte, maxPending), quit: make(chan struct{})}
	defer conn.Close()
	cut := context.AfterFunc(ctx, s.goodbye)
	defer cut()
	var writer sync.WaitGroup
	writer.Go(s.write)
	defer writer.Wait()
	defer close(s.quit)

	c.mu.Lock()
	c.session, c.link.RTT = s, 0
	c.mu.Unlock()
	err = s.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause != nil && errors.Is(err, net.ErrClosed) {
		return s.cause
	}
	return err // the other side's word, where there is one, says more than ours
}

func (c *Client) dial(ctx context.Context) (*websocket.Conn, error) {
	url := c.url
	if !strings.Contains(url, "://") {
		url = "ws://" + url
		if !strings.Contains(c.url, "/") {
			url += Path
		}
	}
	d := websocket.Dialer{
		NetDialContext: c.opt.Dial, HandshakeTimeout: 2 * c.opt.PingPeriod,
		Subprotocols: []string{Protocol}, ReadBufferSize: 16 << 10, WriteBufferSize: 4 << 10,
	}
	head := http.Header{}
	if c.opt.Token != "" {
		head.Set("Authorization", "Bearer "+c.opt.Token)
	}
	conn, resp, err := d.DialContext(ctx, url, head)
	switch {
	case err != nil && resp != nil:
		defer resp.Body.Close()
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 256))
		return nil, fmt.Errorf("server refused: %s: %s", resp.Status, strings.TrimSpace(string(said)))
	case err != nil:
		return nil, fmt.Errorf("connect: %w", err)
	case conn.Subprotocol() != Protocol:
		conn.Close()
		return nil, fmt.Errorf("server does not speak %s: is this the address of an adpdeck feed?", Protocol)
	}
	return conn, nil
}

// goodbye ends the connection politely because the client is being closed.
func (s *session) goodbye() {
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = s.conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(100*time.Millisecond))
	s.cut(errors.New("closed"))
}

// cut breaks the connection and keeps the first reason.
func (s *session) cut(why error) {
	s.mu.Lock()
	if s.cause == nil {
		s.cause = why
	}
	s.mu.Unlock()
	s.conn.Close()
}

// read applies every message until the connection breaks. Each sign of life
// moves the deadline two ping periods on.
func (s *session) read() error {
	s.conn.SetReadLimit(MaxMessageBytes)
	s.alive()
	s.conn.SetPongHandler(func(sent string) error {
		s.alive()
		if ns, err := strconv.ParseInt(sent, 10, 64); err == nil {
			if rtt := time.Now().UnixNano() - ns; rtt >= 0 {
				s.answered(ns, time.Duration(rtt))
				nudge(s.c.moved)
			}
		}
		return nil
	})
	answer := s.conn.PingHandler()
	s.conn.SetPingHandler(func(text string) error {
		s.alive()
		return answer(text)
	})
	var msg bytes.Buffer // one for all: what is decoded from it holds copies
	for {
		_, r, err := s.conn.NextReader()
		if err == nil {
			_, err = msg.ReadFrom(r)
		}
		if err != nil {
			return s.explain(err)
		}
		s.alive()
		s.take(msg.Bytes())
		if msg.Reset(); msg.Cap() > keptBytes {
			msg = bytes.Buffer{}
		}
	}
}

// answered notes the round trip of the ping sent at ns, which answers all before
// it, and since when the next one waits.
func (s *session) answered(ns int64, rtt time.Duration) {
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.c.link.RTT, s.c.link.Asked = rtt, time.Time{}
	if ns < s.pinged {
		s.c.link.Asked = time.Unix(0, min(ns+int64(s.every()), s.pinged))
	}
}

// every is how often this side pings: to know how old the state is, more often
// than to find out that the link is dead.
func (s *session) every() time.Duration { return min(s.c.opt.PingPeriod, agePeriod) }

// keptBytes bounds the buffer that is kept between messages: a change fits, a
// long part of a snapshot is let go.
const keptBytes = 128 << 10

func (s *session) alive() {
	_ = s.conn.SetReadDeadline(time.Now().Add(2 * s.c.opt.PingPeriod))
}

func (s *session) explain(err error) error {
	var closed *websocket.CloseError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure:
		return fmt.Errorf("server closed the link: %d %s", closed.Code, closed.Text)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("link is dead: nothing came for %v", 2*s.c.opt.PingPeriod)
	default:
		return fmt.Errorf("link is cut: %w", err)
	}
}

// take applies one message and asks for a snapshot when it does not fit.
func (s *session) take(msg []byte) {
	c := s.c
	c.mu.Lock()
	was := c.stream.synced
	got, err := c.stream.apply(msg)
	if got.current {
		c.link.LastFrame = time.Now()
	}
	if err != nil {
		c.link.Gaps++
		c.setPhase(fmt.Errorf("%w; asked for a snapshot", err))
	} else if c.stream.synced != was {
		c.setPhase(nil)
	}
	turned := c.stream.synced != was
	if got.reply != nil {
		c.pending.answer(*got.reply)
	}
	c.mu.Unlock()
	if err != nil {
		s.resync()
	}
	if turned || err != nil {
		nudge(c.urgent)
	}
	nudge(c.moved)
}

// resync asks for a snapshot. When the writer is so far behind that it takes no
// message, the missing snapshot ends the connection instead.
func (s *session) resync() {
	select {
	case s.out <- []byte(`{"kind":"resync"}`):
	default:
	}
}

// write sends messages and pings, and gives up a connection that does not
// become live or cannot be written to.
func (s *session) write() {
	period := s.c.opt.PingPeriod
	tick := time.NewTicker(s.every())
	defer tick.Stop()
	lastLive := time.Now()
	first := make(chan struct{}, 1) // a ping at once: the round trip is worth knowing
	first <- struct{}{}
	for {
		var err error
		deadline := time.Now().Add(2 * period)
		select {
		case <-first:
			err = s.ping(deadline)
		case <-s.quit:
			return
		case msg := <-s.out:
			_ = s.conn.SetWriteDeadline(deadline)
			err = s.conn.WriteMessage(websocket.TextMessage, msg)
		case now := <-tick.C:
			s.c.mu.Lock()
			if s.c.stream.synced {
				lastLive = now
			}
			s.c.pending.expire(now.Add(-replyTimeout))
			s.c.mu.Unlock()
			if now.Sub(lastLive) >= s.c.opt.SnapshotTimeout {
				s.cut(fmt.Errorf("no snapshot came for %v", s.c.opt.SnapshotTimeout))
				return
			}
			err = s.ping(deadline)
		}
		if err != nil {
			s.giveUp(err)
			return
		}
	}
}

// giveUp cuts a connection that cannot be written to, after the reader has had
// a moment to find what the server said last.
func (s *session) giveUp(why error) {
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-s.quit:
	case <-t.C:
		s.cut(fmt.Errorf("link is cut: %w", why))
	}
}

// ping sends the time, which the pong brings back.
func (s *session) ping(deadline time.Time) error {
	now := time.Now()
	s.c.mu.Lock()
	s.pinged = now.UnixNano()
	if s.c.link.Asked.IsZero() {
		s.c.link.Asked = now
	}
	s.c.mu.Unlock()
	return s.conn.WriteControl(websocket.PingMessage, strconv.AppendInt(nil, now.UnixNano(), 10), deadline)
}

// encodeCommand writes the frame of a command, or says why it cannot be sent.
func encodeCommand(cmd model.Command) ([]byte, *model.Refusal) {
	if cmd.ID == "" || len(cmd.ID) > model.MaxCommandIDBytes {
		return nil, malformed(fmt.Sprintf("a command needs an id of 1 to %d bytes", model.MaxCommandIDBytes), "")
	}
	msg, err := json.Marshal(commandFrame{Kind: kindCommand, Command: &cmd})
	if err == nil {
		err = checkShape(msg)
	}
	if err != nil {
		return nil, malformed("command cannot be sent: "+err.Error(), "name fewer conversations in one command")
	}
	return msg, nil
}
