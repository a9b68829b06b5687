package router

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/pin"
)

// TestWhatHeldAWaitingRequestGoes: a request waits for the full rank that it is
// held to, and goes elsewhere at once when an operator takes away what holds it.
func TestWhatHeldAWaitingRequestGoes(t *testing.T) {
	pin := onConvs(model.VerbPin, ptr(at("w0", 1)), "c")
	soft := set("router_session_affinity_mode", "soft")
	hard := set("router_session_affinity_mode", "hard")
	for name, c := range map[string]struct {
		before []model.Command
		free   model.Command
	}{
		"unpin":               {[]model.Command{soft, pin}, onConvs(model.VerbUnpin, nil, "c")},
		"evict":               {[]model.Command{pin}, onConvs(model.VerbEvict, nil, "c")},
		"pin elsewhere":       {[]model.Command{pin}, onConvs(model.VerbPin, ptr(at("w0", 0)), "c")},
		"undo":                {[]model.Command{soft, pin}, undo(0)},
		"migrate the binding": {[]model.Command{hard}, onConvs(model.VerbMigrate, ptr(at("w0", 0)), "c")},
		"evict the binding":   {[]model.Command{hard}, onConvs(model.VerbEvict, nil, "c")},
		"no affinity":         {[]model.Command{hard}, set(noAffinity, "none")},
		"soft affinity":       {[]model.Command{hard}, soft},
		"mode":                {[]model.Command{hard}, set("router_mode", "least_loaded")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV), func(c *Config) {
					c.Workers[0].MaxNumActiveRequests = 1
				})
				ask := func(id int64, conv string, rank int) {
					q := &model.Request{ID: id, PromptTokens: 10, Conv: conversation(conv), Explicit: ptr(at("w0", rank))}
					if d, err := b.Route(q, nil); err != nil || d.Target != at("w0", rank) {
						t.Fatal(d.Target, err)
					}
				}
				ask(1, "c", 1)
				b.Done(1, model.OutcomeOK)
				for _, cmd := range c.before {
					b.must(t, cmd)
				}
				ask(2, "", 1)
				got := b.waiting(t.Context(), 3, func(q *model.Request) { q.Conv = conversation("c") })
				synctest.Wait()
				if answered(got) {
					t.Fatalf("it does not wait: %+v", <-got)
				}
				b.must(t, c.free)
				synctest.Wait()
				if !answered(got) {
					t.Fatal("it waits on")
				}
				if a := <-got; a.err != nil || a.decision.Target != at("w0", 0) {
					t.Fatal(a.decision.Target, a.err)
				}
				if n := b.steer.queue.Len(); n != 0 {
					t.Fatalf("%d wait", n)
				}
			})
		})
	}
}

// TestOneThatMayNotGoHoldsNobodyBack: the only rank with room is one that the
// first in line must not go to; the next one takes it.
func TestOneThatMayNotGoHoldsNobodyBack(t *testing.T) {
	for _, mode := range []model.RouterMode{model.ModeKV, model.ModeRoundRobin, model.ModeLeastLoaded, model.ModeRandom} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, inMode(mode), func(c *Config) {
					c.Workers[0].MaxNumActiveRequests = 1
				})
				open := map[int]int64{}
				for id := range int64(2) {
					d, err := b.Route(&model.Request{ID: 1 + id, PromptTokens: 10}, nil)
					if err != nil {
						t.Fatal(err)
					}
					open[d.Target.Rank] = 1 + id
				}
				first := b.waiting(t.Context(), 11, func(q *model.Request) { q.Exclude = []model.Target{at("w0", 0)} })
				synctest.Wait()
				b.clock.advance(time.Millisecond)
				second := b.waiting(t.Context(), 12)
				synctest.Wait()
				b.Done(open[0], model.OutcomeOK)
				synctest.Wait()
				if answered(first) || !answered(second) {
					t.Fatalf("first went: %v, second: %v", answered(first), answered(second))
				}
				b.Done(open[1], model.OutcomeOK)
				synctest.Wait()
				if a := <-first; a.err != nil || a.decision.Target != at("w0", 1) {
					t.Fatal(a.decision.Target, a.err)
				}
			})
		})
	}
}

// TestAWaitingRequestFollowsItsBinding: whose conversation another turn binds,
// or sets free by failing, waits for what the binding names, and goes at once
// where that has room.
func TestAWaitingRequestFollowsItsBinding(t *testing.T) {
	start := func(t *testing.T) *bench {
		return newBench(t, 1, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV), func(c *Config) {
			c.Workers[0].MaxNumActiveRequests = 2
		})
	}
	open := func(t *testing.T, b *bench, id int64, conv string, rank int) {
		t.Helper()
		q := &model.Request{ID: id, PromptTokens: 10, Conv: conversation(conv), Explicit: ptr(at("w0", rank))}
		if d, err := b.Route(q, nil); err != nil || d.Target != at("w0", rank) {
			t.Fatal(d.Target, err)
		}
	}
	in := func(conv string) func(*model.Request) {
		return func(q *model.Request) { q.Conv = conversation(conv) }
	}
	t.Run("bound to a rank that takes nothing new", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := start(t)
			open(t, b, 1, "", 0)
			open(t, b, 2, "", 0)
			open(t, b, 3, "", 1)
			b.must(t, onRank(model.VerbDrain, at("w0", 1))) // the only rank with room
			got := b.waiting(t.Context(), 4, in("c"))
			synctest.Wait()
			if answered(got) {
				t.Fatalf("it does not wait: %+v", <-got)
			}
			b.mu.Lock() // as a turn that an engine placed by itself binds it
			b.binds.Set(conversation("c"), pin.Binding{Target: at("w0", 1), Source: model.PinAuto})
			b.owners.bound(conversation("c"), b.now)
			b.unlock()
			synctest.Wait()
			if !answered(got) {
				t.Fatal("it waits on, though its rank has room")
			}
			if a := <-got; a.err != nil || a.decision.Target != at("w0", 1) {
				t.Fatal(a.decision.Target, a.err)
			}
		})
	})
	t.Run("its binding ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := start(t)
			open(t, b, 1, "c", 0) // binds
			open(t, b, 2, "", 0)
			open(t, b, 3, "", 1)
			got := b.waiting(t.Context(), 4, in("c"))
			synctest.Wait()
			if answered(got) {
				t.Fatalf("it does not wait: %+v", <-got)
			}
			open(t, b, 5, "", 1)
			b.Done(5, model.OutcomeOK)
			b.mu.Lock()
			full := b.book.Rank(0, 0).InFlight
			b.unlock()
			if full != 2 || answered(got) {
				t.Fatalf("it went although its rank is full: %d", full)
			}
			b.Restarted("w0", 0, "new process") // its bindings are over, its requests still open
			synctest.Wait()
			if !answered(got) {
				t.Fatal("it waits on for a rank that nothing binds it to")
			}
			if a := <-got; a.err != nil || a.decision.Target != at("w0", 1) {
				t.Fatal(a.decision.Target, a.err)
			}
		})
	})
	t.Run("nothing is kept of who has left", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := start(t)
			for i := range 4 {
				open(t, b, int64(1+i), "", i/2)
			}
			ctx, leave := context.WithCancel(t.Context())
			got := b.waiting(ctx, 9, in("c"))
			synctest.Wait()
			leave()
			<-got
			b.mu.Lock()
			defer b.mu.Unlock()
			if w := &b.steer.waiting; len(w.byConv)+len(w.moved) != 0 {
				t.Fatalf("%+v", w)
			}
		})
	})
}
