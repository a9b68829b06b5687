package prefix

import (
	"errors"
	"fmt"
	"time"

	"adpdeck/router/model"
)

// Approximation says how long a target without events is credited with what
// was routed to it. At least one of the two must be set; with both, both hold.
type Approximation struct {
	// TTL is how long a prompt is credited after it was last routed.
	TTL time.Duration
	// Blocks is the rank's advertised KV-cache capacity: beyond it the blocks
	// routed longest ago are forgotten.
	Blocks int
}

// leases are the prompts that an approximate target is credited with, by their
// last block. A block is credited as long as a lease on it or behind it runs,
// which is what renewing every block of each routed prompt would give.
type leases struct {
	rule  Approximation
	order []lease // oldest first, renewed ones stale
	first int     // order before it is used up
	last  map[ref]lease
	now   time.Duration
}

type lease struct {
	r     ref
	at    time.Duration // routed last
	count uint64        // tells apart leases of one instant
}

func (a *leases) clear() {
	a.order, a.first = a.order[:0], 0
	clear(a.last)
}

// AddApproximate makes a target known whose engine publishes no events. What
// is told with Routed stands in for them, and every figure is marked.
func (ix *Index) AddApproximate(t model.Target, a Approximation) (ID, error) {
	if err := a.check(t); err != nil {
		return 0, err
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.add(t, &leases{rule: a, last: make(map[ref]lease)})
}

// Rule changes how long an approximate target is credited; what it is credited
// with stays as far as the new rule lets it, counted from when it was routed.
// It fails with ErrNoTarget, with ErrApproximate where the target is fed by
// events, and for a rule that AddApproximate refuses.
func (ix *Index) Rule(id ID, a Approximation) error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	t, err := ix.target(id)
	switch {
	case err != nil:
		return err
	case t.approx == nil:
		return fmt.Errorf("rule of %v: %w", t.stats.Target, ErrApproximate)
	}
	if err := a.check(t.stats.Target); err != nil {
		return err
	}
	t.approx.rule = a
	ix.expire(id, t)
	ix.fitRule(id, t)
	return nil
}

// fitRule forgets what is beyond the rule's capacity.
func (ix *Index) fitRule(id ID, t *target) {
	for a := t.approx; a.rule.Blocks > 0 && t.total() > a.rule.Blocks && len(a.last) > 0; {
		ix.lapse(id, t, t.total()-a.rule.Blocks)
	}
}

// AddApproximateAt is AddApproximate with the ID that the target is to have, as
// AddAt.
func (ix *Index) AddApproximateAt(id ID, t model.Target, a Approximation) error {
	if err := a.check(t); err != nil {
		return err
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.addAt(id, t, &leases{rule: a, last: make(map[ref]lease)})
}

func (a Approximation) check(t model.Target) error {
	if a.TTL < 0 || a.Blocks < 0 || (a.TTL == 0 && a.Blocks == 0) {
		return fmt.Errorf("add %v: %w", t, errRule)
	}
	return nil
}

var errRule = errors.New("an approximation needs a time to live or a capacity in blocks, neither negative")

// Routed tells that a prompt with this chain was sent to an approximate
// target. Now is on a monotonic clock of the caller's, the same for all calls;
// a time before an earlier call's counts as that one's.
func (ix *Index) Routed(id ID, chain []Chain, now time.Duration) error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	t, err := ix.target(id)
	if err != nil {
		return err
	}
	if t.approx == nil {
		return fmt.Errorf("routed to %v: %w", t.stats.Target, ErrApproximate)
	}
	if len(chain) == 0 {
		return nil
	}
	a := t.approx
	a.now = max(a.now, now)
	ix.expire(id, t)
	tail := ix.credit(id, t, chain)
	if tail == 0 {
		return nil
	}
	l := lease{tail, a.now, a.last[tail].count + 1}
	a.last[tail] = l
	a.order = append(a.order, l)
	ix.fitRule(id, t)
	ix.keepBounds(id, t)
	if len(a.order) > 2*len(a.last)+64 {
		a.compact()
	}
	return nil
}

// credit stores what the target is not credited with yet and returns the last
// block of the chain that it is credited with now.
func (ix *Index) credit(id ID, t *target, chain []Chain) ref {
	// What it is credited with is a prefix: it is let go from the end only.
	lo, hi, parent := 0, len(chain), ref(0)
	for lo < hi {
		mid := (lo + hi) / 2
		if r := ix.credited(id, chain[mid]); r != 0 {
			lo, parent = mid+1, r
		} else {
			hi = mid
		}
	}
	if lo == len(chain) {
		return parent
	}
	names := make([]uint64, len(chain)-lo)
	for i, c := range chain[lo:] {
		names[i] = routedName(c)
	}
	done := ix.attach(id, t, Device, parent, chain[lo:], names)
	if done == 0 {
		return parent
	}
	return ix.heldName(id, names[done-1])
}

// routedName is the name of a routed block, which no engine gave.
func routedName(c Chain) uint64 { return uint64(c) ^ ownSeed<<8 }

func (ix *Index) credited(id ID, c Chain) ref { return ix.heldName(id, routedName(c)) }

// Expire forgets what approximate targets were credited with longer than their
// TTL before now.
func (ix *Index) Expire(now time.Duration) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for i := range ix.targets {
		if t := &ix.targets[i]; t.used && t.approx != nil {
			t.approx.now = max(t.approx.now, now)
			ix.expire(ID(i), t)
		}
	}
}

func (ix *Index) expire(id ID, t *target) {
	a := t.approx
	if a.rule.TTL == 0 {
		return
	}
	for a.first < len(a.order) && a.now-a.order[a.first].at >= a.rule.TTL {
		ix.lapse(id, t, t.total())
	}
}

// lapse ends the oldest lease: of the blocks that hang on it alone at most n
// are let go, from the end; the lease moves to what remains.
func (ix *Index) lapse(id ID, t *target, n int) {
	a := t.approx
	if a.first == len(a.order) {
		clear(a.last)
		return
	}
	l := a.order[a.first]
	if a.last[l.r] != l {
		a.first++ // renewed since
		return
	}
	delete(a.last, l.r)
	r := l.r
	for ; n > 0 && r != 0; n-- {
		rec := ix.at(r)
		_, leased := a.last[r]
		if leased || !ix.holds(rec.hold, id, Device) || ix.holdsOwnChild(id, rec, Device, -1) {
			a.first++
			return
		}
		p := rec.parent
		ix.letGo(id, t, r)
		t.stats.Expired++
		r = p
	}
	if r == 0 {
		a.first++
		return
	}
	if _, leased := a.last[r]; leased {
		a.first++
		return
	}
	l = lease{r, l.at, 0}
	a.order[a.first], a.last[r] = l, l
}

// compact drops the stale part of the order.
func (a *leases) compact() {
	kept := a.order[:0]
	for _, l := range a.order[a.first:] {
		if a.last[l.r] == l {
			kept = append(kept, l)
		}
	}
	a.order, a.first = kept, 0
}

// lapseOldest makes room: leases end early, oldest first, until n blocks went
// or none is left.
func (ix *Index) lapseOldest(id ID, t *target, n int) {
	a := t.approx
	for goal := t.total() - n; t.total() > goal && len(a.last) > 0; {
		was := t.total()
		ix.lapse(id, t, was-goal)
		lost := uint64(was - t.total())
		t.stats.Evicted += lost
		t.stats.Expired -= lost
		ix.evicted += lost
	}
	if a.first < len(a.order) {
		ix.note(id, t, a.order[a.first].r)
	}
}
