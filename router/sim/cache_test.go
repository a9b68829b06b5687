package sim

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"adpdeck/router/trace"
)

// check fails unless the cache is prefix-closed, within its capacity, and its
// order and sums are right.
func (c *cache) check(t interface{ Fatalf(string, ...any) }) {
	used := make([]bool, len(c.blocks))
	for i := range used {
		used[i] = true
	}
	for _, at := range c.free {
		used[at] = false
	}
	resident, idle := 0, 0
	for at, in := range used {
		if !in {
			continue
		}
		b := &c.blocks[at]
		resident++
		if b.refs == 0 {
			idle++
		}
		if c.index.get(b.key) != int32(at) {
			t.Fatalf("block %d is not in the index", at)
		}
		if b.parent == none {
			continue
		}
		if p := &c.blocks[b.parent]; !used[b.parent] || p.refs < b.refs {
			t.Fatalf("block %d is resident or in use without its parent %d", at, b.parent)
		}
	}
	if resident != c.resident || idle != c.idle || c.private < 0 || c.resident+c.private > c.capacity() {
		t.Fatalf("%d resident, %d idle; the cache says %d, %d and %d private of %d", resident, idle, c.resident, c.idle, c.private, c.capacity())
	}
	newer := map[int32]bool{}
	for at := c.newest; at != none; at = c.blocks[at].older {
		if newer[at] || c.blocks[at].refs != 0 {
			t.Fatalf("block %d is linked twice or in use", at)
		}
		if p := c.blocks[at].parent; p != none && c.blocks[p].refs == 0 && !newer[p] {
			t.Fatalf("block %d is newer than its parent", at)
		}
		newer[at] = true
	}
	if len(newer) != c.idle {
		t.Fatalf("%d blocks are linked, %d are idle", len(newer), c.idle)
	}
}

// plainCache is the cache as one would write it without care for speed.
type plainCache struct {
	capacity, private, clock int
	blocks                   map[uint64]*plainBlock
}

type plainBlock struct {
	parent     uint64
	refs, used int
}

func (m *plainCache) match(keys []uint64) int {
	for i, k := range keys {
		if m.blocks[k] == nil {
			return i
		}
	}
	return len(keys)
}

func (m *plainCache) evict() bool {
	parents := map[uint64]bool{}
	for _, b := range m.blocks {
		parents[b.parent] = true
	}
	var oldest uint64
	for k, b := range m.blocks {
		if b.refs == 0 && !parents[k] && (oldest == 0 || b.used < m.blocks[oldest].used) {
			oldest = k
		}
	}
	delete(m.blocks, oldest)
	return oldest != 0
}

func (m *plainCache) begin(keys []uint64, need int) (int, bool) {
	n := m.match(keys)
	for _, k := range keys[:n] {
		m.blocks[k].refs++
	}
	undo := map[uint64]*plainBlock{}
	for k, b := range m.blocks {
		undo[k] = b
	}
	for len(m.blocks)+m.private+max(0, need-n) > m.capacity {
		if !m.evict() {
			m.blocks = undo
			for _, k := range keys[:n] {
				m.blocks[k].refs--
			}
			return 0, false
		}
	}
	m.private += max(0, need-n)
	return n, true
}

func (m *plainCache) fill(keys []uint64, from int) {
	for i := from; i < len(keys); i++ {
		m.private--
		b := m.blocks[keys[i]]
		if b == nil {
			b = &plainBlock{}
			if i > 0 {
				b.parent = keys[i-1]
			}
			m.blocks[keys[i]] = b
		}
		b.refs++
	}
}

func (m *plainCache) end(keys []uint64, private int) {
	for i := len(keys) - 1; i >= 0; i-- {
		b := m.blocks[keys[i]]
		b.refs--
		m.clock++
		b.used = m.clock
	}
	m.private -= private
}

// TestCacheActsLikeThePlainOne runs random requests through the cache and
// through the plain one: same matches, same residents, always prefix-closed,
// never over capacity.
func TestCacheActsLikeThePlainOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 24).Draw(t, "capacity")
		c := newCache(capacity)
		m := &plainCache{capacity: capacity, blocks: map[uint64]*plainBlock{}}
		type active struct {
			keys   []uint64
			lease  lease
			filled bool
		}
		var open []*active
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch op := rapid.IntRange(0, 2).Draw(t, "op"); {
			case op == 0 || len(open) == 0:
				var keys []uint64
				prev := uint64(0)
				for range rapid.IntRange(0, 8).Draw(t, "blocks") {
					prev = trace.Chain(prev, uint64(rapid.IntRange(0, 2).Draw(t, "id")))
					keys = append(keys, prev)
				}
				probe := keys[:max(0, len(keys)-rapid.IntRange(0, 1).Draw(t, "last"))]
				need := len(keys) + rapid.IntRange(0, 3).Draw(t, "answer")
				fits := c.fits(probe, need)
				l, ok := c.begin(probe, need)
				n, want := m.begin(probe, need)
				if ok != want || fits != want || ok && l.matched != n {
					t.Fatalf("begin: %v with %d, want %v with %d", ok, l.matched, want, n)
				}
				if ok {
					open = append(open, &active{keys: keys, lease: l})
				}
			case op == 1:
				a := open[rapid.IntRange(0, len(open)-1).Draw(t, "which")]
				if !a.filled {
					m.fill(a.keys, a.lease.matched)
					c.fill(&a.lease, a.keys)
					a.filled = true
				}
			default:
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				a := open[i]
				m.end(a.keys[:a.lease.matched], a.lease.private)
				c.end(&a.lease)
				open = append(open[:i], open[i+1:]...)
			}
			c.check(t)
			if len(m.blocks) != c.resident || m.private != c.private {
				t.Fatalf("%d resident and %d private, want %d and %d", c.resident, c.private, len(m.blocks), m.private)
			}
			for k := range m.blocks {
				if c.index.get(k) < 0 {
					t.Fatalf("block %x was evicted out of turn", k)
				}
			}
		}
	})
}

func TestTableActsLikeAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	table, want := newTable(64), map[uint64]int32{}
	for i := range 20_000 {
		key := uint64(rng.IntN(200)) * 0x10001 // many share a home
		if at, ok := want[key]; ok {
			if table.get(key) != at {
				t.Fatalf("step %d: %d is at %d, want %d", i, key, table.get(key), at)
			}
			table.remove(key)
			delete(want, key)
		} else if len(want) < 64 {
			table.put(key, int32(i))
			want[key] = int32(i)
		}
		if table.get(key|1<<60) != -1 {
			t.Fatal("found what was never put")
		}
	}
	for key, at := range want {
		if table.get(key) != at {
			t.Fatalf("%d is at %d, want %d", key, table.get(key), at)
		}
	}
}
