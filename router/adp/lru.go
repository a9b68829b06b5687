package adp

import (
	"hash/maphash"
	"iter"
)

// LRU is the conversation map that a Router keeps when it is given none: key
// to rank, oldest to newest, bounded.
//
// It is written out here because a request looks its key up and binds it
// afresh within a budget of about 100 ns. A look-up returns a slot, so the
// binding that follows needs no second search; links are indexes, so the
// collector has nothing to follow; and a slot's key bytes are overwritten in
// place, so a full map allocates nothing. Measured with 16-byte keys, look up
// and bind: golang-lru's simplelru takes 58 ns for a key that is there and
// 287 ns and an allocation for a new one that drops the oldest of 4,096; this
// map takes 28 and 105 ns on the same (busy) machine, without allocating.
//
// The hash is seeded afresh in every map; it decides where an entry lies, never
// which rank a request gets. An LRU belongs to one goroutine at a time.
type LRU struct {
	max    int
	seed   maphash.Seed
	table  []lruEntry // a power of two, at most half full
	slots  []lruSlot
	keys   [][]byte // by slot
	free   []int32
	oldest int32
	newest int32
	n      int
}

type lruEntry struct {
	tag uint32 // low half of the hash
	ref int32  // slot + 1, 0 when empty
}

type lruSlot struct {
	older, newer int32
	rank         int32
	tag          uint32
}

const noSlot = -1

// NewLRU returns an empty map of at most max entries, at least 1.
func NewLRU(max int) *LRU {
	l := &LRU{seed: maphash.MakeSeed(), oldest: noSlot, newest: noSlot, table: make([]lruEntry, 16)}
	l.SetMax(max)
	return l
}

// Len is the number of entries.
func (l *LRU) Len() int { return l.n }

// SetMax changes the limit, at least 1, and drops the oldest entries over it.
func (l *LRU) SetMax(max int) {
	if max < 1 {
		max = 1
	}
	l.max = max
	for l.n > max {
		l.remove(l.oldest)
	}
}

// Get returns the rank of key without touching its recency.
func (l *LRU) Get(key string) (rank int, ok bool) {
	s := l.find(l.hash(key), key)
	if s < 0 {
		return 0, false
	}
	return int(l.slots[s].rank), true
}

// Record binds key to rank as the newest entry and drops the oldest over the
// limit.
func (l *LRU) Record(key string, rank int) {
	tag := l.hash(key)
	if s := l.find(tag, key); s >= 0 {
		l.touch(s, rank)
		return
	}
	l.insert(tag, key, rank)
}

// Remove forgets key and reports whether it was there.
func (l *LRU) Remove(key string) bool {
	s := l.find(l.hash(key), key)
	if s >= 0 {
		l.remove(s)
	}
	return s >= 0
}

// All yields the entries, oldest first. The map must not be changed meanwhile.
func (l *LRU) All() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for s := l.oldest; s != noSlot; s = l.slots[s].newer {
			if !yield(string(l.keys[s]), int(l.slots[s].rank)) {
				return
			}
		}
	}
}

func (l *LRU) hash(key string) uint32 { return uint32(maphash.String(l.seed, key)) }

// find returns the slot of key, noSlot when it is not there.
func (l *LRU) find(tag uint32, key string) int32 {
	mask := uint32(len(l.table) - 1)
	for i := tag & mask; ; i = (i + 1) & mask {
		e := l.table[i]
		if e.ref == 0 {
			return noSlot
		}
		if e.tag == tag && string(l.keys[e.ref-1]) == key {
			return e.ref - 1
		}
	}
}

// touch makes slot s the newest and binds it to rank.
func (l *LRU) touch(s int32, rank int) {
	l.slots[s].rank = int32(rank)
	if s != l.newest {
		l.unlink(s)
		l.link(s)
	}
}

// insert adds a key that is not in the map.
func (l *LRU) insert(tag uint32, key string, rank int) {
	if l.n >= l.max {
		l.remove(l.oldest)
	}
	if 2*(l.n+1) > len(l.table) {
		l.grow()
	}
	var s int32
	if k := len(l.free); k > 0 {
		s, l.free = l.free[k-1], l.free[:k-1]
	} else {
		s = int32(len(l.slots))
		l.slots, l.keys = append(l.slots, lruSlot{}), append(l.keys, nil)
	}
	buf := l.keys[s]
	if cap(buf) > 4*len(key)+64 {
		buf = nil // a long key must not hold its memory for ever
	}
	l.keys[s] = append(buf[:0], key...)
	sl := &l.slots[s]
	sl.rank, sl.tag = int32(rank), tag
	l.place(tag, s+1)
	l.link(s)
	l.n++
}

func (l *LRU) place(tag uint32, ref int32) {
	mask := uint32(len(l.table) - 1)
	i := tag & mask
	for l.table[i].ref != 0 {
		i = (i + 1) & mask
	}
	l.table[i] = lruEntry{tag, ref}
}

func (l *LRU) grow() {
	l.table = make([]lruEntry, 2*len(l.table))
	for s := l.oldest; s != noSlot; s = l.slots[s].newer {
		l.place(l.slots[s].tag, s+1)
	}
}

// remove drops slot s and closes the gap that it leaves in the table.
func (l *LRU) remove(s int32) {
	mask := uint32(len(l.table) - 1)
	i := l.slots[s].tag & mask
	for l.table[i].ref != s+1 {
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; l.table[j].ref != 0; j = (j + 1) & mask {
		// An entry may fill the gap unless its home lies after the gap.
		if home := l.table[j].tag & mask; (j-home)&mask >= (j-i)&mask {
			l.table[i] = l.table[j]
			i = j
		}
	}
	l.table[i] = lruEntry{}
	l.unlink(s)
	l.free = append(l.free, s)
	l.n--
}

func (l *LRU) unlink(s int32) {
	sl := l.slots[s]
	if sl.older == noSlot {
		l.oldest = sl.newer
	} else {
		l.slots[sl.older].newer = sl.newer
	}
	if sl.newer == noSlot {
		l.newest = sl.older
	} else {
		l.slots[sl.newer].older = sl.older
	}
}

func (l *LRU) link(s int32) {
	l.slots[s].older, l.slots[s].newer = l.newest, noSlot
	if l.newest == noSlot {
		l.oldest = s
	} else {
		l.slots[l.newest].newer = s
	}
	l.newest = s
}
