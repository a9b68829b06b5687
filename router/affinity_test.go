package router

import (
	"fmt"
	"testing"
	"time"

	"adpdeck/router/model"
)

// TestAffinityBindsOnDispatch: the first turn that its engine took binds its
// conversation to worker and rank; until then nothing is bound, and a turn that
// comes meanwhile goes after it.
func TestAffinityBindsOnDispatch(t *testing.T) {
	b := newBench(t, 2, 3, model.PolicyDefault, withBlocks, inMode(model.ModeLockstep))
	id, home := b.submit(t, "a", of(prompt(1, 2, 3)))
	if c := b.conv(t, "a"); c.Pin != model.PinNone {
		t.Fatalf("bound before it was dispatched: %+v", c)
	}
	second, got := b.submit(t, "a", of(prompt(1, 2, 3, 4)))
	if got != home {
		t.Fatalf("the second turn went to %s, the first is on its way to %s", got, home)
	}
	b.step(t, home.Worker, nil, id, second)
	c := b.conv(t, "a")
	if c.Pin != model.PinAuto || c.Bound != home || c.Open != 2 || !c.IdleSince.IsZero() {
		t.Fatalf("%+v", c)
	}
	if d := b.lastDecision(t); d.Why != "after its first turn" {
		t.Fatalf("why %q", d.Why)
	}
	b.Done(id, model.OutcomeOK)
	b.clock.advance(time.Minute)
	b.Done(second, model.OutcomeOK)
	if c := b.conv(t, "a"); c.IdleSince != b.clock.Now() {
		t.Fatalf("idle since %v", c.IdleSince)
	}
	_, got = b.place(t, "a", nil, of(prompt(7, 8, 9)))
	if d := b.lastDecision(t); got != home || d.Why != "bound" || d.Placement.Phase != model.PhaseBound || d.WorkerWhy != "bound" {
		t.Fatalf("went to %s, why %q, phase %q", got, d.Why, d.Placement.Phase)
	}
}

// TestAffinityEnds: after the TTL without an open turn, when its rank is gone,
// when the first dispatch failed, when it is switched off, and by an operator.
func TestAffinityEnds(t *testing.T) {
	var held int64
	cases := map[string]struct {
		do    func(t *testing.T, b *bench, home model.Target)
		stays bool
	}{
		"at once":          {func(*testing.T, *bench, model.Target) {}, true},
		"just before":      {func(_ *testing.T, b *bench, _ model.Target) { b.clock.advance(30*time.Minute - 1) }, true},
		"idle for the TTL": {func(_ *testing.T, b *bench, _ model.Target) { b.clock.advance(30 * time.Minute) }, false},
		"open turn": {func(t *testing.T, b *bench, _ model.Target) {
			held, _ = b.place(t, "a", nil)
			b.clock.advance(time.Hour)
		}, true},
		"shorter TTL": {func(t *testing.T, b *bench, _ model.Target) {
			b.must(t, set(noAffinity, "10"))
			b.clock.advance(11 * time.Second)
		}, false},
		"off":                {func(t *testing.T, b *bench, _ model.Target) { b.must(t, set(noAffinity, "none")) }, false},
		"off and on":         {func(t *testing.T, b *bench, _ model.Target) { b.must(t, set(noAffinity, "none")); b.must(t, undo(0)) }, true},
		"rank gone":          {func(_ *testing.T, b *bench, home model.Target) { _ = b.Block(home, true) }, false},
		"rank gone and back": {func(_ *testing.T, b *bench, home model.Target) { _ = b.Block(home, true); _ = b.Block(home, false) }, true},
		"draining":           {func(t *testing.T, b *bench, home model.Target) { b.must(t, onRank(model.VerbDrain, home)) }, true},
		"evicted":            {func(t *testing.T, b *bench, _ model.Target) { b.must(t, onConvs(model.VerbEvict, nil, "a")) }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, 4, model.PolicyDefault, inMode(model.ModeKV))
			home := b.turn(t, "a", nil)
			c.do(t, b, home)
			_ = held
			_, got := b.submit(t, "a")
			d := b.steer.choice
			if bound := d.By == model.ByBinding; bound != c.stays || c.stays && got != home {
				t.Fatalf("went to %s by %s, was bound to %s, want it kept: %v", got, d.By, home, c.stays)
			}
		})
	}
}

func TestFailedDispatchBindsNothing(t *testing.T) {
	for outcome, bound := range map[model.Outcome]bool{model.OutcomeError: false, model.OutcomePanic: false, model.OutcomeCancelled: true, model.OutcomeOK: true} {
		b := newBench(t, 1, 4, model.PolicyDefault, inMode(model.ModeKV))
		id, _ := b.place(t, "a", nil)
		b.Done(id, outcome)
		if got := b.conv(t, "a").Pin == model.PinAuto; got != bound {
			t.Errorf("%s: bound %v", outcome, got)
		}
		id, _ = b.place(t, "b", nil)
		b.FirstToken(id, model.Usage{Ran: model.Target{Rank: model.NoRank}})
		b.Done(id, outcome)
		if b.conv(t, "b").Pin != model.PinAuto {
			t.Errorf("%s after the first token: not bound", outcome)
		}
	}
}

// TestServedElsewhereStaysBound: where a second turn was served on the bound
// rank, the first one's failure does not unbind the conversation.
func TestServedElsewhereStaysBound(t *testing.T) {
	b := newBench(t, 1, 4, model.PolicyDefault, inMode(model.ModeKV))
	first, home := b.place(t, "a", nil)
	second, got := b.place(t, "a", nil)
	if got != home {
		t.Fatalf("the second turn went to %s, bound to %s", got, home)
	}
	b.FirstToken(second, model.Usage{Ran: home})
	b.Done(second, model.OutcomeOK)
	b.Done(first, model.OutcomeError)
	if c := b.conv(t, "a"); c.Pin != model.PinAuto || c.Bound != home {
		t.Fatalf("unbound by the first turn's failure: %+v", c)
	}
}

// TestHardWaitsAndSoftGivesWay where the bound rank is at its cap.
func TestHardWaitsAndSoftGivesWay(t *testing.T) {
	for mode, stays := range map[string]bool{model.AffinityHard: true, model.AffinitySoft: false} {
		t.Run(mode, func(t *testing.T) {
			b := newBench(t, 1, 2, model.PolicyDefault, inMode(model.ModeKV, fieldValue("router_session_affinity_mode", mode)))
			_, home := b.place(t, "a", nil)
			for range 7 {
				b.place(t, "a", nil)
			}
			_, got := b.submit(t, "a")
			if (got == home) != stays {
				t.Fatalf("went to %s, bound to the full %s", got, home)
			}
			if c := b.conv(t, "a"); c.Bound != home {
				t.Fatalf("the binding moved: %+v", c)
			}
		})
	}
}

// TestOneBindingForBothTiers: what one tier bound holds in the other's modes,
// pins and migrations stand above, an explicit rank on a first turn binds.
func TestOneBindingForBothTiers(t *testing.T) {
	b := newBench(t, 2, 3, model.PolicyConversation, inMode(model.ModeKV))
	home := b.turn(t, "a", nil)
	b.must(t, set(model.FieldRouterMode, "round_robin"))
	for range 3 {
		if got := b.turn(t, "a", nil); got != home {
			t.Fatalf("round robin: went to %s, bound to %s", got, home)
		}
	}
	other := b.turn(t, "b", nil)
	b.must(t, set(model.FieldRouterMode, "lockstep"))
	if got := b.turn(t, "b", nil); got != other {
		t.Fatalf("lockstep: went to %s, the conversation policy bound it to %s", got, other)
	}
	to := at("w1", 2)
	if home == to {
		to = at("w0", 0)
	}
	b.must(t, onConvs(model.VerbMigrate, &to, "a"))
	if got := b.turn(t, "a", nil); got != to {
		t.Fatalf("migrated: went to %s", got)
	}
	pinned := at("w0", 1)
	b.must(t, onConvs(model.VerbPin, &pinned, "a"))
	if got := b.turn(t, "a", nil); got != pinned {
		t.Fatalf("pinned: went to %s", got)
	}
	if d := b.lastDecision(t); d.Why != "operator pin (bob)" || d.Placement.Phase != model.PhaseOperator {
		t.Fatalf("why %q", d.Why)
	}
	b.must(t, onConvs(model.VerbUnpin, nil, "a"))
	if got := b.turn(t, "a", nil, asks(at("w0", 0))); got != to {
		t.Fatalf("a binding beats a later explicit rank: %s", got)
	}
	if d := b.lastDecision(t); d.Conflict != "asked for w0/0, bound to "+to.String() && to != at("w0", 0) {
		t.Fatalf("conflict %q", d.Conflict)
	}
	if got := b.turn(t, "c", nil, asks(at("w1", 1))); got != at("w1", 1) {
		t.Fatalf("an explicit rank: %s", got)
	}
	if c := b.conv(t, "c"); c.Pin != model.PinAuto || c.Bound != at("w1", 1) {
		t.Fatalf("an explicit rank on a first turn binds: %+v", c)
	}
}

// TestTenantsKeepTheirShare (report A6): a tenant that floods the table pushes
// out its own bindings, though others have not been used for longer and are
// not tracked any more.
func TestTenantsKeepTheirShare(t *testing.T) {
	b := newBench(t, 2, 4, model.PolicyDefault, inMode(model.ModeKV, fieldValue(model.FieldMaxSessions, "40")), func(c *Config) { c.MaxConvs = 60 })
	turn := func(tenant string, i int) model.Target {
		return b.turn(t, "", nil, func(q *model.Request) { q.Conv = model.ConvKey{Tenant: tenant, ID: fmt.Sprint(tenant, i)} })
	}
	var homes []model.Target
	for i := range 10 {
		homes = append(homes, turn("small", i))
	}
	for i := range 500 {
		turn("flood", i)
		b.clock.advance(time.Second)
	}
	if n := b.binds.Len(); n != 40 || len(b.owners.byKey) != 40 || b.owners.byName["flood"].uses.Len() != 30 {
		t.Fatalf("%d bindings, %d noted", n, len(b.owners.byKey))
	}
	for i := 470; i < 500; i++ {
		if _, ok := b.binds.Get(model.ConvKey{Tenant: "flood", ID: fmt.Sprint("flood", i)}); !ok {
			t.Fatalf("flood%d is not bound: the longest unused goes first", i)
		}
	}
	for i, home := range homes {
		if got := turn("small", i); got != home || b.steer.choice.By != model.ByBinding {
			t.Fatalf("small%d went to %s by %s, was on %s", i, got, b.steer.choice.By, home)
		}
	}
	for i := range 30 { // a third one gets its share
		turn("late", i)
	}
	if n := b.owners.byName["late"].uses.Len(); n != 13 {
		t.Fatalf("late has %d bindings", n)
	}
	b.clock.advance(31 * time.Minute) // out of the tracker, and the TTL is over
	for i := range 100 {
		b.submit(t, "", func(q *model.Request) { q.Conv = model.ConvKey{Tenant: "other", ID: fmt.Sprint(i)} })
	}
	if turn("small", 3); b.steer.choice.By == model.ByBinding {
		t.Fatal("a binding outlived its TTL with the conversation forgotten")
	}
	if n := b.binds.Len(); n != 1 {
		t.Fatalf("%d bindings are left", n)
	}
	for i := range 10 {
		turn("more", i)
	}
	b.must(t, set(model.FieldMaxSessions, "5"))
	if n := b.binds.Len(); n != 5 || len(b.owners.byKey) != 5 {
		t.Fatalf("%d bindings, %d noted", n, len(b.owners.byKey))
	}
}

// TestTenantsAndModelsKeepTheirOwn (reports A5 and A6): one id under several
// tenants or models is as many conversations.
func TestTenantsAndModelsKeepTheirOwn(t *testing.T) {
	b := newBench(t, 2, 4, model.PolicyDefault, inMode(model.ModeKV))
	key := func(tenant, m string) func(*model.Request) {
		return func(q *model.Request) { q.Conv = model.ConvKey{Tenant: tenant, Model: m, ID: "chat-1"} }
	}
	homes := map[string]model.Target{}
	for round := range 3 {
		for _, tenant := range []string{"A", "B"} {
			for _, m := range []string{"m1", "m2", "m3"} {
				_, got := b.place(t, "", nil, key(tenant, m))
				if round > 0 && got != homes[tenant+m] {
					t.Fatalf("%s/%s moved from %s to %s", tenant, m, homes[tenant+m], got)
				}
				homes[tenant+m] = got
			}
		}
	}
	b.must(t, model.Command{Verb: model.VerbEvict, Convs: []model.ConvKey{{Tenant: "A", Model: "m1", ID: "chat-1"}}})
	if bind, ok := b.binds.Get(model.ConvKey{Tenant: "B", Model: "m1", ID: "chat-1"}); !ok || bind.Target != homes["Bm1"] {
		t.Fatal("evicting one tenant's took the other's")
	}
}
