package prefix

import (
	"fmt"
	"math/bits"

	"github.com/zeebo/xxh3"
)

// Apply applies a batch of a target's events, in order. What is wrong with an
// event is counted and costs that event only; the error is ErrNoTarget or
// ErrApproximate.
func (ix *Index) Apply(id ID, b *Batch) (Applied, error) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	t, err := ix.target(id)
	if err != nil {
		return Applied{}, err
	}
	if t.approx != nil {
		return Applied{}, fmt.Errorf("events of %v: %w", t.stats.Target, ErrApproximate)
	}
	if b.Numbered {
		if t.inOrder && b.Seq <= t.seq {
			t.stats.Replayed++
			return Applied{Replayed: true}, nil
		}
		t.seq, t.inOrder = b.Seq, true
	}
	var a Applied
	for i := range b.Events {
		ix.event(id, t, &b.Events[i], &a)
	}
	ix.keepBounds(id, t)
	return a, nil
}

func (ix *Index) event(id ID, t *target, e *Event, a *Applied) {
	ok := e.Tier < Tiers
	switch {
	case ok && e.Kind == Stored:
		ok = ix.stored(id, t, e, a)
	case ok && e.Kind == Removed:
		ix.removed(id, t, e, a)
	case ok && e.Kind == Placed, ok && e.Kind == Moved && e.From < Tiers && e.From != e.Tier:
		ix.placed(id, t, e, a)
	case e.Kind == Cleared:
		ix.clear(id, t)
		ok = true
	default:
		ok = false
	}
	if !ok {
		a.Refused++
		t.stats.Refused++
	}
}

// name folds group and scope into an engine's hash.
func (e *Event) name(x External) uint64 {
	if e.Group == 0 && e.Scope == 0 {
		return uint64(x)
	}
	return scoped(uint64(x), e.Group, e.Scope)
}

func scoped(x uint64, group uint32, scope uint64) uint64 {
	var b [20]byte
	le64(b[0:], x)
	le64(b[8:], scope)
	le32(b[16:], group)
	return xxh3.HashSeed(b[:], ownSeed+1)
}

func le64(b []byte, v uint64) {
	for i := range 8 {
		b[i] = byte(v >> (8 * i))
	}
}

func le32(b []byte, v uint32) {
	for i := range 4 {
		b[i] = byte(v >> (8 * i))
	}
}

// scratch is the writer's working space, so that an event allocates nothing.
type scratch struct {
	names []uint64
	seqs  []Chain
	heads []ref
	seen  []uint64 // bitmap of names in one event
	touch uint64   // keeps early loads alive
}

func (s *scratch) size(n int) {
	if cap(s.seqs) >= n {
		s.names, s.seqs, s.heads = s.names[:n], s.seqs[:n], s.heads[:n]
		return
	}
	s.names, s.seqs, s.heads = make([]uint64, n), make([]Chain, n), make([]ref, n)
}

// contradicts reports whether an event stores a name twice or below itself.
// A small bitmap answers nearly always; only where it has a bit twice are the
// names compared.
func (ix *Index) contradicts(parent uint64, hasParent bool, names []uint64) bool {
	logBits := uint(bits.Len(uint(len(names)*16) | 511))
	s := &ix.scratch
	if words := 1 << logBits / 64; cap(s.seen) < words {
		s.seen = make([]uint64, words)
	} else {
		s.seen = s.seen[:words]
		clear(s.seen)
	}
	for i, n := range names {
		if hasParent && n == parent {
			return true
		}
		h := n * ix.mix >> (64 - logBits)
		bit := uint64(1) << (h & 63)
		if s.seen[h>>6]&bit != 0 {
			for _, m := range names[:i] {
				if m == n {
					return true
				}
			}
		}
		s.seen[h>>6] |= bit
	}
	return false
}
