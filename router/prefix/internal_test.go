package prefix

import (
	"slices"
	"testing"
)

// The tick that orders matches is moved down before it overflows; order and
// blocks stay.
func TestTickStartsAnew(t *testing.T) {
	bd := newBed(t, 1, Options{Targets: 8, MaxBlocks: 48})
	bd.ix.tick.Store(1<<31 - 3)
	var chains [][]Chain
	for range 3 {
		blocks := bd.fresh(16)
		bd.store(bd.ids[0], blocks)
		chains = append(chains, chainLocals(nil, locals(blocks)))
	}
	for _, i := range []int{1, 2, 0} {
		depths(bd.ix, chains[i])
	}
	bd.store(bd.ids[0], bd.fresh(16))
	if now := bd.ix.tick.Load(); now > 1<<31 {
		t.Fatalf("the tick is at %d", now)
	}
	got := []int32{}
	for _, c := range chains {
		got = append(got, depths(bd.ix, c)[0])
	}
	if !slices.Equal(got, []int32{16, 0, 16}) {
		t.Errorf("left of each chain: %d, want the second gone", got)
	}
}

// When the notes of last blocks were lost, they are found again in the records.
func TestEvictionWithoutNotes(t *testing.T) {
	bd := newBed(t, 3, Options{Targets: 8, MaxBlocks: 60})
	for _, id := range bd.ids {
		bd.store(id, bd.fresh(20))
		bd.ix.targets[id].leaves = nil
	}
	bd.store(bd.ids[0], bd.fresh(30))
	s := bd.ix.Stats()
	if s.Blocks > 60 || s.Evicted < 30 || s.Dropped != 0 {
		t.Errorf("holds %+v", s)
	}
}

// A look-up that holds its slot keeps freed records from being used again.
func TestFreedRecordsWaitForLookups(t *testing.T) {
	bd := newBed(t, 1, Options{Targets: 8, MaxBlocks: 100_000})
	slot := bd.ix.epochs.enter(0)
	blocks := bd.fresh(1000)
	bd.store(bd.ids[0], blocks)
	_, _ = bd.ix.Apply(bd.ids[0], &Batch{Events: []Event{removal(blocks)}})
	used := bd.ix.recs.used
	bd.store(bd.ids[0], bd.fresh(1000))
	if bd.ix.recs.used < used+1000-reclaimAt || len(bd.ix.recs.free) > 0 && bd.ix.advance() {
		t.Errorf("%d slots handed out after %d: a record was used again under a look-up", bd.ix.recs.used, used)
	}
	bd.ix.epochs.leave(slot)
	for range 3 {
		bd.ix.advance()
	}
	if len(bd.ix.recs.free) < 900 {
		t.Errorf("%d slots are free after the look-up ended", len(bd.ix.recs.free))
	}
}
