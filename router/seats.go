package router

import (
	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

// seat brings the feeds and the index in line with the ranks. Its caller holds
// topo and not the router's lock: a feed may be busy with a batch.
func (r *Router) seat() {
	if r.know.index == nil {
		return
	}
	r.mu.Lock()
	var want []chair
	for _, w := range r.sorted {
		for k := range w.ranks {
			want = append(want, chair{target: w.ranks[k].load.Target, w: w, slots: w.slots, spec: w.spec})
		}
	}
	rules := rulesOf(&r.settings.ClusterConfig, r.know.texts.Load())
	block := r.know.blockTokens()
	r.mu.Unlock()
	if block > 0 {
		r.know.seat(want, rules, block)
	}
}

// chair is a rank that is to have a feed and a place in the index.
type chair struct {
	target model.Target
	w      *worker // its identity: a worker that left and came back is another
	slots  []int32 // of the worker, by rank
	spec   model.WorkerSpec
}

// same reports that a feed is the chair's.
func (c *chair) same(s *source) bool {
	return s.w == c.w && s.events == c.spec.KVEvents && s.replay == c.spec.KVReplay && s.slot == c.slots[c.target.Rank]
}

// seats are the feeds as everybody sees them without the router's lock,
// replaced as a whole when ranks come and go.
type seats struct {
	byWorker map[string][]*source // by rank
	all      []*source            // ordered by target
}

func (t *seats) of(target model.Target) *source {
	if list := t.byWorker[target.Worker]; target.Rank >= 0 && target.Rank < len(list) {
		return list[target.Rank]
	}
	return nil
}

// seat replaces the table of feeds: those that go end first, then their blocks
// are wiped, and only then is their place another's.
func (k *knowledge) seat(want []chair, rules guessRules, block int) {
	old, next := k.seats.Load(), &seats{byWorker: map[string][]*source{}}
	kept := map[*source]bool{}
	for i := range want {
		c := &want[i]
		if s := old.of(c.target); s != nil && c.same(s) {
			s.regroup(c)
			kept[s] = true
		}
	}
	for _, s := range old.all {
		if !kept[s] {
			k.retire(s)
		}
	}
	for i := range want {
		c := &want[i]
		s := old.of(c.target)
		if s == nil || !kept[s] {
			s = k.newSource(c, block)
			id := prefix.ID(s.slot)
			_ = k.index.AddAt(id, c.target) // the place is free: its owner was retired
			if g := k.guess.Load(); g != nil && g.index != nil {
				_ = g.index.AddApproximateAt(id, c.target, rules.approximation(&c.spec))
			}
		}
		next.byWorker[c.target.Worker] = append(next.byWorker[c.target.Worker], s)
		next.all = append(next.all, s)
	}
	k.seats.Store(next)
}

// retire ends a feed and forgets its rank's blocks.
func (k *knowledge) retire(s *source) {
	s.mu.Lock()
	s.gone = true
	s.mu.Unlock()
	k.past.Add(s.came.Load())
	k.mu.Lock()
	defer k.mu.Unlock()
	_ = k.index.Drop(s.target)
	if g := k.guess.Load(); g != nil && g.index != nil {
		_ = g.index.Drop(s.target)
	}
}
