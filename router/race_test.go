package router

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"adpdeck/router/model"

	"github.com/google/go-cmp/cmp"
)

// TestEverythingAtOnce is for the race detector: workers come, go, change, die
// and restart, events and replays come for ranks of now and before, requests are
// routed, wait, are canceled, answered and ended, operators act, screens look.
// Afterwards nothing is open, nobody waits, and a subscriber's state is the
// router's.
func TestEverythingAtOnce(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 80
	}
	b := newBench(t, 0, 0, model.PolicyConversation, room(12), inMode(model.ModeKV), func(c *Config) { c.MaxConvs = 8 })
	for i := range 3 {
		b.join(t, spec(fmt.Sprint("w", i), 3))
	}
	e := newEngine(b, 8)
	payloads := make(chan [2]any, 1<<12) // of some rank, for any
	e.wire = func(target model.Target, seq uint64, payload []byte) {
		select {
		case payloads <- [2]any{seq, append([]byte(nil), payload...)}:
		default:
		}
	}
	for i := range 200 {
		e.serve(at(fmt.Sprint("w", i%3), i%2), prompt(uint32(i%7), uint32(i%5), uint32(i)))
	}
	sub := b.Subscribe()
	state := sub.Start()
	var wg sync.WaitGroup
	run := func(seed uint64, do func(rng *rand.Rand, target model.Target)) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 9))
			for range rounds {
				do(rng, at(fmt.Sprint("w", rng.IntN(3)), rng.IntN(3)))
			}
		})
	}
	run(1, func(rng *rand.Rand, target model.Target) {
		b.clock.advance(time.Duration(rng.IntN(300)) * time.Millisecond)
		switch rng.IntN(6) {
		case 0:
			_ = b.Leave(target.Worker)
		case 1:
			_ = b.Live(target.Worker, target.Rank, rng.IntN(2) == 0, "timeout")
		case 2:
			b.Restarted(target.Worker, target.Rank, "new process")
		default:
			_ = b.Join(spec(target.Worker, 1+target.Rank, func(s *model.WorkerSpec) {
				s.KVEvents, s.KVReplay, s.MaxNumActiveRequests = rng.IntN(3) > 0, rng.IntN(2) > 0, 1+rng.IntN(3)
				if rng.IntN(4) == 0 {
					s.Steering = model.SteerConversation
				}
				if rng.IntN(4) == 0 {
					s.Models = []string{"llama"}
				}
			}))
		}
	})
	for i := range uint64(2) {
		run(10+i, func(rng *rand.Rand, target model.Target) {
			if len(payloads) == 0 {
				return
			}
			p := <-payloads
			seq, payload := p[0].(uint64), p[1].([]byte)
			switch rng.IntN(6) {
			case 0:
				b.Replayed(target.Worker, target.Rank, seq, payload)
			case 1:
				select {
				case g := <-b.Gaps():
					b.ReplayDone(g.Target.Worker, g.Target.Rank, context.Canceled)
				default:
				}
			case 2:
				b.EventsJSON(target.Worker, []byte(`[{"event_id":0,"attention_dp_rank":1,"data":{"type":"created","num_blocks_per_cache_level":[8,8]}}]`))
			default:
				b.EventsOn(target.Worker, target.Rank, uint64(rng.IntN(2)), seq, payload)
			}
			payloads <- p
		})
	}
	for i := range int64(4) {
		run(20+uint64(i), func(rng *rand.Rand, target model.Target) {
			id := int64(rng.Uint64()>>2)<<2 | i
			tokens := prompt(uint32(rng.IntN(7)), uint32(rng.IntN(5)))
			q := &model.Request{ID: id, Conv: conversation(fmt.Sprint("c", rng.IntN(6))), Route: model.RouteChat, Channel: "header"}
			of(tokens)(q)
			q.Guessed = rng.IntN(8) == 0
			if rng.IntN(4) == 0 {
				q.Exclude = []model.Target{target}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(3000))*time.Microsecond)
			defer cancel()
			d, err := b.RouteWait(ctx, q, nil)
			if err != nil {
				return
			}
			b.Sent(id, "header")
			ran := d.Target
			if rng.IntN(4) == 0 {
				ran = target
			}
			b.FirstToken(id, model.Usage{Ran: ran, CachedTokens: rng.IntN(40), CachedUnknown: rng.IntN(4) == 0, TTFTMs: 1})
			b.Output(id, 3)
			b.Cached(id, model.Usage{Ran: target, CachedTokens: rng.IntN(40)})
			b.Done(id, []model.Outcome{model.OutcomeOK, model.OutcomeError}[rng.IntN(2)])
		})
	}
	run(30, func(rng *rand.Rand, target model.Target) {
		settings := [][2]string{
			{"router_mode", "kv"},
			{"router_mode", "lockstep"},
			{"router_mode", "least_loaded"},
			{"router_kv_events", "false"},
			{"router_kv_events", "true"},
			{"router_predicted_ttl_secs", "5"},
			{"router_predicted_ttl_secs", "none"},
			{"router_approximate_cache_policy", "lru"},
			{"policy", "kv_aware"},
			{"policy", "conversation"},
		}
		v := settings[rng.IntN(len(settings))]
		if reply := b.Apply(model.Command{ID: fmt.Sprint("s", rng.Uint64()), Verb: model.VerbSet, Set: []model.FieldValue{{Field: v[0], Value: v[1]}}}); !reply.Accepted && reply.Refusal.Code != model.RefusedLast {
			t.Errorf("%v: %v", v, reply.Refusal)
		}
		verb := []model.Verb{model.VerbPin, model.VerbUnpin, model.VerbMigrate, model.VerbEvict}[rng.IntN(4)]
		b.Apply(model.Command{ID: fmt.Sprint("c", rng.Uint64()), Verb: verb, Target: &target, Convs: []model.ConvKey{conversation(fmt.Sprint("c", rng.IntN(6)))}})
		rank := []model.Verb{model.VerbResync, model.VerbDrain, model.VerbReady, model.VerbUndo, model.VerbClear}[rng.IntN(5)]
		b.Apply(model.Command{ID: fmt.Sprint("r", rng.Uint64()), Verb: rank, Target: &target})
	})
	run(40, func(rng *rand.Rand, target model.Target) {
		b.Observe(target.Worker, b.clock.Now(), reports(float64(rng.IntN(2)), 1, 0))
		b.Unobserved(target.Worker, "timeout")
		b.Found(model.Finding{Code: "x", Target: target})
		b.Cleared("x", target)
		b.Snapshot()
		b.Matches(&model.Request{PromptTokens: 32, Locals: localsOf(prompt(1, 2)), BlockTokens: blockTokens})
		if c, resync := sub.Take(4); resync {
			state = sub.Start()
		} else if c != nil {
			state = follow(state, c)
		}
	})
	wg.Wait()
	s := b.Snapshot()
	if s.Totals.Open != 0 || s.Totals.InQueue != 0 || b.Departed() != 0 || b.steer.tier.Load().Counters().Open != 0 {
		t.Fatalf("%+v, departed %d", s.Totals, b.Departed())
	}
	m := world{bench: b}
	m.check(t)
	if c, resync := sub.Take(4); resync {
		state = sub.Start()
	} else if c != nil {
		state = follow(state, c)
	}
	want := b.Snapshot()
	state.At = want.At
	if diff := cmp.Diff(want, state, equal); diff != "" {
		t.Fatal(diff)
	}
}
