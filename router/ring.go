package router

// ring keeps the newest of what is pushed; items are numbered from 1 without
// holes.
type ring[T any] struct {
	items []T
	most  int
	n     uint64 // pushed so far, the number of the newest
}

func newRing[T any](most int) ring[T] { return ring[T]{most: most} }

func (g *ring[T]) push(v T) {
	if len(g.items) < g.most {
		g.items = append(g.items, v)
	} else {
		g.items[g.n%uint64(g.most)] = v
	}
	g.n++
}

// since copies the items numbered above after, oldest first, the newest limit
// of them at most, and counts those left out.
func (g *ring[T]) since(after uint64, limit int) (items []T, leftOut uint64) {
	if after >= g.n {
		return nil, 0
	}
	fresh := g.n - after
	take := min(fresh, uint64(len(g.items)), uint64(max(0, limit)))
	items = make([]T, 0, take)
	for i := g.n - take; i < g.n; i++ {
		items = append(items, g.items[i%uint64(g.most)])
	}
	return items, fresh - take
}

// newest returns the item pushed last; there must be one.
func (g *ring[T]) newest() T { return g.items[(g.n-1)%uint64(g.most)] }
