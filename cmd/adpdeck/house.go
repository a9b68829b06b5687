package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"adpdeck/feed"
	"adpdeck/router"
	"adpdeck/router/engine"
	"adpdeck/router/gateway"
	"adpdeck/router/model"
)

// house is a whole adpdeck before real engines: router, engines, gateway, feed.
type house struct {
	log    *slog.Logger
	read   func() (plan, error) // the settings file again; nil: there is none
	live   *router.Router
	fleet  *engine.Fleet
	front  *gateway.Gateway
	http   *http.Server
	feed   *feed.Server
	httpLn net.Listener
	feedLn net.Listener

	mu  sync.Mutex // held by a reload; guards now
	now plan       // as last read
}

// newHouse builds it all and opens both ports, so that what is wrong with the
// configuration is told before anything runs.
func newHouse(p plan, read func() (plan, error), log *slog.Logger) (*house, error) {
	h := &house{log: log, read: read, now: p}
	if err := engine.Check(p.serve.Workers); err != nil {
		return nil, err
	}
	var err error
	h.live, err = router.New(router.Config{Clock: clock{}, Settings: p.settings, Record: true, Wall: time.Now, Seed: uint64(time.Now().UnixNano()), MaxRanks: maxRanks})
	if err != nil {
		return nil, err
	}
	h.live.SetSource(model.Source{Kind: "live", Name: p.name, Speed: 1})
	if h.fleet, err = engine.New(p.serve.Workers, h.live, engine.Options{}); err != nil {
		return nil, err
	}
	h.front, err = gateway.New(gateway.Options{Router: h.live, Engines: h.fleet, Spec: p.serve.Gateway, Clock: clock{}, Log: log})
	if err != nil {
		return nil, err
	}
	h.feed = feed.NewServer(feed.From(h), feed.ServerOptions{Version: version(), Role: "operator", Token: os.Getenv(tokenEnv)})
	if h.httpLn, err = net.Listen("tcp", p.serve.Gateway.Listen); err != nil {
		return nil, fmt.Errorf("gateway: %w; choose another address with --listen or gateway.listen", err)
	}
	if h.feedLn, err = net.Listen("tcp", p.serve.FeedListen); err != nil {
		return nil, errors.Join(fmt.Errorf("feed: %w; choose another address with --feed or feed.listen", err), h.httpLn.Close())
	}
	h.http = h.front.Server(p.serve.Gateway.Listen)
	return h, nil
}

// maxRanks bounds the ranks of all workers together.
const maxRanks = 4096

// clock is the machine's own.
type clock struct{}

func (clock) Now() time.Time { return time.Now() }

// run serves until ctx ends, then drains; what a part fails with ends it too.
// With a settings file a hang-up reads it again; without one it ends the program,
// like any other ending.
func (h *house) run(ctx context.Context) error {
	all, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	was := h.plan()
	h.log.Info("serving", "gateway", h.httpLn.Addr().String(), "feed", h.feedLn.Addr().String(), "workers", len(was.serve.Workers), "router_mode", was.settings.RouterMode)
	failed := make(chan error, 3)
	var wg sync.WaitGroup
	job := func(name string, run func() error) {
		wg.Go(func() {
			if err := run(); err != nil && all.Err() == nil {
				failed <- fmt.Errorf("%s: %w", name, err)
			}
		})
	}
	job("engines", func() error { return h.fleet.Run(all) })
	job("feed", func() error { return serve(all, h.feed, h.feedLn) })
	job("gateway", func() error {
		if err := h.http.Serve(h.httpLn); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	wg.Go(func() { h.tick(all) })

	var hup chan os.Signal
	if h.read != nil {
		var unhook func()
		hup, unhook = hangups()
		defer unhook()
	}
	var err error
	for running := true; running; {
		select {
		case <-ctx.Done():
			running = false
			h.drain()
		case <-hup:
			h.hangUp()
		case err = <-failed:
			running = false
			_ = h.http.Close()
		}
	}
	stop()
	wg.Wait()
	return err
}

// plan is what was read last.
func (h *house) plan() plan {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// tick lets the gateway free what was handed out and never came back.
func (h *house) tick(ctx context.Context) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			h.front.Tick()
		case <-ctx.Done():
			return
		}
	}
}

// hangups brings SIGHUP here, and away from what ends the program.
func hangups() (hup chan os.Signal, unhook func()) {
	signal.Reset(syscall.SIGHUP)
	hup = make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	return hup, func() { signal.Stop(hup) }
}

// hangUp reloads because of a SIGHUP, whose sender reads the log.
func (h *house) hangUp() {
	r := h.reload(model.Command{ID: "hup-" + time.Now().Format(time.RFC3339Nano), Verb: model.VerbReload, Actor: "SIGHUP"})
	if !r.Accepted {
		h.log.Warn("reload refused", "why", r.Refusal.Error())
		return
	}
	h.log.Info("reloaded", "version", r.Version, "what", r.What)
}

// flushTime is how long answers that are complete may take to leave.
const flushTime = 500 * time.Millisecond

// drain refuses new requests and lets streams finish; a second signal breaks them
// off. The port stays open till then, so that probes and clients are told why.
func (h *house) drain() {
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	open, _ := h.front.Open()
	h.log.Info("draining", "open", open, "drain_secs", h.plan().serve.Gateway.DrainSecs)
	h.http.SetKeepAlivesEnabled(false)
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.front.Drain(context.Background())
	}()
	select {
	case <-done:
	case <-again:
		h.log.Warn("ending at once")
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		h.front.Drain(ended)
		<-done
	}
	flush, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	_ = h.http.Shutdown(flush)
	_ = h.http.Close()
}

// The methods below make a house the source of its feed.

// Subscribe follows the router.
func (h *house) Subscribe() *router.Subscription { return h.live.Subscribe() }

// Apply hands a command to the router; a reload concerns the whole house.
func (h *house) Apply(cmd model.Command) model.Reply {
	if cmd.Verb == model.VerbReload {
		return h.reload(cmd)
	}
	return h.live.Apply(cmd)
}
