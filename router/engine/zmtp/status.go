package zmtp

import "time"

// Status is what a [Subscriber] knows of its connection. A zero time means that
// the thing has not happened.
type Status struct {
	Connected bool
	Since     time.Time // connected, or not connected, since
	Conn      uint64    // number of the newest connection; 0: there was none yet
	PeerType  SocketType
	PeerMinor int // of ZMTP 3, of the newest connection

	LastMessage time.Time // of any connection
	NextDial    time.Time // zero while connected or dialling

	Dials         uint64 // tries
	Messages      uint64 // that came, in whole
	Bytes         uint64 // of their frames
	Dropped       uint64 // of them, because the handler was behind
	Malformed     uint64 // of them, no batch of events
	Foreign       uint64 // of them, of a topic that was not asked for
	Waiting       int    // for the handler
	LastMalformed error  // what was wrong with the last malformed one

	// LastError says why the last connection or try ended; it stays when the next
	// succeeds. LastErrorAt is when.
	LastError   error
	LastErrorAt time.Time
}

// Status returns what is known now. It may be called from any goroutine.
func (s *Subscriber) Status() Status {
	s.mu.Lock()
	st := s.status
	s.mu.Unlock()
	st.Waiting, st.Dropped = s.queue.depth()
	return st
}

func (s *Subscriber) change(f func(*Status)) {
	s.mu.Lock()
	f(&s.status)
	s.mu.Unlock()
}

// connected notes a new connection and returns its number.
func (s *Subscriber) connected(now time.Time, c *Conn) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &s.status
	st.Connected, st.Since = true, now
	st.Conn++
	st.PeerType, st.PeerMinor = c.Peer()
	return st.Conn
}

// lost notes that there is no connection, why (nil: the context ended), and
// when the next try comes.
func (s *Subscriber) lost(now time.Time, wait time.Duration, why error) {
	s.change(func(st *Status) {
		if st.Connected {
			st.Connected, st.Since = false, now
		}
		st.NextDial = time.Time{}
		if why != nil {
			st.NextDial = now.Add(wait)
			st.LastError, st.LastErrorAt = why, now
		}
	})
}
