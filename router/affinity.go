package router

import (
	"time"

	"adpdeck/router/model"
	"adpdeck/router/pin"
)

// Session affinity of the cluster tier: in the modes that choose a rank the
// first turn that is dispatched binds its conversation, in the same table that
// the engine tier's conversation policy uses, so that there is one binding for
// both. Open turns are its leases; idle it lives for
// router_session_affinity_ttl_secs.

// affinity reports that the cluster tier binds conversations.
func (r *Router) affinity() bool {
	return r.scored() && r.settings.ClusterConfig.SessionAffinityTTLSecs != nil
}

// bound returns the binding of key that is in force: a migrated one under
// every policy and mode; one made by a turn while the tier that makes such
// bindings is on, and in the modes that choose a rank until its time is over.
func (r *Router) bound(key model.ConvKey) (pin.Binding, bool) {
	b, ok := r.binds.Get(key)
	switch {
	case !ok:
		return pin.Binding{}, false
	case b.Source != model.PinAuto:
		return b, true
	case r.scored():
		return b, r.affinity() && !r.idledOut(key)
	}
	return b, r.policy() == model.PolicyConversation
}

// idledOut reports that a conversation has been without an open turn for the
// TTL. One that is not tracked any more has had none since its binding was last
// renewed.
func (r *Router) idledOut(key model.ConvKey) bool {
	c := r.convs.byKey[key]
	since, known := time.Time{}, false
	switch {
	case c == nil:
		since, known = r.owners.lastUsed(key)
	case c.data.Open > 0:
		return false
	default:
		since, known = c.idleSince(), true
	}
	return !known || r.now.Sub(since) >= seconds(*r.settings.ClusterConfig.SessionAffinityTTLSecs)
}

func (c *conv) idleSince() time.Time {
	if c.data.IdleSince.IsZero() {
		return c.data.LastAt
	}
	return c.data.IdleSince
}

// forgetGone forgets a binding whose rank has gone, and one whose time is over.
func (r *Router) forgetGone(key model.ConvKey) {
	b, ok := r.binds.Get(key)
	if !ok {
		return
	}
	if r.isGone(b.Target) || b.Source == model.PinAuto && r.affinity() && r.idledOut(key) {
		r.binds.Remove(key)
	}
}

// isGone reports that what is bound to a target is to be placed once more; with
// NoRank the target is a worker whose engine picks the rank.
func (r *Router) isGone(t model.Target) bool {
	at, ok := r.byID[t.Worker]
	if !ok || !r.workers[at].answers(t.Rank) {
		return true
	}
	return t.Rank >= 0 && r.workers[at].ranks[t.Rank].blocked
}

// tie binds the conversation of a turn that was just placed, or renews its
// binding.
func (r *Router) tie(b *booking) {
	t := &b.Value
	if t.conv == nil || !r.affinity() {
		return
	}
	key := t.conv.data.Key
	if t.conv.startedBy == b.ID {
		t.conv.starting.Rank = model.NoRank
	}
	if _, pinned := r.ops.Get(key); pinned {
		return
	}
	bind, ok := r.binds.Get(key)
	switch {
	case !ok:
		t.tied, t.conv.tiedBy, t.conv.served = true, b.ID, false
		bind = pin.Binding{Target: t.target, Source: model.PinAuto}
		r.makeRoom(key)
	case bind.Target.Rank == model.NoRank && bind.Target.Worker == t.target.Worker:
		bind.Target = t.target // whose engine picked the rank until now
	}
	r.binds.Set(key, bind)
	r.owners.bound(key, r.now)
}

// makeRoom lets a binding go, fairly, where there is no room for key's.
func (r *Router) makeRoom(key model.ConvKey) {
	if r.binds.Len() >= r.binds.Size() {
		if old, ok := r.owners.victim(key.Tenant, r.binds.Size()); ok {
			r.binds.Remove(old)
		}
	}
}

// begin notes where the first turn of an unbound conversation is on its way to.
func (r *Router) begin(b *booking) {
	t := &b.Value
	if t.conv == nil || t.chosen == model.NoRank || t.conv.starting.Rank != model.NoRank || !r.affinity() {
		return
	}
	if _, bound := r.binds.Get(t.conv.data.Key); !bound {
		t.conv.starting = model.Target{Worker: r.places[b.Worker].spec.ID, Rank: t.chosen}
		t.conv.startedBy = b.ID
	}
}

// untie ends what a turn did for its conversation's binding: a first turn that
// failed before its first token binds nothing, unless a later one was served
// there meanwhile.
func (r *Router) untie(b *booking, failed bool) {
	t := &b.Value
	if t.conv == nil {
		return
	}
	if t.conv.startedBy == b.ID {
		t.conv.starting.Rank = model.NoRank
	}
	if !failed || !t.tied || t.conv.tiedBy != b.ID || t.conv.served {
		return
	}
	key := t.conv.data.Key
	if bind, ok := r.binds.Get(key); ok && bind.Source == model.PinAuto && bind.Target == t.target {
		r.binds.Remove(key)
	}
}

// rest notes that a conversation has no open turn left.
func (r *Router) rest(c *conv) {
	if c.data.Open == 0 {
		c.data.IdleSince = r.now
		r.owners.renewed(c.data.Key, r.now)
	}
}

// maxEnded bounds the bindings that one call looks at whether they are over:
// at the ten calls a second of a single console all of a full table in seven
// seconds.
const maxEnded = 1024

// endBindings forgets bindings whose time is over. They stand in the order in
// which they were renewed last, so that it looks at no others but those with an
// open turn and those of operators, once in a TTL.
func (r *Router) endBindings() {
	if !r.affinity() {
		return
	}
	ttl := seconds(*r.settings.ClusterConfig.SessionAffinityTTLSecs)
	for range maxEnded {
		key, at, ok := r.owners.oldest()
		if !ok || r.now.Sub(at) < ttl {
			return
		}
		if b, _ := r.binds.Get(key); b.Source == model.PinAuto && r.idledOut(key) {
			r.binds.Remove(key)
		} else {
			r.owners.bound(key, r.now)
		}
	}
}

// Block takes a rank out altogether, or back in: it is dead or quarantined.
// Nothing new goes there but what an operator pinned, and bindings to it count
// as gone: their conversations are placed once more. The error wraps
// ErrNoWorker or ErrNoRank.
func (r *Router) Block(t model.Target, blocked bool) error {
	now := r.clock.Now()
	r.lock(now)
	defer r.unlock()
	if err := r.checkTarget(t); err != nil {
		return err
	}
	s := r.rank(t)
	if s == nil {
		return ErrNoRank
	}
	if s.blocked == blocked {
		return nil
	}
	s.blocked = blocked
	r.stamp++
	r.reconfigure()
	r.requeue() // who waits for it may go elsewhere
	what := t.String() + " is blocked: nothing new goes there"
	if !blocked {
		what = t.String() + " is no longer blocked"
	}
	r.event("warn", "router", what, 0)
	return nil
}
