package prefix

import "sync/atomic"

// stored applies a Stored event. It returns false when the event contradicts
// itself.
func (ix *Index) stored(id ID, t *target, e *Event, a *Applied) bool {
	n := len(e.Blocks)
	if n == 0 {
		return true
	}
	s := &ix.scratch
	s.size(n)
	for i := range e.Blocks {
		s.names[i] = e.name(e.Blocks[i].External)
	}
	var parentName uint64
	if e.HasParent {
		parentName = e.name(e.Parent)
	}
	if ix.contradicts(parentName, e.HasParent, s.names) {
		return false
	}
	var parent ref
	if e.HasParent {
		if parent = ix.heldName(id, parentName); parent == 0 {
			for i := range e.Blocks {
				ix.putAside(id, t, waiter{parent: parentName, name: s.names[i], local: e.Blocks[i].Local, tier: e.Tier, count: 1})
				parentName = s.names[i]
			}
			a.Waiting += n
			ix.wake(id, t, s.names, a) // behind a later block there may be a held one
			return true
		}
	}
	var prev Chain
	if parent != 0 {
		prev = ix.at(parent).seq
	}
	for i := range e.Blocks {
		if i == 0 && parent == 0 {
			prev = First(e.Blocks[0].Local)
		} else {
			prev = next(prev, e.Blocks[i].Local)
		}
		s.seqs[i] = prev
	}
	a.Stored += ix.attach(id, t, e.Tier, parent, s.seqs, s.names)
	ix.wake(id, t, s.names, a)
	return true
}

// attach stores a chain of blocks for a target below parent, 0 for the start
// of a prompt, and returns how many found room. The names may be overwritten
// by a wake, not by attach.
func (ix *Index) attach(id ID, t *target, tier Tier, parent ref, seqs []Chain, names []uint64) int {
	known := ix.findAll(parent, seqs, names)
	evicted := ix.evicted
	now := ix.tick.Add(1)
	depth := uint32(0)
	if parent != 0 {
		depth = depthOf(ix.at(parent).hold) + 1
	}
	fresh := false
	done := 0
	// plain: nothing but the new record changes when a new block is stored.
	plain := tier == Device && t.noHoles() && (parent == 0 || ix.holdsIn(ix.at(parent).hold, id, Device))
	holder := uint64(linkedBit)
	if plain {
		holder |= 1<<formShift | uint64(id)
	}
	for i, seq := range seqs {
		if ix.records >= ix.opt.MaxBlocks {
			ix.evictAny(min(len(seqs)-i, evictStep))
			if parent != 0 && !ix.holds(ix.at(parent).hold, id, Disk) {
				break
			}
			if plain = plain && t.noHoles(); !plain {
				holder = linkedBit
			}
		}
		r, twins := known[i]&refMask, known[i] == sharedMark
		if ix.evicted != evicted { // what was found may be gone
			r = ix.find(seq, names[i], parent)
			twins = ix.first(ix.seqs.Load(), seq) != 0
		}
		isNew := r == 0
		if isNew {
			if depth > maxDepth {
				break
			}
			if r = ix.room(id, parent); r == 0 {
				break
			}
			if ix.evicted != evicted && !t.noHoles() {
				plain, holder = false, linkedBit
			}
			rec := ix.at(r)
			rec.seq, rec.ext, rec.parent, rec.stamp = seq, names[i], parent, now
			rec.hold = holder | uint64(depth)<<depthShift
			ix.insert(r, rec, twins)
		}
		if isNew && plain {
			t.stats.Blocks[Device]++
			fresh = true
		} else {
			var ok bool
			if fresh, ok = ix.hold(id, t, tier, r, i > 0); !ok {
				ix.freeIfIdle(r)
				break
			}
			atomic.StoreUint32(&ix.at(r).stamp, now)
		}
		parent, depth = r, depth+1
		done++
	}
	if fresh && done > 0 {
		t.leaves.push(leaf{now, parent})
	}
	if lost := len(seqs) - done; lost > 0 {
		ix.dropped += uint64(lost)
	}
	t.stats.Stored += uint64(done)
	return done
}

// findAll finds the records of a chain of blocks below parent: each answer is
// the record, 0 for none, or sharedMark. Nothing is stored between the loads, so that they overlap.
func (ix *Index) findAll(parent ref, seqs []Chain, names []uint64) []ref {
	s := &ix.scratch
	tbl := ix.seqs.Load()
	if cap(s.heads) < len(seqs) {
		s.heads = make([]ref, len(seqs))
	}
	heads := s.heads[:len(seqs)]
	sum := uint64(0)
	for i, q := range seqs {
		b, _ := ix.spot(tbl, q)
		heads[i] = tbl.heads[b]
		sum += uint64(ix.exts[ix.extBucket(names[i])])
	}
	s.touch = sum
	for i, q := range seqs {
		_, sign := ix.spot(tbl, q)
		heads[i] = ix.seek(tbl, heads[i], sign, q)
	}
	ix.preloadFree(tbl, heads)
	known := true // the parent is a record; behind a new block all are new
	for i, r := range heads {
		switch rec := ix.at(r); {
		case r == 0:
			known = false
			continue
		case known && rec.ext == names[i] && rec.parent == parent:
			parent = r
			continue
		case known:
			r = ix.find(seqs[i], names[i], parent)
			known = r != 0
		default:
			r = 0
		}
		if parent = r; r == 0 {
			r = sharedMark
		}
		heads[i] = r
	}
	return heads
}

// preloadFree touches the free records that the new blocks will take: a store to
// a cold one would hold up all that follows it.
func (ix *Index) preloadFree(tbl *seqTable, heads []ref) {
	at := len(ix.recs.free)
	sum := uint64(0)
	for _, r := range heads {
		if r == 0 && at > 0 {
			at--
			f := ix.recs.free[at]
			sum += uint64(ix.at(f).seq) + uint64(ix.at(f).extNext) + uint64(*tbl.link(f))
		}
	}
	ix.scratch.touch += sum
}

// sharedMark stands for no record where another has the same chain hash.
const sharedMark ref = 1 << refBits

// find returns the record of that chain hash, name and parent, 0 for none.
func (ix *Index) find(seq Chain, name uint64, parent ref) ref {
	tbl := ix.seqs.Load()
	r := ix.first(tbl, seq)
	for r != 0 && (ix.at(r).ext != name || ix.at(r).parent != parent) {
		r = ix.further(tbl, r, seq)
	}
	return r
}

// room returns a free record for a block below parent, or 0. When room has to
// be made, the target must not lose the parent over it.
func (ix *Index) room(id ID, parent ref) ref {
	r := ix.newRecord()
	for try := 0; r == 0 && try < 2; try++ {
		ix.evictAny(evictStep)
		ix.advance()
		if parent != 0 && !ix.holds(ix.at(parent).hold, id, Disk) {
			return 0
		}
		r = ix.newRecord()
	}
	return r
}

// insert links a record that is filled in but for its links.
func (ix *Index) insert(r ref, rec *record, twins bool) {
	eb := ix.extBucket(rec.ext)
	rec.child, rec.sibPrev, rec.sibNext = 0, 0, 0
	rec.extNext = ix.exts[eb]
	ix.exts[eb] = r
	if rec.parent != 0 {
		p := ix.at(rec.parent)
		if p.child != 0 {
			rec.sibNext = p.child
			ix.at(p.child).sibPrev = r
		}
		p.child = r
	}
	tbl := ix.seqs.Load()
	if twins {
		rec.hold |= twinBit
		ix.eachTwin(rec.seq, func(o ref) bool {
			tw := ix.at(o)
			atomic.StoreUint64(&tw.hold, tw.hold|twinBit)
			return true
		})
	}
	b, sign := ix.spot(tbl, rec.seq)
	tbl.insert(b, sign, r)
	if ix.records++; ix.records > ix.growAt {
		ix.growTables()
	}
}

// eachTwin calls f with every record of a chain hash until it returns false.
func (ix *Index) eachTwin(seq Chain, f func(ref) bool) {
	tbl := ix.seqs.Load()
	for r := ix.first(tbl, seq); r != 0 && f(r); {
		r = ix.further(tbl, r, seq)
	}
}

// hold makes the target hold the record in a tier. Fresh says that it did not
// before; ok is false when a bound forbids it. ParentHeld says that the target
// holds the parent in the same tier.
func (ix *Index) hold(id ID, t *target, tier Tier, r ref, parentHeld bool) (fresh, ok bool) {
	rec := ix.at(r)
	if ix.holdsIn(rec.hold, id, tier) {
		ix.extra[extraKey(r, id, tier)]++
		t.stats.Duplicates++
		return false, true
	}
	if tier != Device && !hasBit(ix.lower, id) {
		ix.beginLower(id, t)
	}
	quiet := tier == Device && parentHeld && t.noHoles()
	var gained [Tiers]bool
	if !quiet {
		gained = ix.gains(id, rec, tier)
		if !parentHeld {
			ix.holeAbove(id, t, rec, gained)
		}
	}
	if !ix.addHold(rec, id, tier) {
		if !quiet {
			ix.mendParent(id, t, rec)
		}
		return false, false
	}
	if !quiet {
		ix.fill(id, t, rec.seq, gained)
	}
	t.stats.Blocks[tier]++
	return true, true
}

func extraKey(r ref, id ID, tier Tier) uint64 { return uint64(r)<<14 | uint64(id)<<2 | uint64(tier) }
