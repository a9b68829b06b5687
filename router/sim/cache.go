package sim

// none marks the absence of a block.
const none = int32(-1)

// block is one resident block of a cache. Blocks form a forest by parent, as
// every block continues exactly one prefix. Blocks that no active request uses
// are linked in the order of their last use:
//
//	newest ⇄ … parents before their children … ⇄ oldest
//
// A chain is linked from its last block to its first, each at the newest end,
// so a parent is always newer than its children and the oldest block is always
// a leaf: taking the oldest keeps the cache prefix-closed.
type block struct {
	key          uint64
	parent       int32
	newer, older int32
	refs         int32 // active requests whose chain holds the block
}

// cache is the KV cache of one rank: resident blocks that prompts can reuse,
// and private blocks that active requests have reserved. Together they never
// exceed the capacity. Nothing allocates after newCache.
type cache struct {
	blocks         []block
	index          table
	free           []int32 // places in blocks that are not in use
	newest, oldest int32
	idle           int // resident blocks that no active request uses
	resident       int
	private        int
	diary          *diary // what changed, nil when nobody asks
}

func newCache(capacity int) cache {
	c := cache{
		blocks: make([]block, capacity), index: newTable(capacity),
		free: make([]int32, capacity), newest: none, oldest: none,
	}
	for i := range c.free {
		c.free[i] = int32(capacity - 1 - i)
	}
	return c
}

// lease is what one active request holds of a cache.
type lease struct {
	matched int   // blocks that were found at the start
	leaf    int32 // last resident block of its chain
	private int   // reserved blocks that are not resident
}

func (c *cache) capacity() int { return len(c.blocks) }

// inUse is how many blocks active requests hold.
func (c *cache) inUse() int { return c.resident - c.idle + c.private }

// match returns how many blocks of the prompt are resident, from the first
// until the first miss.
func (c *cache) match(keys []uint64) int {
	for i, k := range keys {
		if c.index.get(k) < 0 {
			return i
		}
	}
	return len(keys)
}

// find returns the length of the resident prefix, its last block, and how many
// of its blocks are idle.
func (c *cache) find(keys []uint64) (matched int, leaf int32, idle int) {
	leaf = none
	for i, k := range keys {
		at := c.index.get(k)
		if at < 0 {
			return i, leaf, idle
		}
		if c.blocks[at].refs == 0 {
			idle++
		}
		leaf = at
	}
	return len(keys), leaf, idle
}

// fits reports whether begin would succeed.
func (c *cache) fits(keys []uint64, need int) bool {
	matched, _, idle := c.find(keys)
	return need-matched <= c.capacity()-c.inUse()-idle
}

// begin starts a request that needs need blocks in all, the first of them the
// resident part of keys: those are held, the others reserved, idle blocks being
// evicted as needed. It changes nothing and reports false when there is no room.
func (c *cache) begin(keys []uint64, need int) (lease, bool) {
	matched, leaf, idle := c.find(keys)
	private := max(0, need-matched)
	if private > c.capacity()-c.inUse()-idle {
		return lease{}, false
	}
	for at := leaf; at != none; at = c.blocks[at].parent {
		c.hold(at)
	}
	for c.capacity()-c.resident-c.private < private {
		c.evict()
	}
	c.private += private
	return lease{matched: matched, leaf: leaf, private: private}, true
}

// fill makes the computed blocks of a prompt resident, keys being all its full
// blocks. Where another request was first, its block is held and ours is freed.
func (c *cache) fill(l *lease, keys []uint64) {
	for _, k := range keys[l.matched:] {
		l.private--
		c.private--
		at := c.index.get(k)
		if at < 0 {
			at = c.free[len(c.free)-1]
			c.free = c.free[:len(c.free)-1]
			c.blocks[at] = block{key: k, parent: l.leaf, refs: 1}
			c.index.put(k, at)
			c.resident++
			if c.diary != nil {
				c.diary.stored(k, c.at(l.leaf))
			}
		} else {
			c.hold(at)
		}
		l.leaf = at
	}
	l.matched = len(keys)
}

// end gives back all that a request holds; its resident blocks stay until they
// are the oldest.
func (c *cache) end(l *lease) {
	for at := l.leaf; at != none; at = c.blocks[at].parent {
		b := &c.blocks[at]
		if b.refs--; b.refs == 0 {
			c.link(at)
		}
	}
	c.private -= l.private
	*l = lease{leaf: none}
}

// at is the block at a place, nil for none.
func (c *cache) at(place int32) *block {
	if place == none {
		return nil
	}
	return &c.blocks[place]
}

func (c *cache) hold(at int32) {
	b := &c.blocks[at]
	if b.refs == 0 {
		c.unlink(at)
	}
	b.refs++
}

func (c *cache) evict() {
	at := c.oldest
	c.unlink(at)
	if c.diary != nil {
		c.diary.removed(c.blocks[at].key)
	}
	c.index.remove(c.blocks[at].key)
	c.blocks[at] = block{}
	c.free = append(c.free, at)
	c.resident--
}

func (c *cache) link(at int32) {
	b := &c.blocks[at]
	b.newer, b.older = none, c.newest
	if c.newest != none {
		c.blocks[c.newest].newer = at
	} else {
		c.oldest = at
	}
	c.newest = at
	c.idle++
}

func (c *cache) unlink(at int32) {
	b := &c.blocks[at]
	if b.newer != none {
		c.blocks[b.newer].older = b.older
	} else {
		c.newest = b.older
	}
	if b.older != none {
		c.blocks[b.older].newer = b.newer
	} else {
		c.oldest = b.newer
	}
	c.idle--
}
