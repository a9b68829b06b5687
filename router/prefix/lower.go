package prefix

import (
	"math/bits"
	"slices"
	"sync/atomic"
)

// lowScratch is what extensions need.
type lowScratch struct {
	set     []uint64
	row     []uint64
	walkers []walker
}

// walker is a target whose extension is walked block by block from a position.
type walker struct {
	from int32
	id   ID
}

func newLowScratch(ix *Index) lowScratch {
	return lowScratch{
		set: make([]uint64, ix.words), row: make([]uint64, ix.words),
		walkers: make([]walker, 0, ix.opt.Targets),
	}
}

// lowerTiers reports whether any live target has blocks below the device, and
// notes which.
func (m *Matcher) lowerTiers() bool {
	some := uint64(0)
	for k := range m.low.set[:m.words] {
		v := atomic.LoadUint64(&m.ix.lower[k]) & atomic.LoadUint64(&m.ix.live[k])
		m.low.set[k] = v
		some |= v
	}
	return some != 0
}

// extensions fills out.Host and out.Disk: how many blocks follow on the host
// from where the device's ended, and on disk from there.
//
// A run in a tier has one end to bisect for when the levels above have no hole
// behind its start, because then nothing faster holds a block there, and its
// own level's holes bound it. Elsewhere the run is walked.
func (m *Matcher) extensions() {
	for tier := Host; tier < Tiers; tier++ {
		ends := m.out.Host
		if tier == Disk {
			ends = m.out.Disk
		}
		m.low.walkers = m.low.walkers[:0]
		for k, v := range m.low.set[:m.words] {
			for ; v != 0; v &= v - 1 {
				id := ID(k<<6 + bits.TrailingZeros64(v))
				if int(id) < m.top {
					ends[id] = m.extension(id, tier)
				}
			}
		}
		if len(m.low.walkers) > 0 {
			m.walkLower(tier, ends)
		}
	}
}

func (m *Matcher) extension(id ID, tier Tier) int32 {
	from := int(m.out.Device[id])
	if tier == Disk {
		from += int(m.out.Host[id])
	}
	if from == len(m.chain) {
		return 0
	}
	if _, ok := m.has(id, tier, from); !ok {
		return 0
	}
	limit := len(m.chain)
	for l := Tier(0); l <= tier; l++ {
		begin := int(m.out.Device[id])
		if l == tier {
			begin = from
		}
		at, many := m.firstHole(id, l, begin)
		if many || (l < tier && at < len(m.chain)) {
			m.low.walkers = append(m.low.walkers, walker{int32(from), id})
			return 0
		}
		limit = min(limit, at)
	}
	return int32(m.bisect(id, tier, from, limit) - from)
}

// walkLower walks all walkers along the chain at once, each from its start.
func (m *Matcher) walkLower(tier Tier, ends []int32) {
	ws := m.low.walkers
	slices.SortFunc(ws, func(a, b walker) int { return int(a.from - b.from) })
	set, row := m.stack[:m.words], m.low.row[:m.words]
	clear(set)
	last := ref(0)
	for pos := int(ws[0].from); ; pos++ {
		for len(ws) > 0 && int(ws[0].from) == pos {
			add(set, uint(ws[0].id))
			ws = ws[1:]
		}
		if pos < len(m.chain) {
			m.fetchTier(pos, tier, row)
		} else {
			clear(row)
		}
		for k := range set {
			for v := set[k] &^ row[k]; v != 0; v &= v - 1 {
				id := k<<6 + bits.TrailingZeros64(v)
				start := int(m.out.Device[id])
				if tier == Disk {
					start += int(m.out.Host[id])
				}
				ends[id] = int32(pos - start)
				m.end(last)
			}
			set[k] &= row[k]
		}
		last = m.probe.r
		if none(set) {
			if len(ws) == 0 {
				return
			}
			pos = int(ws[0].from) - 1
		}
	}
}

// fetchTier reads who holds the block at a position in a lower tier.
func (m *Matcher) fetchTier(pos int, tier Tier, set []uint64) {
	clear(set)
	ix, seq := m.ix, m.chain[pos]
	m.probe = probe{pos: pos}
	for r := ix.first(m.tbl, seq); r != 0; r = ix.further(m.tbl, r, seq) {
		m.probe.r = r
		w := atomic.LoadUint64(&ix.at(r).hold)
		if w&formMask == formRow && w&tieredBit != 0 {
			row := ix.rowOf(w)
			for k := range set {
				set[k] |= atomic.LoadUint64(&row[int(tier)*ix.words+k])
			}
		}
		if w&twinBit == 0 {
			return
		}
	}
}
