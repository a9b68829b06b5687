package router

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"adpdeck/router/model"

	"github.com/google/go-cmp/cmp"
)

// TestSameCallsSameDecisions: a router with the same seed and the same calls makes
// the same decisions, workers that join, leave, die and change included.
func TestSameCallsSameDecisions(t *testing.T) {
	for _, mode := range allModes() {
		for seed := range uint64(6) {
			first := scripted(t, mode, seed)
			for range 2 {
				if diff := cmp.Diff(first, scripted(t, mode, seed)); diff != "" {
					t.Fatalf("%s, seed %d:\n%s", mode, seed, diff)
				}
			}
		}
	}
}

// scripted is what a router of a seed answers in a life of that seed.
func scripted(t *testing.T, mode model.RouterMode, seed uint64) (told []string) {
	rng := rand.New(rand.NewPCG(seed, 2))
	policy := []model.Policy{model.PolicyDefault, model.PolicyKVAware, model.PolicyConversation}[seed%3]
	b := newBench(t, 0, 0, policy, room(16), inMode(mode, fieldValue("router_temperature", fmt.Sprint(float64(seed%2)/2))), func(c *Config) { c.Seed, c.MaxConvs = seed, 4 })
	for range 300 {
		target := at(fmt.Sprint("w", rng.IntN(4)), rng.IntN(3))
		b.clock.advance(time.Duration(rng.IntN(500)) * time.Millisecond)
		switch rng.IntN(8) {
		case 0:
			_ = b.Join(spec(target.Worker, 1+target.Rank, func(s *model.WorkerSpec) {
				s.KVEvents, s.MaxNumActiveRequests = rng.IntN(2) == 0, rng.IntN(4)
				if s.ID == "w3" {
					s.Steering, s.Models = model.SteerConversation, []string{"llama"}
				}
			}))
		case 1:
			if rng.IntN(3) == 0 {
				_ = b.Leave(target.Worker)
			}
			_ = b.Live(target.Worker, target.Rank, rng.IntN(3) > 0, "timeout")
		case 2:
			id := rng.Int64N(b.ids + 1)
			b.FirstToken(id, model.Usage{Ran: target, CachedTokens: 16, TTFTMs: 1})
			b.Done(id, model.OutcomeOK)
		case 3:
			reply := b.do(onConvs(model.VerbMigrate, nil, "c0", "c1", "c2"))
			told = append(told, reply.What)
		default:
			b.ids++
			q := &model.Request{ID: b.ids, Conv: conversation(fmt.Sprint("c", rng.IntN(6)))}
			of(prompt(uint32(rng.IntN(4)), uint32(rng.IntN(4))))(q)
			asksIn(mode, target)(q)
			d, err := b.Route(q, nil)
			told = append(told, fmt.Sprint(q.ID, d.Target, d.WorkerWhy, d.Why, d.Margin, err))
		}
	}
	s := b.Snapshot()
	for _, e := range s.Events {
		told = append(told, e.What)
	}
	for _, r := range s.Ranks {
		told = append(told, fmt.Sprint(r.Target, r.InFlight, r.Pins, r.Requests))
	}
	return told
}
