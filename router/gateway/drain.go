package gateway

import (
	"context"
	"time"
)

// enter counts a request in; it reports false while draining.
func (g *Gateway) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.draining {
		return false
	}
	g.open++
	return true
}

func (g *Gateway) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	if g.draining && g.open == 0 {
		close(g.idle)
	}
}

// Open returns how many requests are being carried, and whether new ones are
// refused.
func (g *Gateway) Open() (open int, draining bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open, g.draining
}

// Drain refuses new requests and lets the open ones finish until ctx ends or
// GatewaySpec.DrainSecs are over; what is open then is broken off. A second call
// breaks off at once. It returns when no request is open any more.
func (g *Gateway) Drain(ctx context.Context) {
	g.mu.Lock()
	again := g.draining
	g.draining = true
	if !again && g.open == 0 {
		close(g.idle)
	}
	g.mu.Unlock()
	if again {
		g.stop()
	}
	var limit <-chan time.Time
	if s := g.spec.DrainSecs; s > 0 {
		t := time.NewTimer(seconds(s))
		defer t.Stop()
		limit = t.C
	}
	select {
	case <-g.idle:
	case <-ctx.Done():
	case <-limit:
	}
	g.stop()
	<-g.idle
	g.prompts.Close()
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
