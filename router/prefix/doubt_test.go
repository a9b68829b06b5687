package prefix

import (
	"errors"
	"testing"
)

// What is told again after a loss, or has something stored behind it, stays;
// the rest goes, a bounded part at a time and without leaving holes.
func TestDoubt(t *testing.T) {
	bd := newBed(t, 2, Options{MaxBlocks: 1 << 17})
	shared, lone := bd.fresh(400), bd.fresh(30_000)
	for _, id := range bd.ids {
		bd.store(id, shared)
	}
	bd.store(bd.ids[0], lone)
	apply(bd, 0, storing(shared, 0, 16)) // second owners
	host := storing(shared, 0, 8)
	host.Tier = Host
	apply(bd, 0, host)
	apply(bd, 0, Event{Kind: Stored, HasParent: true, Parent: 1, Blocks: bd.fresh(2)})
	if err := bd.ix.Doubt(bd.ids[0]); err != nil {
		t.Fatal(err)
	}
	st, _ := bd.ix.TargetStats(bd.ids[0])
	if st.Doubtful != 30_408 || st.Waiting != 0 || st.Blocks != [Tiers]int{30_400, 8} {
		t.Fatalf("in doubt: %+v", st)
	}
	chain := chainLocals(nil, locals(shared))
	if d := depths(bd.ix, chain); d[0] != 400 {
		t.Errorf("what is in doubt counts: %d", d[0])
	}
	tail := bd.fresh(3)
	apply(bd, 0, Event{Kind: Stored, HasParent: true, Parent: shared[99].External, Blocks: tail}) // 0 to 99 and itself
	apply(bd, 0, storing(shared, 120, 121))                                                       // 100 to 120
	apply(bd, 0, removal(lone[29_990:]))                                                          // gone in any case
	if st, _ = bd.ix.TargetStats(bd.ids[0]); st.Doubtful != 30_408-121-10 {
		t.Errorf("%d in doubt", st.Doubtful)
	}
	if got := bd.ix.InDoubt(bd.ids[0], chain); got != 400 { // 0 to 120 are certain on the device, 0 to 7 not on the host
		t.Errorf("in doubt up to block %d", got)
	}
	if got := bd.ix.InDoubt(bd.ids[0], chain[:121]); got != 8 {
		t.Errorf("of the certain ones in doubt up to block %d", got)
	}
	if got := bd.ix.InDoubt(bd.ids[0], chainLocals(nil, locals(lone))); got != 29_990 { // what is gone is not
		t.Errorf("of what was removed in doubt up to block %d", got)
	}
	for _, id := range []ID{bd.ids[1], 99} {
		if got := bd.ix.InDoubt(id, chain); got != 0 {
			t.Errorf("target %d has no doubt: %d", id, got)
		}
	}
	calls := 0
	for more := true; more; calls++ {
		var err error
		if more, err = bd.ix.Settle(bd.ids[0]); err != nil {
			t.Fatal(err)
		}
		if st, _ = bd.ix.TargetStats(bd.ids[0]); st.Holes > 0 {
			t.Fatalf("%d holes on the way", st.Holes)
		}
	}
	st, _ = bd.ix.TargetStats(bd.ids[0])
	if st.Blocks != [Tiers]int{124} || st.Doubtful != 0 || st.Unconfirmed != 30_408-121-10 || calls < 5 {
		t.Errorf("settled in %d calls: %+v", calls, st)
	}
	if d := depths(bd.ix, chain); d[0] != 121 || d[1] != 400 {
		t.Errorf("held %d", d[:2])
	}
	apply(bd, 0, removal(shared[:1]))
	if d := depths(bd.ix, chain); d[0] != 0 {
		t.Errorf("a second owner outlived the doubt: %d", d[0])
	}
	if got := bd.ix.InDoubt(bd.ids[0], chain); got != 0 {
		t.Errorf("settled, and in doubt up to block %d", got)
	}
	if more, err := bd.ix.Settle(bd.ids[1]); more || err != nil {
		t.Errorf("a target without doubt: %v, %v", more, err)
	}
	if _, err := bd.ix.Settle(99); !errors.Is(err, ErrNoTarget) {
		t.Error(err)
	}
	if err := bd.ix.Doubt(99); !errors.Is(err, ErrNoTarget) {
		t.Error(err)
	}
}
