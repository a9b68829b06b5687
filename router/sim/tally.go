package sim

import (
	"slices"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/trace"
)

const (
	// maxSamples is how many requests the distributions of a report are made
	// of; in a longer run they cover the newest.
	maxSamples = 1 << 20
	// maxIdealBlocks bounds the endless cache that the ideal hit rate is
	// computed with; where a run needs more, the ideal is unknown.
	maxIdealBlocks = 1 << 24
	// maxIdealEndless is the same for traffic without an end.
	maxIdealEndless = 1 << 20
	// maxMovers bounds each of the two generations of conversations whose last
	// target is remembered.
	maxMovers = 1 << 18
)

// tally counts what a report is made of.
type tally struct {
	sent       int64 // rows that arrived
	refused    int64 // rows that the router did not take
	refusal    error // the first of them
	failed     int64 // requests that fit into no cache
	ended      int64
	placed     int64
	lastRow    int64 // virtual time of the last arrival
	lastPlaced int64 // and of the last placement

	prompts, outputs     int64 // tokens of requests whose prefill began
	found                int64 // of the prompts, found in a cache
	asked, ideal         int64 // prompt tokens arrived, and what one endless cache would find
	seen                 map[uint64]struct{}
	maxSeen              int
	steps                int64
	stepTime, waitTime   time.Duration // over all ranks
	ttft, e2e, tpot      samples
	movers, olderMovers  map[model.ConvKey]model.Target
	conversations, moves int64
}

func newTally(total int) tally {
	t := tally{seen: map[uint64]struct{}{}, movers: map[model.ConvKey]model.Target{}, maxSeen: maxIdealBlocks}
	if total == 0 {
		t.maxSeen = maxIdealEndless
	}
	return t
}

// arrived feeds a row to the endless cache.
func (t *tally) arrived(row *trace.Row) {
	t.asked += int64(row.PromptTokens)
	if t.seen == nil {
		return
	}
	for _, b := range row.ProbeBlocks() {
		if _, ok := t.seen[b]; !ok {
			break
		}
		t.ideal += int64(row.BlockTokens)
	}
	for _, b := range row.FullBlocks() {
		t.seen[b] = struct{}{}
	}
	if len(t.seen) > t.maxSeen {
		t.seen = nil
	}
}

// moved notes where a turn of conv is placed.
func (t *tally) moved(conv model.ConvKey, to model.Target) {
	if conv.Keyless() {
		return
	}
	last, known := t.movers[conv]
	if !known {
		last, known = t.olderMovers[conv]
	}
	if !known {
		t.conversations++
	} else if last != to {
		t.moves++
	}
	if len(t.movers) >= maxMovers {
		t.olderMovers, t.movers = t.movers, map[model.ConvKey]model.Target{}
	}
	t.movers[conv] = to
}

// refuse notes a row that the router did not take.
func (s *Sim) refuse(err error) {
	s.refused++
	if s.refusal == nil {
		s.refusal = err
	}
}

func (s *Sim) onPlaced(r *request) {
	s.placed++
	s.lastPlaced = s.now.Load()
	s.moved(r.conv, r.target)
}

// fail ends a request that fits into no cache.
func (s *Sim) fail(r *request) {
	s.failed++
	s.open--
	s.router.Done(r.id, model.OutcomeError)
	s.recycle(r)
}

func (s *Sim) prefillBegins(r *request) {
	s.prompts += int64(r.prompt)
	s.outputs += int64(r.output)
	s.found += int64(r.cached)
}

func (s *Sim) firstToken(r *request) {
	r.firstAt = s.now.Load()
	ttft := millis(r.firstAt - r.arrived)
	s.ttft.add(ttft)
	s.router.FirstToken(r.id, model.Usage{Ran: r.target, CachedTokens: r.cached, TTFTMs: ttft})
}

func (s *Sim) done(r *request) {
	now := s.now.Load()
	s.e2e.add(millis(now - r.arrived))
	if r.output > 1 {
		s.tpot.add(millis(now-r.firstAt) / float64(r.output-1))
	}
	s.ended++
	s.open--
	s.router.Done(r.id, model.OutcomeOK)
	s.recycle(r)
}

func (s *Sim) recycle(r *request) {
	*r = request{}
	s.pool = append(s.pool, r)
}

func millis(ns int64) float64 { return float64(ns) / float64(time.Millisecond) }

// samples are measured values, the newest maxSamples of them, and the mean of
// all.
type samples struct {
	v   []float64
	n   int64
	sum float64
}

func (s *samples) add(x float64) {
	s.sum += x
	if len(s.v) < maxSamples {
		s.v = append(s.v, x)
	} else {
		s.v[s.n%maxSamples] = x
	}
	s.n++
}

// Quantiles are a distribution in four figures, unknown without a value. A
// quantile is the smallest value that at least that share of all lie below or
// at.
type Quantiles struct {
	Mean model.Maybe `json:"mean"`
	P50  model.Maybe `json:"p50"`
	P90  model.Maybe `json:"p90"`
	P99  model.Maybe `json:"p99"`
}

func (s *samples) quantiles() Quantiles {
	if s.n == 0 {
		u := model.Unknown()
		return Quantiles{u, u, u, u}
	}
	v := slices.Clone(s.v)
	slices.Sort(v)
	at := func(percent int) model.Maybe { return model.Maybe(v[(len(v)*percent+99)/100-1]) }
	return Quantiles{Mean: model.Maybe(s.sum / float64(s.n)), P50: at(50), P90: at(90), P99: at(99)}
}
