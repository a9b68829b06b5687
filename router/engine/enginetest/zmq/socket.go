package zmq

import (
	"net"
	"sync"
)

// socket is a listener, or what dials, with its connections.
type socket struct {
	listener net.Listener  // nil for one that connects
	ended    chan struct{} // closed by close

	mu     sync.Mutex // guards what follows
	closed bool
	conns  map[net.Conn]struct{}
	subs   map[*subscriber]struct{} // of a PUB socket
}

func newSocket(l net.Listener) *socket {
	return &socket{listener: l, ended: make(chan struct{}), conns: make(map[net.Conn]struct{}), subs: make(map[*subscriber]struct{})}
}

func (s *socket) add(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.conns[c] = struct{}{}
	}
	return !s.closed
}

func (s *socket) remove(c net.Conn) {
	c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// close closes the listener and every connection.
func (s *socket) close() {
	if s.listener != nil {
		s.listener.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	close(s.ended)
	for c := range s.conns {
		c.Close()
	}
}

func (s *socket) addSubscriber(sub *subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subs[sub] = struct{}{}
}

func (s *socket) removeSubscriber(sub *subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.subs, sub)
}

// offer queues a message for each subscriber to topic, and returns for how many
// there was no room.
func (s *socket) offer(topic, message []byte) (beyond uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub := range s.subs {
		if !sub.offer(topic, message) {
			beyond++
		}
	}
	return beyond
}

// subscribed counts the connections with a subscription.
func (s *socket) subscribed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for sub := range s.subs {
		if sub.subscribed() {
			n++
		}
	}
	return n
}
