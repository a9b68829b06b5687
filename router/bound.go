package router

import (
	"adpdeck/router/model"
	"adpdeck/router/pin"
)

// bindingChanged keeps the counts of pins and marks the conversation.
func (r *Router) bindingChanged(key model.ConvKey, before, after pin.Binding) {
	if before.Source != model.PinNone {
		r.countBinding(before.Target, -1)
	}
	if after.Source != model.PinNone {
		r.countBinding(after.Target, 1)
	}
	if after.Source != model.PinNone {
		r.owners.bound(key, r.now)
	} else {
		r.owners.gone(key)
	}
	if c := r.convs.byKey[key]; c != nil {
		r.convs.touch(c, &r.stamp)
	}
	if before.Target != after.Target || before.Source != after.Source {
		r.steer.waiting.rebound(key)
	}
}

// countBinding counts at a rank, or at a worker whose engine picks the rank.
func (r *Router) countBinding(t model.Target, by int) {
	if s := r.rank(t); s != nil {
		s.pins += by
	} else if at, ok := r.byID[t.Worker]; ok && t.Rank == model.NoRank {
		r.workers[at].bound += by
	}
}

// operatorChanged does the same for operator pins, and keeps a pinned
// conversation from being dropped.
func (r *Router) operatorChanged(key model.ConvKey, before, after pin.Pin) {
	if s := r.rank(before.Target); s != nil && before.Note != nil {
		s.operator--
	}
	if s := r.rank(after.Target); s != nil && after.Note != nil {
		s.operator++
	}
	r.found.stale = true
	c := r.convs.byKey[key]
	if c == nil && after.Note != nil {
		c = r.convs.ensure(key, r.now, &r.stamp)
	}
	if c == nil {
		return
	}
	c.pinned = after.Note != nil
	r.convs.touch(c, &r.stamp)
	r.convs.loosen(c)
}
