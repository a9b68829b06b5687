package prefix

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"adpdeck/router/model"
)

// A writer moves targets between states while readers look. Whatever a reader
// sees, no target may be credited with more than it ever held at one moment.
func TestReadersNeverOvercount(t *testing.T) {
	bd := newBed(t, 4, Options{Targets: 64, MaxBlocks: 50_000})
	long := bd.fresh(200)
	chain := chainLocals(nil, locals(long))
	for _, id := range bd.ids[:3] {
		bd.store(id, long[:100])
	}
	bd.store(bd.ids[3], long) // a witness that nobody touches
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			m := bd.ix.NewMatcher()
			var out Matches
			for !stop.Load() {
				m.Match(chain, &out)
				if err := overcounts(bd, &out); err != nil {
					t.Error(err)
					stop.Store(true)
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(1, 1))
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	for i := 0; i < rounds && !stop.Load(); i++ {
		turmoil(bd, long, rng)
		depths(bd.ix, chain) // so that it is not evicted, should no reader run
	}
	stop.Store(true)
	wg.Wait()
}

// overcounts says which of the four targets is credited with too much; the
// witness must always have all.
func overcounts(bd *bed, out *Matches) error {
	for i, id := range bd.ids {
		limit := []int32{100, 150, 150, 200}[i]
		if got := out.Device[id]; got > limit || (i == 3 && got != 200) {
			return fmt.Errorf("target %d: %d blocks, it held %d at most", i, got, limit)
		}
		if n := out.Host[id] + out.Disk[id]; n != 0 {
			return fmt.Errorf("target %d: %d blocks below the device", i, n)
		}
	}
	return nil
}

// turmoil is one round of the writer.
func turmoil(bd *bed, long []Block, rng *rand.Rand) {
	// Target 0: the middle goes, then the rest comes in behind the hole, then
	// goes again; the two are never whole together.
	apply(bd, 0, removal(long[40:41]))
	apply(bd, 0, storing(long, 100, 150))
	apply(bd, 0, removal(long[100:150]))
	apply(bd, 0, storing(long, 40, 41))
	// Target 1 grows and shrinks from the end; target 2 dies.
	apply(bd, 1, storing(long, 100, 150))
	apply(bd, 1, removal(long[100:150]))
	if rng.IntN(20) == 0 {
		_ = bd.ix.Restart(bd.ids[2])
		bd.store(bd.ids[2], long[:150])
	}
	// And much else comes and goes, so that slots are used again.
	for range 4 {
		bd.store(bd.ids[rng.IntN(3)], bd.fresh(100))
	}
	if rng.IntN(50) == 0 {
		name := model.Target{Worker: "x", Rank: rng.IntN(20)}
		if _, ok := bd.ix.Lookup(name); ok {
			_ = bd.ix.Drop(name)
		} else if id, err := bd.ix.Add(name); err == nil {
			bd.store(id, long[:30])
		}
	}
}

func apply(bd *bed, k int, e Event) { _, _ = bd.ix.Apply(bd.ids[k], &Batch{Events: []Event{e}}) }

func removal(blocks []Block) Event {
	return Event{Kind: Removed, Hashes: removals([][]Block{blocks})[0]}
}

func storing(blocks []Block, from, to int) Event {
	e := Event{Kind: Stored, Blocks: blocks[from:to]}
	if from > 0 {
		e.HasParent, e.Parent = true, blocks[from-1].External
	}
	return e
}

// A look-up and an event allocate nothing in the steady state.
func TestNoAllocations(t *testing.T) {
	bd := newBed(t, 64, Options{MaxBlocks: 1 << 17})
	blocks := bd.fresh(2048)
	for _, id := range bd.ids {
		bd.store(id, blocks[:512])
	}
	bd.store(bd.ids[0], blocks)
	chain := chainLocals(nil, locals(blocks))
	m := bd.ix.NewMatcher()
	var out Matches
	m.Match(chain, &out)
	if n := testing.AllocsPerRun(100, func() { m.Match(chain, &out) }); n != 0 {
		t.Errorf("%v allocations in a look-up", n)
	}
	gone, back := &Batch{Events: []Event{removal(blocks[2032:])}}, &Batch{Events: []Event{storing(blocks, 2032, 2048)}}
	cycle := func() {
		_, _ = bd.ix.Apply(bd.ids[0], gone)
		_, _ = bd.ix.Apply(bd.ids[0], back)
	}
	for range 5000 {
		cycle()
	}
	if n := testing.AllocsPerRun(2000, cycle); n != 0 {
		t.Errorf("%v allocations for an event stored and one removed", n)
	}
}
