package cluster

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"adpdeck/router/model"
)

func newAffinity(ttl float64, limit int) *Affinity {
	cfg := model.DefaultClusterConfig()
	cfg.SessionAffinityTTLSecs = &ttl
	a := NewAffinity(&cfg)
	a.limit = limit
	return a
}

func key(tenant, name, id string) model.ConvKey {
	return model.ConvKey{Tenant: tenant, Model: name, ID: id}
}

// bind runs one whole first turn of a conversation.
func bind(t *testing.T, a *Affinity, now time.Duration, k model.ConvKey, to model.Target) {
	t.Helper()
	if h, _ := a.Acquire(now, k); h != HoldFirst {
		t.Fatalf("acquire %v: hold %d", k, h)
	}
	if !a.Bind(k, to) {
		t.Fatalf("bind %v", k)
	}
	a.Release(now, k, to)
}

func TestAffinityLife(t *testing.T) {
	a := newAffinity(10, 8)
	s := time.Second
	k, to := key("t", "m", "c"), target("w0", 3)
	want := func(at time.Duration, hold Hold, where model.Target) {
		t.Helper()
		if h, got := a.Acquire(at, k); h != hold || got != where {
			t.Errorf("at %v: hold %d to %v, want %d to %v", at, h, got, hold, where)
		}
	}
	nowhere := target("", model.NoRank)
	want(0, HoldFirst, nowhere)
	want(1*s, HoldStarting, nowhere) // bound only after success
	a.Fail(k, to)
	want(2*s, HoldFirst, nowhere) // a failed dispatch leaves nothing
	a.Bind(k, to)
	if a.Bind(k, target("w1", 0)) {
		t.Error("the first binding wins")
	}
	a.Release(4*s, k, to)
	want(13*s, HoldBound, to) // renewed by use
	want(14*s, HoldBound, to)
	a.Release(15*s, k, to)
	if n := a.Reap(100 * s); n != 0 {
		t.Errorf("reaped %d while a lease runs", n)
	}
	a.Release(100*s, k, to)
	a.Release(100*s, k, to) // one too many
	if n := a.Reap(109 * s); n != 0 {
		t.Errorf("reaped %d too early", n)
	}
	if n := a.Reap(110 * s); n != 1 {
		t.Errorf("reaped %d, want 1", n)
	}
	want(111*s, HoldFirst, nowhere)
	a.Bind(k, to)
	a.Release(112*s, k, to)
	if a.Fail(k, target("w9", 9)) {
		t.Error("a failure elsewhere is not the binding's")
	}
	if n := a.ForgetTarget(target("w0", model.NoRank)); n != 1 {
		t.Errorf("forgot %d", n)
	}
	want(113*s, HoldFirst, nowhere)
	want(113*s+startLimit, HoldFirst, nowhere) // the first was never heard of again
	if n := a.Reap(113*s + 3*startLimit); n != 1 || len(a.sessions) != 0 || len(a.tenants) != 0 {
		t.Errorf("reaped %d, %d left", n, len(a.sessions))
	}
	if h, _ := a.Acquire(0, key("t", "m", "")); h != HoldNone || a.Counters().Keyless != 1 {
		t.Error("keyless")
	}
	cfg := model.DefaultClusterConfig()
	bind(t, a, 0, k, to)
	cfg.SessionAffinityTTLSecs = nil
	a.Configure(&cfg)
	want(0, HoldNone, nowhere)
	if a.Counters().Bound != 0 {
		t.Error("affinity is off and keeps bindings")
	}
}

// Report A5: one conversation id on several models keeps a pin for each.
func TestPinsAreByModel(t *testing.T) {
	a := newAffinity(1800, MaxSessions)
	where := func(m, c int) model.Target { return target(fmt.Sprintf("w%d", m), c%8) }
	for c := range 100 {
		for m := range 5 {
			bind(t, a, 0, key("", fmt.Sprint(m), fmt.Sprint(c)), where(m, c))
		}
	}
	for c := range 100 {
		for m := range 5 {
			if h, got := a.Acquire(1, key("", fmt.Sprint(m), fmt.Sprint(c))); h != HoldBound || got != where(m, c) {
				t.Fatalf("model %d, conversation %d moved to %v", m, c, got)
			}
		}
	}
}

// Report A6: tenants neither see nor push out each other's pins.
func TestPinsAreByTenant(t *testing.T) {
	a := newAffinity(1800, 40)
	ka, kb := key("A", "m", "chat-1"), key("B", "m", "chat-1")
	bind(t, a, 0, ka, target("w0", 1))
	bind(t, a, 0, kb, target("w1", 2))
	if !a.Forget(ka) {
		t.Fatal("forget")
	}
	if b, ok := a.Get(kb); !ok || b.Target != target("w1", 2) {
		t.Errorf("evicting one took the other: %+v", b)
	}
	for i := range 15 {
		bind(t, a, 1, key("B", "m", fmt.Sprint(i)), target("w0", 0))
	}
	for i := range 500 { // A floods: it pays itself
		bind(t, a, 2, key("A", "m", fmt.Sprint("flood", i)), target("w0", 0))
	}
	if b, ok := a.Get(kb); !ok || b.Target != target("w1", 2) || len(a.sessions) != 40 {
		t.Errorf("a flood of another tenant pushed out %v; %d kept", kb, len(a.sessions))
	}
	if _, ok := a.Get(key("A", "m", "flood499")); !ok {
		t.Error("the newest of the flood is not kept")
	}
	bind(t, a, 3, key("C", "m", "new"), target("w0", 0)) // the largest gives way to a newcomer
	if a.tenants["B"].n != 16 || a.tenants["A"].n != 23 {
		t.Errorf("A %d, B %d", a.tenants["A"].n, a.tenants["B"].n)
	}
}

func TestAffinityFullOfUse(t *testing.T) {
	a := newAffinity(1800, 2)
	for i := range 2 {
		k := key("A", "m", fmt.Sprint(i))
		a.Acquire(0, k)
		a.Bind(k, target("w0", 0))
	}
	if h, _ := a.Acquire(0, key("A", "m", "more")); h != HoldNone || a.Counters().Refused != 1 {
		t.Errorf("hold %d", h)
	}
}

func TestAffinityBooksAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	a := newAffinity(5, 30)
	now := time.Duration(0)
	leases := map[model.ConvKey][]model.Target{}
	for range 30_000 {
		now += time.Duration(rng.IntN(200)) * time.Millisecond
		k := key(fmt.Sprint(rng.IntN(4)), "m", fmt.Sprint(rng.IntN(20)))
		to := target("w0", rng.IntN(4))
		switch rng.IntN(8) {
		case 0, 1, 2:
			switch h, got := a.Acquire(now, k); h {
			case HoldBound:
				leases[k] = append(leases[k], got)
			case HoldFirst:
				if rng.IntN(3) > 0 && a.Bind(k, to) {
					leases[k] = append(leases[k], to)
				}
			}
		case 3, 4, 5:
			if n := len(leases[k]); n > 0 {
				a.Release(now, k, leases[k][n-1])
				leases[k] = leases[k][:n-1]
			}
		case 6:
			a.Fail(k, to)
		default:
			a.Reap(now)
		}
		check(t, a)
	}
}

func check(t *testing.T, a *Affinity) {
	t.Helper()
	idle, starting, used, total := 0, 0, 0, 0
	for s := a.idle.first; s != nil; s = s.all.after {
		idle++
	}
	for s := a.starting.first; s != nil; s = s.all.after {
		starting++
	}
	for _, s := range a.sessions {
		if s.bound && s.leases > 0 {
			used++
		}
	}
	for i, n := range a.bySize {
		total += n.n
		if n.index != i || a.tenants[n.name] != n || i > 0 && a.bySize[(i-1)/2].n < n.n {
			t.Fatal("the tenants are out of order")
		}
	}
	if idle+starting+used != len(a.sessions) || total != len(a.sessions) || len(a.sessions) > a.limit {
		t.Fatalf("%d idle, %d starting, %d in use, %d by tenant, %d sessions", idle, starting, used, total, len(a.sessions))
	}
}
