package prefix

// A hole of a target is a block that it does not hold although it holds a
// block right behind it. Where a chain has no hole, what a target holds of it
// is a prefix, and its end can be found by bisecting; where it has one, the
// prefix ends at the first hole or before.
//
// Holes are kept on three levels, one for each tier: on level 0 a block is
// held when it is on the device, on level 1 when it is on device or host, on
// level 2 when it is in any tier. A target without blocks below the device has
// the same holes on every level; only level 0 is kept for it then.
//
// For readers a hole is published before the change that makes it, and taken
// back after the change that fills it; a counter tells a look-up that one
// appeared while it ran.

// hole is a missing block: its chain hash and its position.
type hole struct {
	seq   Chain
	depth uint32
}

// holeList is a target's holes on one level, as readers see them. Beyond
// Index.maxHoles it only says that there are many, and look-ups walk block by block.
type holeList struct {
	many bool
	at   []hole
}

// listedHoles is how many holes of a target are listed.
const listedHoles = 64

// noHoles reports that the target has no hole on any level, so that a store
// behind a held block need not look for one to fill.
func (t *target) noHoles() bool {
	return len(t.holes[0])+len(t.holes[1])+len(t.holes[2]) == 0
}

// levels is how many levels are kept for the target.
func (ix *Index) levels(id ID) Tier {
	if hasBit(ix.lower, id) {
		return Tiers
	}
	return 1
}

// beginLower starts keeping all levels: the target stores its first block
// below the device.
func (ix *Index) beginLower(id ID, t *target) {
	for l := Tier(1); l < Tiers; l++ {
		for seq, depth := range t.holes[0] {
			ix.addHole(id, t, l, seq, depth)
		}
	}
	setBit(ix.lower, id)
}

// endLower goes back to one level when the last lower block left.
func (ix *Index) endLower(id ID, t *target) {
	if !hasBit(ix.lower, id) || t.stats.Blocks[Host]+t.stats.Blocks[Disk] > 0 {
		return
	}
	clearBit(ix.lower, id)
	for l := Tier(1); l < Tiers; l++ {
		clear(t.holes[l])
		ix.publish(id, t, l)
	}
}

func (ix *Index) addHole(id ID, t *target, l Tier, seq Chain, depth uint32) {
	if _, ok := t.holes[l][seq]; ok {
		return
	}
	if t.holes[l] == nil {
		t.holes[l] = make(map[Chain]uint32)
	}
	t.holes[l][seq] = depth
	ix.publish(id, t, l)
	ix.changed(id)
}

func (ix *Index) delHole(id ID, t *target, l Tier, seq Chain) {
	if _, ok := t.holes[l][seq]; ok {
		delete(t.holes[l], seq)
		ix.publish(id, t, l)
	}
}

// changed tells running look-ups that what they found of the target may be
// too long.
func (ix *Index) changed(id ID) {
	ix.gens[id].Add(1)
	ix.gen.Add(1)
}

func (ix *Index) publish(id ID, t *target, l Tier) {
	p := &ix.holes[l][id]
	switch n := len(t.holes[l]); {
	case n == 0:
		clearBit(ix.holed[l], id)
		p.Store(nil)
	case n > ix.maxHoles:
		if old := p.Load(); old == nil || !old.many {
			p.Store(&holeList{many: true})
		}
		setBit(ix.holed[l], id)
	default:
		list := &holeList{at: make([]hole, 0, n)}
		for seq, depth := range t.holes[l] {
			list.at = append(list.at, hole{seq, depth})
		}
		p.Store(list)
		setBit(ix.holed[l], id)
	}
}

// holdsContent reports whether the target holds the record's block on a level,
// under any name.
func (ix *Index) holdsContent(id ID, rec *record, level Tier) bool {
	if ix.holds(rec.hold, id, level) {
		return true
	}
	return rec.hold&twinBit != 0 && ix.twinHolds(id, rec, level)
}

// twinHolds asks the other records of the same chain hash.
func (ix *Index) twinHolds(id ID, rec *record, level Tier) bool {
	found := false
	ix.eachTwin(rec.seq, func(r ref) bool {
		o := ix.at(r)
		found = o != rec && ix.holds(o.hold, id, level)
		return !found
	})
	return found
}

// holdsChild reports whether the target holds a block right behind the
// record's block, on a level.
func (ix *Index) holdsChild(id ID, rec *record, level Tier) bool {
	if rec.hold&twinBit == 0 {
		return ix.holdsOwnChild(id, rec, level, -1)
	}
	found := false
	ix.eachTwin(rec.seq, func(r ref) bool {
		found = ix.holdsOwnChild(id, ix.at(r), level, -1)
		return !found
	})
	return found
}

// holdsOwnChild looks only at blocks that name this record as their parent. It
// gives up after limit of them and then says yes; a negative limit is none.
func (ix *Index) holdsOwnChild(id ID, rec *record, level Tier, limit int) bool {
	for c := rec.child; c != 0; c = ix.at(c).sibNext {
		if limit == 0 || ix.holds(ix.at(c).hold, id, level) {
			return true
		}
		limit--
	}
	return false
}

// gains says on which levels the target will hold the block anew once it holds
// the record in the tier.
func (ix *Index) gains(id ID, rec *record, tier Tier) (g [Tiers]bool) {
	for l := tier; l < ix.levels(id); l++ {
		g[l] = !ix.holdsContent(id, rec, l)
	}
	return g
}

// holeAbove marks the parent as a hole where the block is gained without it.
func (ix *Index) holeAbove(id ID, t *target, rec *record, gained [Tiers]bool) {
	if rec.parent == 0 {
		return
	}
	p := ix.at(rec.parent)
	for l := Tier(0); l < Tiers; l++ {
		if gained[l] && !ix.holdsContent(id, p, l) {
			ix.addHole(id, t, l, p.seq, depthOf(p.hold))
		}
	}
}

// fill takes back the holes that a gained block was.
func (ix *Index) fill(id ID, t *target, seq Chain, gained [Tiers]bool) {
	for l := Tier(0); l < Tiers; l++ {
		if gained[l] {
			ix.delHole(id, t, l, seq)
		}
	}
}

// loses marks the block as a hole on every level on which the target will no
// longer hold it once it leaves the tier, while it holds a block behind it.
func (ix *Index) loses(id ID, t *target, rec *record, tier Tier) {
	for l := tier; l < ix.levels(id); l++ {
		if ix.holdsWithout(id, rec, tier, l) || (rec.hold&twinBit != 0 && ix.twinHolds(id, rec, l)) {
			continue
		}
		if ix.holdsChild(id, rec, l) {
			ix.addHole(id, t, l, rec.seq, depthOf(rec.hold))
		}
	}
}

// holdsWithout reports whether another tier up to level holds the block.
func (ix *Index) holdsWithout(id ID, rec *record, tier, level Tier) bool {
	for o := Tier(0); o <= level; o++ {
		if o != tier && ix.holdsIn(rec.hold, id, o) {
			return true
		}
	}
	return false
}

// mendParent takes back the holes at the block's parent that lost their reason,
// after the block was let go.
func (ix *Index) mendParent(id ID, t *target, rec *record) {
	if rec.parent == 0 || t.noHoles() {
		return
	}
	p := ix.at(rec.parent)
	for l := Tier(0); l < Tiers; l++ {
		if _, ok := t.holes[l][p.seq]; ok && !ix.holdsChild(id, p, l) {
			ix.delHole(id, t, l, p.seq)
		}
	}
}
