package feedtest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Step is one step of a script, played on the open connection. A step that
// returns false ends the connection; the next connection goes on with the step
// after it.
type Step func(*Peer) (goOn bool)

// Send sends text messages in turn.
func Send(msgs ...[]byte) Step {
	return func(p *Peer) bool {
		for _, m := range msgs {
			if p.conn.WriteMessage(websocket.TextMessage, m) != nil {
				return false
			}
		}
		return true
	}
}

// Raw writes bytes below the websocket protocol.
func Raw(b []byte) Step {
	return func(p *Peer) bool {
		_, err := p.conn.NetConn().Write(b)
		return err == nil
	}
}

// Await waits for a message of this kind from the client, skipping others.
func Await(kind string) Step {
	return func(p *Peer) bool {
		for m := range p.in {
			if m.Kind == kind {
				p.Last = m
				return true
			}
		}
		return false
	}
}

// Silence sends nothing for d, but answers pings; with Deaf it does not.
func Silence(d time.Duration) Step {
	return func(p *Peer) bool {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return true
		case <-p.gone:
			return false
		}
	}
}

// Deaf leaves pings unanswered from now on.
func Deaf() Step {
	return func(p *Peer) bool {
		p.mu.Lock()
		p.deaf = true
		p.mu.Unlock()
		return true
	}
}

// Close closes the connection with a code and a reason.
func Close(code int, reason string) Step {
	return func(p *Peer) bool {
		_ = p.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(time.Second))
		return false
	}
}

// Drop cuts the connection without a word.
func Drop() Step { return func(*Peer) bool { return false } }

// Call runs f, which may look at the peer's last awaited message.
func Call(f func(*Peer)) Step {
	return func(p *Peer) bool {
		f(p)
		return true
	}
}

// Message is what a client sent.
type Message struct {
	Kind    string          `json:"kind"`
	Command json.RawMessage `json:"command"`
}

// Peer is the client that a script talks to.
type Peer struct {
	Last Message // what Await waited for

	conn *websocket.Conn
	in   chan Message
	gone chan struct{} // closed when the client has gone

	mu   sync.Mutex // guards what follows
	deaf bool
}

// Server plays a script to whoever connects, one connection at a time.
type Server struct {
	web   http.Server
	steps chan Step
	turn  chan struct{}
	done  chan struct{}
	quit  chan struct{}
	peers sync.WaitGroup
}

// Serve starts a server on ln that plays steps. Done is closed when the last
// has been played; the connection then stays open until Close.
func Serve(ln net.Listener, steps ...Step) *Server {
	s := &Server{
		steps: make(chan Step, len(steps)), turn: make(chan struct{}, 1),
		done: make(chan struct{}), quit: make(chan struct{}),
	}
	for _, st := range steps {
		s.steps <- st
	}
	close(s.steps)
	s.web.Handler = http.HandlerFunc(s.accept)
	s.peers.Go(func() { _ = s.web.Serve(ln) })
	return s
}

// Done is closed when every step has been played.
func (s *Server) Done() <-chan struct{} { return s.done }

// Close ends all connections and goroutines.
func (s *Server) Close() {
	close(s.quit)
	s.web.Close()
	s.peers.Wait()
}

func (s *Server) accept(w http.ResponseWriter, r *http.Request) {
	s.peers.Add(1)
	defer s.peers.Done()
	up := websocket.Upgrader{Subprotocols: []string{"adpdeck.v1"}}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	p := &Peer{conn: conn, in: make(chan Message, 256), gone: make(chan struct{})}
	s.peers.Go(p.read)
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-s.quit:
		return
	}
	for st := range s.steps {
		if !st(p) {
			s.finish()
			return
		}
	}
	s.finish()
	select {
	case <-p.gone:
	case <-s.quit:
	}
}

// finish closes done once no step is left; the turn is held.
func (s *Server) finish() {
	if len(s.steps) == 0 && !closed(s.done) {
		close(s.done)
	}
}

// read collects messages and answers pings until the client is gone.
func (p *Peer) read() {
	defer close(p.gone)
	defer close(p.in)
	answer := p.conn.PingHandler()
	p.conn.SetPingHandler(func(text string) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.deaf {
			return nil
		}
		return answer(text)
	})
	for {
		_, text, err := p.conn.ReadMessage()
		if err != nil {
			return
		}
		var m Message
		if err := json.Unmarshal(text, &m); err != nil {
			m.Kind = fmt.Sprintf("not JSON: %.40q", text)
		}
		select {
		case p.in <- m:
		default: // a script that waits for nothing keeps the newest 256
			select {
			case <-p.in:
			default:
			}
			p.in <- m
		}
	}
}
