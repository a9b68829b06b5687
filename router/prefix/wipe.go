package prefix

// Clear wipes one target in all tiers, as a Cleared event does; its batch
// numbers go on.
func (ix *Index) Clear(id ID) error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	t, err := ix.target(id)
	if err == nil {
		ix.clear(id, t)
	}
	return err
}

func (ix *Index) clear(id ID, t *target) {
	ix.wipe(id)
	t.stats.Clears++
}

// Restart wipes one target in all tiers and forgets its last batch number: a
// new process, with an empty cache, counts from its own start.
func (ix *Index) Restart(id ID) error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	t, err := ix.target(id)
	if err == nil {
		ix.wipe(id)
		t.inOrder, t.seq = false, 0
		t.stats.Restarts++
	}
	return err
}

// wipe takes the target's blocks, holes and waiting blocks away. Look-ups see
// it empty from the first moment on.
func (ix *Index) wipe(id ID) {
	t := &ix.targets[id]
	wasLive := hasBit(ix.live, id)
	clearBit(ix.live, id)
	ix.changed(id)
	t.doubt = nil
	ix.wait.dropTarget(t)
	if t.total() > 0 {
		for key := range ix.extra {
			if ID(key>>2&idMask) == id {
				delete(ix.extra, key)
			}
		}
		ix.wipeRecords(id, t)
	}
	t.stats.Blocks = [Tiers]int{}
	for l := Tier(0); l < Tiers; l++ {
		clear(t.holes[l])
		ix.publish(id, t, l)
	}
	clearBit(ix.lower, id)
	t.leaves = t.leaves[:0]
	if t.approx != nil {
		t.approx.clear()
	}
	if wasLive {
		setBit(ix.live, id)
	}
}

func (ix *Index) wipeRecords(id ID, t *target) {
	left := t.total()
	for r := ref(1); r < ix.recs.used && left > 0; r++ {
		rec := ix.at(r)
		if !ix.holds(rec.hold, id, Disk) {
			continue
		}
		for tier := Tier(0); tier < Tiers; tier++ {
			if ix.holdsIn(rec.hold, id, tier) {
				ix.dropHold(rec, id, tier)
				left--
			}
		}
		ix.freeIfIdle(r)
	}
}
