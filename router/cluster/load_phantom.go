package cluster

import "time"

// Phantom is booked load on a slot whose requests have shown no sign of life
// for a while: most likely their end was lost.
type Phantom struct {
	Slot          int32
	Requests      int
	PendingTokens int // booked prefill, as far as its first token is missing
	PromptTokens  int
	// Oldest is the time of the earliest sign of life, OldestID its request.
	Oldest   time.Duration
	OldestID int64
}

func (l *Load) link(i int32) {
	b := &l.bookings[i]
	b.before, b.after = l.newest, none
	if l.newest == none {
		l.oldest = i
	} else {
		l.bookings[l.newest].after = i
	}
	l.newest = i
}

func (l *Load) unlink(i int32) {
	b := &l.bookings[i]
	if b.before == none {
		l.oldest = b.after
	} else {
		l.bookings[b.before].after = b.after
	}
	if b.after == none {
		l.newest = b.before
	} else {
		l.bookings[b.after].before = b.before
	}
}

// touch notes a sign of life. Time never runs back in the list.
func (l *Load) touch(now time.Duration, i int32) {
	if b := &l.bookings[i]; now > b.touched {
		b.touched = now
		if l.newest != i {
			l.unlink(i)
			l.link(i)
		}
	}
}

// Expire drops every booking without a sign of life for longer than expiry and
// returns how many. Call it every 30 s or so.
func (l *Load) Expire(now, expiry time.Duration) int {
	n := 0
	for l.oldest != none && now-l.bookings[l.oldest].touched > expiry {
		l.release(now, l.oldest)
		n++
	}
	l.counters.Expired += uint64(n)
	return n
}

// Phantoms appends to dst, one for each slot that has any, the load without a
// sign of life for longer than after. Its cost is that of the phantoms.
func (l *Load) Phantoms(now, after time.Duration, dst []Phantom) []Phantom {
	base := len(dst)
	at := map[int32]int{}
	for i := l.oldest; i != none && now-l.bookings[i].touched > after; i = l.bookings[i].after {
		b := &l.bookings[i]
		k, ok := at[b.slot]
		if !ok {
			k = len(dst) - base
			at[b.slot] = k
			dst = append(dst, Phantom{Slot: b.slot, Oldest: b.touched, OldestID: b.id})
		}
		p := &dst[base+k]
		p.Requests++
		p.PromptTokens += b.prompt
		if b.prefilling {
			p.PendingTokens += int(b.left)
		}
	}
	return dst
}

// ClearPhantoms drops the phantoms of a slot and returns how many. The end of
// such a request, should it still come, counts as a stray.
func (l *Load) ClearPhantoms(slot int32, now, after time.Duration) int {
	n := 0
	for i := l.oldest; i != none && now-l.bookings[i].touched > after; {
		next := l.bookings[i].after
		if l.bookings[i].slot == slot {
			l.release(now, i)
			n++
		}
		i = next
	}
	l.counters.Cleared += uint64(n)
	return n
}

// forget drops all bookings of a slot, whose worker has gone.
func (l *Load) forget(now time.Duration, slot int32) {
	for i := l.oldest; i != none; {
		next := l.bookings[i].after
		if l.bookings[i].slot == slot {
			l.release(now, i)
		}
		i = next
	}
	*l.slot(slot) = slotLoad{oldest: none, newest: none}
}
