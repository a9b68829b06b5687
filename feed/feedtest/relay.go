package feedtest

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// Relay is a bad way to an address: it listens on a loopback port of its own and
// carries what comes to it there and back. What the far end sends passes through
// the Bad network: it is late, slow, in slices or lost. A reset on one side is one
// on the other.
type Relay struct {
	*Bad
	ln   net.Listener
	to   string
	done sync.WaitGroup
	gone atomic.Bool
}

// NewRelay listens, and carries connections to HOST:PORT.
func NewRelay(to string) (*Relay, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Relay{Bad: NewBad(), ln: ln, to: to}
	r.done.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			r.done.Go(func() { r.carry(c) })
		}
	})
	return r, nil
}

// Addr is where it listens.
func (r *Relay) Addr() string { return r.ln.Addr().String() }

// Close breaks all connections and returns when everything has ended.
func (r *Relay) Close() error {
	err := r.ln.Close()
	r.gone.Store(true)
	r.Blackhole(false)
	r.Cut()
	r.done.Wait()
	return err
}

// carry carries one connection until either side has ended it. A dead or silent
// network carries no farewell either.
func (r *Relay) carry(near net.Conn) {
	defer near.Close()
	plain, err := net.Dial("tcp", r.to)
	if err != nil {
		return
	}
	far := r.Wrap(plain).(*badConn)
	if r.gone.Load() { // made while all were cut
		far.Close()
	}
	there := make(chan struct{})
	go func() {
		defer close(there)
		_, err := io.Copy(far, near)
		if far.carried(newDeadline()) == nil && errors.Is(err, syscall.ECONNRESET) {
			far.reset()
		}
		far.Close()
	}()
	_, err = io.Copy(near, far)
	if errors.Is(err, syscall.ECONNRESET) {
		if tcp, ok := near.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
	near.Close()
	<-there
}
