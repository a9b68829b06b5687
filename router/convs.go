package router

import (
	"time"

	"adpdeck/router/model"
	"adpdeck/router/pin"
)

// conv is one tracked conversation.
type conv struct {
	data model.Conv // pin fields are filled in when it is published
	enc  string     // pin.Encode of the key
	// stamp is the router's stamp at the last change; pub the copy published
	// at pubStamp.
	stamp, pubStamp uint64
	pub             *model.Conv
	pinned          bool // an operator pinned it
	// starting is where the first turn, startedBy, of an unbound conversation is
	// on its way to.
	starting  model.Target
	startedBy int64
	tiedBy    int64 // the turn that made its newest binding
	served    bool  // a turn had its first token where the binding is
	held      bool  // in the tracker's held list
	links     [2]convLinks
}

type convLinks struct{ prev, next *conv }

// convList is a list through the links of index which.
type convList struct {
	which      int
	head, tail *conv
}

func (l *convList) pushFront(c *conv) {
	c.links[l.which] = convLinks{next: l.head}
	if l.head != nil {
		l.head.links[l.which].prev = c
	} else {
		l.tail = c
	}
	l.head = c
}

func (l *convList) pushBack(c *conv) {
	c.links[l.which] = convLinks{prev: l.tail}
	if l.tail != nil {
		l.tail.links[l.which].next = c
	} else {
		l.head = c
	}
	l.tail = c
}

func (l *convList) remove(c *conv) {
	k := &c.links[l.which]
	if k.prev != nil {
		k.prev.links[l.which].next = k.next
	} else {
		l.head = k.next
	}
	if k.next != nil {
		k.next.links[l.which].prev = k.prev
	} else {
		l.tail = k.prev
	}
	*k = convLinks{}
}

const (
	byActivity = 0
	byChange   = 1
	maxGone    = 4096
)

type goneConv struct {
	key   model.ConvKey
	stamp uint64
}

// tracker knows the conversations, at most max of them: the least recently
// active that is neither pinned by an operator nor has an open turn goes first.
//
// active and held together list them by last activity: what drop finds at the
// back of active and may not drop moves to held, so that it is met once.
// Everything in held was active before everything in active.
type tracker struct {
	max    int
	byKey  map[model.ConvKey]*conv
	active convList
	held   convList
	change convList // newest change first
	// gone is a ring of those dropped last; goneCut is the stamp of the newest
	// that the ring has lost.
	gone    [maxGone]goneConv
	goneN   uint64
	goneCut uint64
}

func newTracker(most int) *tracker {
	return &tracker{
		max: most, byKey: map[model.ConvKey]*conv{},
		active: convList{which: byActivity}, held: convList{which: byActivity}, change: convList{which: byChange},
	}
}

// ensure returns the conversation of key, made new when it is not known. stamp
// counts the router's changes.
func (t *tracker) ensure(key model.ConvKey, now time.Time, stamp *uint64) *conv {
	if c := t.byKey[key]; c != nil {
		return c
	}
	c := &conv{enc: pin.Encode(key)}
	c.starting.Rank = model.NoRank
	c.data = model.Conv{Key: key, Last: model.Target{Rank: model.NoRank}, FirstAt: now, LastAt: now}
	t.byKey[key] = c
	t.active.pushFront(c)
	t.change.pushFront(c)
	t.touch(c, stamp)
	t.drop(c, stamp)
	return c
}

// touch marks c as changed.
func (t *tracker) touch(c *conv, stamp *uint64) {
	*stamp++
	c.stamp = *stamp
	if t.change.head != c {
		t.change.remove(c)
		t.change.pushFront(c)
	}
}

// turn notes that c has a new turn at now.
func (t *tracker) turn(c *conv, now time.Time) {
	if c.held {
		t.held.remove(c)
		c.held = false
		t.active.pushFront(c)
	} else if t.active.head != c {
		t.active.remove(c)
		t.active.pushFront(c)
	}
	c.data.LastAt = now
}

// loosen gives a conversation that may be dropped again back to the list that
// drop looks at.
func (t *tracker) loosen(c *conv) {
	if c.held && !c.pinned && c.data.Open == 0 {
		t.held.remove(c)
		c.held = false
		t.active.pushBack(c)
	}
}

// drop brings the number back to the bound, sparing keep.
func (t *tracker) drop(keep *conv, stamp *uint64) {
	for len(t.byKey) > t.max {
		c := t.active.tail
		if c == nil || c == keep {
			return
		}
		t.active.remove(c)
		if c.pinned || c.data.Open > 0 {
			c.held = true
			t.held.pushFront(c)
			continue
		}
		t.change.remove(c)
		delete(t.byKey, c.data.Key)
		*stamp++
		g := &t.gone[t.goneN%maxGone]
		if t.goneN >= maxGone {
			t.goneCut = g.stamp
		}
		*g = goneConv{c.data.Key, *stamp}
		t.goneN++
	}
}

// goneSince lists the conversations dropped after stamp that are still
// unknown, oldest first; ok is false when the ring has lost some of them.
func (t *tracker) goneSince(stamp uint64) (keys []model.ConvKey, ok bool) {
	if t.goneCut > stamp {
		return nil, false
	}
	first := t.goneN
	for first > 0 && t.goneN-first < maxGone && t.gone[(first-1)%maxGone].stamp > stamp {
		first--
	}
	for i := first; i < t.goneN; i++ {
		if g := &t.gone[i%maxGone]; t.byKey[g.key] == nil {
			keys = append(keys, g.key)
		}
	}
	return keys, true
}
