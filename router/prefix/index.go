package prefix

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"adpdeck/router/model"
)

// Index knows which target holds which blocks. Any number of goroutines may
// use it at once: look-ups run without a lock, changes one at a time.
type Index struct {
	opt   Options
	words int    // of a bitset over all IDs
	mix   uint64 // odd, drawn for this index
	// maxHoles is listedHoles, less in tests.
	maxHoles int

	// What look-ups read.
	dir          []*chunk // fixed length; a chunk stays once it is there
	flat, tiered rows
	seqs         atomic.Pointer[seqTable]
	epochs       epochs
	tick         atomic.Uint32 // of stores and matches, orders stamps
	top          atomic.Uint32 // IDs in use lie below
	live         []uint64      // bitset: look-ups count the target
	lower        []uint64      // bitset: has blocks on host or disk
	guessed      []uint64      // bitset: approximate
	holed        [Tiers][]uint64
	holes        [Tiers][]atomic.Pointer[holeList]
	gen          atomic.Uint64   // a hole appeared or a target was wiped
	gens         []atomic.Uint32 // the same by target
	names        atomic.Pointer[register]

	mu       sync.Mutex // guards all that follows, and writing what is above
	recs     limbo
	exts     []ref
	extShift uint
	records  int
	growAt   int // records at which the tables grow
	bytes    int64
	pressed  bool              // MaxBytes forbade to grow
	extra    map[uint64]uint32 // owners beyond the first, by record, ID and tier
	targets  []target
	wait     waiting
	evicted  uint64
	dropped  uint64
	scratch  scratch
}

// register is the targets by ID and the other way round, never written again
// once it is published.
type register struct {
	byID   []model.Target
	byName map[model.Target]ID
}

// target is what the writer knows of a target.
type target struct {
	used   bool
	holes  [Tiers]map[Chain]uint32 // missing blocks under held ones, with depth
	leaves leafHeap
	// mostLeaves is how many notes are kept before stale ones are dropped,
	// leafRoom how many are booked as memory.
	mostLeaves, leafRoom int
	waits                waits
	approx               *leases
	seq                  uint64
	inOrder              bool // a numbered batch was applied
	stats                TargetStats
}

// total is the target's blocks over all tiers.
func (t *target) total() int { return t.stats.Blocks[0] + t.stats.Blocks[1] + t.stats.Blocks[2] }

// New makes an index. It fails when an option is outside its limits.
func New(opt Options) (*Index, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	// Slots that wait for look-ups to pass stand beside the blocks in use.
	slots := opt.MaxBlocks + opt.MaxBlocks/8 + 2*chunkSize
	ix := &Index{
		opt: opt, words: (opt.Targets + 63) / 64, mix: rand.Uint64() | 1, maxHoles: listedHoles,
		dir:     make([]*chunk, slots>>chunkBits+1),
		gens:    make([]atomic.Uint32, opt.Targets),
		targets: make([]target, opt.Targets),
		extra:   make(map[uint64]uint32),
	}
	ix.flat, ix.tiered = newRows(ix.words, slots), newRows(3*ix.words, slots)
	ix.live, ix.lower, ix.guessed = make([]uint64, ix.words), make([]uint64, ix.words), make([]uint64, ix.words)
	for l := range ix.holes {
		ix.holed[l] = make([]uint64, ix.words)
		ix.holes[l] = make([]atomic.Pointer[holeList], opt.Targets)
	}
	ix.seqs.Store(newSeqTable(minTableBits, len(ix.dir)))
	ix.exts, ix.extShift = make([]ref, 1<<minTableBits), 64-minTableBits
	ix.dir[0], ix.seqs.Load().next[0] = new(chunk), new(links)
	ix.recs.used = 1 // 0 is no record
	ix.growAt = 3 << minTableBits / 2
	ix.bytes = 8<<minTableBits + chunkBytes
	ix.epochs.now.Store(1)
	ix.tick.Store(1)
	ix.names.Store(&register{})
	ix.wait.init(opt)
	return ix, nil
}

// Add makes a target known that is fed by events, and returns its ID; a target
// that is known already keeps its ID and its blocks. It fails with ErrTargets
// when the index is full, and with ErrApproximate when the target was added by
// AddApproximate.
func (ix *Index) Add(t model.Target) (ID, error) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.add(t, nil)
}

// AddAt is Add with the ID that the target is to have. It fails with ErrTargets
// when the ID is taken by another target or is not below Options.Targets.
func (ix *Index) AddAt(id ID, t model.Target) error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.addAt(id, t, nil)
}

func (ix *Index) addAt(id ID, name model.Target, a *leases) error {
	if had, ok := ix.Lookup(name); ok && had == id && (ix.targets[id].approx != nil) == (a != nil) {
		return nil
	} else if ok || int(id) >= len(ix.targets) || ix.targets[id].used {
		return fmt.Errorf("add %v at %d: %w", name, id, ErrTargets)
	}
	ix.occupy(id, name, a)
	return nil
}

func (ix *Index) add(name model.Target, a *leases) (ID, error) {
	if id, ok := ix.Lookup(name); ok {
		if (ix.targets[id].approx != nil) != (a != nil) {
			return 0, fmt.Errorf("add %v: %w", name, ErrApproximate)
		}
		return id, nil
	}
	for i := range ix.targets {
		if !ix.targets[i].used {
			ix.occupy(ID(i), name, a)
			return ID(i), nil
		}
	}
	return 0, fmt.Errorf("add %v: %w", name, ErrTargets)
}

// occupy gives a free ID to a target.
func (ix *Index) occupy(id ID, name model.Target, a *leases) {
	t := &ix.targets[id]
	*t = target{used: true, approx: a, leaves: t.leaves[:0], leafRoom: t.leafRoom}
	t.stats.Target, t.stats.Approximate = name, a != nil
	if a != nil {
		setBit(ix.guessed, id)
	}
	setBit(ix.live, id)
	ix.rename()
}

// rename publishes the targets in use.
func (ix *Index) rename() {
	reg := &register{byName: make(map[model.Target]ID)}
	for i := range ix.targets {
		if t := &ix.targets[i]; t.used {
			reg.byID = append(reg.byID, make([]model.Target, i+1-len(reg.byID))...)
			reg.byID[i] = t.stats.Target
			reg.byName[t.stats.Target] = ID(i)
		}
	}
	ix.names.Store(reg)
	ix.top.Store(uint32(len(reg.byID)))
}

// Drop forgets a target and all its blocks; its ID becomes free.
func (ix *Index) Drop(t model.Target) error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	id, ok := ix.Lookup(t)
	if !ok {
		return fmt.Errorf("drop %v: %w", t, ErrNoTarget)
	}
	clearBit(ix.live, id)
	ix.wipe(id)
	clearBit(ix.guessed, id)
	ix.targets[id] = target{leaves: ix.targets[id].leaves[:0], leafRoom: ix.targets[id].leafRoom}
	ix.rename()
	return nil
}

// Lookup returns the ID of a target. It takes no lock.
func (ix *Index) Lookup(t model.Target) (ID, bool) {
	id, ok := ix.names.Load().byName[t]
	return id, ok
}

// Targets returns the targets by ID; an unused ID holds the zero Target. It
// takes no lock; the slice is shared and must not be written.
func (ix *Index) Targets() []model.Target { return ix.names.Load().byID }

// target returns the target of an ID in use.
func (ix *Index) target(id ID) (*target, error) {
	if int(id) >= len(ix.targets) || !ix.targets[id].used {
		return nil, fmt.Errorf("target %d: %w", id, ErrNoTarget)
	}
	return &ix.targets[id], nil
}

func setBit(set []uint64, id ID)   { atomic.StoreUint64(&set[id>>6], set[id>>6]|1<<(id&63)) }
func clearBit(set []uint64, id ID) { atomic.StoreUint64(&set[id>>6], set[id>>6]&^(1<<(id&63))) }
func hasBit(set []uint64, id ID) bool {
	return atomic.LoadUint64(&set[id>>6])>>(id&63)&1 == 1
}
