package router

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"adpdeck/router/model"
)

// TestBindingsEndUnasked: bindings that are over leave lists and counts without
// their conversations' next turn, also where a screen alone asks.
func TestBindingsEndUnasked(t *testing.T) {
	b := newBench(t, 2, 4, model.PolicyDefault, inMode(model.ModeKV, fieldValue(noAffinity, "60")))
	sub := b.Subscribe()
	sub.Start()
	for i := range 5 {
		b.turn(t, fmt.Sprint("c", i), nil)
		b.clock.advance(10 * time.Second)
	}
	open, _ := b.place(t, "c0", nil) // 50 s: c0 is in use again
	b.must(t, onConvs(model.VerbMigrate, ptr(at("w1", 0)), "c1"))
	sub.Take(10)
	b.clock.advance(59 * time.Second) // 109 s: c4 was bound at 40
	s := b.Snapshot()
	if s.Totals.Pins != 2 {
		t.Fatalf("%d bindings are counted", s.Totals.Pins)
	}
	pins := 0
	for _, row := range s.Ranks {
		pins += row.Pins
	}
	if pins != 2 {
		t.Errorf("%d bindings at the ranks", pins)
	}
	for _, c := range s.Convs {
		want := map[string]model.PinKind{"c0": model.PinAuto, "c1": model.PinMigrated}[c.Key.ID]
		if c.Pin != want && (want != "" || c.Pin != model.PinNone) {
			t.Errorf("%s: pin %q", c.Key.ID, c.Pin)
		}
	}
	c, _ := sub.Take(10)
	if c == nil || c.Totals == nil || c.Totals.Pins != 2 || len(c.Convs) < 3 {
		t.Errorf("the change does not tell: %+v", c)
	}
	b.Done(open, model.OutcomeOK)
	b.clock.advance(59 * time.Second)
	if c := b.conv(t, "c0"); c.Pin != model.PinAuto {
		t.Errorf("ended %v early", time.Second)
	}
	b.clock.advance(time.Second)
	if c, _ := sub.Take(10); c == nil || c.Totals == nil || c.Totals.Pins != 1 {
		t.Errorf("not ended by a screen: %+v", c)
	}
}

// TestBindingsEndInBounds: one call looks at a bounded part of many, and a few
// calls see to all.
func TestBindingsEndInBounds(t *testing.T) {
	b := newBench(t, 2, 4, model.PolicyDefault, inMode(model.ModeKV, fieldValue(noAffinity, "60")), func(c *Config) { c.Record = false })
	for i := range 3*maxEnded - 100 {
		b.turn(t, fmt.Sprint("c", i), nil)
	}
	b.clock.advance(time.Minute)
	for _, want := range []int{2*maxEnded - 100, maxEnded - 100, 0} {
		if n := b.Snapshot().Totals.Pins; n != want || len(b.owners.byKey) != want || b.owners.all.Len() != want {
			t.Fatalf("%d bindings, %d noted, want %d", n, len(b.owners.byKey), want)
		}
	}
}

// TestBindingsEndInTime: over random turns no binding is listed that a turn
// would not follow, and none ends before its time.
func TestBindingsEndInTime(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		b := newBench(t, 2, 4, model.PolicyDefault, inMode(model.ModeKV, fieldValue(noAffinity, "30")))
		type state struct {
			open []int64
			idle time.Time
			tied bool
		}
		convs := make([]state, 12)
		for range 400 {
			i := rng.IntN(len(convs))
			c := &convs[i]
			switch {
			case len(c.open) > 0 && rng.IntN(2) == 0:
				b.Done(c.open[0], model.OutcomeOK)
				if c.open = c.open[1:]; len(c.open) == 0 {
					c.idle = b.clock.Now()
				}
			case len(c.open) < 2 && rng.IntN(3) > 0:
				id, _ := b.place(t, fmt.Sprint("c", i), nil)
				c.open, c.tied = append(c.open, id), true
			}
			b.clock.advance(time.Duration(rng.IntN(4000)) * time.Millisecond)
			want := 0
			for k := range convs {
				if c := &convs[k]; c.tied && (len(c.open) > 0 || b.clock.Now().Sub(c.idle) < 30*time.Second) {
					want++
				} else {
					c.tied = false
				}
			}
			if n := b.Snapshot().Totals.Pins; n != want {
				t.Fatalf("seed %d: %d bindings, want %d", seed, n, want)
			}
		}
	}
}

// TestAnOldTurnEndsNoNewBinding: a turn that was open at a worker when it left
// fails after its conversation was bound anew to the same rank of the next one;
// what it had bound is gone, and the new binding stays.
func TestAnOldTurnEndsNoNewBinding(t *testing.T) {
	b := newBench(t, 0, 0, model.PolicyDefault, room(2), inMode(model.ModeKV))
	b.join(t, spec("w0", 1))
	old, _ := b.routed(t, "c")
	b.leave(t, "w0")
	b.join(t, spec("w0", 1))
	id, _ := b.routed(t, "c")
	b.Done(old, model.OutcomeError)
	if c := b.conv(t, "c"); c.Bound != at("w0", 0) || c.Pin != model.PinAuto {
		t.Fatalf("%+v", c)
	}
	b.Done(id, model.OutcomeError)
	if c := b.conv(t, "c"); c.Pin != model.PinNone {
		t.Fatalf("%+v", c)
	}
}
