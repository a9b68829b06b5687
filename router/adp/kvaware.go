package adp

import (
	"math"

	"adpdeck/router/model"
)

// routeKVAware is KVCacheAwareADPRouter: explicit ranks and the warm-up of
// cold ones, then by score, the requests that share a prefix side by side.
func (r *Router) routeKVAware() error {
	s := &r.scan
	s.raw = sized(s.raw, r.tp)
	for k, t := range r.fleet.tokens {
		s.raw[k] = float64(t)
	}
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
		s.add(&r.fleet, p, max(float64(q.tokens())-float64(q.match(k)), 0))
		if !r.fleet.under(k) {
			s.drop(p)
		}
	}
	return nil
}

// placeWarm is phase 1: a request's explicit rank, else the lowest cold rank.
func (r *Router) placeWarm() error {
	strict := false
	for i := range r.b.Requests {
		if r.b.Requests[i].Params != nil && r.b.Requests[i].strict() {
			strict = true
			break
		}
	}
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
		phase, k := model.PhaseExplicit, model.NoRank
		if q.Params != nil {
			w, err := r.explicit(q)
			if err != nil {
				return err
			}
			k = w.rank
			if w.asked {
				phase = model.PhaseExplicit
			} else {
				phase = model.PhaseWarmup
			}
		} else {
			phase = model.PhaseWarmup
		}
		if phase == model.PhaseWarmup && warming && r.pendingN > 0 {
			k = r.coldest()
		}
		if !r.honours(k) {
			r.rest = append(r.rest, int32(i))
			continue
		}
		added := max(float64(q.tokens())-float64(q.match(k)), 0)
		if r.opt.Record {
			r.record(int32(i), k, phase, added)
		}
		r.assign(int32(i), k)
		r.scan.raw[k] += added
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

// scan is the state of the scoring phase: the eligible ranks and their load,
// side by side in ascending order.
type scan struct {
	raw   []float64 // by rank: tokens, growing with each placement
	ranks []int32   // eligible ranks
	tok   []float64 // their tokens, divided by their weight
	tied  []bool    // by position; all false between two choices
	order []int32   // for a score that is not a number

	// total is the sum of tok and is kept up while exact: all are whole and
	// the sum is small enough for every order of adding to give the same.
	total float64
	exact bool

	// Of the latest choice.
	n, denom, beta, best, bestTok float64
	mmax                          int
	gate                          bool
	tie                           int // candidates equal to the best in score and tokens
}

// exactSum bounds the sums of whole numbers that doubles hold exactly.
const exactSum = 1 << 53

func (s *scan) fill(f *fleet) {
	s.ranks, s.tok = s.ranks[:0], s.tok[:0]
	s.total, s.exact = 0, !f.weighted
	for k := range s.raw {
		if !f.under(k) {
			continue
		}
		t := s.raw[k]
		if f.weighted {
			t /= f.weights[k]
		}
		s.ranks, s.tok = append(s.ranks, int32(k)), append(s.tok, t)
		s.total += t
		s.exact = s.exact && t >= 0
	}
	s.tied = sized(s.tied, len(s.ranks))
}

// sum is the tokens of all eligible ranks, added in ascending order of rank.
func (s *scan) sum() float64 {
	if s.exact && s.total < exactSum {
		return s.total
	}
	s.exact = false
	total := 0.0
	for _, t := range s.tok {
		total += t
	}
	return total
}

// add books tokens on the rank at position p.
func (s *scan) add(f *fleet, p int, tokens float64) {
	k := s.ranks[p]
	s.raw[k] += tokens
	if f.weighted {
		s.tok[p] = s.raw[k] / f.weights[k]
		return
	}
	s.tok[p] = s.raw[k]
	s.total += tokens
}

// drop takes position p out.
func (s *scan) drop(p int) {
	s.total -= s.tok[p]
	s.ranks = append(s.ranks[:p], s.ranks[p+1:]...)
	s.tok = append(s.tok[:p], s.tok[p+1:]...)
	s.tied = s.tied[:len(s.ranks)]
}

// choose returns the position of the best eligible rank for q: lowest score,
// then fewest tokens, then first in the order shuffled by the request's id.
func (r *Router) choose(q *Request) (int, error) {
	s := &r.scan
	n := float64(q.tokens())
	s.n, s.beta = n, r.cfg.KVCacheRoutingLoadBalanceWeight
	s.denom = max(s.sum(), n)
	if s.denom == 0 {
		if r.opt.Parity {
			return 0, errZeroDivision()
		}
		s.denom = 1 // the load term is 0 whatever it is divided by
	}
	s.mmax = s.longest(q.Matches)
	s.gate = float64(s.mmax)/math.Max(n, 1) > r.cfg.KVCacheRoutingMatchRateThreshold
	matches := q.Matches
	if !s.gate {
		matches = nil
	}
	if s.beta-s.beta != 0 { // infinite or not a number: scores may not compare
		return r.chooseLiteral(q.ID, matches), nil
	}
	var p int
	if !s.gate && s.beta >= 0 && s.denom > 0 {
		p = s.lightest()
	} else {
		p = s.lowest(matches)
	}
	if s.tie > 1 {
		s.markTied(p, matches)
		p = r.mt.first(q.ID, s.tied, s.tie)
	}
	return p, nil
}

// score is upstream's, in its order and without fusing any product into a sum.
func (s *scan) score(t float64, m int) float64 {
	return (s.n - float64(m)) + float64(s.beta*float64(float64(t/s.denom)*s.n))
}

// longest is the longest match over the eligible ranks.
func (s *scan) longest(matches []int32) int {
	most, first := int32(0), true
	if len(matches) == 0 {
		return 0
	}
	for _, k := range s.ranks {
		m := int32(0)
		if int(k) < len(matches) {
			m = matches[k]
		}
		if first || m > most {
			most, first = m, false
		}
	}
	return int(most)
}

// lightest is the choice when no match counts: for β ≥ 0 the score never falls
// as tokens grow, so that the fewest tokens are best.
func (s *scan) lightest() int {
	p, t, tie := 0, s.tok[0], 1
	for i, x := range s.tok[1:] {
		if x < t {
			p, t, tie = i+1, x, 1
		} else if x == t {
			tie++
		}
	}
	s.best, s.bestTok, s.tie = s.score(t, 0), t, tie
	return p
}

// lowest scores every eligible rank.
func (s *scan) lowest(matches []int32) int {
	best, bestTok, p, tie := math.Inf(1), 0.0, -1, 0
	n, denom, beta := s.n, s.denom, s.beta
	for i, t := range s.tok {
		m := 0.0
		if k := int(s.ranks[i]); k < len(matches) {
			m = float64(matches[k])
		}
		score := (n - m) + float64(beta*float64(float64(t/denom)*n))
		if score > best {
			continue
		}
		if score < best || p < 0 || t < bestTok {
			best, bestTok, p, tie = score, t, i, 1
		} else if t == bestTok {
			tie++
		}
	}
	s.best, s.bestTok, s.tie = best, bestTok, tie
	return max(p, 0)
}

// markTied marks the positions that equal the best, of which p is the lowest.
func (s *scan) markTied(p int, matches []int32) {
	for i := p; i < len(s.tok); i++ {
		if s.tok[i] != s.bestTok {
			continue
		}
		m := 0
		if k := int(s.ranks[i]); k < len(matches) {
			m = int(matches[k])
		}
		s.tied[i] = s.score(s.tok[i], m) == s.best
	}
}

// chooseLiteral walks the shuffled list as upstream does.
func (r *Router) chooseLiteral(id int64, matches []int32) int {
	s := &r.scan
	s.order = sized(s.order, len(s.ranks))
	for i := range s.order {
		s.order[i] = int32(i)
	}
	r.mt.shuffle(id, s.order)
	p := int(s.order[0])
	s.best, s.bestTok, s.tie = math.Inf(1), s.tok[p], 1
	for _, i := range s.order {
		m := 0
		if k := int(s.ranks[i]); k < len(matches) {
			m = int(matches[k])
		}
		score := s.score(s.tok[i], m)
		if score < s.best || score == s.best && s.tok[i] < s.tok[p] {
			p, s.best, s.bestTok = int(i), score, s.tok[i]
		}
	}
	return p
}
