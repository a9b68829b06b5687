package adp

import (
	"slices"

	"adpdeck/router/model"
)

// routeDefault is DefaultADPRouter: explicit ranks first, then the longest
// prompts to the ranks with the fewest tokens. Explicit placements of the call
// are invisible to the balance of the same call.
func (r *Router) routeDefault() error {
	if err := r.placeExplicit(); err != nil {
		return err
	}
	expected, err := r.fleet.expect(nil, len(r.rest), r.b.HardCap, r.opt.Parity)
	if err != nil {
		return err
	}
	r.out.Expected = expected
	if r.opt.Record {
		r.stampExpected()
	}
	if len(r.rest) == 0 {
		return nil
	}
	order := r.sorter.byLength(r.b.Requests, r.rest)
	h := r.fillHeap(len(order) > 1)
	for at, o := range order {
		if len(h) == 0 {
			if r.opt.Parity {
				return errEmptyHeap()
			}
			r.leaveOver(order[at:])
			return nil
		}
		k, n := int(h[0].rank), r.b.Requests[o.idx].tokens()
		if r.opt.Record {
			r.recordBalanced(o.idx, k, n)
		}
		r.assign(o.idx, k)
		r.fleet.tokens[k] += n
		if r.fleet.under(k) {
			h[0] = r.heapKey(k)
		} else {
			h[0] = h[len(h)-1]
			h = h[:len(h)-1]
		}
		r.fleet.siftDown(h, 0)
	}
	return nil
}

// placeExplicit serves strict wishes, then the others, while their rank is
// under the hard cap; whatever is left goes to r.rest in that order.
func (r *Router) placeExplicit() error {
	strict := r.anyStrict()
	if strict {
		if err := r.explicitPass(true, true); err != nil {
			return err
		}
	}
	return r.explicitPass(false, strict)
}

// anyStrict reports whether some request goes before the others; without one
// the batch is in order as it is.
func (r *Router) anyStrict() bool {
	for i := range r.b.Requests {
		if q := &r.b.Requests[i]; q.Params != nil && q.strict() {
			return true
		}
	}
	return false
}

// explicitPass serves the requests that are strict, or those that are not, or
// all when the batch is not mixed.
func (r *Router) explicitPass(strict, mixed bool) error {
	for i := range r.b.Requests {
		q := &r.b.Requests[i]
		if q.Params == nil {
			if !strict {
				r.rest = append(r.rest, int32(i))
			}
			continue
		}
		if mixed && q.strict() != strict {
			continue
		}
		w, err := r.explicit(q)
		if err != nil {
			return err
		}
		if !r.honours(w.rank) {
			r.rest = append(r.rest, int32(i))
			continue
		}
		if r.opt.Record {
			r.record(int32(i), w.rank, model.PhaseExplicit, 0)
		}
		r.assign(int32(i), w.rank)
	}
	return nil
}

// leaveOver returns the rest of an order as unassigned, in batch order.
func (r *Router) leaveOver(order []sortKey) {
	for _, o := range order {
		if r.opt.Record {
			r.record(o.idx, model.NoRank, model.PhaseUnplaced, 0)
		}
		r.out.Unassigned = append(r.out.Unassigned, o.idx)
	}
	slices.Sort(r.out.Unassigned)
}

// heapKey orders ranks by tokens, then count, then rank: a total order. The
// count is looked up, since tokens alone nearly always decide.
type heapKey struct {
	tokens uint64
	rank   int32
}

func (r *Router) heapKey(k int) heapKey {
	return heapKey{r.fleet.ordinal(r.fleet.tokens[k], k), int32(k)}
}

func (f *fleet) less(a, b heapKey) bool {
	if a.tokens != b.tokens {
		return a.tokens < b.tokens
	}
	return f.fewer(int(a.rank), int(b.rank))
}

func (f *fleet) fewer(a, b int) bool {
	if x, y := f.ordinal(f.counts[a], a), f.ordinal(f.counts[b], b); x != y {
		return x < y
	}
	return a < b
}

// fillHeap collects the ranks under their soft cap. For a single request the
// lightest of them is enough.
func (r *Router) fillHeap(all bool) []heapKey {
	r.heap = r.heap[:0]
	for k := range r.tp {
		if !r.fleet.under(k) {
			continue
		}
		switch key := r.heapKey(k); {
		case all || len(r.heap) == 0:
			r.heap = append(r.heap, key)
		case r.fleet.less(key, r.heap[0]):
			r.heap[0] = key
		}
	}
	for i := len(r.heap)/2 - 1; i >= 0; i-- {
		r.fleet.siftDown(r.heap, i)
	}
	return r.heap
}

func (f *fleet) siftDown(h []heapKey, i int) {
	if i >= len(h) {
		return
	}
	x := h[i]
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && f.less(h[c+1], h[c]) {
			c++
		}
		if !f.less(h[c], x) {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = x
}
