package cluster

import (
	"math"
	"time"
)

// queuePrefill appends booking i to its slot's prefills.
func (l *Load) queuePrefill(now time.Duration, i int32) {
	b := &l.bookings[i]
	s := l.slot(b.slot)
	b.earlier, b.later = s.newest, none
	if s.newest == none {
		l.anchor(s, i, now)
	} else {
		l.bookings[s.newest].later = i
	}
	s.newest = i
	s.prefill += b.prefill
	s.pending += b.left
	s.waiting++
	if b.duration <= 0 {
		s.unmodelled++
	}
}

// endPrefill takes booking i off its slot's prefills.
func (l *Load) endPrefill(now time.Duration, i int32) {
	b := &l.bookings[i]
	s := l.slot(b.slot)
	if b.earlier == none {
		l.anchor(s, b.later, now)
	} else {
		l.bookings[b.earlier].later = b.later
	}
	if b.later == none {
		s.newest = b.earlier
	} else {
		l.bookings[b.later].earlier = b.earlier
	}
	s.prefill -= b.prefill
	s.pending -= b.left
	s.waiting--
	if b.duration <= 0 {
		s.unmodelled--
	}
	b.earlier, b.later = none, none
}

// anchor makes booking i, or none, the oldest prefill of its slot.
func (l *Load) anchor(s *slotLoad, i int32, now time.Duration) {
	s.oldest, s.anchored, s.duration, s.anchor = i, now, 0, 0
	if i != none {
		s.duration, s.anchor = l.bookings[i].duration, l.bookings[i].prefill
	}
}

// active is Dynamo's A: booked prefill tokens, less what the oldest prefill
// should have done by now where its duration is modelled.
func (s *slotLoad) active(now time.Duration) int64 {
	if s.duration <= 0 {
		return s.prefill
	}
	return s.decayed(now)
}

func (s *slotLoad) decayed(now time.Duration) int64 {
	done := float64(max(0, now-s.anchored)) / float64(s.duration)
	if s.unmodelled == 0 {
		return max(0, s.prefill-int64(float64(s.anchor)*done))
	}
	left := int64(math.Ceil(float64(s.anchor) * max(0, 1-done)))
	return s.prefill - s.anchor + left
}

// Progress says how many tokens of a request are still to be prefilled, from
// an engine that reports it by request. Dynamo's A does not look at it.
func (l *Load) Progress(now time.Duration, id int64, left int) bool {
	i, ok := l.find(id)
	if !ok {
		return false
	}
	l.touch(now, i)
	if b := &l.bookings[i]; b.prefilling {
		s := l.slot(b.slot)
		s.pending += int64(max(0, left)) - b.left
		b.left = int64(max(0, left))
	}
	return true
}

// ReportPending takes an engine's figure of tokens still to be prefilled on a
// slot, true at time asOf. Requests booked at or before asOf share it, the
// newest whole and the oldest what is left, as an engine works in order; those
// booked later are added to it, for the report cannot know them. A caller that
// cannot prove that a booking had reached the engine gives an earlier asOf.
// What exceeds our own bookings is other traffic and counts until the next
// report, if the oldest request does not account for it by a missed match.
func (l *Load) ReportPending(slot int32, tokens int, asOf time.Duration) {
	s := l.slot(slot)
	rest := int64(max(0, tokens))
	s.reported = rest
	first := none // the oldest
	for i := s.newest; i != none; i = l.bookings[i].earlier {
		b := &l.bookings[i]
		if b.at > asOf {
			continue
		}
		left := min(b.prefill, rest)
		rest -= left
		s.pending += left - b.left
		b.left = left
		first = i
	}
	if first != none && rest > 0 {
		b := &l.bookings[first]
		more := min(rest, int64(b.prompt)-b.left) // its match may have missed
		if more > 0 {
			b.left += more
			s.pending += more
			rest -= more
		}
	}
	s.foreign = rest
}

// running is what of the pending tokens the step does that runs now: of those
// that the engine reported as it began, as many as fit into one step.
func (s *slotLoad) running(chunk int64) int64 { return min(s.reported, s.pending+s.foreign, chunk) }

// ReportNothing says that nobody knows any more what other traffic a slot has
// to prefill, nor what its running step does; what is left of our own bookings
// stays as it was reported.
func (l *Load) ReportNothing(slot int32) {
	s := l.slot(slot)
	s.foreign, s.reported = 0, 0
}

// Pending is what is still to be prefilled on a slot, in tokens.
func (l *Load) Pending(slot int32) int64 {
	s := l.slot(slot)
	return s.pending + s.foreign
}

// SlotFigures is what is booked on a slot now.
type SlotFigures struct {
	Requests      int
	ActiveTokens  int // Dynamo's A
	PendingTokens int
	ActiveBlocks  int
	HeldTokens    int // of all requests, prompt and output, shared or not
	// LastBooking is the number of its newest booking, counted over all slots;
	// 0 for none: the lowest has been idle the longest.
	LastBooking uint64
}

// Figures returns what is booked on a slot.
func (l *Load) Figures(slot int32, now time.Duration) SlotFigures {
	s := l.slot(slot)
	return SlotFigures{
		Requests: int(s.requests), ActiveTokens: int(s.active(now)), PendingTokens: int(s.pending + s.foreign),
		ActiveBlocks: roundUnits(s.units), HeldTokens: int(s.held), LastBooking: s.last,
	}
}
