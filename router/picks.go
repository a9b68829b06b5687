package router

import (
	"fmt"
	"slices"

	"adpdeck/router/cluster"
	"adpdeck/router/model"
	"adpdeck/router/pin"
)

// Workers whose engine picks the rank itself (Steering.EnginePicks): requests
// are routed to the worker. What is known of its ranks still says which worker
// is best; the rank is known when the engine tells it, with the first token.

// picks reports that the worker's engine picks the rank.
func (w *worker) picks() bool { return w.spec.Steering.EnginePicks() }

// most is how many requests of a worker its hard caps allow, 0 for no bound.
func (w *worker) most() int {
	if w.picks() {
		return w.spec.MaxNumActiveRequests * len(w.ranks)
	}
	return w.spec.MaxNumActiveRequests
}

// excluding is what a request must not go to. Of a worker that picks the rank
// itself one rank stands for all: it might pick that again.
func (r *Router) excluding(list []model.Target) []model.Target {
	if len(list) == 0 {
		return nil
	}
	s := &r.steer
	s.exclude = append(s.exclude[:0], list...)
	for i := range s.exclude {
		e := &s.exclude[i]
		if at, ok := r.byID[e.Worker]; ok && r.workers[at].picks() {
			e.Rank = model.NoRank
		}
	}
	return s.exclude
}

// leaveRank leaves the rank of a choice to an engine that picks it itself. Until
// the engine tells, all ranks of the worker bear the load together.
func (r *Router) leaveRank() {
	s := &r.steer
	c := &s.choice
	if !s.picks {
		return
	}
	at, ok := r.byID[c.Target.Worker]
	if !ok || !r.workers[at].picks() {
		return
	}
	w := r.workers[at]
	c.Target.Rank = model.NoRank
	s.how, s.followed = byEngine, false
	c.Slot = cluster.NoRankSlot(w.number)
}

// handOver sends a request to a worker that picks the rank itself. The error
// wraps ErrFull where its ranks are full together.
func (r *Router) handOver(w *worker, b *booking, tookNs int64) error {
	if most := w.most(); most > 0 && r.book.WorkerOpen(w.index) > most {
		return fmt.Errorf("request %d at %s: %w: its %d ranks have %d requests together, their hard cap; send it again when one has ended",
			b.ID, w.spec.ID, ErrFull, len(w.ranks), most)
	}
	g, t := &w.batch, &b.Value
	g.at, g.ranks, g.how, g.fullRank = append(g.at, -1), append(g.ranks, model.NoRank), append(g.how, enginePicks), append(g.fullRank, model.NoRank)
	t.picks, t.target = true, model.Target{Worker: w.spec.ID, Rank: model.NoRank}
	if t.reach, t.compared = reachable(g.matches[0], t.prompt), g.matches[0] != nil; t.looked {
		t.reach, t.compared = min(t.known, t.prompt), true
	}
	if c := t.conv; c != nil {
		t.before = c.data.Last
		t.moved = t.before.Worker != "" && t.before.Worker != t.target.Worker
		if t.moved {
			c.data.Moves++
		}
		c.data.Last = t.target
		r.convs.touch(c, &r.stamp)
	}
	r.tieWorker(b)
	r.stamp++
	r.decide(w, 0, tookNs)
	return nil
}

// tieWorker binds a conversation to the worker, or to the rank once it is known.
func (r *Router) tieWorker(b *booking) {
	t := &b.Value
	if t.conv == nil || !r.affinity() && (r.scored() || r.policy() != model.PolicyConversation) {
		return
	}
	key := t.conv.data.Key
	if _, pinned := r.ops.Get(key); pinned {
		return
	}
	bind, ok := r.binds.Get(key)
	switch {
	case !ok:
		t.tied, t.conv.tiedBy, t.conv.served = true, b.ID, false
		bind = pin.Binding{Target: t.target, Source: model.PinAuto}
		r.makeRoom(key)
	case bind.Source == model.PinAuto && bind.Target.Worker == t.target.Worker && t.target.Rank != model.NoRank:
		bind.Target = t.target
	}
	r.binds.Set(key, bind)
	r.owners.bound(key, r.now)
}

// picked books a request on the rank that its engine says it picked. It returns
// what is to be remembered of that rank, nil for nothing.
func (r *Router) picked(b *booking, ran model.Target) (guess *note) {
	t := &b.Value
	w := r.places[b.Worker]
	r.book.Place(b, ran.Rank, t.prompt, max(t.prompt-t.cached, 0))
	r.steer.tier.Place(r.elapsed(), b.ID, ran, t.prompt, t.cached)
	w.ranks[ran.Rank].load.Requests++
	t.target = ran
	if len(t.chain) > 0 {
		guess = &note{slices.Clone(t.chain), int(w.slots[ran.Rank]), t.chainGen}
	}
	c := t.conv
	if c == nil {
		return guess
	}
	if p, ok := r.ops.Get(c.data.Key); ok && p.Target.Worker == ran.Worker {
		t.target = p.Target // which it could not be asked for: it shows as lost
	}
	if !t.moved && t.before.Rank != model.NoRank && t.before != t.target {
		t.moved = true
		c.data.Moves++
	}
	c.data.Last = t.target
	if t.target == ran {
		r.tieWorker(b)
	}
	return guess
}
