package prefix

import (
	"runtime"
	"sync/atomic"
)

// ref names a record; 0 is none.
type ref = uint32

// record is one block: a chain hash under one engine's name after one parent.
// Readers touch seq, hold and stamp; the rest is the writer's. 48 bytes.
//
//	0        8        16       24     28    32      36      40    44
//	| chain  | name   | hold   |parent|child|sibNext|sibPrev|stamp|extNext|
type record struct {
	seq              Chain  // written before the record is reachable
	ext              uint64 // the engine's name, group and scope folded in
	hold             uint64 // atomic: who holds it, see hold.go
	parent           ref    // block before it, 0 for the first of a prompt
	child            ref    // one of the blocks after it
	sibNext, sibPrev ref    // other blocks after the same parent
	stamp            uint32 // atomic: tick of the last match or store
	extNext          ref    // next in the bucket of its name
}

const (
	chunkBits = 13
	chunkSize = 1 << chunkBits
	chunkMask = chunkSize - 1
	// chunkBytes is what a chunk of records costs, with its links in the table.
	chunkBytes = chunkSize * (48 + 4)

	rowBits = 11
	rowSize = 1 << rowBits
	rowMask = rowSize - 1
)

type chunk [chunkSize]record

// limbo is a store of numbered slots whose freed slots are used again only
// when no look-up can still see them: they pass through two waiting rooms, one
// for each advance of the epoch.
type limbo struct {
	free, older, newer []uint32
	used               uint32 // slots handed out at least once
}

func (l *limbo) retire(i uint32) { l.newer = append(l.newer, i) }

func (l *limbo) advance() {
	l.free = append(l.free, l.older...)
	l.older, l.newer = l.newer, l.older[:0]
}

// take returns a slot that was freed before.
func (l *limbo) take() (uint32, bool) {
	if n := len(l.free); n > 0 {
		i := l.free[n-1]
		l.free = l.free[:n-1]
		return i, true
	}
	return 0, false
}

func (l *limbo) waiting() int { return len(l.older) + len(l.newer) }

// rows is a slab of bitsets of one width, in words.
type rows struct {
	limbo
	width int
	dir   [][]uint64
}

func newRows(width, slots int) rows {
	return rows{width: width, dir: make([][]uint64, slots>>rowBits+1)}
}

// at is row i; its words are read and written atomically.
func (r *rows) at(i uint32) []uint64 {
	o := int(i&rowMask) * r.width
	return r.dir[i>>rowBits][o : o+r.width : o+r.width]
}

// readerSlots bounds the look-ups that run at the same instant; further ones
// pass over taken slots until one is free.
const readerSlots = 64

// epochs tells the writer which freed slots no look-up can see any more.
type epochs struct {
	now     atomic.Uint64
	readers [readerSlots]struct {
		at atomic.Uint64 // epoch in which the look-up began, 0 when idle
		_  [56]byte
	}
}

// enter begins a look-up and returns its slot, near the hint.
func (e *epochs) enter(hint uint32) uint32 {
	for i := hint; ; i++ {
		s := &e.readers[i%readerSlots].at
		if s.Load() == 0 && s.CompareAndSwap(0, e.now.Load()) {
			return i % readerSlots
		}
	}
}

func (e *epochs) leave(slot uint32) { e.readers[slot].at.Store(0) }

// quiet reports whether every look-up that runs began in the current epoch.
func (e *epochs) quiet() bool {
	now := e.now.Load()
	for i := range e.readers {
		if at := e.readers[i].at.Load(); at != 0 && at < now {
			return false
		}
	}
	return true
}

// at is record r.
func (ix *Index) at(r ref) *record { return &ix.dir[r>>chunkBits][r&chunkMask] }

// advance lets freed slots come one room nearer to use, if no look-up forbids.
func (ix *Index) advance() bool {
	if !ix.epochs.quiet() {
		return false
	}
	ix.recs.advance()
	ix.flat.advance()
	ix.tiered.advance()
	ix.epochs.now.Add(1)
	return true
}

// reclaimAt is how many freed slots gather before the epoch is advanced.
const reclaimAt = 256

// patience is how often the writer lets others run while it waits for look-ups
// to end, when all slots are in use or waiting.
const patience = 1000

// reclaim frees the slots of l that wait, for which look-ups that began before
// have to end. A look-up takes microseconds, but it may have been interrupted.
func (ix *Index) reclaim(l *limbo) bool {
	for i := 0; i < patience && len(l.free) == 0 && l.waiting() > 0; i++ {
		if !ix.advance() {
			runtime.Gosched()
		}
	}
	return len(l.free) > 0
}

// newRecord returns a free record, or 0 when a bound forbids one more.
func (ix *Index) newRecord() ref {
	if len(ix.recs.free) == 0 && ix.recs.waiting() >= reclaimAt {
		ix.advance()
	}
	if i, ok := ix.recs.take(); ok {
		return i
	}
	i := ix.recs.used
	c := int(i >> chunkBits)
	if c >= len(ix.dir) || (ix.dir[c] == nil && !ix.mayGrow(chunkBytes)) {
		if ix.reclaim(&ix.recs) {
			i, _ = ix.recs.take()
			return i
		}
		return 0
	}
	if ix.dir[c] == nil {
		ix.dir[c] = new(chunk)
		ix.seqs.Load().next[c] = new(links)
	}
	ix.recs.used++
	return i
}

// newRow returns a zeroed row of the slab.
func (ix *Index) newRow(s *rows) (uint32, bool) {
	if len(s.free) == 0 && s.waiting() >= reclaimAt {
		ix.advance()
	}
	c := int(s.used >> rowBits)
	full := len(s.free) == 0 && (c >= len(s.dir) || (s.dir[c] == nil && !ix.mayGrow(int64(rowSize*s.width*8))))
	if full && !ix.reclaim(&s.limbo) {
		return 0, false
	}
	if i, ok := s.take(); ok {
		row := s.at(i)
		for k := range row {
			atomic.StoreUint64(&row[k], 0)
		}
		return i, true
	}
	if s.dir[c] == nil {
		s.dir[c] = make([]uint64, rowSize*s.width)
	}
	s.used++
	return s.used - 1, true
}

// mayGrow books n bytes of memory unless that would pass MaxBytes; then room
// is made after the batch.
func (ix *Index) mayGrow(n int64) bool {
	if ix.opt.MaxBytes > 0 && ix.bytes+n > ix.opt.MaxBytes {
		ix.pressed = true
		return false
	}
	ix.bytes += n
	return true
}
