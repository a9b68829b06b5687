package router

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"adpdeck/router/model"

	"pgregory.net/rapid"
)

func capped(most int) func(*Config) {
	return func(c *Config) {
		for i := range c.Workers {
			c.Workers[i].MaxNumActiveRequests = most
		}
	}
}

// TestCapsHoldInBursts: in every mode and under every policy a burst never puts
// more on a rank than its hard cap; the rest waits, goes in its order, and none
// is lost.
func TestCapsHoldInBursts(t *testing.T) {
	for _, mode := range allModes()[:6] {
		for _, policy := range []model.Policy{model.PolicyDefault, model.PolicyKVAware, model.PolicyConversation} {
			t.Run(fmt.Sprint(mode, "/", policy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { burst(t, mode, policy) })
			})
		}
	}
}

func burst(t *testing.T, mode model.RouterMode, policy model.Policy) {
	const most, ranks, n = 2, 6, 60
	b := newBench(t, 2, 3, policy, withBlocks, inMode(mode), capped(most))
	answers := map[int64]chan routed{}
	for i := range int64(n) {
		answers[i+1] = b.waiting(t.Context(), i+1, func(q *model.Request) { q.PromptTokens = 16 })
		synctest.Wait()
		b.clock.advance(time.Millisecond)
	}
	var open []int64
	next := int64(1)
	for len(answers) > 0 || len(open) > 0 {
		for id, c := range answers {
			if !answered(c) {
				continue
			}
			a := <-c
			if a.err != nil {
				t.Fatal(a.err)
			}
			if id >= next+most*ranks {
				t.Fatalf("request %d went while %d waits", id, next)
			}
			open = append(open, id)
			delete(answers, id)
		}
		for next <= n && answers[next] == nil {
			next++
		}
		for _, r := range b.Snapshot().Ranks {
			if r.InFlight > most {
				t.Fatalf("%v has %d, at most %d", r.Target, r.InFlight, most)
			}
		}
		if len(answers) > 0 && len(open) != most*ranks {
			t.Fatalf("%d are out while %d wait", len(open), len(answers))
		}
		b.Done(open[0], model.OutcomeOK)
		open = open[1:]
		synctest.Wait()
	}
}

// TestWaitersOfTheDead: who waits for a rank that dies or leaves goes elsewhere
// if it may, and is told if it may not.
func TestWaitersOfTheDead(t *testing.T) {
	for _, mode := range []model.RouterMode{model.ModeRoundRobin, model.ModeKV} {
		for _, leaves := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 2, 1, model.PolicyConversation, withBlocks, inMode(mode, fieldValue("router_session_affinity_mode", "hard")), capped(1), room(4))
				b.turn(t, "bound", nil, asks(at("w0", 0)))
				b.turn(t, "pinned", nil)
				b.must(t, onConvs(model.VerbPin, ptr(at("w0", 0)), "pinned"))
				b.routed(t, "", asks(at("w0", 0)))
				other, _ := b.routed(t, "", asks(at("w1", 0)))
				conv := func(id string) func(*model.Request) {
					return func(q *model.Request) { q.Conv = conversation(id) }
				}
				bound := b.waiting(t.Context(), 90, conv("bound"))
				synctest.Wait()
				pinned := b.waiting(t.Context(), 91, conv("pinned"))
				synctest.Wait()
				free := b.waiting(t.Context(), 92)
				synctest.Wait()
				if leaves {
					b.leave(t, "w0")
				} else {
					b.live(t, at("w0", 0), false)
				}
				synctest.Wait()
				if a := <-pinned; !errors.Is(a.err, ErrDown) {
					t.Fatalf("%v", a.err)
				}
				if answered(bound) || answered(free) {
					t.Fatalf("there is no room yet, %s: %+v", mode, b.Decisions(0, 9)[len(b.Decisions(0, 9))-1])
				}
				b.Done(other, model.OutcomeOK)
				synctest.Wait()
				if a := <-bound; a.err != nil || a.decision.Target != at("w1", 0) {
					t.Fatalf("%v, %v", a.decision.Target, a.err)
				}
				b.join(t, spec("w2", 1)) // room for the last
				synctest.Wait()
				if a := <-free; a.err != nil || a.decision.Target != at("w2", 0) {
					t.Fatalf("%v, %v", a.decision.Target, a.err)
				}
			})
		}
	}
}

// TestModelsWaitApart: a full model holds no other back.
func TestModelsWaitApart(t *testing.T) {
	for _, mode := range []model.RouterMode{model.ModeRoundRobin, model.ModeLeastLoaded, model.ModeRandom, model.ModeKV} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 0, 0, model.PolicyDefault, inMode(mode), room(4))
			for i := range 2 {
				b.join(t, spec(fmt.Sprint("w", i), 1, func(s *model.WorkerSpec) {
					s.Models, s.MaxNumActiveRequests = []string{fmt.Sprint("m", i)}, 1
				}))
			}
			of := func(i int) func(*model.Request) {
				return func(q *model.Request) { q.Conv.Model = fmt.Sprint("m", i) }
			}
			b.routed(t, "", of(0))
			first, _ := b.routed(t, "", of(1))
			m0, m1 := b.waiting(t.Context(), 90, of(0)), b.waiting(t.Context(), 91, of(1))
			synctest.Wait()
			b.Done(first, model.OutcomeOK)
			synctest.Wait()
			if answered(m0) || !answered(m1) {
				t.Fatal("the one whose model has room must go, the other wait")
			}
			b.leave(t, "w0")
			synctest.Wait()
			if a := <-m0; !errors.Is(a.err, ErrNoModel) {
				t.Fatalf("%v", a.err)
			}
		})
	}
}

// TestQueueConserves: many callers wait at random while ranks come, go, die and
// are drained; each gets one answer, and the caps hold.
func TestQueueConserves(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			mode := rapid.SampledFrom(allModes()[:6]).Draw(rt, "mode")
			b := newBench(t, 0, 0, model.PolicyConversation, inMode(mode), room(12))
			ctx, cancel := context.WithCancel(t.Context())
			waits, open := map[int64]chan routed{}, map[int64]bool{}
			id := int64(0)
			for range rapid.IntRange(1, 50).Draw(rt, "n") {
				w := rapid.SampledFrom([]string{"w0", "w1", "w2"}).Draw(rt, "worker")
				rank := rapid.IntRange(0, 2).Draw(rt, "rank")
				switch rapid.IntRange(0, 8).Draw(rt, "op") {
				case 0, 1, 2, 3:
					id++
					conv := rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "conv")
					waits[id] = b.waiting(ctx, id, func(q *model.Request) { q.Conv = conversation(conv) })
				case 4:
					_ = b.Join(spec(w, rank+1, func(s *model.WorkerSpec) { s.MaxNumActiveRequests = 1 }))
				case 5:
					_ = b.Leave(w)
				case 6:
					_ = b.Live(w, rank, rapid.Bool().Draw(rt, "live"), "")
				case 7:
					for k := range open {
						b.Done(k, model.OutcomeOK)
						delete(open, k)
						break
					}
				case 8:
					b.do(onRank(rapid.SampledFrom([]model.Verb{model.VerbDrain, model.VerbReady}).Draw(rt, "verb"), at(w, rank)))
				}
				synctest.Wait()
				collect(t, b, waits, open)
			}
			cancel()
			synctest.Wait()
			collect(t, b, waits, open)
			if len(waits) > 0 || b.steer.queue.Len() > 0 || b.book.Len() != len(open) {
				t.Fatalf("%d without an answer, %d in the queue, %d open, want %d", len(waits), b.steer.queue.Len(), b.book.Len(), len(open))
			}
		})
	})
}

func collect(t tester, b *bench, waits map[int64]chan routed, open map[int64]bool) {
	for id, c := range waits {
		if answered(c) {
			if a := <-c; a.err == nil {
				open[id] = true
			}
			delete(waits, id)
		}
	}
	for _, r := range b.Snapshot().Ranks {
		if r.InFlight > 1 {
			t.Fatalf("%v has %d", r.Target, r.InFlight)
		}
	}
}

// TestCapsCountWhatHasExpired: a booking that has shown no sign of life for long is
// no load any more, but its request may be running: its rank is as full as before,
// and others go where there is room.
func TestCapsCountWhatHasExpired(t *testing.T) {
	for _, clear := range []bool{false, true} {
		for _, mode := range allModes()[:6] {
			b := newBench(t, 2, 1, model.PolicyDefault, withBlocks, inMode(mode), capped(2))
			for range 2 {
				b.routed(t, "", asks(at("w0", 0)))
			}
			b.clock.advance(time.Hour + time.Minute)
			if clear {
				b.ClearPhantoms(at("w0", 0))
			}
			b.Snapshot()
			if n := b.steer.tier.Load().Counters().Open; n != 0 {
				t.Fatalf("%d are still booked", n)
			}
			for range 2 {
				if _, got := b.routed(t, ""); got.Worker != "w1" {
					t.Fatalf("%s: went to %v", mode, got)
				}
			}
			b.ids++
			if _, err := b.Route(&model.Request{ID: b.ids, PromptTokens: 10}, nil); !errors.Is(err, ErrFull) {
				t.Fatalf("%s: %v", mode, err)
			}
		}
	}
}
