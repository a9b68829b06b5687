package prefix

import "slices"

// The reference index: slow, obvious, nothing shared with the real one but the
// types. Contents are numbered by what they are: a local hash after a content.

type content = int // 0 is the empty prompt

type contents map[[2]uint64]content

func (c contents) of(parent content, local Local) content {
	key := [2]uint64{uint64(parent), uint64(local)}
	if c[key] == 0 {
		c[key] = len(c) + 1
	}
	return c[key]
}

func (c contents) path(locals []Local) []content {
	out, at := make([]content, len(locals)), 0
	for i, l := range locals {
		at = c.of(at, l)
		out[i] = at
	}
	return out
}

type refName struct {
	group uint32
	scope uint64
	ext   External
}

type refKey struct {
	name refName
	tier Tier
}

type refBlock struct {
	content content
	owners  int
	unsure  bool // not told since events were lost
}

type refWaiter struct {
	parent refName
	key    refKey
	local  Local
	owners int
}

type refTarget struct {
	all     contents
	blocks  map[refKey]*refBlock
	held    [Tiers]map[content]int // names that hold a content
	waiting []*refWaiter
	parents map[refName]refName
	atLeast bool // confirms all before a block, as one that lost some in between does
	seq     uint64
	inOrder bool
}

func newRefTarget(all contents) *refTarget {
	t := &refTarget{all: all, parents: map[refName]refName{}}
	t.wipe()
	return t
}

func (t *refTarget) wipe() {
	t.blocks, t.waiting = map[refKey]*refBlock{}, nil
	for i := range t.held {
		t.held[i] = map[content]int{}
	}
}

func (t *refTarget) restart() {
	t.wipe()
	t.inOrder = false
}

func (t *refTarget) apply(b *Batch) {
	if b.Numbered {
		if t.inOrder && b.Seq <= t.seq {
			return
		}
		t.seq, t.inOrder = b.Seq, true
	}
	for i := range b.Events {
		switch e := &b.Events[i]; e.Kind {
		case Stored:
			t.store(e)
		case Removed:
			for _, x := range e.Hashes {
				t.remove(refKey{refName{e.Group, e.Scope, x}, e.Tier})
			}
		case Placed:
			for _, x := range e.Hashes {
				t.place(refName{e.Group, e.Scope, x}, e.Tier)
			}
		case Moved:
			for _, x := range e.Hashes {
				t.move(refName{e.Group, e.Scope, x}, e.From, e.Tier)
			}
		case Cleared:
			t.wipe()
		}
	}
}

// content is what a name stands for, in whichever tier it is held.
func (t *refTarget) content(n refName) (content, bool) {
	for tier := Tier(0); tier < Tiers; tier++ {
		if b := t.blocks[refKey{n, tier}]; b != nil {
			return b.content, true
		}
	}
	return 0, false
}

func (t *refTarget) store(e *Event) {
	parent := refName{e.Group, e.Scope, e.Parent}
	at, known := t.content(parent)
	if !e.HasParent {
		at, known = 0, true
	}
	if known && e.Tier == Device && e.HasParent {
		t.confirm(parent)
	}
	for i, b := range e.Blocks {
		key := refKey{refName{e.Group, e.Scope, b.External}, e.Tier}
		if e.HasParent || i > 0 {
			t.parents[key.name] = parent
		}
		if known {
			at = t.all.of(at, b.Local)
			t.own(key, at, 1)
		} else {
			t.wait(&refWaiter{parent, key, b.Local, 1})
		}
		parent = key.name
	}
	for t.wakeOne() {
	}
}

func (t *refTarget) own(key refKey, c content, owners int) {
	if b := t.blocks[key]; b != nil {
		if b.unsure {
			b.unsure, b.owners = false, 0
		}
		b.owners += owners
		return
	}
	t.blocks[key] = &refBlock{content: c, owners: owners}
	t.held[key.tier][c]++
}

func (t *refTarget) wait(w *refWaiter) {
	for _, o := range t.waiting {
		if o.parent == w.parent && o.key == w.key && o.local == w.local {
			o.owners++
			return
		}
	}
	t.waiting = append(t.waiting, w)
}

func (t *refTarget) wakeOne() bool {
	for i, w := range t.waiting {
		if c, ok := t.content(w.parent); ok {
			t.waiting = slices.Delete(t.waiting, i, i+1)
			if w.key.tier == Device {
				t.confirm(w.parent)
			}
			t.own(w.key, t.all.of(c, w.local), w.owners)
			return true
		}
	}
	return false
}

func (t *refTarget) remove(key refKey) {
	if b := t.blocks[key]; b != nil {
		if b.owners--; b.owners == 0 {
			delete(t.blocks, key)
			if t.held[key.tier][b.content]--; t.held[key.tier][b.content] == 0 {
				delete(t.held[key.tier], b.content)
			}
		}
		return
	}
	for i, w := range t.waiting {
		if w.key == key {
			if w.owners--; w.owners == 0 {
				t.waiting = slices.Delete(t.waiting, i, i+1)
			}
			return
		}
	}
}

// place adds an owner in a tier of what the name stands for elsewhere.
func (t *refTarget) place(n refName, tier Tier) {
	if c, ok := t.content(n); ok {
		t.own(refKey{n, tier}, c, 1)
		return
	}
	for _, w := range t.waiting {
		if w.key.name == n {
			t.wait(&refWaiter{w.parent, refKey{n, tier}, w.local, 1})
			return
		}
	}
}

// move is a removal from one tier and an owner in another. What was not in the
// first comes to the second if nothing of it is there.
func (t *refTarget) move(n refName, from, to Tier) {
	if b := t.blocks[refKey{n, from}]; b != nil {
		t.own(refKey{n, to}, b.content, 1)
		t.remove(refKey{n, from})
		return
	}
	for _, w := range t.waiting {
		if w.key == (refKey{n, from}) {
			parent, local := w.parent, w.local
			t.remove(w.key)
			t.wait(&refWaiter{parent, refKey{n, to}, local, 1})
			return
		}
	}
	if b := t.blocks[refKey{n, to}]; b != nil {
		b.unsure = false
	} else if c, ok := t.content(n); ok {
		t.own(refKey{n, to}, c, 1)
	}
}

// doubtAll puts all blocks in doubt, with one owner each, and drops what waits.
func (t *refTarget) doubtAll() {
	t.waiting = nil
	for _, b := range t.blocks {
		b.owners, b.unsure = 1, true
	}
}

// confirm makes the device's block of that name certain, and those before it
// up to one that is.
func (t *refTarget) confirm(n refName) {
	for ok := true; ok; n, ok = t.parents[n] {
		if b := t.blocks[refKey{n, Device}]; b != nil {
			if !b.unsure && !t.atLeast {
				return
			}
			b.unsure = false
		}
	}
}

// settle drops what is in doubt.
func (t *refTarget) settle() {
	for key, b := range t.blocks {
		if b.unsure {
			t.remove(key)
		}
	}
}

// doubtful counts the blocks in doubt.
func (t *refTarget) doubtful() (n int) {
	for _, b := range t.blocks {
		if b.unsure {
			n++
		}
	}
	return n
}

// match is the device's prefix and what follows on host and on disk.
func (t *refTarget) match(path []content) (n [Tiers]int) {
	at := 0
	for tier := range n {
		for at < len(path) && t.held[tier][path[at]] > 0 {
			at++
			n[tier]++
		}
	}
	return n
}
