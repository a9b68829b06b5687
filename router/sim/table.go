package sim

// table maps the value of a chained block to its place in a cache. It is an
// open-addressing table that is sized once and never allocates again; keys are
// well mixed already, so their low bits serve as the hash.
//
//	slots[i] = {key, place+1}; place+1 = 0 marks an empty slot
type table struct {
	slots []slot
	mask  uint64
}

type slot struct {
	key   uint64
	place int32 // index + 1, 0: empty
}

// newTable returns a table for at most n entries.
func newTable(n int) table {
	size := 8
	for size < n*2 {
		size *= 2
	}
	return table{slots: make([]slot, size), mask: uint64(size - 1)}
}

// get returns the place of key, or -1.
func (t *table) get(key uint64) int32 {
	for i := key & t.mask; ; i = (i + 1) & t.mask {
		s := &t.slots[i]
		if s.place == 0 {
			return -1
		}
		if s.key == key {
			return s.place - 1
		}
	}
}

// put enters a key that is not there.
func (t *table) put(key uint64, place int32) {
	i := key & t.mask
	for t.slots[i].place != 0 {
		i = (i + 1) & t.mask
	}
	t.slots[i] = slot{key: key, place: place + 1}
}

// remove takes out a key that is there, and moves up what was displaced by it.
func (t *table) remove(key uint64) {
	i := key & t.mask
	for t.slots[i].key != key || t.slots[i].place == 0 {
		i = (i + 1) & t.mask
	}
	for j := i; ; {
		j = (j + 1) & t.mask
		if t.slots[j].place == 0 {
			break
		}
		// The entry at j may fill the hole at i unless its home lies between.
		if home := t.slots[j].key & t.mask; (j-home)&t.mask >= (j-i)&t.mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = slot{}
}
