package router

import (
	"fmt"
	"strings"
	"testing"

	"adpdeck/router/model"
)

// TestUndoChain: after each undo of an undo the marks say which versions are in
// force, and the text names the change and not each undo inside the next.
func TestUndoChain(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault)
	b.must(t, set(model.FieldLoadBalanceWeight, "4")) // v2
	for v := uint64(3); v <= 53; v++ {
		got := b.must(t, undo(v-1))
		want := fmt.Sprintf("undo v%d: v2 again (load balance β 1.00 → 4.00)", v-1)
		switch {
		case v == 3:
			want = "undo v2 (load balance β 1.00 → 4.00)"
		case v%2 == 1:
			want = fmt.Sprintf("undo v%d: v2 taken back again (load balance β 1.00 → 4.00)", v-1)
		}
		if got.What != want {
			t.Fatalf("v%d: %q, want %q", v, got.What, want)
		}
		set := b.settings.AttentionDpConfig.KVCacheRoutingLoadBalanceWeight == 4
		for i := uint64(2); i <= v; i++ {
			rev, off := b.history.revision(i), (v-i)%2 == 1
			if (rev.UndoneBy != 0) != off || off && rev.UndoneBy != i+1 || i == 2 && set == off {
				t.Fatalf("after v%d, β set %v: v%d is marked as undone by v%d", v, set, i, rev.UndoneBy)
			}
		}
	}
	if r := b.do(undo(0)); r.Accepted || !strings.Contains(r.Refusal.Message, "nothing to take back") {
		t.Fatalf("v2 is taken back, and was offered once more: %+v", r)
	}
}

// TestUndoSaysWhatItCannotBringBack: neither the reply nor the event claims a
// binding to a rank that has left; a pin that comes back without its rank says so.
func TestUndoSaysWhatItCannotBringBack(t *testing.T) {
	b := newBench(t, 2, 2, model.PolicyConversation, room(8), withBlocks)
	b.turn(t, "bound", nil, asks(at("w1", 1)))
	b.turn(t, "pinned", nil)
	b.must(t, onConvs(model.VerbEvict, nil, "bound"))             // v2
	b.must(t, onConvs(model.VerbPin, ptr(at("w1", 0)), "pinned")) // v3
	b.must(t, onConvs(model.VerbUnpin, nil, "pinned"))            // v4
	b.leave(t, "w1")
	got := b.must(t, undo(2))
	if e := b.Snapshot().Events[0]; !strings.HasSuffix(got.What, "1 conversation not bound again: the rank has left") || e.After != "not bound" {
		t.Fatalf("%q, event %q → %q", got.What, e.Before, e.After)
	}
	got = b.must(t, undo(4))
	if !strings.HasSuffix(got.What, "operator pins of 1 conversation wait for a rank that does not answer") {
		t.Fatalf("%q", got.What)
	}
	b.refused(t, ErrDown, "pinned")
	b.must(t, undo(got.Version)) // takes the pin away again, its worker gone or not
	b.turn(t, "pinned", nil)
}

// TestMigrateToWhereItIs says so, and holds it there.
func TestMigrateToWhereItIs(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyConversation)
	is := b.turn(t, "a", nil)
	if r := b.must(t, onConvs(model.VerbMigrate, &is, "a")); r.What != fmt.Sprintf("migrate a to %s, where it is", is) {
		t.Fatalf("%q", r.What)
	}
	if c := b.conv(t, "a"); c.Pin != model.PinMigrated || c.Bound != is {
		t.Fatalf("%+v", c)
	}
}

// TestMigrateNowhere does not say of a rank that does not answer that it takes
// new work.
func TestMigrateNowhere(t *testing.T) {
	b := newBench(t, 1, 1, model.PolicyConversation)
	b.turn(t, "a", nil)
	move := onConvs(model.VerbMigrate, nil, "a")
	if r := b.do(move); r.Refusal.Message != "migrate a: no rank but w0/0 takes new work" {
		t.Fatalf("%v", r.Refusal)
	}
	if err := b.Live("w0", 0, false, ""); err != nil {
		t.Fatal(err)
	}
	if r := b.do(move); r.Refusal.Message != "migrate a: no rank takes new work" {
		t.Fatalf("%v", r.Refusal)
	}
}

// TestRefusalsNameNoOperator: a client is told that an operator's pin holds it,
// not whose.
func TestRefusalsNameNoOperator(t *testing.T) {
	b := newBench(t, 1, 1, model.PolicyDefault)
	b.turn(t, "a", nil)
	b.must(t, onConvs(model.VerbPin, ptr(at("w0", 0)), "a"))
	if err := b.Live("w0", 0, false, "at 10.0.0.1"); err != nil {
		t.Fatal(err)
	}
	if err := b.refused(t, ErrDown, "a"); strings.Contains(err.Error(), "bob") || strings.Contains(err.Error(), "10.0.0.1") {
		t.Fatal(err)
	}
}
