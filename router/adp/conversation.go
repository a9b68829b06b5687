package adp

import (
	"math"

	"adpdeck/router/model"
)

// routeConversation is ConversationAwareADPRouter: a bound conversation goes
// back to its rank, a new one where the placement policy says.
func (r *Router) routeConversation() error {
	if r.opt.Parity {
		if err := relaxError(r.b.Requests); err != nil {
			return err
		}
	}
	byTokens := r.cfg.KVCacheRoutingNewConvPlacement == model.PlaceLeastTokens
	r.load = sized(r.load, r.tp)
	if byTokens {
		r.loadByRank()
	}
	if err := r.placeUnbound(byTokens); err != nil {
		return err
	}
	multiplier := r.cfg.KVCacheRoutingFairShareMultiplier
	if !(multiplier > 1) {
		multiplier = 1
	}
	expected, err := r.fleet.expect(&multiplier, len(r.rest), r.b.HardCap, r.opt.Parity)
	if err != nil {
		return err
	}
	r.out.Expected = expected
	if r.opt.Record {
		r.stampExpected()
	}
	for _, i := range r.rest {
		r.placeBound(i, byTokens)
	}
	_, most := r.fleet.fair(0)
	if r.fleet.nOpen > 0 {
		r.out.Expected = max(expected, most)
	}
	if r.opt.Record {
		r.stampExpected()
	}
	return nil
}

// loadByRank takes least_tokens' loads, which upstream reads by the rank that
// a state names and not by its position.
func (r *Router) loadByRank() {
	clear(r.load)
	for p, s := range r.b.States {
		k := s.Rank
		if k < 0 || k >= r.tp {
			k = p
		}
		if k < r.tp {
			r.load[k] = s.NumActiveTokens
		}
	}
}

// placeUnbound serves explicit ranks of requests that no pin holds, those with
// relax false first.
func (r *Router) placeUnbound(byTokens bool) error {
	strict := false
	for i := range r.b.Requests {
		if r.b.Requests[i].Params != nil {
			if relax, _ := r.b.Requests[i].raw(); !relax {
				strict = true
				break
			}
		}
	}
	if strict {
		if err := r.unboundPass(true, true, byTokens); err != nil {
			return err
		}
	}
	return r.unboundPass(false, strict, byTokens)
}

func (r *Router) unboundPass(strict, mixed, byTokens bool) error {
	for i := range r.b.Requests {
		q := &r.b.Requests[i]
		if mixed {
			if relax, _ := q.raw(); relax == strict {
				continue
			}
		}
		if q.Params == nil || q.Params.Rank == nil || q.Null {
			r.rest = append(r.rest, int32(i))
			continue
		}
		key := q.key()
		bound := false
		if key != "" {
			_, bound = r.pins.Get(key)
		}
		if !bound { // a pin beats the rank that is asked for
			w, err := r.explicit(q)
			if err != nil {
				return err
			}
			if r.honours(w.rank) {
				r.takeExplicit(int32(i), w.rank, key, byTokens)
				continue
			}
		}
		r.rest = append(r.rest, int32(i))
	}
	return nil
}

func (r *Router) takeExplicit(i int32, k int, key string, byTokens bool) {
	n := 0
	if byTokens {
		n = r.b.Requests[i].tokens()
	}
	if r.opt.Record {
		r.record(i, k, model.PhaseExplicit, float64(n))
	}
	r.assign(i, k)
	r.load[k] += n
	if key != "" {
		r.pins.Record(key, k)
	}
}

// placeBound serves one request of phase 2: back to its rank when it is bound
// and the rank has room, else where the policy says.
func (r *Router) placeBound(i int32, byTokens bool) {
	q := &r.b.Requests[i]
	key := q.key()
	n := 0
	if byTokens {
		n = q.tokens()
	}
	phase := model.PhasePlaced
	var at pinSlot
	if key != "" {
		at = r.lookUp(key)
		t := at.rank
		bound := at.bound && t >= 0 && t < r.tp
		if bound && r.fleet.counts[t] < r.b.HardCap {
			if r.opt.Record {
				r.record(i, t, model.PhasePinned, float64(n))
			}
			r.bind(key, t, at)
			r.assign(i, t)
			r.load[t] += n
			return
		}
		if bound {
			phase, key = model.PhaseOverflow, "" // neither moved nor touched
		}
	}
	k, fell := r.place()
	if k == model.NoRank {
		if r.opt.Record {
			r.record(i, model.NoRank, model.PhaseUnplaced, 0)
		}
		r.out.Unassigned = append(r.out.Unassigned, i)
		return
	}
	if r.opt.Record {
		r.recordPlaced(i, k, phase, float64(n), fell)
	}
	if key != "" {
		r.bind(key, k, at)
	}
	r.assign(i, k)
	r.load[k] += n
}

// pinSlot is what a look-up found: the rank and, in the router's own map,
// where the key is or how it hashes, so that binding it needs no second search.
type pinSlot struct {
	rank  int
	bound bool
	slot  int32
	tag   uint32
}

func (r *Router) lookUp(key string) pinSlot {
	if r.own == nil {
		rank, ok := r.pins.Get(key)
		return pinSlot{rank: rank, bound: ok}
	}
	p := pinSlot{tag: r.own.hash(key)}
	if p.slot = r.own.find(p.tag, key); p.slot >= 0 {
		p.rank, p.bound = int(r.own.slots[p.slot].rank), true
	}
	return p
}

// bind records key at rank k as the newest binding; at is its look-up, with no
// change of the map since.
func (r *Router) bind(key string, k int, at pinSlot) {
	switch {
	case r.own == nil:
		r.pins.Record(key, k)
	case at.bound:
		r.own.touch(at.slot, k)
	default:
		r.own.insert(at.tag, key, k)
	}
}

// place picks a rank by policy. fell reports that no rank was under its soft
// cap, so that all open ones stood to choose from. NoRank means that none is
// open, or that all open ones are full.
func (r *Router) place() (k int, fell bool) {
	switch r.cfg.KVCacheRoutingNewConvPlacement {
	case model.PlaceLeastQueued:
		if k = r.leastQueued(true); k != model.NoRank {
			return k, false
		}
		return r.leastQueued(false), true
	case model.PlaceLeastTokens:
		if k = r.leastTokens(true); k == model.NoRank {
			k, fell = r.leastTokens(false), true
		}
		if k != model.NoRank {
			r.cursor = (k + 1) % r.tp
		}
		return k, fell
	}
	k = r.cursor
	for range r.tp {
		next := k + 1
		if next >= r.tp {
			next = 0
		}
		if r.fleet.under(k) {
			r.cursor = next
			return k, false
		}
		k = next
	}
	return r.leastQueued(false), true
}

// full reports that rank k has no slot left in a fleet that upstream does not
// know: there a batch may hold more than the open ranks have room for. In
// upstream's own fleet admission sees to that, and its fallback may exceed the
// hard cap as it does upstream.
func (r *Router) full(k int) bool {
	return r.fleet.differs() && r.fleet.counts[k] >= r.b.HardCap
}

// leastQueued is the rank with the smallest count, the lowest of equals, among
// those under their soft cap or among all open ones.
func (r *Router) leastQueued(under bool) int {
	f := &r.fleet
	if !f.weighted && !f.closed {
		k, least := model.NoRank, math.MaxInt
		if under && r.tp > 0 {
			least = f.cap // the same for all
		}
		for i, c := range f.counts {
			if c < least {
				k, least = i, c
			}
		}
		return k
	}
	k, least := model.NoRank, uint64(0)
	for i, c := range f.counts {
		if under && !f.under(i) || !f.isOpen(i) || r.full(i) {
			continue
		}
		if o := f.ordinal(c, i); k == model.NoRank || o < least {
			k, least = i, o
		}
	}
	return k
}

// leastTokens is the rank with the smallest (load, count, distance from the
// cursor), among those under their soft cap or among all open ones.
func (r *Router) leastTokens(under bool) int {
	f := &r.fleet
	best := model.NoRank
	var load, count uint64
	// Walking from the cursor on, the first of equals is the nearest.
	for lap, from, to := 0, r.cursor, r.tp; lap < 2; lap, from, to = lap+1, 0, r.cursor {
		for k := from; k < to; k++ {
			if under && !f.under(k) || !f.isOpen(k) || r.full(k) {
				continue
			}
			l := f.ordinal(r.load[k], k)
			if best != model.NoRank && l > load {
				continue
			}
			c := f.ordinal(f.counts[k], k)
			if best == model.NoRank || l < load || c < count {
				best, load, count = k, l, c
			}
		}
	}
	return best
}
