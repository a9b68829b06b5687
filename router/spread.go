package router

import (
	"container/heap"

	"adpdeck/router/model"
)

// spread gives conversations to the ranks with the fewest tokens, one by one,
// and counts what it gave. It knows the ranks that take new work.
type spread struct{ ranks []spreadRank }

type spreadRank struct {
	target model.Target
	weight float64
	tokens float64
}

// newSpread reads the tokens as skew does: the engine's figures where it has
// reported, the bookings otherwise.
func (r *Router) newSpread() *spread {
	s := &spread{}
	for _, w := range r.workers {
		for k := range w.ranks {
			if st := &w.ranks[k]; st.eligible() {
				s.ranks = append(s.ranks, spreadRank{st.load.Target, st.weight, float64(r.tokensAt(w, k))})
			}
		}
	}
	heap.Init(s)
	return s
}

// take returns the rank with the fewest tokens, divided by its weight, other
// than from and of a worker that may, where may is not nil, and adds tokens to
// it; ok is false when there is no other.
func (s *spread) take(from model.Target, tokens int, may func(worker string) bool) (to model.Target, ok bool) {
	at := 0
	switch n := len(s.ranks); {
	case may != nil:
		at = -1
		for i := range s.ranks {
			if t := &s.ranks[i].target; *t != from && may(t.Worker) && (at < 0 || s.Less(i, at)) {
				at = i
			}
		}
		if at < 0 {
			return model.Target{}, false
		}
	case n == 0 || n == 1 && s.ranks[0].target == from:
		return model.Target{}, false
	case s.ranks[0].target != from:
	case n > 2 && s.Less(2, 1): // the next best is one of the two below the best
		at = 2
	default:
		at = 1
	}
	to = s.ranks[at].target
	s.ranks[at].tokens += float64(max(tokens, 1))
	heap.Fix(s, at)
	return to, true
}

func (s *spread) Len() int      { return len(s.ranks) }
func (s *spread) Swap(i, j int) { s.ranks[i], s.ranks[j] = s.ranks[j], s.ranks[i] }
func (s *spread) Push(any)      {} // ranks neither come nor go
func (s *spread) Pop() any      { return nil }
func (s *spread) Less(i, j int) bool {
	a, b := &s.ranks[i], &s.ranks[j]
	if x, y := a.tokens/a.weight, b.tokens/b.weight; x != y {
		return x < y
	}
	return a.target.Less(b.target)
}
