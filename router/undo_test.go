package router

import (
	"fmt"
	"strings"
	"testing"

	"adpdeck/router/model"
	"adpdeck/router/pin"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// controlled is everything that commands change.
type controlled struct {
	Settings model.Settings
	Drain    map[model.Target]bool
	Bindings map[model.ConvKey]pin.Binding
	Pins     map[model.ConvKey]pin.Pin
}

func (b *bench) controlled() controlled {
	c := controlled{*b.settings, map[model.Target]bool{}, map[model.ConvKey]pin.Binding{}, map[model.ConvKey]pin.Pin{}}
	for _, w := range b.workers {
		for k := range w.ranks {
			c.Drain[w.ranks[k].load.Target] = w.ranks[k].drain
		}
	}
	for _, e := range b.binds.Entries() {
		c.Bindings[e.Key] = e.Binding
	}
	for k := range b.convs.byKey {
		if p, ok := b.ops.Get(k); ok {
			c.Pins[k] = p
		}
	}
	if len(c.Settings.Weights) == 0 {
		c.Settings.Weights = nil
	}
	return c
}

// TestUndoInReverse: random accepted commands, undos among them, then each
// undone in reverse order, gives the first state back; redoing the undos gives
// the last.
func TestUndoInReverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(t, 2, 3, model.PolicyConversation, func(c *Config) {
			c.Settings.AttentionDpConfig.KVCacheRoutingMaxSessions = 6
			c.Settings.Weights = []model.Weight{{Target: at("w0", 1), Weight: 0.5}}
		})
		for i := range 6 {
			b.turn(t, string(rune('a'+i)), nil)
		}
		first := b.controlled()
		var versions []uint64
		for range rapid.IntRange(1, 12).Draw(t, "n") {
			if reply := b.do(randomCommand(t, b)); reply.Accepted {
				versions = append(versions, reply.Version)
			}
		}
		last := b.controlled()
		var undos []uint64
		for i := len(versions) - 1; i >= 0; i-- {
			rev := b.history.revision(versions[i])
			if rev.UndoneBy != 0 { // taken back on the way, or by another undo
				continue
			}
			undos = append(undos, b.must(t, undo(versions[i])).Version)
		}
		if diff := cmp.Diff(first, b.controlled()); diff != "" {
			t.Fatalf("undone: %s", diff)
		}
		for i := len(undos) - 1; i >= 0; i-- {
			b.must(t, undo(undos[i]))
		}
		if diff := cmp.Diff(last, b.controlled()); diff != "" {
			t.Fatalf("redone: %s", diff)
		}
	})
}

func randomCommand(t *rapid.T, b *bench) model.Command {
	target := at(rapid.SampledFrom([]string{"w0", "w1"}).Draw(t, "worker"), rapid.IntRange(0, 2).Draw(t, "rank"))
	convs := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}), 1, 4).Draw(t, "convs")
	switch rapid.IntRange(0, 9).Draw(t, "verb") {
	case 0:
		return set(model.FieldLoadBalanceWeight, fmt.Sprint(rapid.IntRange(0, 16).Draw(t, "beta")))
	case 1:
		return set(model.FieldPolicy, rapid.SampledFrom([]string{"default", "kv_aware", "conversation"}).Draw(t, "policy"))
	case 2:
		return set(model.FieldMaxSessions, fmt.Sprint(rapid.IntRange(1, 7).Draw(t, "sessions")))
	case 3:
		return setWeight(target, fmt.Sprint(rapid.SampledFrom([]float64{0, 0.5, 1, 2}).Draw(t, "weight")))
	case 4:
		return onRank(rapid.SampledFrom([]model.Verb{model.VerbDrain, model.VerbReady}).Draw(t, "avail"), target)
	case 5:
		return onConvs(model.VerbPin, &target, convs...)
	case 6:
		return onConvs(rapid.SampledFrom([]model.Verb{model.VerbUnpin, model.VerbEvict}).Draw(t, "off"), nil, convs...)
	case 7:
		return onConvs(model.VerbMigrate, &target, convs...)
	case 8:
		return set(model.FieldLowOccupancyTimeoutIters, fmt.Sprint(rapid.IntRange(0, 60).Draw(t, "iters")))
	}
	return undo(uint64(rapid.IntRange(0, int(b.version)).Draw(t, "undo")))
}

func TestUndoRefusesWhatChangedSince(t *testing.T) {
	b := newBench(t, 1, 4, model.PolicyDefault)
	b.must(t, set(model.FieldLoadBalanceWeight, "2"))    // v2
	b.must(t, set(model.FieldLoadBalanceWeight, "3"))    // v3
	b.must(t, set(model.FieldMatchRateThreshold, "0.5")) // v4
	reply := b.do(undo(2))
	if reply.Accepted || !strings.Contains(reply.Refusal.Error(), "undo v2: v3 changed the same since; undo v3 first") {
		t.Fatalf("%+v", reply)
	}
	b.must(t, undo(3)) // v5
	if reply := b.do(undo(3)); reply.Accepted || reply.Refusal.Error() != "undo v3: v5 took it back already; undo v5 to have it again" {
		t.Fatalf("%v", reply.Refusal)
	}
	b.must(t, undo(2)) // v6: v3 and v5 cancel out
	if got := b.settings.AttentionDpConfig; got.KVCacheRoutingLoadBalanceWeight != 1 || got.KVCacheRoutingMatchRateThreshold != 0.5 {
		t.Fatalf("%+v", got)
	}
	s := b.Snapshot()
	marks := map[uint64][2]uint64{}
	for _, r := range s.Revisions {
		marks[r.Version] = [2]uint64{r.Undoes, r.UndoneBy}
	}
	if diff := cmp.Diff(map[uint64][2]uint64{1: {}, 2: {0, 6}, 3: {0, 5}, 4: {}, 5: {3, 0}, 6: {2, 0}}, marks); diff != "" {
		t.Fatal(diff)
	}
}

// TestUndoTwiceAndRedo: undo without a version goes back one change after the
// other; an undo that is undone puts the change in force again.
func TestUndoTwiceAndRedo(t *testing.T) {
	b := newBench(t, 1, 4, model.PolicyDefault)
	b.turn(t, "a", nil)
	b.must(t, set(model.FieldLoadBalanceWeight, "4"))                 // v2
	b.must(t, onConvs(model.VerbPin, ptr(at("w0", 3)), "a"))          // v3
	if r := b.must(t, undo(0)); r.What != "undo v3 (pin a to w0/3)" { // v4
		t.Fatalf("%q", r.What)
	}
	if r := b.must(t, undo(0)); r.What != "undo v2 (load balance β 1.00 → 4.00)" { // v5
		t.Fatalf("%q", r.What)
	}
	if r := b.do(undo(0)); r.Accepted || r.Refusal.Code != model.RefusedUndo {
		t.Fatalf("%+v", r)
	}
	b.must(t, undo(5)) // v6: β 4 again
	if b.settings.AttentionDpConfig.KVCacheRoutingLoadBalanceWeight != 4 {
		t.Fatal("the redo did not act")
	}
	if rev := b.history.revision(2); rev.UndoneBy != 0 {
		t.Fatalf("v2 is in force again: %+v", rev)
	}
	if r := b.must(t, undo(0)); !strings.HasPrefix(r.What, "undo v2 ") {
		t.Fatalf("%q", r.What)
	}
}

// TestUndoKeepsWorkersEligible: restoring must not leave a worker without a
// rank, though each step was allowed in its turn.
func TestUndoKeepsWorkersEligible(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault)
	b.must(t, onRank(model.VerbDrain, at("w0", 0))) // v2
	b.must(t, onRank(model.VerbReady, at("w0", 0))) // v3
	b.must(t, onRank(model.VerbDrain, at("w0", 1))) // v4
	if r := b.do(undo(3)); r.Accepted || r.Refusal.Code != model.RefusedLast {
		t.Fatalf("%+v", r)
	}
}

// TestUndoMemoryIsBounded: what undo remembers does not grow with use.
func TestUndoMemoryIsBounded(t *testing.T) {
	b := newBench(t, 1, 4, model.PolicyDefault)
	var names []string
	for i := range 3000 {
		names = append(names, fmt.Sprint("c", i))
		b.turn(t, names[i], nil)
	}
	for i := range 60 {
		b.must(t, onConvs(model.VerbMigrate, ptr(at("w0", i%4)), names...))
	}
	if b.history.undoSize > maxUndo || len(b.history.undo) > 22 || b.answered > maxAnswerItems {
		t.Fatalf("%d changes in %d records, %d items in answers", b.history.undoSize, len(b.history.undo), b.answered)
	}
	if r := b.do(undo(3)); r.Accepted || !strings.Contains(r.Refusal.Error(), "too old") {
		t.Fatalf("%+v", r.Refusal)
	}
	b.must(t, undo(0))
}
