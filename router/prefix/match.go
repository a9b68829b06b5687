package prefix

import (
	"math/bits"
	"sync/atomic"
)

// Matcher looks chains up. It holds the scratch space of a look-up: one
// goroutine at a time may use it, any number of matchers may run at once. It
// needs no closing.
type Matcher struct {
	ix    *Index
	hint  uint32
	words int // of the bitsets of this look-up
	top   int
	tbl   *seqTable
	chain []Chain
	out   *Matches

	first, last, apart []uint64
	stack              []uint64
	gens               []uint32
	ends               []ref // blocks at which some target's match ended
	probe              probe
	low                lowScratch
}

// NewMatcher returns a matcher of the index.
func (ix *Index) NewMatcher() *Matcher {
	w := ix.words
	return &Matcher{
		ix: ix, hint: ix.tick.Load(),
		first: make([]uint64, w), last: make([]uint64, w), apart: make([]uint64, w),
		stack: make([]uint64, 32*w), gens: make([]uint32, ix.opt.Targets),
		ends: make([]ref, 0, maxEnds), low: newLowScratch(ix),
	}
}

// maxEnds is how many ends of matches one look-up marks as used.
const maxEnds = 64

// tries is how often a look-up that was overtaken by a new hole runs again.
const tries = 4

// Match fills out with how much of the chain every target holds. It takes no
// lock. What changes while it runs may be missed; a target of which a middle
// block is removed at every one of four attempts in a row counts 0.
func (m *Matcher) Match(chain []Chain, out *Matches) {
	ix := m.ix
	m.hint = ix.epochs.enter(m.hint)
	m.chain, m.out = chain, out
	for try := 0; ; try++ {
		gen := ix.gen.Load()
		m.begin(out)
		if try > 0 {
			for i := range m.top {
				m.gens[i] = ix.gens[i].Load()
			}
		}
		if len(chain) > 0 {
			m.device()
			if m.lowerTiers() {
				m.extensions()
			}
		}
		if ix.gen.Load() == gen || (try > 0 && m.settled(try+1 == tries)) {
			break
		}
	}
	m.touch()
	ix.epochs.leave(m.hint)
	m.chain, m.out = nil, nil
}

func (m *Matcher) begin(out *Matches) {
	ix := m.ix
	m.tbl = ix.seqs.Load()
	m.top = int(ix.top.Load())
	m.words = (m.top + 63) / 64
	out.Blocks = len(m.chain)
	out.Device = sized(out.Device, m.top)
	out.Host = sized(out.Host, m.top)
	out.Disk = sized(out.Disk, m.top)
	if cap(out.approx) < m.words {
		out.approx = make([]uint64, ix.words)
	}
	out.approx = out.approx[:m.words]
	for k := range out.approx {
		out.approx[k] = atomic.LoadUint64(&ix.guessed[k])
	}
	m.ends = m.ends[:0]
	m.probe.pos = -1
}

func sized(s []int32, n int) []int32 {
	if cap(s) < n {
		return make([]int32, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// settled reports that no target that counts changed during this attempt.
// With force, those that did count nothing.
func (m *Matcher) settled(force bool) bool {
	for i := range m.top {
		if m.ix.gens[i].Load() == m.gens[i] {
			continue
		}
		if !force {
			return false
		}
		m.out.Device[i], m.out.Host[i], m.out.Disk[i] = 0, 0, 0
	}
	return true
}

// touch renews the stamps of the blocks at which matches ended; what lies
// before them cannot be evicted sooner.
func (m *Matcher) touch() {
	if len(m.ends) == 0 {
		return
	}
	now := m.ix.tick.Add(1)
	for _, r := range m.ends {
		// Never back: another look-up may have passed this one meanwhile.
		at := &m.ix.at(r).stamp
		for was := atomic.LoadUint32(at); was < now && !atomic.CompareAndSwapUint32(at, was, now); {
			was = atomic.LoadUint32(at)
		}
	}
}

func (m *Matcher) end(r ref) {
	if len(m.ends) < maxEnds && r != 0 {
		m.ends = append(m.ends, r)
	}
}

// device fills out.Device. What a target holds of a chain without holes is a
// prefix, so the set of holders only shrinks along the chain: where it is the
// same at two positions it is the same between them, and elsewhere halving the
// stretch finds each end.
func (m *Matcher) device() {
	w := m.words
	first, last := m.first[:w], m.last[:w]
	m.fetch(0, first)
	for k := range first {
		first[k] &= atomic.LoadUint64(&m.ix.live[k])
	}
	// A target that was added after the look-up began is not counted.
	if rest := m.top & 63; rest != 0 {
		first[w-1] &= 1<<rest - 1
	}
	if none(first) {
		return
	}
	start := m.probe.r
	m.setApart(first)
	n := len(m.chain)
	if n == 1 {
		m.emit(first, nil, 1, start)
		return
	}
	m.fetch(n-1, last)
	and(last, first)
	end := m.probe.r
	m.resolve(0, n-1, start, first, last, 0)
	m.emit(last, nil, n, end)
}

// resolve finds the ends of the matches of the targets that hold position lo
// (from) and not hi (to), both sets of this look-up; lor is the block at lo.
// It takes targets out of to that an earlier position lacks: they left and
// came back while the look-up ran.
func (m *Matcher) resolve(lo, hi int, lor ref, from, to []uint64, level int) {
	for {
		if equal(from, to) {
			return
		}
		if hi-lo == 1 {
			m.emit(from, to, lo+1, lor)
			return
		}
		w := m.words
		mid := (lo + hi) / 2
		set := m.stack[level*w : level*w+w]
		m.fetch(mid, set)
		and(set, from)
		r := m.probe.r
		if !equal(set, from) {
			m.resolve(lo, mid, lor, from, set, level+1)
		}
		and(to, set)
		lo, lor, from = mid, r, set
		level++
	}
}

// emit gives the targets in set and not in but that depth.
func (m *Matcher) emit(set, but []uint64, depth int, r ref) {
	some := false
	for k, v := range set {
		if but != nil {
			v &^= but[k]
		}
		some = some || v != 0
		for ; v != 0; v &= v - 1 {
			m.out.Device[k<<6+bits.TrailingZeros64(v)] = int32(depth)
		}
	}
	if some {
		m.end(r)
	}
}

// probe is the block that was fetched last.
type probe struct {
	pos int
	r   ref
}

// fetch reads who holds the block at a position on the device.
func (m *Matcher) fetch(pos int, set []uint64) {
	clear(set)
	ix, seq := m.ix, m.chain[pos]
	m.probe = probe{pos: pos}
	for r := ix.first(m.tbl, seq); r != 0; r = ix.further(m.tbl, r, seq) {
		w := atomic.LoadUint64(&ix.at(r).hold)
		m.join(w, set)
		m.probe.r = r
		if w&twinBit == 0 {
			return
		}
	}
}

// join adds the device holders of a word to a set.
func (m *Matcher) join(w uint64, set []uint64) {
	switch w & formMask {
	case 0:
	case 2 << formShift:
		add(set, uint(w>>idBits&idMask))
		fallthrough
	case 1 << formShift:
		add(set, uint(w&idMask))
	default:
		row := m.ix.rowOf(w)
		for k := range set {
			set[k] |= atomic.LoadUint64(&row[k])
		}
	}
}

// add sets a bit; a target that was added after the look-up began is left out.
func add(set []uint64, id uint) {
	if k := id >> 6; k < uint(len(set)) {
		set[k] |= 1 << (id & 63)
	}
}

func and(a, b []uint64) {
	for k := range a {
		a[k] &= b[k]
	}
}

func equal(a, b []uint64) bool {
	for k := range a {
		if a[k] != b[k] {
			return false
		}
	}
	return true
}
