package engine

import (
	"context"
	"errors"
	"fmt"

	"adpdeck/router/engine/zmtp"
	"adpdeck/router/model"
)

// ErrNoReplay is given to Sink.ReplayDone where lost batches cannot be asked for.
var ErrNoReplay = errors.New("its kv events have no replay endpoint")

// replay is what is asked for and what goes on for one rank.
type replay struct {
	from    uint64
	wanted  bool
	running bool
}

// replay has the batches that a rank has missed fetched from its publisher. A
// rank has one replay at a time; of several that are asked for meanwhile the last
// counts. Every gap ends in ReplayDone.
func (f *Fleet) replay(g model.Gap) {
	t := g.Target
	w, err := f.worker(t.Worker)
	if err != nil {
		f.sink.ReplayDone(t.Worker, t.Rank, err)
		return
	}
	w.mu.Lock()
	known := t.Rank >= 0 && t.Rank < w.learnt.ranks
	if known {
		r := w.replays[t.Rank]
		r.from, r.wanted = g.From, true
		w.replays[t.Rank] = r
	}
	w.mu.Unlock()
	if !known {
		f.sink.ReplayDone(t.Worker, t.Rank, ErrNoReplay)
		return
	}
	nudge(w.poke)
}

// wanted takes the replays that can begin now. It belongs to run.
func (w *worker) wanted() map[int]uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	begin := map[int]uint64{}
	for rank, r := range w.replays {
		if r.wanted && !r.running {
			begin[rank] = r.from
			w.replays[rank] = replay{running: true}
		}
	}
	return begin
}

// refill asks one publisher for what it still holds.
func (w *worker) refill(ctx context.Context, rank int, from uint64) {
	w.mu.Lock()
	_, all := w.endpoints()
	w.mu.Unlock()
	err := ErrNoReplay
	if rank < len(all) {
		d := zmtp.Dealer{Dial: w.f.o.Dial}
		_, err = d.Replay(ctx, all[rank], from, func(seq uint64, payload []byte) error {
			w.f.sink.Replayed(w.spec.ID, rank, seq, payload)
			return nil
		})
		if err != nil {
			err = fmt.Errorf("replay of %s/%d from %d: %w", w.spec.ID, rank, from, err)
		}
	}
	w.mu.Lock()
	r := w.replays[rank]
	r.running = false
	if w.replays[rank] = r; !r.wanted {
		delete(w.replays, rank)
	}
	w.mu.Unlock()
	w.f.sink.ReplayDone(w.spec.ID, rank, err)
	if r.wanted {
		nudge(w.poke)
	}
}
