package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"adpdeck/router/engine/plane"
)

// Bounds of what waits for the router of one NATS subscription; what comes on
// top is dropped, and the events' numbers show the gap.
const (
	natsMessages = 10_000
	natsBytes    = 64 << 20
)

// recent is how long what went wrong once stays a finding.
const recent = 2*hearPeriod + time.Second

// natsListener hears one subject of Dynamo's event plane over a NATS server. The
// plane is core NATS, at most once and without a past: Dynamo's JetStream events
// are published on the same subjects and are heard as they pass.
type natsListener struct {
	w               *worker
	server, subject string
	take            func(*plane.Envelope)
	conn            atomic.Pointer[nats.Conn]
	down            atomic.Pointer[time.Time] // since when it is not connected, nil: it is
	strange         strangers

	mu   sync.Mutex // guards what follows
	lost error      // the server's or the client's last complaint
	at   time.Time
}

// run follows the subject until ctx ends; the connection comes back by itself.
func (l *natsListener) run(ctx context.Context) {
	now := l.w.f.o.Clock.Now
	l.strange.now = now
	lost := func() {
		at := now()
		l.down.CompareAndSwap(nil, &at)
	}
	lost()
	up := func(*nats.Conn) {
		l.down.Store(nil)
		l.complained(nil) // a server that refuses says so again
	}
	conn, err := nats.Connect(l.server,
		nats.Name("adpdeck"), nats.Timeout(dialTimeout), nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1), nats.ReconnectWait(time.Second), nats.PingInterval(5*time.Second), nats.MaxPingsOutstanding(2),
		// Else two refusals of a password end the connection for good: keys change.
		nats.IgnoreAuthErrorAbort(),
		nats.ConnectHandler(up), nats.ReconnectHandler(up),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { lost() }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { l.complained(err) }),
	)
	if err != nil {
		l.complained(err) // an address that Check let pass and NATS does not
		return
	}
	defer conn.Close()
	l.conn.Store(conn)
	sub, err := conn.Subscribe(l.subject, func(m *nats.Msg) {
		e, err := plane.ParseNATS(m.Data)
		if l.strange.note(err) {
			l.take(&e)
		}
	})
	if err == nil {
		err = sub.SetPendingLimits(natsMessages, natsBytes)
	}
	if err != nil {
		l.complained(err)
	}
	<-ctx.Done()
}

// complained notes what the server or the client says is wrong. It must not wait.
func (l *natsListener) complained(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost, l.at = err, l.w.f.o.Clock.Now()
}

func (l *natsListener) trouble() string {
	now := l.w.f.o.Clock.Now()
	l.mu.Lock()
	lost, at := l.lost, l.at
	l.mu.Unlock()
	c := l.conn.Load()
	if since := l.down.Load(); since != nil {
		if c != nil && c.LastError() != nil {
			lost = c.LastError()
		}
		switch {
		case now.Sub(*since) < unheard:
			return ""
		case errors.Is(lost, nats.ErrAuthorization), errors.Is(lost, nats.ErrAuthExpired), errors.Is(lost, nats.ErrAuthRevoked):
			return fmt.Sprintf("the nats server refuses the name and password: %v", lost)
		case lost != nil:
			return lost.Error()
		}
		return "no connection to the nats server"
	}
	switch {
	case lost == nil:
	case errors.Is(lost, nats.ErrPermissionViolation):
		// Said once, and true until the connection is made anew.
		return fmt.Sprintf("the nats server does not let this user hear the subject: %v", lost)
	case now.Sub(at) > recent:
	case errors.Is(lost, nats.ErrSlowConsumer):
		return "messages come faster than they are taken, and some are lost"
	default:
		return lost.Error()
	}
	return l.strange.trouble()
}

// strangers counts messages that are none of the event plane's: a wrong subject or
// port is full of them.
type strangers struct {
	now func() time.Time

	mu  sync.Mutex // guards what follows
	err error
	at  time.Time
}

// note takes the result of a reading, and reports whether there was a message.
func (s *strangers) note(err error) bool {
	if err == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.at = err, s.now()
	return false
}

func (s *strangers) trouble() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil || s.now().Sub(s.at) > recent {
		return ""
	}
	return "what comes there is not the event plane's: " + s.err.Error()
}
