package prefix

// placed applies a Placed or a Moved event. The blocks come under their names
// alone: what they hold was told when they came to another tier, so the
// target's own record of that name says where they belong. Other targets are
// not asked: they may use the name for something else. A name that the target
// neither holds nor waits for is counted as unplaced: less is known then,
// never more than there is.
func (ix *Index) placed(id ID, t *target, e *Event, a *Applied) {
	for _, x := range e.Hashes {
		name, done := e.name(x), false
		if e.Kind == Moved {
			done = ix.move(id, t, name, e.From, e.Tier)
		} else {
			done = ix.place(id, t, name, e.Tier)
		}
		if done {
			a.Placed++
			t.stats.Placed++
		} else {
			a.Unplaced++
			t.stats.Unplaced++
		}
	}
}

// place makes the target hold the block of a name in one more tier, or once
// more where it holds it there. A block that waits waits there too.
func (ix *Index) place(id ID, t *target, name uint64, tier Tier) bool {
	if r := ix.heldName(id, name); r != 0 {
		return ix.holdNamed(id, t, tier, r)
	}
	if w, ok := t.waits.oldest(name, Tiers); ok {
		w.tier, w.count = tier, 1
		ix.putAside(id, t, w)
		return true
	}
	return false
}

// move takes one owner of the block of a name from one tier to another. Where
// the target is not known to hold it in the first, an event went missing: it
// is believed to be in the second, if what it holds is known.
func (ix *Index) move(id ID, t *target, name uint64, from, to Tier) bool {
	found, done := false, false
	for r := ix.named(ix.exts[ix.extBucket(name)], name); r != 0; {
		rec := ix.at(r)
		after, parent := rec.extNext, rec.parent
		if ix.holdsIn(rec.hold, id, from) {
			found = true
			// First there, then no longer here, so that no look-up misses it.
			ok := ix.holdNamed(id, t, to, r)
			if ix.release(id, t, r, from, false) && !ok && parent != 0 {
				ix.note(id, t, parent)
			}
			done = done || ok
		}
		r = ix.named(after, name)
	}
	if found {
		return done
	}
	if w, ok := t.waits.oldest(name, from); ok {
		ix.cancel(id, t, name, from)
		w.tier, w.count = to, 1
		ix.putAside(id, t, w)
		return true
	}
	r := ix.heldName(id, name)
	if r != 0 && ix.holdsIn(ix.at(r).hold, id, to) {
		t.doubt.confirm(r, to)
		return true
	}
	return r != 0 && ix.holdNamed(id, t, to, r)
}

// holdNamed makes the target hold a record that it holds or held a moment ago,
// in a tier; false says that a bound forbids it.
func (ix *Index) holdNamed(id ID, t *target, tier Tier, r ref) bool {
	_, ok := ix.hold(id, t, tier, r, false)
	if !ok {
		ix.dropped++
	}
	return ok
}
