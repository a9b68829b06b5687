package prefix

// doubt is what is uncertain of a target since some of its events were lost: a
// lost removal leaves a block here that the engine no longer has. A block is
// certain again when the engine tells of it anew, or stores one behind it,
// since an engine stores only behind what it holds.
type doubt struct {
	sure [Tiers][]uint64 // bitset of records by tier: told since
	left int             // holds that are not
	// Settle is at this record, for the first time or the second, and before it
	// goes on where it left a chain.
	next, chain ref
	again       bool
}

// Doubt says that events of the target were lost. All that it holds is in
// doubt from here on and still counts; of several owners of a block one is
// left, and what waits for its parent is dropped, since their removals may be
// among what was lost. Said again, everything is in doubt again. It fails with
// ErrNoTarget.
func (ix *Index) Doubt(id ID) error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	t, err := ix.target(id)
	if err != nil {
		return err
	}
	ix.wait.dropTarget(t)
	for key := range ix.extra {
		if ID(key>>2&idMask) == id {
			delete(ix.extra, key)
		}
	}
	t.doubt = &doubt{left: t.total(), next: 1}
	return nil
}

// InDoubt returns how long the part of a chain is that the target holds up to its
// last block that is in doubt, 0 where none is.
func (ix *Index) InDoubt(id ID, chain []Chain) (blocks int) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	t, err := ix.target(id)
	if err != nil || t.doubt == nil || t.doubt.left == 0 {
		return 0
	}
	tbl := ix.seqs.Load()
	for k, c := range chain {
		held := false
		for r := ix.first(tbl, c); r != 0; r = ix.further(tbl, r, c) {
			for tier := Device; tier < Tiers; tier++ {
				if !ix.holdsIn(ix.at(r).hold, id, tier) {
					continue
				}
				held = true
				if t.doubt.unsure(r, tier) {
					blocks = k + 1
				}
			}
		}
		if !held {
			break
		}
	}
	return blocks
}

// settleStep is how many records one call of Settle looks at, and settleCost
// how many of them a dropped block counts for: events of other targets go on
// between two calls.
const (
	settleStep = 1 << 14
	settleCost = 8
)

// Settle ends a target's doubt: what was not told anew since goes. It does a
// bounded part of that and reports whether there is more to do; call it until
// there is not, and apply no events of the target meanwhile. It fails with
// ErrNoTarget.
func (ix *Index) Settle(id ID) (more bool, err error) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	t, err := ix.target(id)
	if err != nil || t.doubt == nil {
		return false, err
	}
	d := t.doubt
	for budget := settleStep; d.left > 0; budget-- {
		if budget <= 0 {
			return true, nil
		}
		r := d.chain
		if r == 0 && d.next >= ix.recs.used {
			if d.again {
				break
			}
			d.next, d.again = 1, true
		}
		if r == 0 {
			r = d.next
			d.next++
		}
		budget -= settleCost * ix.settleAt(id, t, r)
	}
	t.doubt = nil
	return false, nil
}

// settleChain is how many blocks of one chain are dropped at a time.
const settleChain = 256

// settleAt drops a block that is in doubt. The first time around only ends of
// chains go, and then what is before them, so that no holes are made for
// blocks that go too.
func (ix *Index) settleAt(id ID, t *target, r ref) (dropped int) {
	d := t.doubt
	for d.chain = 0; r != 0; {
		if dropped >= settleChain {
			d.chain = r
			return dropped
		}
		rec := ix.at(r)
		parent := rec.parent
		if !d.again && ix.holdsOwnChild(id, rec, Disk, scanLimit) {
			return dropped
		}
		n := 0
		for tier := Tiers - 1; tier >= 0; tier-- {
			// The record is freed with its last holder, so look before each tier.
			if l := Tier(tier); rec.hold&linkedBit != 0 && ix.holdsIn(rec.hold, id, l) && d.unsure(r, l) {
				ix.release(id, t, r, l, true)
				n++
			}
		}
		if n == 0 {
			if dropped > 0 {
				ix.note(id, t, r)
			}
			return dropped
		}
		dropped += n
		t.stats.Unconfirmed += uint64(n)
		r = parent
	}
	return dropped
}

// confirmAbove makes a block and those before it certain on the device, up to
// one that is.
func (ix *Index) confirmAbove(id ID, t *target, r ref) {
	for ; r != 0; r = ix.at(r).parent {
		if ix.holdsIn(ix.at(r).hold, id, Device) && !t.doubt.confirm(r, Device) {
			return
		}
	}
}

// unsure reports whether a hold is in doubt. Like all methods it may be asked
// of nil, where nothing is.
func (d *doubt) unsure(r ref, tier Tier) bool {
	if d == nil {
		return false
	}
	set := d.sure[tier]
	return int(r>>6) >= len(set) || set[r>>6]>>(r&63)&1 == 0
}

// told notes that the engine told of a new hold.
func (d *doubt) told(r ref, tier Tier) {
	if d == nil {
		return
	}
	for int(r>>6) >= len(d.sure[tier]) {
		d.sure[tier] = append(d.sure[tier], 0)
	}
	d.sure[tier][r>>6] |= 1 << (r & 63)
}

// confirm makes a hold certain and reports whether it was in doubt.
func (d *doubt) confirm(r ref, tier Tier) bool {
	if !d.unsure(r, tier) {
		return false
	}
	d.told(r, tier)
	d.left--
	return true
}

// gone notes that a hold has ended.
func (d *doubt) gone(r ref, tier Tier) {
	switch {
	case d == nil:
	case d.unsure(r, tier):
		d.left--
	default:
		d.sure[tier][r>>6] &^= 1 << (r & 63)
	}
}
