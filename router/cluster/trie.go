package cluster

// trie holds the prompt blocks of all open bookings as one compressed tree of
// chain hashes. A node is a stretch of blocks; for each slot it counts the
// bookings that run through it, so that a shared block counts once per slot.
//
//	root ─ [a b c] ─┬─ [d e]      booking 1: a b c d e, booking 2: a b c f
//	                └─ [f]
//
// A chain hash proves all blocks before it, so a stretch matches as a whole
// when its last hash does, and a node is found by its first hash alone. Work
// is by node, not by block.
type trie struct {
	nodes   []node
	free    []int32
	byFirst table // first hash of a node → node
	bufs    bufPool
	blocks  int // hashes held, over all nodes
	limit   int // most that the buffers may hold
}

// node is one stretch. Node 0 is the root and holds no blocks.
type node struct {
	buf      int32 // buffer of its hashes
	from, to int32 // its part of the buffer
	start    int32 // depth of its first block
	parent   int32
	children int32
	holders  []holder
}

// holder counts the bookings of one slot that run through a node. part is what
// each block of the node weighs on that slot, in units of 1/wholeBlock.
type holder struct {
	slot int32
	n    int32
	part int64
}

// wholeBlock is the weight of one full block.
const wholeBlock = int64(1) << 30

func newTrie(seed uint64, limit int) trie {
	return trie{nodes: make([]node, 1, 64), byFirst: newTable(seed), limit: limit}
}

func (n *node) len() int { return int(n.to - n.from) }

func (t *trie) hashes(n *node) []uint64 { return t.bufs.get(n.buf)[n.from:n.to] }

// child returns the node below parent that begins with hash.
func (t *trie) child(parent int32, hash uint64) (int32, bool) {
	at, ok := t.byFirst.get(hash)
	return at, ok && t.nodes[at].parent == parent
}

// common counts the leading blocks of chain that n holds. A chain hash proves
// what precedes it, so the end is bisected.
func (t *trie) common(n *node, chain []uint64) int {
	own := t.hashes(n)
	most := min(len(own), len(chain))
	if own[most-1] == chain[most-1] {
		return most
	}
	lo, hi := 1, most-1 // the first is known to match; hi never does
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if own[mid] == chain[mid] {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// depths sets depth[slot] for every slot of a rank to how many leading blocks
// of chain are active there; other entries are left as they are.
func (t *trie) depths(chain []uint64, depth []int32) {
	at := int32(0)
	for pos := 0; pos < len(chain); {
		next, ok := t.child(at, chain[pos])
		if !ok {
			return
		}
		n := &t.nodes[next]
		k := t.common(n, chain[pos:])
		for i := range n.holders {
			if s := n.holders[i].slot; s >= 0 && int(s) < len(depth) {
				depth[s] = int32(pos + k)
			}
		}
		if k < n.len() {
			return
		}
		at, pos = next, pos+k
	}
}

// insert makes sure that chain ends at the end of a node and returns that
// node, 0 for an empty chain. held is less than the chain when the limit left
// its tail out; the node returned then ends where what was kept ends.
func (t *trie) insert(chain []uint64) (leaf int32, held int) {
	at, pos := int32(0), 0
	for pos < len(chain) {
		next, ok := t.child(at, chain[pos])
		if !ok {
			break
		}
		k := t.common(&t.nodes[next], chain[pos:])
		pos += k
		if k < t.nodes[next].len() {
			at = t.split(next, k)
			break
		}
		at = next
	}
	if pos < len(chain) {
		if _, taken := t.byFirst.get(chain[pos]); taken || t.bufs.held+bufSize(len(chain)-pos) > t.limit {
			return at, pos // taken: two prefixes with one hash; the tail is not tracked
		}
		at = t.add(at, chain[pos:], pos)
		pos = len(chain)
	}
	return at, pos
}

func (t *trie) alloc() int32 {
	if k := len(t.free); k > 0 {
		at := t.free[k-1]
		t.free = t.free[:k-1]
		return at
	}
	t.nodes = append(t.nodes, node{})
	return int32(len(t.nodes) - 1)
}

func (t *trie) add(parent int32, tail []uint64, start int) int32 {
	at := t.alloc()
	n := &t.nodes[at]
	n.buf = t.bufs.put(tail)
	n.from, n.to, n.start, n.parent, n.children = 0, int32(len(tail)), int32(start), parent, 0
	n.holders = n.holders[:0]
	t.nodes[parent].children++
	t.byFirst.put(tail[0], at)
	t.blocks += len(tail)
	return at
}

// split cuts the first k blocks of node at off into a new node above it, and
// returns that. Bookings that end at node at still do.
func (t *trie) split(at int32, k int) int32 {
	up := t.alloc()
	u, n := &t.nodes[up], &t.nodes[at]
	u.buf, u.from, u.to, u.start, u.parent, u.children = n.buf, n.from, n.from+int32(k), n.start, n.parent, 1
	u.holders = append(u.holders[:0], n.holders...)
	n.from, n.start, n.parent = n.from+int32(k), n.start+int32(k), up
	t.bufs.retain(n.buf)
	t.byFirst.put(t.hashes(u)[0], up)
	t.byFirst.put(t.hashes(n)[0], at)
	return up
}

// hold adds a booking of slot to every node from leaf up and returns the units
// that the slot won: new blocks, and blocks that are whole again because they
// are shared now.
func (t *trie) hold(leaf, slot int32) (units int64) {
	for at := leaf; at != 0; at = t.nodes[at].parent {
		n := &t.nodes[at]
		h := n.holder(slot)
		if h == nil {
			n.holders = append(n.holders, holder{slot: slot, n: 1, part: wholeBlock})
			units += wholeBlock * int64(n.len())
			continue
		}
		h.n++
		units += (wholeBlock - h.part) * int64(n.len())
		h.part = wholeBlock
	}
	return units
}

// drop takes a booking of slot away again and returns the units that the slot
// lost.
func (t *trie) drop(leaf, slot int32) (units int64) {
	for at := leaf; at != 0; {
		n := &t.nodes[at]
		parent := n.parent
		h := n.holder(slot)
		if h.n--; h.n == 0 {
			units += h.part * int64(n.len())
			*h = n.holders[len(n.holders)-1]
			n.holders = n.holders[:len(n.holders)-1]
		}
		if len(n.holders) == 0 {
			t.remove(at)
		} else if n.children == 1 {
			t.join(at)
		}
		at = parent
	}
	return units
}

// fade sets the weight of the blocks that only this booking of slot has to
// part, and returns the change in units.
func (t *trie) fade(leaf, slot int32, part int64) (units int64) {
	for at := leaf; at != 0; at = t.nodes[at].parent {
		n := &t.nodes[at]
		if h := n.holder(slot); h.n == 1 {
			units += (part - h.part) * int64(n.len())
			h.part = part
		}
	}
	return units
}

func (n *node) holder(slot int32) *holder {
	for i := range n.holders {
		if n.holders[i].slot == slot {
			return &n.holders[i]
		}
	}
	return nil
}

func (t *trie) remove(at int32) {
	n := &t.nodes[at]
	if own, _ := t.byFirst.get(t.hashes(n)[0]); own == at {
		t.byFirst.del(t.hashes(n)[0])
	}
	t.blocks -= n.len()
	t.bufs.release(n.buf)
	t.nodes[n.parent].children--
	t.free = append(t.free, at)
}

// join undoes a split that no booking needs any more: the node's only child
// continues it in the same buffer and is held by the same bookings.
func (t *trie) join(at int32) {
	n := &t.nodes[at]
	last := t.bufs.get(n.buf)
	if int(n.to) >= len(last) {
		return
	}
	below, ok := t.child(at, last[n.to])
	if !ok {
		return
	}
	c := &t.nodes[below]
	if c.buf != n.buf || c.from != n.to || !sameHolders(n.holders, c.holders) {
		return
	}
	t.byFirst.del(last[c.from])
	c.from, c.start, c.parent = n.from, n.start, n.parent
	t.byFirst.put(last[c.from], below)
	t.bufs.release(n.buf)
	t.free = append(t.free, at)
}

func sameHolders(a, b []holder) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		found := false
		for j := range b {
			if a[i] == b[j] {
				found = true
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// roundUnits rounds a weight in units to blocks, halves up; the bias takes
// back what fractions lost in their units.
func roundUnits(units int64) int {
	return int((units + wholeBlock/2 + wholeBlock>>17) >> 30)
}
