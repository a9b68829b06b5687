package zmtp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// BoundOptions say where a [Bound] listens and what it takes; zero fields take
// the defaults named.
type BoundOptions struct {
	// Endpoint is tcp://HOST:PORT, the host an address of this machine or * for
	// all of them, or ipc://PATH.
	Endpoint string
	// Topics (one, the empty one: everything) are the beginnings of first frames
	// that are wanted, of each publisher.
	Topics []string
	// Handle takes each message, or HandleBatch each message that is a batch of
	// KV events; exactly one of the two is set. Calls are made one at a time, for
	// one publisher in the order of arrival. [Message.Conn] tells the publishers
	// apart: each connection has a number of its own, later ones higher ones.
	Handle      func(Message)
	HandleBatch func(Batch)
	// MaxPeers (64) is how many publishers may be connected, and MaxHostPeers
	// (half of that and one more) how many of them from one address: who comes on
	// top is turned away, and counted.
	MaxPeers, MaxHostPeers int
	// QueueMessages (4096) and QueueBytes (8 MiB) bound what waits for the handler
	// of each publisher; as much again may be on its way through it. What comes on
	// top is dropped, newest first, and counted.
	QueueMessages, QueueBytes int
	// Heartbeat, Silence and Handshake as in [SubscriberOptions].
	Heartbeat, Silence time.Duration
	Handshake          time.Duration
	// MinRetry (100 ms) and MaxRetry (1.5 s) bound the wait before a new try to
	// listen.
	MinRetry, MaxRetry time.Duration
	// Limits bound each message; a frame may have 8 MiB unless they say otherwise.
	Limits Limits
	// Listen replaces net.Listen, Now (time.Now) is the clock.
	Listen func(network, address string) (net.Listener, error)
	Now    func() time.Time
}

// BoundStatus is what a [Bound] knows of itself. A zero time means that the
// thing has not happened.
type BoundStatus struct {
	Listening bool
	Since     time.Time // listening, or not listening, since
	Address   string    // where it listens, or did last: HOST:PORT or the path
	Peers     int       // publishers that are connected and have shaken hands
	Alone     time.Time // there are no peers since; zero while there are
	Accepted  uint64    // connections that shook hands
	// TurnedAway counts connections beyond MaxPeers or MaxHostPeers, Failed those
	// that did not shake hands as a publisher does.
	TurnedAway, Failed uint64

	LastMessage time.Time
	Messages    uint64 // that came, in whole
	Bytes       uint64 // of their frames
	Dropped     uint64 // of them, because the handler was behind
	Malformed   uint64 // of them, no batch of events
	Foreign     uint64 // of them, of a topic that was not asked for

	LastMalformed error
	// LastError says what ended, turned away or kept from listening last;
	// LastErrorAt is when.
	LastError   error
	LastErrorAt time.Time
}

// Bound is a SUB socket that binds: publishers connect to it, as engines do whose
// endpoint names a host to send to. One publisher is nothing to another: each has
// a connection, a queue and bounds of its own, and what it does wrong ends its own
// connection.
type Bound struct {
	opt BoundOptions
	end Endpoint
	sub subscription

	handling sync.Mutex // held over a call of the handler

	mu     sync.Mutex // guards what follows
	status BoundStatus
	hosts  map[string]int // connections by host
	total  int            // connections, those that shake hands still included
	conn   uint64         // number of the newest
	live   map[*queue]struct{}
}

// NewBound returns a socket that does nothing yet; Run sets it going. The error
// names the option that cannot be.
func NewBound(opt BoundOptions) (*Bound, error) {
	end, err := ParseBind(opt.Endpoint)
	if err != nil {
		return nil, err
	}
	if (opt.Handle == nil) == (opt.HandleBatch == nil) {
		return nil, errors.New("bound subscriber: want exactly one of Handle and HandleBatch")
	}
	opt.defaults()
	if err := checkTopics(opt.Topics); err != nil {
		return nil, err
	}
	if opt.MaxRetry < opt.MinRetry {
		return nil, fmt.Errorf("bound subscriber: MaxRetry %v is below MinRetry %v", opt.MaxRetry, opt.MinRetry)
	}
	b := &Bound{opt: opt, end: end, sub: subscription{opt.Topics}, hosts: map[string]int{}, live: map[*queue]struct{}{}}
	b.status.Since = opt.Now()
	b.status.Alone = b.status.Since
	return b, nil
}

func (o *BoundOptions) defaults() {
	if len(o.Topics) == 0 {
		o.Topics = []string{""}
	}
	orCount(&o.MaxPeers, 64)
	orCount(&o.MaxHostPeers, o.MaxPeers/2+1)
	orCount(&o.QueueMessages, 4096)
	orCount(&o.QueueBytes, 8<<20)
	orCount(&o.Limits.FrameBytes, 8<<20)
	heartbeat(&o.Heartbeat, &o.Silence)
	orDuration(&o.MinRetry, 100*time.Millisecond)
	orDuration(&o.MaxRetry, 1500*time.Millisecond)
	if o.Listen == nil {
		o.Listen = func(network, address string) (net.Listener, error) {
			l := net.ListenConfig{KeepAliveConfig: keepAlive()}
			return l.Listen(context.Background(), network, address)
		}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

func orCount(n *int, standard int) {
	if *n <= 0 {
		*n = standard
	}
}

// Run listens until ctx ends, and returns when its goroutines have. It is called
// once. While the address cannot be had it tries again and again.
func (b *Bound) Run(ctx context.Context) {
	var serving sync.WaitGroup
	defer serving.Wait()
	for try := 0; ctx.Err() == nil; try++ {
		l, err := b.opt.Listen(b.end.Network, b.end.Address)
		if err != nil {
			b.failed(fmt.Errorf("listen at %s: %w", b.opt.Endpoint, err))
		} else {
			b.turn(true, l.Addr().String())
			try = 0
			if err := b.accept(ctx, l, &serving); ctx.Err() == nil {
				b.failed(fmt.Errorf("accept at %s: %w", b.opt.Endpoint, err))
			}
			b.turn(false, "")
		}
		if !sleep(ctx, backoff(try, b.opt.MinRetry, b.opt.MaxRetry, 1)) {
			return
		}
	}
}

func (b *Bound) turn(listening bool, address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if address != "" {
		b.status.Address = address
	}
	b.status.Listening, b.status.Since = listening, b.opt.Now()
}

// failed notes an error that concerns one connection, or the listener.
func (b *Bound) failed(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status.LastError, b.status.LastErrorAt = err, b.opt.Now()
}

// accept takes connections until ctx ends or the listener fails.
func (b *Bound) accept(ctx context.Context, l net.Listener, serving *sync.WaitGroup) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer func() { stop(); l.Close() }()
	for {
		nc, err := l.Accept()
		if err != nil {
			return err
		}
		host := hostOf(nc)
		if err := b.enter(host); err != nil {
			nc.Close()
			b.failed(err)
			continue
		}
		serving.Go(func() {
			defer b.leave(host)
			if err := b.serve(ctx, nc); ctx.Err() == nil {
				b.ended(host, err)
			}
		})
	}
}

// hostOf is the peer's address without its port; all of a path are one host.
func hostOf(nc net.Conn) string {
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		return a.IP.String()
	}
	return "local"
}

// enter counts a connection, or says why there is no room for it.
func (b *Bound) enter(host string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var err error
	switch {
	case b.total >= b.opt.MaxPeers:
		err = fmt.Errorf("%s is turned away: %d connections are open, the limit of this socket: %w", host, b.total, ErrTooMany)
	case b.hosts[host] >= b.opt.MaxHostPeers:
		err = fmt.Errorf("%s is turned away: %d connections from it are open, the limit for one host: %w", host, b.hosts[host], ErrTooMany)
	default:
		b.total++
		b.hosts[host]++
		return nil
	}
	b.status.TurnedAway++
	return err
}

func (b *Bound) leave(host string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total--
	if b.hosts[host]--; b.hosts[host] == 0 {
		delete(b.hosts, host)
	}
}

// serve speaks to one publisher until its connection ends.
func (b *Bound) serve(ctx context.Context, nc net.Conn) error {
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer func() { stop(); nc.Close() }()
	c, err := Handshake(nc, Config{
		Type: SUB, Limits: b.opt.Limits, Handshake: b.opt.Handshake,
		Heartbeat: b.opt.Heartbeat, Silence: b.opt.Silence, Now: b.opt.Now,
	})
	if err == nil {
		err = c.Subscribe(b.opt.Topics...)
	}
	if err != nil {
		b.mu.Lock()
		b.status.Failed++
		b.mu.Unlock()
		return fmt.Errorf("handshake: %w", err)
	}
	q := newQueue(b.opt.QueueMessages, b.opt.QueueBytes)
	b.mu.Lock()
	b.conn++
	conn := b.conn
	b.live[q] = struct{}{}
	b.status.Accepted++
	b.status.Peers++
	b.status.Alone = time.Time{}
	b.mu.Unlock()
	// What came before the end is handed on: a publisher that goes down has said
	// it, and its successor begins anew.
	var delivering sync.WaitGroup
	ended := make(chan struct{})
	delivering.Go(func() { q.deliver(ctx.Done(), ended, b.hand) })
	defer func() {
		close(ended)
		delivering.Wait()
		b.gone(q)
	}()
	for {
		frames, err := c.Read()
		if err != nil {
			return err
		}
		b.take(q, conn, c.Heard(), frames)
	}
}

// gone takes a publisher's queue out, keeping what was dropped there.
func (b *Bound) gone(q *queue) {
	_, dropped := q.depth()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.live, q)
	if b.status.Peers--; b.status.Peers == 0 {
		b.status.Alone = b.opt.Now()
	}
	b.status.Dropped += dropped
}

// ended notes how a publisher's connection ended.
func (b *Bound) ended(host string, err error) {
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("the publisher closed the connection: %w", err)
	}
	b.failed(fmt.Errorf("publisher at %s: %w", host, err))
}

// take counts one message and queues it.
func (b *Bound) take(q *queue, conn uint64, at time.Time, frames [][]byte) {
	wanted := b.sub.wants(frames[0])
	b.mu.Lock()
	st := &b.status
	st.Messages++
	for _, f := range frames {
		st.Bytes += uint64(len(f))
	}
	st.LastMessage = at
	if !wanted {
		st.Foreign++
	}
	b.mu.Unlock()
	if wanted {
		q.push(conn, frames)
	}
}

func (b *Bound) hand(m Message) {
	b.handling.Lock()
	defer b.handling.Unlock()
	if b.opt.Handle != nil {
		b.opt.Handle(m)
		return
	}
	batch, err := m.Batch()
	if err != nil {
		b.mu.Lock()
		b.status.Malformed++
		b.status.LastMalformed = err
		b.mu.Unlock()
		return
	}
	b.opt.HandleBatch(batch)
}

// Status returns what is known now. It may be called from any goroutine.
func (b *Bound) Status() BoundStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	st := b.status
	for q := range b.live {
		_, dropped := q.depth()
		st.Dropped += dropped
	}
	return st
}
