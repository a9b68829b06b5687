package prefix

import "container/list"

// waiter is a block whose parent its target does not hold. It counts for
// nothing until the parent comes.
type waiter struct {
	parent, name uint64
	local        Local
	tier         Tier
	count        uint32 // owners, as for stored blocks
	id           ID
}

// waiting is every waiting block, oldest first.
type waiting struct {
	all      *list.List // of *waiter
	max, one int
}

// waits finds the waiting blocks of one target.
type waits struct {
	behind map[uint64][]*list.Element // by the parent's name, oldest first
	named  map[uint64][]*list.Element // by their own name
	own    *list.List                 // of *list.Element in waiting.all, oldest first
	places map[*list.Element]*list.Element
}

func (w *waiting) init(opt Options) {
	w.all, w.max, w.one = list.New(), opt.MaxWaitingAll, opt.MaxWaiting
}

func (s *waits) len() int {
	if s.own == nil {
		return 0
	}
	return s.own.Len()
}

// putAside adds a waiting block, or an owner to one that waits already, and
// drops the oldest where a bound is passed.
func (ix *Index) putAside(id ID, t *target, w waiter) {
	s := &t.waits
	for _, e := range s.named[w.name] {
		o := e.Value.(*waiter)
		if o.parent == w.parent && o.local == w.local && o.tier == w.tier {
			o.count++
			t.stats.Duplicates++
			return
		}
	}
	if s.own == nil {
		*s = waits{
			behind: make(map[uint64][]*list.Element), named: make(map[uint64][]*list.Element),
			own: list.New(), places: make(map[*list.Element]*list.Element),
		}
	}
	w.id = id
	e := ix.wait.all.PushBack(&w)
	s.behind[w.parent] = append(s.behind[w.parent], e)
	s.named[w.name] = append(s.named[w.name], e)
	s.places[e] = s.own.PushBack(e)
	for s.len() > ix.wait.one {
		ix.wait.drop(t, s.own.Front().Value.(*list.Element))
	}
	for ix.wait.all.Len() > ix.wait.max {
		old := ix.wait.all.Front()
		ix.wait.drop(&ix.targets[old.Value.(*waiter).id], old)
	}
}

func (w *waiting) drop(t *target, e *list.Element) {
	w.remove(t, e)
	t.stats.WaitingDropped++
}

// remove takes a block out of the room.
func (w *waiting) remove(t *target, e *list.Element) {
	v := w.all.Remove(e).(*waiter)
	s := &t.waits
	cut(s.behind, v.parent, e)
	cut(s.named, v.name, e)
	s.own.Remove(s.places[e])
	delete(s.places, e)
}

func cut(m map[uint64][]*list.Element, key uint64, e *list.Element) {
	l := m[key]
	for i := range l {
		if l[i] == e {
			l = append(l[:i], l[i+1:]...)
			break
		}
	}
	if len(l) == 0 {
		delete(m, key)
	} else {
		m[key] = l
	}
}

// dropTarget empties the room of one target.
func (w *waiting) dropTarget(t *target) {
	for t.waits.len() > 0 {
		w.remove(t, t.waits.own.Front().Value.(*list.Element))
	}
}

// cancel takes one owner from the oldest waiting block of that name and tier.
func (ix *Index) cancel(_ ID, t *target, name uint64, tier Tier) bool {
	if t.waits.len() == 0 {
		return false
	}
	for _, e := range t.waits.named[name] {
		w := e.Value.(*waiter)
		if w.tier != tier {
			continue
		}
		if w.count--; w.count == 0 {
			ix.wait.remove(t, e)
		}
		return true
	}
	return false
}

// oldest returns a copy of the block of that name and tier that has waited
// longest, with Tiers of any tier.
func (s *waits) oldest(name uint64, tier Tier) (waiter, bool) {
	for _, e := range s.named[name] {
		if w := e.Value.(*waiter); tier == Tiers || w.tier == tier {
			return *w, true
		}
	}
	return waiter{}, false
}

// wake stores the blocks that waited for those names, and those that waited
// for them in turn.
func (ix *Index) wake(id ID, t *target, names []uint64, a *Applied) {
	if t.waits.len() == 0 {
		return
	}
	queue := append([]uint64(nil), names...)
	for len(queue) > 0 && t.waits.len() > 0 {
		name := queue[0]
		queue = queue[1:]
		if len(t.waits.behind[name]) == 0 {
			continue
		}
		for _, e := range append([]*list.Element(nil), t.waits.behind[name]...) {
			parent := ix.heldName(id, name)
			if parent == 0 {
				break
			}
			w := e.Value.(*waiter)
			ix.wait.remove(t, e)
			seq := next(ix.at(parent).seq, w.local)
			if ix.attach(id, t, w.tier, parent, []Chain{seq}, []uint64{w.name}) == 0 {
				continue
			}
			a.Stored++
			if w.count > 1 {
				if r := ix.find(seq, w.name, parent); r != 0 {
					ix.extra[extraKey(r, id, w.tier)] += w.count - 1
				}
			}
			queue = append(queue, w.name)
		}
	}
}
