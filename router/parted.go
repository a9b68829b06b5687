package router

import (
	"fmt"
	"slices"

	"adpdeck/router/cluster"
	"adpdeck/router/model"
	"adpdeck/router/pin"
)

// What becomes of what there was on ranks that leave, and what is kept of them.

// maxParted bounds the drains that are kept of ranks that have left.
const maxParted = cluster.MaxSlots

// evacuate takes what there is on the ranks of a worker from rank from up away:
// bookings, bindings. Drains are kept for a return. It says what that concerns.
func (r *Router) evacuate(w *worker, from int) (note string) {
	lowest := from
	if from == 0 {
		lowest = model.NoRank // the worker goes as a whole
	}
	open := r.book.Depart(w.index, lowest)
	moved := r.unbind(func(t model.Target) bool { return t.Worker == w.spec.ID && t.Rank >= lowest })
	for k := from; k < len(w.ranks); k++ {
		if w.ranks[k].drain {
			r.part(w.ranks[k].load.Target)
		}
	}
	held := 0
	r.eachPin(func(t model.Target) {
		if t.Worker == w.spec.ID && t.Rank >= lowest {
			held++
		}
	})
	if moved > 0 {
		note += fmt.Sprintf(", %s placed once more", conversations(moved))
	}
	if len(open) > 0 {
		note += fmt.Sprintf(", %d requests were open there", len(open))
	}
	if held > 0 {
		note += fmt.Sprintf(", operator pins of %s wait for its return", conversations(held))
	}
	return note
}

func conversations(n int) string {
	if n == 1 {
		return "1 conversation"
	}
	return fmt.Sprintf("%d conversations", n)
}

// unbind forgets the bindings to targets that have gone and returns how many.
func (r *Router) unbind(gone func(model.Target) bool) (n int) {
	for _, e := range r.binds.Entries() {
		if gone(e.Binding.Target) {
			r.binds.Remove(e.Key)
			n++
		}
	}
	return n
}

func (r *Router) eachPin(f func(model.Target)) {
	r.ops.Each(func(_ model.ConvKey, p pin.Pin) { f(p.Target) })
}

// there reports that a target is of this cluster now, a worker with NoRank too.
func (r *Router) there(t model.Target) bool { return r.checkTarget(t) == nil }

func (r *Router) isThere(worker string) bool {
	_, ok := r.byID[worker]
	return ok
}

// part keeps the drain of a rank that leaves.
func (r *Router) part(t model.Target) {
	if slices.Contains(r.parted, t) {
		return
	}
	if len(r.parted) >= maxParted {
		r.parted = slices.Delete(r.parted, 0, 1)
	}
	r.parted = append(r.parted, t)
}

// drains reports that a rank is drained, be it there or not.
func (r *Router) drains(t model.Target) bool {
	if s := r.rank(t); s != nil {
		return s.drain
	}
	return slices.Contains(r.parted, t)
}

// setDrain drains a rank or makes it ready, be it there or not.
func (r *Router) setDrain(t model.Target, drain bool) {
	if s := r.rank(t); s != nil {
		s.drain = drain
		return
	}
	if drain {
		r.part(t)
	} else if i := slices.Index(r.parted, t); i >= 0 {
		r.parted = slices.Delete(r.parted, i, i+1)
	}
}

// Departed counts the open requests whose worker or rank has left. They are not
// among Totals.Open, which is what ranks and workers have.
func (r *Router) Departed() (open int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.book.Departed()
}

// LateEnds counts ends of requests whose worker or rank had left by then.
func (r *Router) LateEnds() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.late
}
