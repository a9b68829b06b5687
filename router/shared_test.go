package router

import (
	"math/rand/v2"
	"testing"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

// TestSharedPrefixes: what conversations have in common shows with its length,
// the ranks that hold it and how often requests began with it.
func TestSharedPrefixes(t *testing.T) {
	b := newBench(t, 1, 3, model.PolicyDefault, withBlocks, inMode(model.ModeKV, fieldValue(noAffinity, "none")))
	e := newEngine(b, 0)
	shared := func() []model.SharedPrefix { return b.Snapshot().IndexTotals.Shared }
	for rank := range 3 { // a system prompt of two blocks, and one of three on two ranks
		e.serve(at("w0", rank), prompt(1, 2, uint32(100+rank)))
		if rank < 2 {
			e.serve(at("w0", rank), prompt(5, 6, 7))
		}
	}
	e.serve(at("w0", 0), prompt(9, 10)) // on one rank only
	if got := shared(); got != nil {
		t.Fatalf("before a request: %+v", got)
	}
	for i := range 4 {
		id, _ := b.place(t, "", nil, of(prompt(1, 2, uint32(100+i%3), 7)))
		b.Done(id, model.OutcomeOK)
	}
	id, _ := b.place(t, "", nil, of(prompt(5, 6, 7)))
	b.Done(id, model.OutcomeOK)
	id, _ = b.place(t, "", nil, of(prompt(9, 10)))
	b.Done(id, model.OutcomeOK)
	got := shared()
	if len(got) != 2 || got[0].Tokens != 32 || got[0].Ranks != 3 || got[0].Hits != 4 || len(got[0].Hash) != 8 || !got[0].LastAt.Equal(b.clock.Now()) ||
		got[1].Tokens != 48 || got[1].Ranks != 2 || got[1].Hits != 1 {
		t.Fatalf("%+v", got)
	}
	sub := b.Subscribe()
	sub.Start()
	b.clock.advance(3 * time.Minute)
	id, _ = b.place(t, "", nil, of(prompt(5, 6, 7)))
	b.Done(id, model.OutcomeOK)
	if c, _ := sub.Take(5); c == nil || c.IndexTotals == nil || len(c.IndexTotals.Shared) != 2 || c.IndexTotals.Shared[1].Hits != 2 {
		t.Fatalf("the change: %+v", c)
	}
	b.clock.advance(2 * time.Minute) // what was hit at first is five minutes old
	if got = shared(); len(got) != 1 || got[0].Tokens != 48 || got[0].Hits != 1 {
		t.Fatalf("after five minutes: %+v", got)
	}
	b.clock.advance(time.Hour)
	if got = shared(); got != nil {
		t.Fatalf("after an hour: %+v", got)
	}
}

// TestSharedIsBounded: over many prefixes the ones hit often are found, none is
// counted too high, and the room stays as it is.
func TestSharedIsBounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var s shared
	hits := map[prefix.Chain]int{}
	l := &lookup{}
	l.matches.Device = []int32{1, 1}
	for range 20_000 {
		c := prefix.Chain(1000 + rng.Uint64N(100_000))
		if rng.IntN(3) == 0 {
			c = prefix.Chain(1 + rng.Uint64N(8))
		}
		hits[c]++
		l.chain = []prefix.Chain{c}
		s.note(l, time.Minute)
	}
	if len(s.entries) != maxShared || len(s.at) != maxShared {
		t.Fatalf("%d entries, %d places", len(s.entries), len(s.at))
	}
	top := s.top(epoch, time.Minute, 16)
	if len(top) != model.MaxSharedPrefixes {
		t.Fatalf("%d prefixes", len(top))
	}
	for c := prefix.Chain(1); c <= 8; c++ {
		at, ok := s.at[c]
		if !ok || int(s.entries[at].sum(1)) > hits[c] || int(s.entries[at].sum(1)) < hits[c]-20 {
			t.Errorf("prefix %d, hit %d times: %v, %+v", c, hits[c], ok, s.entries[at])
		}
	}
	s.note(l, 9*time.Minute) // counts go by the minute, also where many were quiet
	if at := s.at[l.chain[0]]; s.entries[at].sum(9) != 1 {
		t.Errorf("%+v", s.entries[at])
	}
}
