package router

import (
	"adpdeck/router/model"
	"adpdeck/router/pin"
)

// maxUndo bounds the changes that undo remembers, over all versions. The
// newest version can be taken back whatever its size.
const maxUndo = 1 << 16

// objectKind is what kind of state a command changes.
type objectKind uint8

const (
	fieldObject   objectKind = iota // one settings field
	weightObject                    // the weight of one rank
	availObject                     // the availability of one rank
	pinObject                       // the operator pin of one conversation
	bindingObject                   // the binding of one conversation
)

// object names one thing that a command can change.
type object struct {
	kind   objectKind
	field  string
	target model.Target
	conv   model.ConvKey
}

// value is the state of an object; which part counts is the object's kind.
type value struct {
	settings *model.Settings // of a field: a document that holds its value
	weight   float64
	drain    bool
	pin      pin.Pin     // zero: none
	binding  pin.Binding // zero: none
}

// change is one object as it is to be, and as it was.
type change struct {
	object object
	// old marks a binding that the table's bound pushed out: it comes back as
	// one of the oldest.
	old    bool
	before value
	after  value
}

// undoRecord is what taking a version back needs.
type undoRecord struct {
	version uint64
	changes []change
}

func (u *undoRecord) size() int { return len(u.changes) + 1 }

// revision is a published revision with the stamp of its last change.
type revision struct {
	model.Revision
	stamp uint64
}

// history is what has been done: revisions, events, and how to take them back.
// All three are oldest first and bounded.
type history struct {
	revisions []revision
	undo      []undoRecord
	undoSize  int
	events    ring[model.Event]
}

func newHistory(first model.Revision) history {
	return history{revisions: []revision{{Revision: first}}, events: newRing[model.Event](model.MaxEvents)}
}

func (h *history) add(rev model.Revision, u undoRecord, stamp uint64) {
	h.revisions = append(h.revisions, revision{rev, stamp})
	if over := len(h.revisions) - model.MaxRevisions; over > 0 {
		h.revisions = append(h.revisions[:0], h.revisions[over:]...)
	}
	if !rev.Verb.Undoable() {
		return
	}
	h.undo = append(h.undo, u)
	h.undoSize += u.size()
	for len(h.undo) > 1 && (h.undoSize > maxUndo || h.undo[0].version < h.revisions[0].Version) {
		h.undoSize -= h.undo[0].size()
		h.undo[0] = undoRecord{}
		h.undo = h.undo[1:]
	}
}

// took notes that version by took undoes back, and with it, in turn, what that
// one took back: every other one down the chain is in effect again, those
// between are not.
func (h *history) took(by, undoes, stamp uint64) {
	for off := true; undoes != 0; off = !off {
		rev := h.revision(undoes)
		if rev == nil {
			return
		}
		rev.UndoneBy, rev.stamp = 0, stamp
		if off {
			rev.UndoneBy = by
		}
		by, undoes = undoes, rev.Undoes
	}
}

// newest is the newest revision.
func (h *history) newest() model.Revision { return h.revisions[len(h.revisions)-1].Revision }

func (h *history) revision(version uint64) *revision {
	for i := len(h.revisions) - 1; i >= 0; i-- {
		if h.revisions[i].Version == version {
			return &h.revisions[i]
		}
	}
	return nil
}

func (h *history) record(version uint64) *undoRecord {
	for i := len(h.undo) - 1; i >= 0; i-- {
		if h.undo[i].version == version {
			return &h.undo[i]
		}
	}
	return nil
}

// blocker returns the newest later version, in effect, that changed an object
// that u changed too, 0 when there is none. A version that was undone and the
// one that undid it cancel out, if both came after u.
func (h *history) blocker(u *undoRecord) uint64 {
	mine := make(map[object]bool, u.size())
	for i := range u.changes {
		mine[u.changes[i].object] = true
	}
	for i := len(h.undo) - 1; i >= 0 && h.undo[i].version > u.version; i-- {
		later := &h.undo[i]
		rev := h.revision(later.version)
		if rev == nil || rev.UndoneBy != 0 || rev.Undoes > u.version {
			continue
		}
		for k := range later.changes {
			if mine[later.changes[k].object] {
				return later.version
			}
		}
	}
	return 0
}

// event tells operators something.
func (r *Router) event(level, who, what string, version uint64) {
	kind := model.EventRouter
	if who != "router" {
		kind = model.EventOperator
	}
	r.tell(model.Event{Level: level, Who: who, What: what, Version: version, Kind: kind})
}

// tell tells operators something; number and time are given here.
func (r *Router) tell(e model.Event) {
	r.stamp++
	e.ID, e.At = r.history.events.n+1, r.now
	r.history.events.push(e)
}
