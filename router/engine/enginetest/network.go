package enginetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"adpdeck/router/engine/enginetest/zmq"
	"adpdeck/router/model"
)

// network is an engine's listeners.
type network struct {
	e        *Engine
	handlers sync.WaitGroup // requests under way; added to under the engine's lock
	serving  sync.WaitGroup

	mu      sync.Mutex // guards what follows
	unhook  func() bool
	addrs   []string
	servers []*http.Server
}

func (n *network) init(e *Engine) { n.e = e }

// ErrStarted is returned by a second Start.
var ErrStarted = errors.New("the engine is started already")

// Start listens on one address for all ranks, or on one for each rank (host:port;
// port 0 takes a free one), and publishes events where the configuration says so.
// The engine closes when ctx ends.
func (e *Engine) Start(ctx context.Context, addresses ...string) error {
	if len(addresses) != 1 && (len(addresses) != e.cfg.Ranks || e.cfg.Kind == model.EngineDynamo || e.cfg.Kind == model.EngineTRTLLM) {
		return fmt.Errorf("start %s engine of %d ranks on %d addresses: want one for all%s", e.cfg.Kind, e.cfg.Ranks, len(addresses),
			map[bool]string{true: ", or one for each rank"}[e.cfg.Kind == model.EngineVLLM || e.cfg.Kind == model.EngineSGLang])
	}
	e.life.Lock()
	defer e.life.Unlock()
	if e.net.started() {
		return ErrStarted
	}
	wires, err := e.listenEvents()
	if err != nil {
		return err
	}
	loads, err := e.listenLoads()
	if err == nil {
		err = e.net.start(ctx, addresses)
	}
	if err != nil {
		loads.close()
		if wires != nil {
			wires.close()
		}
		return err
	}
	e.sending.Lock()
	e.wires, e.speakers = wires, loads
	e.sending.Unlock()
	if e.speaks() {
		e.mu.Lock()
		e.beating = e.clock.AfterFunc(heartbeat, e.beat)
		e.mu.Unlock()
	}
	e.net.mu.Lock()
	e.net.unhook = context.AfterFunc(ctx, e.Close)
	e.net.mu.Unlock()
	return nil
}

func (n *network) started() bool { return n.addresses() != nil }

// addresses are those listened on, with the ports that they got, nil before Start.
func (n *network) addresses() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.addrs
}

// start listens on the addresses, and remembers the ports that it got.
func (n *network) start(ctx context.Context, addresses []string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var listeners []net.Listener
	var lc net.ListenConfig
	for _, a := range addresses {
		l, err := lc.Listen(ctx, "tcp", a)
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
			return fmt.Errorf("listen for requests: %w", err)
		}
		listeners = append(listeners, l)
	}
	n.addrs = nil
	for i, l := range listeners {
		rank := model.NoRank
		if len(listeners) > 1 {
			rank = i
		}
		s := &http.Server{Handler: n.e.Handler(rank), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
		n.addrs = append(n.addrs, l.Addr().String())
		n.servers = append(n.servers, s)
		n.serving.Go(func() { _ = s.Serve(l) })
	}
	return nil
}

// stop closes listeners and connections and waits for the handlers.
func (n *network) stop() {
	n.mu.Lock()
	servers := n.servers
	n.servers = nil
	n.mu.Unlock()
	for _, s := range servers {
		_ = s.Close()
	}
	n.serving.Wait()
	n.handlers.Wait()
}

// Addr is the address of the web server of a rank, or of all ranks with
// model.NoRank: host:port. Empty before Start, and for a rank without its own.
func (e *Engine) Addr(rank int) string {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	switch {
	case len(e.net.addrs) == 1 && rank == model.NoRank:
		return e.net.addrs[0]
	case len(e.net.addrs) > 1 && rank >= 0 && rank < len(e.net.addrs):
		return e.net.addrs[rank]
	}
	return ""
}

// URL is Addr with its scheme.
func (e *Engine) URL(rank int) string {
	if a := e.Addr(rank); a != "" {
		return "http://" + a
	}
	return ""
}

// EventEndpoint is where a rank (a worker behind a Dynamo frontend) publishes its
// events, ReplayEndpoint where it gives them again; empty: nowhere.
func (e *Engine) EventEndpoint(rank int) string {
	if p := e.publisher(rank); p != nil {
		return p.Endpoint()
	}
	return ""
}

// ReplayEndpoint is where lost batches of a rank are asked for.
func (e *Engine) ReplayEndpoint(rank int) string {
	if p := e.publisher(rank); p != nil {
		return p.ReplayEndpoint()
	}
	return ""
}

// Subscribers is how many connections subscribed to a rank's events.
func (e *Engine) Subscribers(rank int) int {
	if p := e.publisher(rank); p != nil {
		return p.Subscribers()
	}
	return 0
}

func (e *Engine) publisher(rank int) *zmq.Publisher {
	e.sending.Lock()
	defer e.sending.Unlock()
	if e.wires == nil || rank < 0 || rank >= len(e.wires.ports) {
		return nil
	}
	return e.wires.ports[rank].Publisher
}

// Close ends the engine: connections break, requests end, sockets close. It
// returns when all goroutines have ended, and may be called more than once.
func (e *Engine) Close() {
	e.net.mu.Lock()
	if e.net.unhook != nil {
		e.net.unhook()
	}
	e.net.mu.Unlock()
	e.Kill()
}
