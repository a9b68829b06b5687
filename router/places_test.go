package router

import (
	"fmt"
	"testing"

	"adpdeck/router/model"
)

// TestPlacesDoNotRunOut: however workers of different sizes have come and gone,
// one for which there is room finds it, and what its ranks hold is known.
func TestPlacesDoNotRunOut(t *testing.T) {
	b := newBench(t, 0, 0, model.PolicyDefault, room(4), inMode(model.ModeKV))
	for i := range 4 {
		b.join(t, spec(fmt.Sprint("w", i), 1))
	}
	b.leave(t, "w0")
	b.leave(t, "w2")
	b.join(t, spec("new", 2))
	e := newEngine(b, 0)
	for k := range 2 {
		rank := at("new", k)
		e.serve(rank, prompt(uint32(10*k+1), 2))
		if row := indexOf(t, b, rank); row.Device != 2 {
			t.Fatalf("%+v", row)
		}
		id, got := b.routed(t, "", of(prompt(uint32(10*k+1), 2, 3)))
		if got != rank {
			t.Fatalf("rank %d: sent to %v", k, got)
		}
		b.FirstToken(id, model.Usage{Ran: got, CachedTokens: 32, TTFTMs: 1})
		b.Done(id, model.OutcomeOK)
	}
	b.join(t, spec("w1", 1)) // as it was
	b.leave(t, "w1")
	b.leave(t, "w3")
	b.join(t, spec("new", 4))
	if n := b.steer.tier.Slots(); n > 4 {
		t.Fatalf("%d places for 4 ranks", n)
	}
}

// TestBlockSizeThatNobodyBelieves is refused, not half accepted.
func TestBlockSizeThatNobodyBelieves(t *testing.T) {
	b := newBench(t, 0, 0, model.PolicyDefault, room(4))
	err := b.Join(spec("w0", 1, func(s *model.WorkerSpec) { s.BlockTokens = 1 << 20 }))
	if err == nil {
		b.Snapshot()
		t.Fatal("taken")
	}
	b.join(t, spec("w0", 1))
	b.Snapshot()
}
