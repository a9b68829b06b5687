package adp

import "math"

// fleet is the ranks as one call sees them.
type fleet struct {
	counts []int // active requests, growing with each placement
	tokens []int // active tokens, growing as the policy books them
	sum    int   // of counts
	most   int   // the largest of counts
	cap    int   // soft cap, set by expect; the same for all ranks unless caps is in force
	caps   []int // soft cap of each rank while something differs from upstream
	// open and weights are filled when something differs from upstream: some
	// rank is closed, or some weight is not 1.
	open     []bool
	weights  []float64
	closed   bool // at least one rank is closed
	weighted bool // at least one open rank's weight is not 1
	nOpen    int
}

// maxWeight keeps weighted caps inside an int.
const maxWeight = 1 << 20

// load takes the gathered states by position.
func (f *fleet) load(b *Batch, tp int) {
	f.counts, f.tokens = sized(f.counts, tp), sized(f.tokens, tp)
	known := min(tp, len(b.States))
	counts, tokens, sum, most := f.counts[:known], f.tokens[:known], 0, math.MinInt
	for k := range counts {
		s := &b.States[k]
		counts[k], tokens[k] = s.NumActiveRequests, s.NumActiveTokens
		sum += s.NumActiveRequests
		most = max(most, s.NumActiveRequests)
	}
	if known < tp {
		clear(f.counts[known:])
		clear(f.tokens[known:])
		most = max(most, 0)
	}
	f.sum, f.most = sum, most
	f.closed, f.weighted, f.nOpen = false, false, tp
	if b.Weights != nil || b.Closed != nil {
		f.restrict(b, tp)
	}
}

func (f *fleet) restrict(b *Batch, tp int) {
	f.open, f.weights, f.caps, f.nOpen = sized(f.open, tp), sized(f.weights, tp), sized(f.caps, tp), 0
	for k := range tp {
		w := 1.0
		if k < len(b.Weights) {
			w = math.Min(b.Weights[k], maxWeight)
		}
		f.open[k] = w > 0 && !(k < len(b.Closed) && b.Closed[k])
		f.weights[k] = w
		if !f.open[k] {
			f.closed = true
			continue
		}
		f.nOpen++
		f.weighted = f.weighted || w != 1
	}
}

// isOpen reports whether rank k takes new placements.
func (f *fleet) isOpen(k int) bool { return !f.closed || f.open[k] }

// under reports whether rank k is below its soft cap; a closed rank never is.
func (f *fleet) under(k int) bool {
	if f.differs() {
		return f.counts[k] < f.caps[k]
	}
	return f.counts[k] < f.cap
}

// differs reports whether the fleet has anything that upstream does not know.
func (f *fleet) differs() bool { return f.closed || f.weighted }

// weight is the weight of rank k.
func (f *fleet) weight(k int) float64 {
	if f.weighted {
		return f.weights[k]
	}
	return 1
}

// expect computes the soft cap of the call and of each rank, from the counts
// as they stand and remaining requests to place. multiplier nil is a plain
// fair share.
func (f *fleet) expect(multiplier *float64, remaining, hardCap int, parity bool) (int, error) {
	fair, most := f.fair(remaining)
	expected := fair
	if multiplier != nil {
		x := float64(*multiplier * float64(fair))
		switch {
		case parity && math.IsInf(x, 0):
			return 0, errInfinity()
		case parity && math.IsNaN(x):
			return 0, errNaN()
		case math.IsNaN(x):
			// no multiple of the fair share: the share itself
		default:
			expected = ceilInt(x)
		}
	}
	expected = min(max(expected, most), hardCap)
	f.cap = expected
	if !f.differs() {
		return expected, nil
	}
	for k := range f.caps {
		switch {
		case !f.isOpen(k):
			f.caps[k] = math.MinInt
		case f.weighted:
			f.caps[k] = min(ceilInt(f.weights[k]*float64(expected)), hardCap)
		default:
			f.caps[k] = expected
		}
	}
	return expected, nil
}

// fair is the fair share of requests of an open rank, and the count of the
// busiest one.
func (f *fleet) fair(remaining int) (share, most int) {
	if f.nOpen == 0 {
		return 0, 0
	}
	if f.weighted {
		return f.fairWeighted(remaining)
	}
	if !f.closed {
		return floorDiv(f.sum+remaining+f.nOpen-1, f.nOpen), f.most
	}
	sum, first := remaining, true
	for k, c := range f.counts {
		if !f.isOpen(k) {
			continue
		}
		sum += c
		if first || c > most {
			most, first = c, false
		}
	}
	return floorDiv(sum+f.nOpen-1, f.nOpen), most
}

func (f *fleet) fairWeighted(remaining int) (share, most int) {
	sum, weights, busiest := float64(remaining), 0.0, math.Inf(-1)
	for k, c := range f.counts {
		if f.isOpen(k) {
			sum += float64(c)
			weights += f.weights[k]
			busiest = math.Max(busiest, float64(c)/f.weights[k])
		}
	}
	return ceilInt(sum / weights), ceilInt(busiest)
}

// ordinal turns a rank's value v into a number that compares as v ÷ weight
// does: as a whole number without weights, as a float with them.
func (f *fleet) ordinal(v, k int) uint64 {
	if !f.weighted {
		return uint64(v) ^ 1<<63
	}
	u := math.Float64bits(float64(v)/f.weights[k] + 0)
	if u>>63 != 0 {
		return ^u
	}
	return u | 1<<63
}

// ceilInt is math.Ceil as an int, kept inside ±2^62.
func ceilInt(x float64) int {
	const limit = 1 << 62
	x = math.Ceil(x)
	switch {
	case x >= limit:
		return limit
	case x <= -limit:
		return -limit
	case x != x:
		return 0
	}
	return int(x)
}

// floorDiv divides as Python's // does; b is positive.
func floorDiv(a, b int) int {
	q := a / b
	if a%b != 0 && a < 0 {
		q--
	}
	return q
}
