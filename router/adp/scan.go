package adp

import "math"

// scan is the state of the scoring phase: the eligible ranks and their load,
// side by side in ascending order.
type scan struct {
	ranks []int32   // eligible ranks
	tok   []float64 // their tokens, divided by their weight
	match []int32   // what they hold of the request at hand
	tied  []bool    // by position; all false between two choices
	order []int32   // for a score that is not a number
	held  []int32   // backs match when it cannot be the request's own list

	// sum of tok is kept up while exact: all are whole and the sum is small
	// enough for every order of adding to give the same.
	sum   int
	exact bool

	// Of the latest choice.
	n, denom, beta, best, bestTok float64
	mmax                          int
	gate                          bool
	tie                           int // candidates equal to the best in score and tokens
}

// Doubles hold whole numbers and their sums exactly below exactSum; loads up
// to exactLoad cannot overflow an int when they are added.
const (
	exactSum  = 1 << 53
	exactLoad = 1 << 40
)

func (s *scan) fill(f *fleet) {
	tp := len(f.counts)
	s.ranks, s.tok = sized(s.ranks, tp), sized(s.tok, tp)
	n, signs, sum := 0, 0, 0
	for k, t := range f.tokens {
		if !f.under(k) {
			continue
		}
		s.ranks[n], s.tok[n] = int32(k), float64(t)
		n++
		signs |= t | (exactLoad - t)
		sum += t
	}
	s.ranks, s.tok, s.tied = s.ranks[:n], s.tok[:n], sized(s.tied, n)
	s.sum, s.exact = sum, signs >= 0 && !f.weighted
	if f.weighted {
		for p, k := range s.ranks {
			s.tok[p] /= f.weights[k]
		}
	}
}

// total is the tokens of all eligible ranks, added in ascending order of rank.
func (s *scan) total() float64 {
	if s.exact && uint(s.sum) < exactSum {
		return float64(s.sum)
	}
	s.exact = false
	total := 0.0
	for _, t := range s.tok {
		total += t
	}
	return total
}

// add books tokens on the rank at position p.
func (s *scan) add(f *fleet, p, tokens int) {
	k := s.ranks[p]
	f.tokens[k] += tokens
	s.sum += tokens
	s.tok[p] = float64(f.tokens[k])
	if f.weighted {
		s.tok[p] /= f.weights[k]
	}
}

// drop takes position p out.
func (s *scan) drop(f *fleet, p int) {
	s.sum -= f.tokens[s.ranks[p]]
	s.ranks = append(s.ranks[:p], s.ranks[p+1:]...)
	s.tok = append(s.tok[:p], s.tok[p+1:]...)
	s.tied = s.tied[:len(s.ranks)]
}

// look sets match and the longest of it. matches is the request's own list.
func (s *scan) look(matches []int32, tp int) {
	s.match, s.mmax = nil, 0
	if len(matches) == 0 {
		return
	}
	n := len(s.ranks)
	if n == tp && len(matches) >= tp {
		s.match = matches[:n]
	} else {
		s.held = sized(s.held, n)
		s.match = s.held
		for p, k := range s.ranks {
			s.match[p] = 0
			if int(k) < len(matches) {
				s.match[p] = matches[k]
			}
		}
	}
	most := s.match[0]
	for _, m := range s.match {
		most = max(most, m)
	}
	s.mmax = int(most)
}

// open makes match ready for scoring: all nothing while the gate is shut.
func (s *scan) open() {
	if s.gate && s.match != nil {
		return
	}
	s.held = sized(s.held, len(s.ranks))
	s.match = s.held
	clear(s.match)
}

// choose returns the position of the best eligible rank for q: lowest score,
// then fewest tokens, then first in the order shuffled by the request's id.
func (r *Router) choose(q *Request) (int, error) {
	s := &r.scan
	n := float64(q.tokens())
	s.n, s.beta = n, r.cfg.KVCacheRoutingLoadBalanceWeight
	s.denom = max(s.total(), n)
	if s.denom == 0 {
		if r.opt.Parity {
			return 0, errZeroDivision()
		}
		s.denom = 1 // the load term is 0 whatever it is divided by
	}
	s.look(q.Matches, r.tp)
	s.gate = float64(s.mmax)/math.Max(n, 1) > r.cfg.KVCacheRoutingMatchRateThreshold
	var p int
	switch {
	case s.beta-s.beta != 0: // infinite or not a number: scores may not compare
		s.open()
		return r.chooseLiteral(q.ID), nil
	case !s.gate && s.beta >= 0 && s.denom > 0:
		p = s.lightest()
	default:
		s.open()
		p = s.lowest()
	}
	if s.tie > 1 {
		s.open()
		s.markTied(p)
		p = r.mt.first(q.ID, s.tied, s.tie)
	}
	return p, nil
}

// score is upstream's, in its order and without fusing any product into a sum.
func (s *scan) score(t float64, m int) float64 {
	return (s.n - float64(m)) + float64(s.beta*float64(float64(t/s.denom)*s.n))
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
func (s *scan) lowest() int {
	best, bestTok, p, tie := math.Inf(1), 0.0, -1, 0
	n, denom, beta, match := s.n, s.denom, s.beta, s.match[:len(s.tok)]
	for i, t := range s.tok {
		score := (n - float64(match[i])) + float64(beta*float64(float64(t/denom)*n))
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
func (s *scan) markTied(p int) {
	for i := p; i < len(s.tok); i++ {
		if s.tok[i] == s.bestTok {
			s.tied[i] = s.score(s.tok[i], int(s.match[i])) == s.best
		}
	}
}

// chooseLiteral walks the shuffled list as upstream does.
func (r *Router) chooseLiteral(id int64) int {
	s := &r.scan
	s.order = sized(s.order, len(s.ranks))
	for i := range s.order {
		s.order[i] = int32(i)
	}
	r.mt.shuffle(id, s.order)
	p := int(s.order[0])
	s.best, s.bestTok, s.tie = math.Inf(1), s.tok[p], 1
	for _, i := range s.order {
		score := s.score(s.tok[i], int(s.match[i]))
		if score < s.best || score == s.best && s.tok[i] < s.tok[p] {
			p, s.best, s.bestTok = int(i), score, s.tok[i]
		}
	}
	return p
}
