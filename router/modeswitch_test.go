package router

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"adpdeck/router/cluster"
	"adpdeck/router/model"
)

var switched = []model.RouterMode{
	model.ModeKV, model.ModeRoundRobin, model.ModeLockstep, model.ModeLeastLoaded, model.ModePowerOfTwo, model.ModeRandom,
}

// booked checks that book and cluster tier count the same open requests, rank
// by rank, and returns how many there are.
func booked(t *testing.T, b *bench, now time.Duration) int {
	t.Helper()
	open := 0
	for _, w := range b.workers {
		for k := range w.ranks {
			f, ok := b.steer.tier.Figures(w.ranks[k].load.Target, now)
			c := b.book.Rank(w.index, k)
			if !ok || f.Requests < c.InFlight {
				t.Fatalf("%s: %d placed, the cluster tier counts %d", w.ranks[k].load.Target, c.InFlight, f.Requests)
			}
			open += f.Requests
		}
		open += b.steer.tier.Load().Figures(cluster.NoRankSlot(w.index), now).Requests
	}
	if open != b.book.Len() {
		t.Fatalf("%d open, the cluster tier counts %d", b.book.Len(), open)
	}
	return open
}

// TestModesSwitchedUnderLoad: an operator goes through the modes, and back with
// undo, while requests are on their way. What is open stays counted once, what
// an operator moved stays where it was put, and the index goes on saying what
// the ranks hold.
func TestModesSwitchedUnderLoad(t *testing.T) {
	b := newBench(t, 2, 3, model.PolicyKVAware, withBlocks, inMode(model.ModeKV))
	e := newEngine(b, 60)
	rng := rand.New(rand.NewPCG(5, 6))
	convs := stories(rng, 16)
	b.turn(t, convs[0].conv, nil)
	b.turn(t, convs[1].conv, nil)
	moved, pinned := at("w1", 2), at("w0", 1)
	b.must(t, onConvs(model.VerbMigrate, &moved, convs[0].conv))
	b.must(t, onConvs(model.VerbPin, &pinned, convs[1].conv))
	type flight struct {
		id   int64
		s    *story
		at   model.Target
		text []uint32
	}
	var sent, placed []flight
	for i := range 3000 {
		switch k := rng.IntN(12); {
		case k == 0:
			b.must(t, set(model.FieldRouterMode, string(switched[rng.IntN(len(switched))])))
		case k == 1 && i%3 == 0:
			b.do(undo(b.version))
		case k < 5 && len(sent)+len(placed) < 20:
			s := convs[rng.IntN(len(convs))]
			text := s.grow(rng)
			id, to := b.submit(t, s.conv, of(text))
			sent = append(sent, flight{id, s, to, text})
		case k < 8 && len(sent) > 0:
			j := rng.IntN(len(sent))
			f := sent[j]
			f.at.Rank = int(b.step(t, f.at.Worker, nil, f.id)[0])
			sent = slices.Delete(sent, j, j+1)
			if want := map[string]model.Target{convs[0].conv: moved, convs[1].conv: pinned}[f.s.conv]; want.Worker != "" && f.at != want {
				t.Fatalf("step %d: %s went to %s, held at %s", i, f.s.conv, f.at, want)
			}
			placed = append(placed, f)
		case k < 11 && len(placed) > 0:
			j := rng.IntN(len(placed))
			f := placed[j]
			placed = slices.Delete(placed, j, j+1)
			if rng.IntN(5) > 0 {
				b.FirstToken(f.id, model.Usage{Ran: f.at, CachedTokens: e.serve(f.at, f.text), TTFTMs: 5})
			}
			b.Done(f.id, []model.Outcome{model.OutcomeOK, model.OutcomeError, model.OutcomeCancelled}[rng.IntN(3)])
		case k == 11 && len(sent) > 0:
			b.Done(sent[0].id, model.OutcomeCancelled)
			sent = sent[1:]
		}
		b.clock.advance(5 * time.Millisecond)
		booked(t, b, b.elapsed())
	}
	for _, f := range append(sent, placed...) {
		b.Done(f.id, model.OutcomeOK)
	}
	if n := booked(t, b, b.elapsed()); n != 0 {
		t.Fatalf("%d are open at the end", n)
	}
	for _, w := range b.workers {
		for k := range w.ranks {
			if f, _ := b.steer.tier.Figures(w.ranks[k].load.Target, b.elapsed()); f.ActiveTokens != 0 || f.PendingTokens != 0 || f.ActiveBlocks != 0 || f.HeldTokens != 0 {
				t.Errorf("%s: load is left: %+v", w.ranks[k].load.Target, f)
			}
		}
	}
	for _, c := range b.convs.byKey {
		if c.starting.Rank != model.NoRank {
			t.Errorf("%s: a first turn is said to be on its way to %s", c.data.Key.ID, c.starting)
		}
	}
	if s := b.Snapshot(); s.Totals.OperatorPins != 1 || b.Strays() != 0 {
		t.Errorf("%+v, %d strays", s.Totals, b.Strays())
	}
	for _, row := range b.Snapshot().Index {
		distinct := 0
		for _, held := range e.ranks[row.Target].holds {
			if held {
				distinct++
			}
		}
		if row.Device != distinct || row.Refused != 0 || row.Gaps != 0 {
			t.Errorf("the rank holds %d blocks, the index says %+v", distinct, row)
		}
	}
}

// TestModesSwitchedAmongCallers does the same from many goroutines at once.
func TestModesSwitchedAmongCallers(t *testing.T) {
	b := newBench(t, 2, 3, model.PolicyConversation, withBlocks, inMode(model.ModeKV, fieldValue("router_queue_threshold_tokens", "4000")))
	var callers, operator sync.WaitGroup
	stop := make(chan struct{})
	operator.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			cmd := set(model.FieldRouterMode, string(switched[i%len(switched)]))
			cmd.ID = time.Duration(i).String()
			b.Apply(cmd)
			b.Snapshot()
		}
	})
	for g := range 6 {
		callers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			convs := stories(rng, 4)
			for i := range 150 {
				s := convs[rng.IntN(len(convs))]
				q := model.Request{ID: int64(g*1000 + i + 1), Conv: conversation(s.conv)}
				of(s.grow(rng))(&q)
				d, err := b.RouteWait(t.Context(), &q, nil)
				if err != nil {
					continue // full, in a mode without a queue
				}
				b.FirstToken(q.ID, model.Usage{Ran: d.Target})
				b.Done(q.ID, model.OutcomeOK)
			}
		})
	}
	callers.Wait()
	close(stop)
	operator.Wait()
	if n := booked(t, b, b.elapsed()); n != 0 || b.steer.queue.Len() != 0 {
		t.Fatalf("%d open, %d in the queue", n, b.steer.queue.Len())
	}
}
