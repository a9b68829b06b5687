package cluster

import "math/bits"

// table maps 64-bit keys to small numbers: open addressing, linear probing,
// deletion by shifting back, so that no tombstones gather and the steady state
// allocates nothing. It is pointer-free; the collector does not scan it.
type table struct {
	cells []cell
	n     int
	seed  uint64
}

type cell struct {
	key uint64
	val int32 // 0 is empty: values are stored plus one
}

func newTable(seed uint64) table { return table{cells: make([]cell, 64), seed: seed | 1} }

func (t *table) home(key uint64) int {
	hi, lo := bits.Mul64(key^t.seed, 0x9e3779b97f4a7c15)
	return int((hi ^ lo) & uint64(len(t.cells)-1))
}

// get returns the value of key.
func (t *table) get(key uint64) (int32, bool) {
	mask := len(t.cells) - 1
	for i := t.home(key); ; i = (i + 1) & mask {
		c := &t.cells[i]
		if c.val == 0 {
			return 0, false
		}
		if c.key == key {
			return c.val - 1, true
		}
	}
}

// put sets the value of key.
func (t *table) put(key uint64, val int32) {
	if t.n*4 >= len(t.cells)*3 {
		t.grow()
	}
	mask := len(t.cells) - 1
	i := t.home(key)
	for ; t.cells[i].val != 0; i = (i + 1) & mask {
		if t.cells[i].key == key {
			t.cells[i].val = val + 1
			return
		}
	}
	t.cells[i] = cell{key, val + 1}
	t.n++
}

// del forgets key.
func (t *table) del(key uint64) {
	mask := len(t.cells) - 1
	i := t.home(key)
	for ; t.cells[i].val == 0 || t.cells[i].key != key; i = (i + 1) & mask {
		if t.cells[i].val == 0 {
			return
		}
	}
	t.n--
	for j := (i + 1) & mask; t.cells[j].val != 0; j = (j + 1) & mask {
		// The cell at j may fill the hole when its home is not between them.
		if (j-t.home(t.cells[j].key))&mask >= (j-i)&mask {
			t.cells[i] = t.cells[j]
			i = j
		}
	}
	t.cells[i] = cell{}
}

func (t *table) grow() {
	old := t.cells
	t.cells, t.n = make([]cell, 2*len(old)), 0
	for _, c := range old {
		if c.val != 0 {
			t.put(c.key, c.val-1)
		}
	}
}
