package prefix

import "sync/atomic"

// removed applies a Removed event.
func (ix *Index) removed(id ID, t *target, e *Event, a *Applied) {
	s := &ix.scratch
	s.size(len(e.Hashes))
	names, heads := s.names, s.heads
	for i, x := range e.Hashes {
		names[i] = e.name(x)
		heads[i] = ix.exts[ix.extBucket(names[i])]
	}
	ix.preloadNamed(heads, names)
	above := ref(0) // a block that may have become the last of its chain
	for _, name := range names {
		found := false
		for r := ix.named(ix.exts[ix.extBucket(name)], name); r != 0; {
			rec := ix.at(r)
			after := rec.extNext
			if ix.holdsIn(rec.hold, id, e.Tier) {
				found = true
				if p := rec.parent; ix.release(id, t, r, e.Tier, false) {
					if above != 0 && above != r {
						ix.note(id, t, above)
					}
					above = p
				}
			}
			r = ix.named(after, name)
		}
		switch {
		case found, ix.cancel(id, t, name, e.Tier):
			a.Removed++
			t.stats.Removed++
		default:
			a.Unknown++
			t.stats.Unknown++
		}
	}
	if above != 0 {
		ix.note(id, t, above)
	}
}

// preloadNamed touches what removing will read, so that the loads overlap:
// two steps into each bucket of names, then the bucket of the chain hash.
func (ix *Index) preloadNamed(heads []ref, names []uint64) {
	tbl := ix.seqs.Load()
	for range 2 {
		for i, r := range heads {
			if rec := ix.at(r); rec.ext != names[i] && rec.extNext != 0 {
				heads[i] = rec.extNext
			}
		}
	}
	for i, r := range heads {
		b, _ := ix.spot(tbl, ix.at(r).seq)
		heads[i] = tbl.heads[b] & refMask
	}
	var sum uint64
	for _, r := range heads {
		sum += uint64(*tbl.link(r))
	}
	ix.scratch.touch = sum
}

// release lets a target go of a record in one tier: one owner fewer, or with
// all set every owner. It reports whether the target let go for good; the
// record may be gone then.
func (ix *Index) release(id ID, t *target, r ref, tier Tier, all bool) bool {
	if len(ix.extra) > 0 {
		key := extraKey(r, id, tier)
		if n, ok := ix.extra[key]; ok {
			if !all && n > 1 {
				ix.extra[key] = n - 1
				return false
			}
			delete(ix.extra, key)
			if !all {
				return false
			}
		}
	}
	rec := ix.at(r)
	if rec.child != 0 || rec.hold&twinBit != 0 {
		ix.loses(id, t, rec, tier)
	}
	ix.dropHold(rec, id, tier)
	t.doubt.gone(r, tier)
	t.stats.Blocks[tier]--
	ix.mendParent(id, t, rec)
	if tier != Device {
		ix.endLower(id, t)
	}
	ix.freeIfIdle(r)
	return true
}

// freeIfIdle frees a record that nobody holds and nothing hangs on, then its
// parent likewise.
func (ix *Index) freeIfIdle(r ref) {
	tbl := ix.seqs.Load()
	for r != 0 {
		rec := ix.at(r)
		if held(rec.hold) || rec.child != 0 || rec.hold&linkedBit == 0 {
			return
		}
		b, _ := ix.spot(tbl, rec.seq)
		tbl.remove(b, r)
		ix.extRemove(r)
		p := rec.parent
		if rec.sibNext != 0 {
			ix.at(rec.sibNext).sibPrev = rec.sibPrev
		}
		if rec.sibPrev != 0 {
			ix.at(rec.sibPrev).sibNext = rec.sibNext
		} else if p != 0 {
			ix.at(p).child = rec.sibNext
		}
		atomic.StoreUint64(&rec.hold, 0)
		ix.recs.retire(r)
		ix.records--
		r = p
	}
}
