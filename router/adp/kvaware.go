package adp

import "adpdeck/router/model"

// routeKVAware is KVCacheAwareADPRouter: explicit ranks and the warm-up of
// cold ones, then by score, the requests that share a prefix side by side.
func (r *Router) routeKVAware() error {
	s := &r.scan
	if err := r.placeWarm(); err != nil {
		return err
	}
	expected, err := r.fleet.expect(&r.cfg.KVCacheRoutingFairShareMultiplier, len(r.rest), r.b.HardCap, r.opt.Parity)
	if err != nil {
		return err
	}
	r.out.Expected = expected
	if r.opt.Record {
		r.stampExpected()
	}
	if len(r.rest) == 0 {
		return nil
	}
	order := r.sorter.byFingerprint(r.b.Requests, r.rest)
	s.fill(&r.fleet)
	for at, o := range order {
		if len(s.ranks) == 0 {
			r.leaveOver(order[at:])
			return nil
		}
		q := &r.b.Requests[o.idx]
		p, err := r.choose(q)
		if err != nil {
			return err
		}
		k := int(s.ranks[p])
		if r.opt.Record {
			r.recordScored(o.idx, p)
		}
		r.assign(o.idx, k)
		s.add(&r.fleet, p, max(q.tokens()-q.match(k), 0))
		if !r.fleet.under(k) {
			s.drop(&r.fleet, p)
		}
	}
	return nil
}

// placeWarm is phase 1: a request's explicit rank, else the lowest cold rank.
func (r *Router) placeWarm() error {
	strict := r.anyStrict()
	if strict {
		if err := r.warmPass(true, true); err != nil {
			return err
		}
	}
	return r.warmPass(false, strict)
}

func (r *Router) warmPass(strict, mixed bool) error {
	warming := r.cfg.KVCacheRoutingColdStartWarmup
	for i := range r.b.Requests {
		q := &r.b.Requests[i]
		if mixed && q.strict() != strict {
			continue
		}
		w, err := r.explicit(q)
		if err != nil {
			return err
		}
		phase, k := model.PhaseExplicit, w.rank
		if !w.asked && warming && r.pendingN > 0 {
			phase, k = model.PhaseWarmup, r.coldest()
		}
		if !r.honours(k) {
			r.rest = append(r.rest, int32(i))
			continue
		}
		added := max(q.tokens()-q.match(k), 0)
		if r.opt.Record {
			r.record(int32(i), k, phase, float64(added))
		}
		r.assign(int32(i), k)
		r.fleet.tokens[k] += added
		if warming && r.pending[k] {
			r.pending[k] = false
			r.pendingN--
		}
	}
	return nil
}

// coldest is the lowest open rank that still waits for its warm-up request.
// It alone is tried: a full one holds up those above it.
func (r *Router) coldest() int {
	for k, cold := range r.pending {
		if cold && r.fleet.isOpen(k) {
			return k
		}
	}
	return model.NoRank
}
