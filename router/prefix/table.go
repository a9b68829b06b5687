package prefix

import "sync/atomic"

// slot is a ref with six bits that sum up what lies in the bucket from there
// on: each record has one of the six, and where a record's bit is not set it is
// not behind that slot. Most look-ups of what is not there end at the head.
type slot = uint32

const (
	refBits  = 26
	refMask  = 1<<refBits - 1
	signs    = 32 - refBits
	signBits = 6 // of the hash, to choose a sign
)

// links are the next pointers of one chunk of records.
type links [chunkSize]slot

// seqTable finds records by chain hash: buckets of linked records. Readers
// walk it while the writer links and unlinks; growing builds a new one, so
// that a look-up on the old one is not disturbed.
type seqTable struct {
	heads []slot
	shift uint
	next  []*links
}

func newSeqTable(bits uint, chunks int) *seqTable {
	return &seqTable{heads: make([]slot, 1<<bits), shift: 64 - bits, next: make([]*links, chunks)}
}

// spot is the bucket of a chain hash and its sign, in place in a slot. It
// spreads with an odd factor that is drawn for each index, so that prompts
// cannot be built to share a bucket.
func (ix *Index) spot(t *seqTable, s Chain) (bucket int, sign slot) {
	h := uint64(s) * ix.mix >> (t.shift - signBits)
	return int(h >> signBits), 1 << (refBits + h&(1<<signBits-1)*signs>>signBits)
}

func (t *seqTable) link(r ref) *slot { return &t.next[r>>chunkBits][r&chunkMask] }

// seek is the first record of a chain hash from a slot on, 0 for none.
func (ix *Index) seek(t *seqTable, s, sign slot, seq Chain) ref {
	for s&sign != 0 {
		r := s & refMask
		if ix.at(r).seq == seq {
			return r
		}
		s = atomic.LoadUint32(t.link(r))
	}
	return 0
}

// first is the newest record of a chain hash, 0 for none.
func (ix *Index) first(t *seqTable, seq Chain) ref {
	b, sign := ix.spot(t, seq)
	return ix.seek(t, atomic.LoadUint32(&t.heads[b]), sign, seq)
}

// further is the next record of the same chain hash after r.
func (ix *Index) further(t *seqTable, r ref, seq Chain) ref {
	_, sign := ix.spot(t, seq)
	return ix.seek(t, atomic.LoadUint32(t.link(r)), sign, seq)
}

// insert links a record that no reader can see yet.
func (t *seqTable) insert(b int, sign slot, r ref) {
	old := t.heads[b]
	*t.link(r) = old
	atomic.StoreUint32(&t.heads[b], old&^refMask|sign|r)
}

// remove unlinks a record. The slots before it keep its sign until the bucket
// is empty once, which costs a look-up a step now and then and no more.
func (t *seqTable) remove(b int, r ref) {
	at := &t.heads[b]
	for *at&refMask != r {
		at = t.link(*at & refMask)
	}
	atomic.StoreUint32(at, *t.link(r))
}

const minTableBits = 12

// growTables doubles the tables, which hold one and a half records a bucket.
// Where MaxBytes forbids it, the buckets go on growing.
func (ix *Index) growTables() {
	old := ix.seqs.Load()
	ix.growAt = 3 * len(old.heads)
	if !ix.mayGrow(int64(8 * len(old.heads))) {
		return
	}
	bits := 64 - old.shift + 1
	t := newSeqTable(bits, len(ix.dir))
	exts := make([]ref, 1<<bits)
	for c, k := range ix.dir {
		if k == nil {
			break
		}
		t.next[c] = new(links)
		for i := range k {
			r := ref(c<<chunkBits | i)
			if !ix.linked(r) {
				continue
			}
			rec := &k[i]
			b, sign := ix.spot(t, rec.seq)
			t.insert(b, sign, r)
			e := rec.ext * ix.mix >> t.shift
			rec.extNext, exts[e] = exts[e], r
		}
	}
	ix.exts = exts
	ix.extShift = t.shift
	ix.seqs.Store(t)
}

// linked reports whether a slot holds a record that the tables know.
func (ix *Index) linked(r ref) bool { return ix.at(r).hold&linkedBit != 0 }

func (ix *Index) extBucket(ext uint64) int { return int(ext * ix.mix >> ix.extShift) }

func (ix *Index) extRemove(r ref) {
	rec := ix.at(r)
	at := &ix.exts[ix.extBucket(rec.ext)]
	for *at != r {
		at = &ix.at(*at).extNext
	}
	*at = rec.extNext
}

// named returns the first record of that name, at or behind r in its bucket.
func (ix *Index) named(r ref, ext uint64) ref {
	for r != 0 {
		rec := ix.at(r)
		if rec.ext == ext {
			return r
		}
		r = rec.extNext
	}
	return 0
}

// heldName returns a record of that name which the target holds in any tier.
func (ix *Index) heldName(id ID, ext uint64) ref {
	for r := ix.named(ix.exts[ix.extBucket(ext)], ext); r != 0; r = ix.named(ix.at(r).extNext, ext) {
		if ix.holds(ix.at(r).hold, id, Disk) {
			return r
		}
	}
	return 0
}
