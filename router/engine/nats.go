package engine

import (
	"context"
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

// natsListener hears Dynamo's event plane over a NATS server.
type natsListener struct {
	w               *worker
	server, subject string
	conn            atomic.Pointer[nats.Conn]
	down            atomic.Pointer[time.Time] // since when it is not connected, nil: it is
}

// run follows the subject until ctx ends; the connection comes back by itself.
func (l *natsListener) run(ctx context.Context) {
	now := l.w.f.o.Clock.Now
	lost := func() {
		at := now()
		l.down.CompareAndSwap(nil, &at)
	}
	lost()
	up := func(*nats.Conn) { l.down.Store(nil) }
	conn, err := nats.Connect(l.server,
		nats.Name("adpdeck"), nats.Timeout(dialTimeout), nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1), nats.ReconnectWait(time.Second), nats.PingInterval(5*time.Second), nats.MaxPingsOutstanding(2),
		nats.ConnectHandler(up), nats.ReconnectHandler(up),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { lost() }),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // LastError tells it
	)
	if err != nil {
		return // an address that Check let pass and NATS does not: trouble says so
	}
	defer conn.Close()
	l.conn.Store(conn)
	sub, err := conn.Subscribe(l.subject, func(m *nats.Msg) {
		if e, err := plane.ParseNATS(m.Data); err == nil {
			l.w.planeEvents(&e)
		}
	})
	if err == nil {
		err = sub.SetPendingLimits(natsMessages, natsBytes)
	}
	if err == nil {
		<-ctx.Done()
	}
}

func (l *natsListener) trouble() string {
	since := l.down.Load()
	if since == nil || l.w.f.o.Clock.Now().Sub(*since) < unheard {
		return ""
	}
	if c := l.conn.Load(); c != nil && c.LastError() != nil {
		return c.LastError().Error()
	}
	return "no connection to the nats server"
}
