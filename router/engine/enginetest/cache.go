package enginetest

import (
	"crypto/sha256"
	"encoding/binary"
)

const nowhere = int32(-1)

// block is one place of a rank's KV cache. A block that no request holds stays
// findable by its hash until it is the oldest in the free list:
//
//	oldest ⇄ … children before their parents … ⇄ newest
//
// Requests give their blocks back from the last to the first, so a prefix
// always outlives what continues it.
type block struct {
	hash         uint64
	named        bool // full and computed: it has a hash and was published
	refs         int32
	older, newer int32 // in the free list
	twin         int32 // another block with the same hash
}

// change is a block that came into a cache or left it, for the event feed.
type change struct {
	hash, parent uint64
	child        bool // parent holds
	removed      bool
	cleared      bool     // everything left it
	tokens       []uint32 // of a stored block; never written again
	lora, salt   string
}

// cache is the KV cache of one rank. It belongs to the engine's lock.
type cache struct {
	blocks         []block
	byHash         map[uint64]int32
	oldest, newest int32
	free           int  // blocks that no request holds
	named          int  // blocks with a hash, held or not
	twins          bool // equal blocks are kept twice, as vLLM does
	diary          []change
}

func newCache(blocks int, twins bool) *cache {
	c := &cache{blocks: make([]block, blocks), byHash: make(map[uint64]int32), oldest: nowhere, newest: nowhere, twins: twins}
	for i := range c.blocks {
		c.putNewest(int32(i))
	}
	return c
}

// used is how many blocks requests hold.
func (c *cache) used() int { return len(c.blocks) - c.free }

// match returns how many of the hashes, from the first until the first miss, are
// in the cache, and how many of those are free.
func (c *cache) match(hashes []uint64) (n, idle int) {
	for _, h := range hashes {
		at, ok := c.byHash[h]
		if !ok {
			break
		}
		if c.blocks[at].refs == 0 {
			idle++
		}
		n++
	}
	return n, idle
}

// take holds the blocks of a matched prefix.
func (c *cache) take(to []int32, hashes []uint64) []int32 {
	for _, h := range hashes {
		at := c.byHash[h]
		c.hold(at)
		to = append(to, at)
	}
	return to
}

func (c *cache) hold(at int32) {
	if c.blocks[at].refs == 0 {
		c.unlink(at)
	}
	c.blocks[at].refs++
}

// alloc holds a fresh block, forgetting what the oldest free one held; false
// when every block is in use.
func (c *cache) alloc() (int32, bool) {
	at := c.oldest
	if at == nowhere {
		return nowhere, false
	}
	c.unlink(at)
	if c.blocks[at].named {
		c.forget(at)
	}
	c.blocks[at] = block{refs: 1, older: nowhere, newer: nowhere, twin: nowhere}
	return at, true
}

// name makes a held, computed block findable and returns the block that the
// request holds from now on: without twins the one that was there first.
func (c *cache) name(at int32, ch change) int32 {
	first, exists := c.byHash[ch.hash]
	if exists && !c.twins {
		c.hold(first)
		c.drop(at)
		return first
	}
	b := &c.blocks[at]
	b.hash, b.named, b.twin = ch.hash, true, nowhere
	if exists {
		b.twin, c.blocks[first].twin = c.blocks[first].twin, at
	} else {
		c.byHash[ch.hash] = at
	}
	c.named++
	c.diary = append(c.diary, ch)
	return at
}

// release gives back all blocks of a request.
func (c *cache) release(blocks []int32) {
	for i := len(blocks) - 1; i >= 0; i-- {
		c.drop(blocks[i])
	}
}

func (c *cache) drop(at int32) {
	b := &c.blocks[at]
	if b.refs--; b.refs > 0 {
		return
	}
	if b.named {
		c.putNewest(at)
	} else {
		c.putOldest(at)
	}
}

// forget takes a block's name away and says so.
func (c *cache) forget(at int32) {
	b := &c.blocks[at]
	c.diary = append(c.diary, change{hash: b.hash, removed: true})
	c.named--
	first := c.byHash[b.hash]
	switch {
	case first != at:
		for c.blocks[first].twin != at {
			first = c.blocks[first].twin
		}
		c.blocks[first].twin = b.twin
	case b.twin != nowhere:
		c.byHash[b.hash] = b.twin
	default:
		delete(c.byHash, b.hash)
	}
}

// clear forgets everything and says so in one word; false while requests hold
// blocks.
func (c *cache) clear() bool {
	if c.used() > 0 {
		return false
	}
	for at := range c.blocks {
		c.blocks[at].named, c.blocks[at].twin = false, nowhere
	}
	clear(c.byHash)
	c.named = 0
	c.diary = append(c.diary, change{cleared: true})
	return true
}

func (c *cache) putNewest(at int32) {
	b := &c.blocks[at]
	b.older, b.newer = c.newest, nowhere
	if c.newest != nowhere {
		c.blocks[c.newest].newer = at
	} else {
		c.oldest = at
	}
	c.newest = at
	c.free++
}

func (c *cache) putOldest(at int32) {
	b := &c.blocks[at]
	b.older, b.newer = nowhere, c.oldest
	if c.oldest != nowhere {
		c.blocks[c.oldest].older = at
	} else {
		c.newest = at
	}
	c.oldest = at
	c.free++
}

func (c *cache) unlink(at int32) {
	b := &c.blocks[at]
	if b.older != nowhere {
		c.blocks[b.older].newer = b.newer
	} else {
		c.oldest = b.newer
	}
	if b.newer != nowhere {
		c.blocks[b.newer].older = b.older
	} else {
		c.newest = b.older
	}
	c.free--
}

// blockHash names a block in the engine's own terms: 64 bits of SHA-256 over
// the process's seed, the block before, the tokens, and for a first block adapter
// and salt. It has nothing to do with the hashes that a router computes.
func blockHash(process, parent uint64, child bool, tokens []uint32, lora, salt string) uint64 {
	buf := make([]byte, 0, 24+4*len(tokens)+len(lora)+len(salt))
	buf = binary.LittleEndian.AppendUint64(buf, process)
	if child {
		buf = binary.LittleEndian.AppendUint64(buf, parent)
	}
	for _, t := range tokens {
		buf = binary.LittleEndian.AppendUint32(buf, t)
	}
	if !child {
		buf = append(append(append(buf, lora...), 0), salt...)
	}
	sum := sha256.Sum256(buf)
	return binary.BigEndian.Uint64(sum[24:])
}
