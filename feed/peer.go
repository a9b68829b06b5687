package feed

import (
	"encoding/json"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"adpdeck/router/model"
)

// closeGrace is how long a client may take to say goodbye at shutdown.
const closeGrace = time.Second

// peer is one client on the server: a reader, the one writer, and a worker that
// applies its commands in turn.
type peer struct {
	s        *Server
	box      *outbox
	conn     *websocket.Conn
	quit     chan struct{} // closed when the reader has ended
	commands chan *model.Command
	ended    atomic.Bool // the end has begun

	mu   sync.Mutex // guards what follows
	kill *time.Timer
}

func newPeer(s *Server) *peer {
	return &peer{
		s: s, box: newOutbox(s.opt.QueueMessages, s.opt.QueueBytes),
		quit: make(chan struct{}), commands: make(chan *model.Command, s.opt.CommandBurst),
	}
}

// serve follows the connection until it ends and all its goroutines have.
func (p *peer) serve(conn *websocket.Conn) {
	p.mu.Lock()
	p.conn = conn
	ended := p.ended.Load()
	p.mu.Unlock()
	if ended { // closed while it was made
		p.end(CloseGoingAway, "server is going away")
	}
	var own sync.WaitGroup
	own.Go(p.write)
	own.Go(p.work)
	p.read()
	close(p.quit)
	close(p.commands)
	conn.Close()
	own.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kill != nil {
		p.kill.Stop()
	}
}

// end asks the writer for a close frame, and cuts the connection if goodbyes
// take too long.
func (p *peer) end(code int, reason string) {
	p.ended.Store(true)
	p.box.end(code, reason)
	p.mu.Lock()
	defer p.mu.Unlock()
	if conn := p.conn; conn != nil && p.kill == nil {
		p.kill = time.AfterFunc(closeGrace, func() { conn.Close() })
	}
}

// read handles messages until the connection breaks. Any sign of life moves the
// deadline two ping periods on.
func (p *peer) read() {
	p.conn.SetReadLimit(MaxMessageBytes)
	alive := func() {
		if !p.ended.Load() {
			_ = p.conn.SetReadDeadline(time.Now().Add(2 * p.s.opt.PingPeriod))
		}
	}
	alive()
	p.conn.SetPongHandler(func(string) error { alive(); return nil })
	answer := p.conn.PingHandler()
	p.conn.SetPingHandler(func(text string) error { alive(); return answer(text) })
	limit := bucket{rate: p.s.opt.CommandRate, burst: float64(p.s.opt.CommandBurst)}
	for {
		_, msg, err := p.conn.ReadMessage()
		if err != nil {
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() && !p.ended.Load() {
				p.s.stats.silent.Add(1)
			}
			return
		}
		alive()
		p.take(msg, &limit)
	}
}

// take handles one message of the client.
func (p *peer) take(msg []byte, limit *bucket) {
	f, err := decode(msg)
	cmd, _ := f.(*commandFrame)
	switch {
	case err != nil && !json.Valid(msg):
		p.box.end(CloseBadFrame, "a message is not JSON")
	case err != nil:
		p.answer(model.Reply{ID: idOf(msg), Refusal: malformed(err.Error(), "see the command's fields in the documentation")})
	case cmd == nil:
		p.s.stats.unknown.Add(1)
	case cmd.Kind == kindResync:
		p.box.refresh()
	default:
		p.queue(cmd.Command, limit)
	}
}

// queue hands a command to the worker, or refuses it.
func (p *peer) queue(cmd *model.Command, limit *bucket) {
	if cmd.ID == "" || len(cmd.ID) > model.MaxCommandIDBytes {
		p.answer(model.Reply{ID: short(cmd.ID), Refusal: malformed("a command needs an id of 1 to 64 bytes", "")})
		return
	}
	if limit.take(time.Now()) {
		select {
		case p.commands <- cmd:
			return
		default:
		}
	}
	p.s.stats.busy.Add(1)
	p.answer(model.Reply{ID: cmd.ID, Refusal: busy("too many commands", "send at most 20 a second, 40 at once")})
}

// work applies commands in turn; the reply goes to this client alone.
func (p *peer) work() {
	for cmd := range p.commands {
		p.s.stats.commands.Add(1)
		r := p.s.src.Apply(*cmd)
		nudge(p.s.hub.hurry)
		p.answer(r)
	}
}

func (p *peer) answer(r model.Reply) {
	if !p.box.reply(encodeReply(r)) {
		p.s.stats.slow.Add(1)
		p.box.end(CloseSlow, "too slow: replies were not read")
	}
}

// idOf finds the id of a command that cannot be decoded otherwise, so that the
// refusal reaches who waits for it.
func idOf(msg []byte) string {
	var f struct {
		Command struct {
			ID string `json:"id"`
		} `json:"command"`
	}
	_ = json.Unmarshal(msg, &f) // what can be read is read
	return short(f.Command.ID)
}

func short(id string) string { return id[:min(len(id), model.MaxCommandIDBytes)] }

// write is the one writer of the connection.
func (p *peer) write() {
	defer p.conn.Close()
	hello, _ := json.Marshal(helloFrame{
		kindHello, p.s.opt.Epoch, p.s.opt.Role, p.s.opt.Version, p.s.opt.Heartbeat.Milliseconds(),
	})
	if p.send(hello) != nil {
		return
	}
	ping := time.NewTicker(p.s.opt.PingPeriod)
	defer ping.Stop()
	hold := time.NewTimer(0) // until when no snapshot may be sent
	defer hold.Stop()
	held := true
	for {
		if done := p.flush(&held, hold); done {
			return
		}
		select {
		case <-p.quit:
			return
		case <-p.box.wake:
		case <-hold.C:
			held = false
		case <-ping.C:
			if p.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(p.s.opt.WriteTimeout)) != nil {
				return
			}
		}
	}
}

// flush writes all that waits; done says that the connection is at its end.
func (p *peer) flush(held *bool, hold *time.Timer) (done bool) {
	for {
		msg, fresh, end := p.box.next()
		switch {
		case end != nil:
			p.goodbye(end)
			return true
		case fresh && *held, !fresh && msg == nil:
			return false
		case fresh:
			*held = true
			hold.Reset(p.s.opt.ResyncPeriod)
			if p.snapshot() != nil {
				return true
			}
		default:
			if p.send(msg) != nil {
				return true
			}
		}
	}
}

// snapshot writes the state as it is now, part by part.
func (p *peer) snapshot() error {
	snap := p.s.hub.snapshot(p.box)
	for {
		msg, more, err := snap.next()
		if err != nil {
			p.box.end(CloseTooBig, "the state does not fit the protocol")
			return nil
		}
		p.box.begin(len(msg))
		if err := p.send(msg); err != nil {
			return err
		}
		if !more {
			p.s.stats.leftOut.Add(snap.leftOut)
			return nil
		}
	}
}

func (p *peer) send(msg []byte) error {
	_ = p.conn.SetWriteDeadline(time.Now().Add(p.s.opt.WriteTimeout))
	err := p.conn.WriteMessage(websocket.TextMessage, msg)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		p.s.stats.stalled.Add(1)
	}
	return err
}

// goodbye writes the close frame and leaves the client as long as for a message
// to answer with its own: a connection closed earlier would take with it what
// the client has not read yet. At shutdown end cuts this short.
func (p *peer) goodbye(end *closing) {
	p.ended.Store(true)
	bye := websocket.FormatCloseMessage(end.code, end.reason)
	_ = p.conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(p.s.opt.WriteTimeout))
	_ = p.conn.SetReadDeadline(time.Now().Add(p.s.opt.WriteTimeout))
	<-p.quit
}
