package prefix

import (
	"math/bits"
	"sync/atomic"
)

// setApart takes the targets out of the set that have a hole on this chain,
// and finds their device matches one by one. Targets with too many holes to
// list are walked block by block, together.
func (m *Matcher) setApart(set []uint64) {
	walk := m.apart[:m.words]
	clear(walk)
	walking := false
	for k := range set {
		v := set[k] & atomic.LoadUint64(&m.ix.holed[Device][k])
		for ; v != 0; v &= v - 1 {
			id := ID(k<<6 + bits.TrailingZeros64(v))
			at, many := m.firstHole(id, Device, 0)
			bit := uint64(1) << (id & 63)
			switch {
			case many:
				walk[k] |= bit
				walking = true
			case at < len(m.chain):
				m.out.Device[id] = int32(m.bisect(id, Device, 0, at))
			default:
				continue
			}
			set[k] &^= bit
		}
	}
	if walking {
		m.walk(walk)
	}
}

// firstHole is the position of the target's first hole on this chain from a
// position on, or the chain's length; many says that its holes are not listed.
func (m *Matcher) firstHole(id ID, level Tier, from int) (at int, many bool) {
	at = len(m.chain)
	list := m.ix.holes[level][id].Load()
	if list == nil {
		return at, false
	}
	for _, h := range list.at {
		if d := int(h.depth); d >= from && d < at && m.chain[d] == h.seq {
			at = d
		}
	}
	return at, list.many
}

// bisect finds where a run of blocks in one tier that begins at lo ends, at hi
// at the latest; between them there is no hole.
func (m *Matcher) bisect(id ID, tier Tier, lo, hi int) int {
	var r ref
	for step := 1; lo < hi; {
		mid := min(lo+step-1, hi-1) // gallop, then halve
		if step == 0 {
			mid = (lo + hi) / 2
		}
		if at, ok := m.has(id, tier, mid); ok {
			lo, r = mid+1, at
			step *= 2
		} else {
			hi, step = mid, 0
		}
	}
	m.end(r)
	return lo
}

// has reports whether the target holds the block at a position in that tier,
// and a record of it.
func (m *Matcher) has(id ID, tier Tier, pos int) (ref, bool) {
	ix, seq := m.ix, m.chain[pos]
	for r := ix.first(m.tbl, seq); r != 0; r = ix.further(m.tbl, r, seq) {
		w := atomic.LoadUint64(&ix.at(r).hold)
		if ix.readsHold(w, id, tier) {
			return r, true
		}
		if w&twinBit == 0 {
			return 0, false
		}
	}
	return 0, false
}

// readsHold is holdsIn for readers.
func (ix *Index) readsHold(w uint64, id ID, tier Tier) bool {
	switch w & formMask {
	case 0:
		return false
	case 1 << formShift:
		return tier == Device && ID(w&idMask) == id
	case 2 << formShift:
		return tier == Device && (ID(w&idMask) == id || ID(w>>idBits&idMask) == id)
	}
	if tier != Device && w&tieredBit == 0 {
		return false
	}
	row := ix.rowOf(w)
	return atomic.LoadUint64(&row[int(tier)*ix.words+int(id>>6)])>>(id&63)&1 == 1
}

// walk goes along the chain with the targets of the set, which all hold its
// first block, until each has ended. It empties the set.
func (m *Matcher) walk(set []uint64) {
	here := m.stack[:m.words]
	last := ref(0)
	for pos := 0; pos < len(m.chain); pos++ {
		m.fetch(pos, here)
		and(here, set)
		m.emit(set, here, pos, last)
		copy(set, here)
		if last = m.probe.r; none(set) {
			return
		}
	}
	m.emit(set, nil, len(m.chain), last)
}

func none(set []uint64) bool {
	for _, v := range set {
		if v != 0 {
			return false
		}
	}
	return true
}
