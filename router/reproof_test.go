package router

import (
	"testing"
	"time"

	"adpdeck/router/model"
)

// TestProvenOnce: a request proves once where it ran, however many ways there are
// to know it.
func TestProvenOnce(t *testing.T) {
	nobody := model.Usage{Ran: model.Target{Rank: model.NoRank}, CachedUnknown: true}
	tokens := prompt(1, 2, 3)
	asked := at("w0", 1)
	for name, do := range map[string]func(b *bench, e *fakeEngine, id int64, ran model.Target){
		"events, loads": func(b *bench, e *fakeEngine, id int64, ran model.Target) {
			events(b, e, ran, tokens)
			loads(b, ran)
		},
		"loads, events": func(b *bench, e *fakeEngine, id int64, ran model.Target) {
			loads(b, ran)
			events(b, e, ran, tokens)
		},
		"events, usage": func(b *bench, e *fakeEngine, id int64, ran model.Target) {
			events(b, e, ran, tokens)
			b.Cached(id, model.Usage{Ran: ran, Evidence: "usage"})
		},
		"loads, usage, events": func(b *bench, e *fakeEngine, id int64, ran model.Target) {
			loads(b, ran)
			b.Cached(id, model.Usage{Ran: ran, Evidence: "usage"})
			events(b, e, ran, tokens)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, ran := range []model.Target{asked, at("w0", 3)} {
				b := newBench(t, 1, 4, model.PolicyDefault, withBlocks)
				e := newEngine(b, 0)
				id, _ := b.routed(t, "c", asks(asked), of(tokens), over(model.RouteChat, "header"))
				b.FirstToken(id, nobody)
				do(b, e, id, ran)
				p := b.Snapshot().Workers[0].Proofs[0]
				if p.Asked != 1 || p.Honoured+p.Ignored != 1 || (p.Honoured == 1) != (ran == asked) {
					t.Errorf("ran on %v: %+v", ran, p)
				}
				if c := b.conv(t, "c"); c.Lost+c.Honoured != 1 || (c.Lost == 1) != (ran != asked) || c.Moves != 0 {
					t.Errorf("ran on %v: %d lost, %d honoured, %d moves", ran, c.Lost, c.Honoured, c.Moves)
				}
				b.Done(id, model.OutcomeOK)
				for range 12 {
					b.clock.advance(time.Second)
					b.Snapshot()
				}
				if len(b.probes) != 0 || b.places[0].proofs.list[0].probes != 0 {
					t.Errorf("%d probes are left", len(b.probes))
				}
			}
		})
	}
}

func events(b *bench, e *fakeEngine, ran model.Target, tokens []uint32) {
	e.serve(ran, tokens)
	for range 4 {
		b.clock.advance(time.Second)
		b.Snapshot()
	}
}

func loads(b *bench, ran model.Target) {
	for range 3 {
		b.clock.advance(time.Second)
		running := make([]float64, 4)
		running[ran.Rank] = 1
		b.Observe("w0", b.clock.Now(), reports(running...))
	}
}

// TestNoProofFromWhatWasSentBefore: the blocks of a request that was sent to
// another rank before, and are told late, prove nothing of one that came after.
func TestNoProofFromWhatWasSentBefore(t *testing.T) {
	for _, answered := range []bool{false, true} {
		b := newBench(t, 1, 4, model.PolicyDefault, withBlocks)
		e := newEngine(b, 0)
		tokens := prompt(1, 2, 3)
		first, _ := b.routed(t, "", asks(at("w0", 1)), of(prompt(1, 2, 3, 4)), over(model.RouteChat, "header"))
		if answered {
			b.FirstToken(first, model.Usage{Ran: model.Target{Rank: model.NoRank}, CachedUnknown: true})
		}
		second, _ := b.routed(t, "", asks(at("w0", 2)), of(tokens), over(model.RouteChat, "header"))
		b.FirstToken(second, model.Usage{Ran: model.Target{Rank: model.NoRank}, CachedUnknown: true})
		e.serve(at("w0", 1), tokens) // the second one's events are lost
		for range 12 {
			b.clock.advance(time.Second)
			b.Snapshot()
		}
		if p := b.Snapshot().Workers[0].Proofs[0]; p.Ignored != 0 {
			t.Errorf("the first has its first token: %v: %+v", answered, p)
		}
	}
}
