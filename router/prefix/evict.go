package prefix

import (
	"cmp"
	"slices"
	"sync/atomic"
)

// leaf is a block that may be the last one that its target holds of a chain,
// with the stamp it had when it was noted. A look-up that matches the block
// only renews the stamp of the record; the note is put right when it comes up.
type leaf struct {
	stamp uint32
	r     ref
}

// leafHeap is ordered by stamp, oldest first.
type leafHeap []leaf

func (h *leafHeap) push(l leaf) {
	s := append(*h, l)
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if s[up].stamp <= l.stamp {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = l
	*h = s
}

func (h *leafHeap) pop() leaf {
	s := *h
	top, last := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	for i, n := 0, len(s); n > 0; {
		c := 2*i + 1
		if c+1 < n && s[c+1].stamp < s[c].stamp {
			c++
		}
		if c >= n || s[c].stamp >= last.stamp {
			s[i] = last
			break
		}
		s[i] = s[c]
		i = c
	}
	return top
}

// evictStep is how many blocks are evicted at once: enough that the cost of
// looking for them is shared, few enough that no event waits long.
const evictStep = 64

// scanLimit bounds how many blocks behind one block are looked through before
// it is taken to be needed.
const scanLimit = 64

// keepBounds evicts what a batch left above a bound.
func (ix *Index) keepBounds(id ID, t *target) {
	if over := t.total() - ix.targetCap(); over > 0 {
		ix.evictFrom(id, t, over)
	}
	if over := ix.records - ix.opt.MaxBlocks; over > 0 {
		ix.evictAny(over)
	}
	if ix.pressed {
		ix.pressed = false
		ix.evictAny(evictStep)
		ix.advance()
	}
	if len(t.leaves) > 1024+t.mostLeaves {
		ix.pruneLeaves(id, t)
		t.mostLeaves = 2 * len(t.leaves)
	}
	ix.bytes += int64(8 * (cap(t.leaves) - t.leafRoom))
	t.leafRoom = cap(t.leaves)
	if ix.tick.Load() > 1<<31 {
		ix.rebase()
	}
}

func (ix *Index) targetCap() int {
	n := ix.opt.MaxTargetBlocks
	if b := ix.opt.MaxTargetBytes; b > 0 {
		n = min(n, max(1, int(b/BytesPerBlock)))
	}
	return n
}

// evictFrom takes at least n blocks from a target, matched longest ago first.
func (ix *Index) evictFrom(id ID, t *target, n int) {
	noted := false
	for goal := t.total() - n; t.total() > max(goal, 0); {
		if len(t.leaves) == 0 {
			if noted {
				return
			}
			ix.noteLeaves(func(o ID) bool { return o == id })
			noted = true
			continue
		}
		ix.evictChain(id, t, t.total()-goal)
	}
}

// evictAny frees at least n distinct blocks, matched longest ago first
// whichever target holds them. It returns early when nothing is left.
func (ix *Index) evictAny(n int) {
	goal, noted := max(ix.records-n, 0), false
	for ix.records > goal {
		best := -1
		top := int(ix.top.Load())
		for i := range ix.targets[:top] {
			if h := ix.targets[i].leaves; len(h) > 0 && (best < 0 || h[0].stamp < ix.targets[best].leaves[0].stamp) {
				best = i
			}
		}
		if best >= 0 {
			ix.evictChain(ID(best), &ix.targets[best], ix.records-goal)
			continue
		}
		if noted {
			return
		}
		ix.noteLeaves(func(ID) bool { return true })
		noted = true
	}
}

// evictChain looks at the target's oldest note: when the block is still the
// last of a chain and was not matched since, it and what is as old before it
// go, at most n blocks.
func (ix *Index) evictChain(id ID, t *target, n int) {
	l := t.leaves.pop()
	r := l.r
	if t.approx != nil {
		ix.lapseOldest(id, t, n)
		return
	}
	for ; n > 0 && r != 0; n-- {
		rec := ix.at(r)
		if !ix.holds(rec.hold, id, Disk) || ix.holdsOwnChild(id, rec, Disk, scanLimit) {
			return
		}
		if s := atomic.LoadUint32(&rec.stamp); s > l.stamp {
			t.leaves.push(leaf{s, r})
			return
		}
		p := rec.parent
		ix.letGo(id, t, r)
		t.stats.Evicted++
		ix.evicted++
		r = p
	}
	if r != 0 {
		ix.note(id, t, r)
	}
}

// note remembers a block as the last one of a chain, if the target holds it.
func (ix *Index) note(id ID, t *target, r ref) {
	if rec := ix.at(r); ix.holds(rec.hold, id, Disk) {
		t.leaves.push(leaf{atomic.LoadUint32(&rec.stamp), r})
	}
}

// letGo takes a block from a target in all tiers, with all owners.
func (ix *Index) letGo(id ID, t *target, r ref) {
	rec := ix.at(r)
	for tier := Tiers - 1; tier >= 0; tier-- {
		// The record is freed with its last holder, so look before each tier.
		if rec.hold&linkedBit != 0 && ix.holdsIn(rec.hold, id, Tier(tier)) {
			ix.release(id, t, r, Tier(tier), true)
		}
	}
}

// pruneLeaves drops the notes that are no leaves any more or stand twice.
func (ix *Index) pruneLeaves(id ID, t *target) {
	kept := t.leaves[:0]
	for _, l := range t.leaves {
		if rec := ix.at(l.r); ix.holds(rec.hold, id, Disk) && !ix.holdsOwnChild(id, rec, Disk, scanLimit) {
			kept = append(kept, leaf{atomic.LoadUint32(&rec.stamp), l.r})
		}
	}
	// Sorted by stamp, which a heap may be; notes of one block stand together.
	slices.SortFunc(kept, func(a, b leaf) int {
		return cmp.Or(cmp.Compare(a.stamp, b.stamp), cmp.Compare(a.r, b.r))
	})
	t.leaves = slices.Compact(kept)
}

// noteLeaves notes afresh the last blocks of the chains of the targets asked
// for. It reads every record, so it is used only when notes ran out.
func (ix *Index) noteLeaves(wanted func(ID) bool) {
	for i := range ix.targets[:ix.top.Load()] {
		t := &ix.targets[i]
		if !t.used || t.total() == 0 || !wanted(ID(i)) {
			continue
		}
		t.leaves = t.leaves[:0]
		id := ID(i)
		inner := make([]uint64, ix.recs.used/64+1)
		for r := ref(1); r < ix.recs.used; r++ {
			if rec := ix.at(r); rec.parent != 0 && ix.holds(rec.hold, id, Disk) {
				inner[rec.parent>>6] |= 1 << (rec.parent & 63)
			}
		}
		for r := ref(1); r < ix.recs.used; r++ {
			if rec := ix.at(r); inner[r>>6]>>(r&63)&1 == 0 && ix.holds(rec.hold, id, Disk) {
				t.leaves.push(leaf{atomic.LoadUint32(&rec.stamp), r})
			}
		}
	}
}

// rebase moves all stamps down before the tick overflows, keeping the order of
// the newer half.
func (ix *Index) rebase() {
	const by = 1 << 30
	down := func(s uint32) uint32 { return max(s, by) - by }
	for r := ref(1); r < ix.recs.used; r++ {
		s := &ix.at(r).stamp
		atomic.StoreUint32(s, down(atomic.LoadUint32(s)))
	}
	for i := range ix.targets {
		for k := range ix.targets[i].leaves {
			l := &ix.targets[i].leaves[k]
			l.stamp = down(l.stamp)
		}
	}
	ix.tick.Add(^uint32(by - 1))
}
