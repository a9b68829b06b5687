package prefix

import "sync/atomic"

// links are the next pointers of one chunk of records.
type links [chunkSize]ref

// seqTable finds records by chain hash: buckets of linked records. Readers
// walk it while the writer links and unlinks; growing builds a new one, so
// that a look-up on the old one is not disturbed.
type seqTable struct {
	heads []ref
	shift uint
	next  []*links
}

func newSeqTable(bits uint, chunks int) *seqTable {
	return &seqTable{heads: make([]ref, 1<<bits), shift: 64 - bits, next: make([]*links, chunks)}
}

// bucket spreads with an odd factor that is drawn for each index, so that
// prompts cannot be built to share a bucket.
func (ix *Index) bucket(t *seqTable, s Chain) int { return int(uint64(s) * ix.mix >> t.shift) }

func (t *seqTable) link(r ref) *ref { return &t.next[r>>chunkBits][r&chunkMask] }

// after is the record behind r in its bucket.
func (t *seqTable) after(r ref) ref { return atomic.LoadUint32(t.link(r)) }

func (t *seqTable) insert(b int, r ref) {
	atomic.StoreUint32(t.link(r), t.heads[b])
	atomic.StoreUint32(&t.heads[b], r)
}

func (t *seqTable) remove(b int, r ref) {
	at := &t.heads[b]
	for *at != r {
		at = t.link(*at)
	}
	atomic.StoreUint32(at, *t.link(r))
}

const minTableBits = 10

// growTables doubles the tables when they hold more than one and a half
// records a bucket.
func (ix *Index) growTables() {
	old := ix.seqs.Load()
	if ix.records <= len(old.heads)*3/2 || !ix.mayGrow(int64(8*len(old.heads))) {
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
			b := ix.bucket(t, rec.seq)
			*t.link(r), t.heads[b] = t.heads[b], r
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
