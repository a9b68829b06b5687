package cluster

import (
	"container/heap"
	"time"

	"adpdeck/router/model"
)

// MaxSessions bounds the conversations of an Affinity.
const MaxSessions = 65536

// startLimit is how long the first request of a conversation may take to bind
// it before the next one may.
const startLimit = 2 * time.Minute

// Hold is what an Affinity knows of a conversation when a request comes.
type Hold uint8

// The holds.
const (
	// HoldNone: affinity is off, the request is keyless, or the table is full
	// of conversations in use. Route by policy; nothing will be bound.
	HoldNone Hold = iota
	// HoldFirst: this request is the first. Route by policy, then Bind when it
	// was dispatched, or Fail.
	HoldFirst
	// HoldStarting: the first request is on its way. Wait for Bind or Fail and
	// ask again, or route by policy; no lease was given.
	HoldStarting
	// HoldBound: go to the target. A lease was given: Release ends it.
	HoldBound
)

// Binding is one bound conversation.
type Binding struct {
	Key    model.ConvKey
	Target model.Target
	Leases int
	// IdleSince is when the last lease ended, meaningful without leases.
	IdleSince time.Duration
}

// Affinity ties conversations to targets, by tenant, model and id. A binding
// is made by the first successful dispatch. It lives as long as it has leases
// and then for the TTL; each use renews it. At most MaxSessions are kept: when
// full, the tenant with the most loses its longest idle one, or the tenant that
// asks, when it has its equal share already; so no tenant can push out
// another's as long as that one stays within its share. Times are monotonic.
// It does not lock.
type Affinity struct {
	ttl      time.Duration // 0: off
	limit    int
	sessions map[model.ConvKey]*session
	tenants  map[string]*tenant
	bySize   tenantHeap
	idle     list // all idle bindings, longest idle first
	starting list // conversations whose first request is on its way, oldest first
	counters AffinityCounters
}

// AffinityCounters count since the start, the first two now.
type AffinityCounters struct {
	Bound, Starting                               int
	Binds, Hits, Expired, Evicted, Released, Gone uint64
	Keyless, Refused                              uint64
}

type session struct {
	key       model.ConvKey
	target    model.Target
	tenant    *tenant
	bound     bool
	leases    int
	since     time.Duration // idle since; started at, while starting
	all, mine link          // in the idle list of all or the starting one; in the tenant's
}

type tenant struct {
	name  string
	n     int
	index int
	idle  list
}

// NewAffinity returns an empty table with the TTL of cfg.
func NewAffinity(cfg *Config) *Affinity {
	a := &Affinity{limit: MaxSessions, sessions: map[model.ConvKey]*session{}, tenants: map[string]*tenant{}}
	a.idle.pick = func(s *session) *link { return &s.all }
	a.starting.pick = a.idle.pick
	a.Configure(cfg)
	return a
}

// Configure takes a new TTL; unset turns affinity off and forgets all.
func (a *Affinity) Configure(cfg *Config) {
	a.ttl = 0
	if t := cfg.SessionAffinityTTLSecs; t != nil {
		a.ttl = seconds(*t)
		return
	}
	for _, s := range a.sessions {
		a.forget(s)
	}
}

// Acquire is called when a request comes.
func (a *Affinity) Acquire(now time.Duration, key model.ConvKey) (Hold, model.Target) {
	nowhere := model.Target{Rank: model.NoRank}
	if key.Keyless() {
		a.counters.Keyless++
		return HoldNone, nowhere
	}
	if a.ttl == 0 {
		return HoldNone, nowhere
	}
	s := a.sessions[key]
	if s != nil && s.bound && s.leases == 0 && now-s.since >= a.ttl {
		a.counters.Expired++
		a.forget(s)
		s = nil
	}
	switch {
	case s == nil:
		if s = a.open(key); s == nil {
			a.counters.Refused++
			return HoldNone, nowhere
		}
		s.since = now
		a.starting.add(s)
		return HoldFirst, nowhere
	case s.bound:
		a.lease(s)
		a.counters.Hits++
		return HoldBound, s.target
	case now-s.since >= startLimit:
		a.starting.remove(s)
		s.since = now
		a.starting.add(s)
		return HoldFirst, nowhere
	}
	return HoldStarting, nowhere
}

// Bind ties a conversation to where its first request was dispatched, with a
// lease for that request. A conversation that is bound by now keeps its target
// and gives no lease: the first binding wins.
func (a *Affinity) Bind(key model.ConvKey, t model.Target) bool {
	s := a.sessions[key]
	if s == nil || s.bound {
		return false
	}
	a.starting.remove(s)
	s.bound, s.target, s.leases = true, t, 1
	a.counters.Binds++
	return true
}

// Fail says that a dispatch failed: to the target that a conversation is bound
// to, or the one that should have bound it. The binding is forgotten; choose
// once more. A failure at another target than the bound one changes nothing.
func (a *Affinity) Fail(key model.ConvKey, t model.Target) bool {
	s := a.sessions[key]
	if s == nil || s.bound && s.target != t {
		return false
	}
	if s.bound {
		a.counters.Released++
	}
	a.forget(s)
	return true
}

// Release ends a lease at target t; the idle time starts when the last one
// ends. A lease of a binding that has been forgotten since is ignored.
func (a *Affinity) Release(now time.Duration, key model.ConvKey, t model.Target) {
	s := a.sessions[key]
	if s == nil || !s.bound || s.target != t || s.leases == 0 {
		return
	}
	if s.leases--; s.leases == 0 {
		s.since = now
		a.idle.add(s)
		s.tenant.idle.add(s)
	}
}

// Forget drops the binding of a conversation (its end, or an operator's wish).
func (a *Affinity) Forget(key model.ConvKey) bool {
	s := a.sessions[key]
	if s != nil {
		a.forget(s)
	}
	return s != nil
}

// ForgetTarget drops all bindings to a target that has gone, or to all ranks
// of a worker when the rank is NoRank, and returns how many.
func (a *Affinity) ForgetTarget(t model.Target) int {
	n := 0
	for _, s := range a.sessions {
		if s.bound && s.target.Worker == t.Worker && (t.Rank == model.NoRank || s.target.Rank == t.Rank) {
			a.forget(s)
			n++
		}
	}
	a.counters.Gone += uint64(n)
	return n
}

// Reap drops the bindings whose idle time is over, and first requests that
// were never heard of again, and returns how many; call it every min(TTL, 30 s).
func (a *Affinity) Reap(now time.Duration) int {
	n := 0
	for s := a.starting.first; s != nil && now-s.since >= startLimit; s = a.starting.first {
		a.forget(s)
		n++
	}
	for s := a.idle.first; s != nil && now-s.since >= a.ttl; s = a.idle.first {
		a.forget(s)
		n++
	}
	a.counters.Expired += uint64(n)
	return n
}

// Get returns a binding without touching it.
func (a *Affinity) Get(key model.ConvKey) (Binding, bool) {
	s := a.sessions[key]
	if s == nil || !s.bound {
		return Binding{}, false
	}
	return Binding{Key: key, Target: s.target, Leases: s.leases, IdleSince: s.since}, true
}

// Counters returns the counts.
func (a *Affinity) Counters() AffinityCounters {
	c := a.counters
	for s := a.starting.first; s != nil; s = s.all.after {
		c.Starting++
	}
	c.Bound = len(a.sessions) - c.Starting
	return c
}

func (a *Affinity) lease(s *session) {
	if s.leases == 0 {
		a.idle.remove(s)
		s.tenant.idle.remove(s)
	}
	s.leases++
}

// open makes room and adds a conversation; nil when everything is in use.
func (a *Affinity) open(key model.ConvKey) *session {
	t := a.tenants[key.Tenant]
	if len(a.sessions) >= a.limit && !a.evict(t) {
		return nil
	}
	if t = a.tenants[key.Tenant]; t == nil {
		t = &tenant{name: key.Tenant}
		t.idle.pick = func(s *session) *link { return &s.mine }
		a.tenants[key.Tenant] = t
		heap.Push(&a.bySize, t)
	}
	s := &session{key: key, tenant: t}
	a.sessions[key] = s
	t.n++
	heap.Fix(&a.bySize, t.index)
	return s
}

// evict forgets one idle binding: of the tenant that asks when it has its
// share, else of the largest.
func (a *Affinity) evict(asks *tenant) bool {
	tenants := len(a.tenants)
	if asks == nil {
		tenants++
	}
	share := a.limit / tenants
	victim := a.bySize[0]
	if asks != nil && asks.n >= share {
		victim = asks
	}
	if victim.idle.first == nil || victim != asks && victim.n <= share {
		return false
	}
	a.counters.Evicted++
	a.forget(victim.idle.first)
	return true
}

func (a *Affinity) forget(s *session) {
	switch {
	case !s.bound:
		a.starting.remove(s)
	case s.leases == 0:
		a.idle.remove(s)
		s.tenant.idle.remove(s)
	}
	delete(a.sessions, s.key)
	t := s.tenant
	if t.n--; t.n == 0 {
		heap.Remove(&a.bySize, t.index)
		delete(a.tenants, t.name)
		return
	}
	heap.Fix(&a.bySize, t.index)
}
