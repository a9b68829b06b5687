package feed

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// ServerOptions tune a server; zero fields take the defaults named.
type ServerOptions struct {
	// Version is the server's version, told in hello.
	Version string
	// Role is what hello tells every client that it may do ("operator").
	Role string
	// Epoch names this run of the router; the default is 16 random hex digits.
	Epoch string
	// Token, when set, must come as a bearer token in the Authorization header.
	// A listener that is not on a loopback address needs one.
	Token string
	// ChangePeriod (250 ms, never less than 100 ms) is the least time between two
	// changes, as often as a screen is drawn; what a client's command did is told
	// after 100 ms. Heartbeat (1 s) is the most: an empty change is sent when
	// nothing happened.
	ChangePeriod, Heartbeat time.Duration
	// MaxClients (64) are served at once; more are refused with status 503.
	MaxClients int
	// QueueMessages (256) and QueueBytes (4 MiB) bound what waits for one client.
	QueueMessages, QueueBytes int
	// MaxDecisions (160) are sent with one change, the newest.
	MaxDecisions int
	// MaxOverflows (3) is how often in a row a client's queue may overflow before
	// it is closed with CloseSlow.
	MaxOverflows int
	// WriteTimeout (10 s) is how long one message may take to be written before
	// the client counts as stalled and is cut.
	WriteTimeout time.Duration
	// PingPeriod (5 s): a client that shows no life for two of them is cut.
	PingPeriod time.Duration
	// ResyncPeriod (1 s) is the least time between two snapshots to one client.
	ResyncPeriod time.Duration
	// CommandRate (20 a second) and CommandBurst (40) bound each client's commands.
	CommandRate  float64
	CommandBurst int
	// Recorder, when set, gets every frame, and is flushed before Serve returns.
	Recorder *Recorder
}

func (o *ServerOptions) defaults() {
	if o.Role == "" {
		o.Role = "operator"
	}
	if o.Epoch == "" {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		o.Epoch = hex.EncodeToString(b[:])
	}
	orDuration(&o.ChangePeriod, 250*time.Millisecond)
	o.ChangePeriod = max(o.ChangePeriod, leastPeriod)
	orDuration(&o.Heartbeat, time.Second)
	orDuration(&o.WriteTimeout, 10*time.Second)
	orDuration(&o.PingPeriod, 5*time.Second)
	orDuration(&o.ResyncPeriod, time.Second)
	orInt(&o.MaxClients, 64)
	orInt(&o.QueueMessages, 256)
	orInt(&o.QueueBytes, 4<<20)
	orInt(&o.MaxDecisions, 160)
	orInt(&o.MaxOverflows, 3)
	orInt(&o.CommandBurst, 40)
	if o.CommandRate <= 0 {
		o.CommandRate = 20
	}
}

func orInt(n *int, standard int) {
	if *n <= 0 {
		*n = standard
	}
}

// Close codes beside the standard ones.
const (
	CloseGoingAway = 1001 // the server is shutting down
	CloseBadFrame  = 1007 // a message was not JSON
	CloseTooBig    = 1009 // a message, or the state itself, exceeds the bounds
	CloseSlow      = 4008 // the client reads too slowly
)

// Errors of Serve.
var (
	// ErrToken is returned, wrapped with the address, when a listener that is not
	// on a loopback address has no token to guard it.
	ErrToken = errors.New("a token is needed on an address that is not loopback: set one, or listen on 127.0.0.1")
	// ErrServed is returned by the second call of Serve.
	ErrServed = errors.New("feed: Serve was called before")
)

// Server hands a router's state to its clients and their commands to the
// router. The router never waits for it, and it never waits for a client.
type Server struct {
	opt   ServerOptions
	src   Source
	hub   *hub
	token [sha256.Size]byte // of opt.Token
	stats counters
	addr  atomic.Pointer[net.Addr]

	served atomic.Bool
	peers  sync.WaitGroup
}

// NewServer makes a server of src. Nothing runs before Serve.
func NewServer(src Source, opt ServerOptions) *Server {
	opt.defaults()
	s := &Server{opt: opt, src: src, token: sha256.Sum256([]byte(opt.Token))}
	s.hub = newHub(&s.opt, &s.stats)
	return s
}

// Addr is the address served, nil before Serve.
func (s *Server) Addr() net.Addr {
	if a := s.addr.Load(); a != nil {
		return *a
	}
	return nil
}

// Serve answers on ln at Path until ctx ends, then closes every client with
// CloseGoingAway and returns nil when all goroutines have ended, within about a
// second. It closes ln. It returns ErrToken or ErrServed at once, or the
// listener's error.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	defer ln.Close()
	if s.opt.Token == "" && !local(ln.Addr()) {
		return fmt.Errorf("listen on %v: %w", ln.Addr(), ErrToken)
	}
	if s.served.Swap(true) {
		return ErrServed
	}
	addr := ln.Addr()
	s.addr.Store(&addr)

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sub := s.src.Subscribe()
	defer sub.Close()
	s.hub.reset(sub.Start())
	var loops sync.WaitGroup
	defer loops.Wait()
	defer stop()
	loops.Go(func() { s.hub.run(ctx, sub) })
	if rec := s.opt.Recorder; rec != nil {
		loops.Go(func() { rec.run(ctx, s.hub) })
	}

	mux := http.NewServeMux()
	mux.HandleFunc(Path, s.accept)
	web := &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 64 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // a console may own the terminal
	}
	failed := make(chan error, 1)
	loops.Go(func() { failed <- web.Serve(ln) })
	var err error
	select {
	case err = <-failed:
		err = fmt.Errorf("serve feed on %v: %w", addr, err)
	case <-ctx.Done():
	}
	_ = web.Close()
	s.hub.close()
	s.peers.Wait()
	return err
}

// local reports whether only this machine can reach addr.
func local(addr net.Addr) bool {
	switch a := addr.(type) {
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	case *net.UnixAddr:
		return true
	default:
		return false
	}
}

// counters are the server's figures, kept without a lock.
type counters struct {
	frames, bytes, coalesced, slow, stalled, silent, refused atomic.Uint64
	commands, busy, unknown, leftOut                         atomic.Uint64
}

// Stats are a server's figures since its start.
type Stats struct {
	Clients   int    // connected now
	Seq       uint64 // of the newest change
	Frames    uint64 // messages queued for clients
	Bytes     uint64 // of these messages
	Coalesced uint64 // queues that overflowed and were replaced by a snapshot
	Slow      uint64 // clients closed with CloseSlow
	Stalled   uint64 // clients cut because a write did not end in time
	Silent    uint64 // clients cut because they showed no life
	Refused   uint64 // requests refused before the upgrade
	Commands  uint64 // applied
	Busy      uint64 // commands refused by the rate limit
	Unknown   uint64 // messages of an unknown kind
	LeftOut   uint64 // values too big for any message
	// QueuedBytes and MaxQueuedBytes are what waits for all clients and for the
	// one that is furthest behind.
	QueuedBytes, MaxQueuedBytes int
}

// Stats returns the present figures.
func (s *Server) Stats() Stats {
	c := &s.stats
	st := Stats{
		Frames: c.frames.Load(), Bytes: c.bytes.Load(), Coalesced: c.coalesced.Load(),
		Slow: c.slow.Load(), Stalled: c.stalled.Load(), Silent: c.silent.Load(), Refused: c.refused.Load(),
		Commands: c.commands.Load(), Busy: c.busy.Load(), Unknown: c.unknown.Load(), LeftOut: c.leftOut.Load(),
	}
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	st.Seq = s.hub.seq
	for p := range s.hub.peers {
		_, n, _ := p.box.size()
		st.Clients++
		st.QueuedBytes += n
		st.MaxQueuedBytes = max(st.MaxQueuedBytes, n)
	}
	return st
}
