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

// chain is a chain of blocks on its way into the index for one target.
type chain struct {
	id   ID
	t    *target
	tier Tier
	now  uint32 // stamp

	parent ref // block stored last, 0 at the start of a prompt
	depth  uint32
	done   int  // blocks stored
	fresh  bool // the last one was not held before

	// plain says that a new block changes nothing but itself: it can be made
	// with its holder, which holder says, in one go.
	plain   bool
	holder  uint64
	evicted uint64 // evictions when the chain was looked up
}

// attach stores a chain of blocks for a target below parent, 0 for the start
// of a prompt, and returns how many found room.
func (ix *Index) attach(id ID, t *target, tier Tier, parent ref, seqs []Chain, names []uint64) int {
	known := ix.findAll(parent, seqs, names)
	c := chain{id: id, t: t, tier: tier, now: ix.tick.Add(1), parent: parent, holder: linkedBit, evicted: ix.evicted}
	if parent != 0 {
		c.depth = depthOf(ix.at(parent).hold) + 1
	}
	if t.doubt != nil && tier == Device {
		ix.confirmAbove(id, t, parent)
	}
	c.plain = tier == Device && t.doubt == nil && t.noHoles() && (parent == 0 || ix.holdsIn(ix.at(parent).hold, id, Device))
	if c.plain {
		c.holder |= 1<<formShift | uint64(id)
	}
	for i, seq := range seqs {
		if ix.records >= ix.opt.MaxBlocks && !ix.evictFor(&c, len(seqs)-i) {
			break
		}
		r, twins := known[i]&refMask, known[i] == sharedMark
		if ix.evicted != c.evicted { // what was found may be gone
			r, twins = ix.find(seq, names[i], c.parent), ix.first(ix.seqs.Load(), seq) != 0
		}
		if r == 0 {
			r = ix.addNew(&c, seq, names[i], twins)
		} else {
			r = ix.addKnown(&c, r)
		}
		if r == 0 {
			break
		}
		c.parent = r
		c.depth++
		c.done++
	}
	if c.fresh && c.done > 0 {
		t.leaves.push(leaf{c.now, c.parent})
	}
	ix.dropped += uint64(len(seqs) - c.done)
	t.stats.Stored += uint64(c.done)
	return c.done
}

// evictFor makes room for n more blocks of a chain. It returns false when the
// target lost the chain's own end over it.
func (ix *Index) evictFor(c *chain, n int) bool {
	ix.evictAny(min(n, evictStep))
	return c.parent == 0 || ix.holds(ix.at(c.parent).hold, c.id, Disk)
}

// addNew stores a block of which there is no record and returns it, or 0 when
// there is no room.
func (ix *Index) addNew(c *chain, seq Chain, name uint64, twins bool) ref {
	if c.depth > maxDepth {
		return 0
	}
	r := ix.newRecord()
	if r == 0 && ix.recs.waiting() == 0 && ix.evictFor(c, evictStep) {
		r = ix.newRecord()
	}
	if r == 0 {
		return 0
	}
	if ix.evicted != c.evicted && !c.t.noHoles() {
		c.plain, c.holder = false, linkedBit
	}
	rec := ix.at(r)
	rec.seq, rec.ext, rec.parent, rec.stamp = seq, name, c.parent, c.now
	rec.hold = c.holder | uint64(c.depth)<<depthShift
	ix.insert(r, rec, twins)
	if c.plain {
		c.t.stats.Blocks[Device]++
		c.fresh = true
		return r
	}
	return ix.addKnown(c, r)
}

// addKnown stores a block that has a record and returns it, or 0 when there is
// no room for one more holder.
func (ix *Index) addKnown(c *chain, r ref) ref {
	var ok bool
	if c.fresh, ok = ix.hold(c.id, c.t, c.tier, r, c.done > 0); !ok {
		ix.freeIfIdle(r)
		return 0
	}
	atomic.StoreUint32(&ix.at(r).stamp, c.now)
	return r
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
		if t.doubt.confirm(r, tier) { // whether once more, nobody knows
			return false, true
		}
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
	t.doubt.told(r, tier)
	return true, true
}

func extraKey(r ref, id ID, tier Tier) uint64 { return uint64(r)<<14 | uint64(id)<<2 | uint64(tier) }
