package router

import (
	"fmt"
	"testing"
	"time"

	"adpdeck/router/model"
)

// TestDoubtEndsWithoutAScreen: nobody looks at the router; a doubt ends all the
// same, in time or by a request that disproves it.
func TestDoubtEndsWithoutAScreen(t *testing.T) {
	for _, disproved := range []bool{false, true} {
		t.Run(fmt.Sprint("disproved=", disproved), func(t *testing.T) {
			b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV, fieldValue(noAffinity, "none")))
			e := newEngine(b, 0)
			rank := at("w0", 1)
			e.serve(rank, prompt(1, 2, 3, 4))
			lose := true
			e.wire = func(target model.Target, seq uint64, payload []byte) {
				if !lose {
					b.Events(target.Worker, target.Rank, seq, payload)
				}
			}
			e.serve(rank, prompt(5))
			lose = false
			e.serve(rank, prompt(6))
			b.clock.advance(time.Second)
			e.serve(rank, prompt(7))
			cached := 64
			if disproved {
				cached = 0
			} else {
				b.clock.advance(3 * time.Minute)
			}
			id, got := b.routed(t, "", of(prompt(1, 2, 3, 4, 8)))
			if got != rank {
				t.Fatalf("the doubt took the credit at once: %v", got)
			}
			b.FirstToken(id, model.Usage{Ran: got, CachedTokens: cached})
			b.Done(id, model.OutcomeOK)
			l, err := b.know.look(&model.Request{PromptTokens: 64, Locals: localsOf(prompt(1, 2, 3, 4)), BlockTokens: blockTokens}, b.clock.Now().Sub(epoch))
			if err != nil {
				t.Fatal(err)
			}
			if n := l.held(b.slot(rank), blockTokens); n != 0 {
				t.Fatalf("%d tokens are still credited", n)
			}
		})
	}
}

// TestAGuessDisprovesNothing: a request that finds less than was guessed says
// nothing of what events have told, and the doubt goes on.
func TestAGuessDisprovesNothing(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault, withBlocks,
		inMode(model.ModeKV, fieldValue(noAffinity, "none"), fieldValue("router_predicted_ttl_secs", "60")))
	e := newEngine(b, 0)
	rank := at("w0", 1)
	e.serve(rank, prompt(1, 2, 3, 4))
	e.wire = func(model.Target, uint64, []byte) {}
	e.serve(rank, prompt(5))
	e.wire = nil
	e.serve(rank, prompt(6))
	b.clock.advance(time.Second)
	e.serve(rank, prompt(7))
	if row := indexOf(t, b, rank); row.Feed != model.FeedDoubt {
		t.Fatalf("%+v", row)
	}
	ask := func(tokens []uint32, cached int) {
		id, _ := b.routed(t, "", asks(rank), of(tokens))
		b.FirstToken(id, model.Usage{Ran: rank, CachedTokens: cached})
		b.Done(id, model.OutcomeOK)
		b.clock.advance(time.Second)
	}
	ask(prompt(1, 2, 3, 4, 20, 21, 22, 23), 64)
	ask(prompt(1, 2, 3, 4, 20, 21, 22, 23), 64) // the one before broke off before it was computed
	if row := indexOf(t, b, rank); row.Feed != model.FeedDoubt || row.Device < 6 {
		t.Fatalf("%+v", row)
	}
	ask(prompt(1, 2, 3, 4, 30), 0)
	if row := indexOf(t, b, rank); row.Feed != model.FeedLive {
		t.Fatalf("%+v", row)
	}
}
