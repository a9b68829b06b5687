package enginetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"adpdeck/router/model"
)

// Restart makes a rank another process (NoRank: all of them): its requests break
// off, its cache is empty, its batches count from 0 and its sockets were gone for
// a moment. Its web server stays, as a front process does. A rank of
// TensorRT-LLM or behind Dynamo restarts with all of its worker.
func (e *Engine) Restart(rank int) error {
	e.sending.Lock()
	defer e.sending.Unlock()
	e.mu.Lock()
	if e.down {
		e.mu.Unlock()
		return errors.New("restart: the engine is not running")
	}
	if rank != model.NoRank && (rank < 0 || rank >= len(e.ranks)) {
		e.mu.Unlock()
		return fmt.Errorf("restart rank %d: want 0 to %d, or %d for all", rank, len(e.ranks)-1, model.NoRank)
	}
	publishers := e.wipe(rank)
	e.mu.Unlock()
	if e.wires == nil {
		return nil
	}
	for _, at := range publishers {
		if err := e.wires.restart(at); err != nil {
			return fmt.Errorf("restart rank %d: %w", at, err)
		}
	}
	return nil
}

// wipe restarts ranks and returns which publishers that concerns. Both locks are
// held.
func (e *Engine) wipe(rank int) []int {
	hit := map[int]bool{}
	for _, k := range e.ranks {
		whole := e.adp != nil || e.dyn != nil && rank >= 0 && k.worker == e.ranks[rank].worker
		if rank != model.NoRank && k.at != rank && !whole {
			continue
		}
		k.wipe(errCrashed)
		k.passes, k.toldUsed = 0, false
		k.group.reset()
		k.pub.restart()
		hit[k.pub.at] = true
		delete(e.late, k.pub.at)
	}
	e.outbox = slices.DeleteFunc(e.outbox, func(b parcel) bool { return hit[b.Publisher] })
	if e.adp != nil {
		for _, w := range e.adp.queue {
			w.ended, w.err = true, errCrashed
			w.ring()
		}
		e.adp, e.trt = newADP(&e.cfg), newIterations(e)
	}
	for _, k := range e.ranks {
		if rank == model.NoRank || hit[k.pub.at] {
			k.start()
		}
	}
	for _, g := range e.groups {
		if !g.stepping {
			g.kick()
		}
	}
	return slices.Sorted(maps.Keys(hit))
}

// Kill takes the engine off the network as a dead process: connections break and
// ports refuse until Revive, which starts it anew with empty caches.
func (e *Engine) Kill() {
	e.life.Lock()
	defer e.life.Unlock()
	e.sending.Lock()
	e.mu.Lock()
	e.wipe(model.NoRank)
	e.down = true
	if e.beating != nil {
		e.beating.Stop()
	}
	e.mu.Unlock()
	e.sending.Unlock()
	e.end()
	e.net.stop()
	e.sending.Lock()
	defer e.sending.Unlock()
	if e.wires != nil {
		e.wires.close()
	}
	if e.speakers != nil {
		for _, p := range e.speakers.ports {
			p.Stop()
		}
	}
}

// Revive starts a killed engine again at its addresses.
func (e *Engine) Revive(ctx context.Context) error {
	e.life.Lock()
	defer e.life.Unlock()
	e.sending.Lock()
	defer e.sending.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.down {
		return nil
	}
	if e.wires != nil {
		for at := range e.wires.ports {
			if err := e.wires.restart(at); err != nil {
				return fmt.Errorf("revive: %w", err)
			}
		}
	}
	e.alive, e.end = context.WithCancel(context.Background())
	if addrs := e.net.addresses(); addrs != nil {
		if err := e.net.start(ctx, addrs); err != nil {
			return fmt.Errorf("revive: %w", err)
		}
	}
	if e.speakers != nil {
		for _, p := range e.speakers.ports {
			if err := p.Start(); err != nil {
				return fmt.Errorf("revive: %w", err)
			}
		}
	}
	e.down = false
	if e.speaks() {
		e.beating = e.clock.AfterFunc(heartbeat, e.beat)
	}
	return nil
}
