// Package trend remembers figures at one sample a second of the wall clock, for
// the small charts; Span says how much of the router's time that is.
// A sample that was not taken is unknown (NaN), never 0. The rings are bounded;
// a Book belongs to one goroutine.
package trend

import (
	"math"
	"time"

	"adpdeck/router/model"
)

// Kept is how many samples a series keeps: the ring of the last five minutes
// and a minute of trend before its oldest.
const Kept = 360

// Series is a ring of samples. It is written twice, Kept apart, so that any
// stretch of it can be read as one slice.
type Series struct {
	twice [2 * Kept]float64
	next  int
	n     int
}

// Add appends a sample.
func (s *Series) Add(v float64) {
	s.twice[s.next], s.twice[s.next+Kept] = v, v
	s.next = (s.next + 1) % Kept
	s.n = min(s.n+1, Kept)
}

// Last returns the newest n samples older than the newest back, oldest first;
// fewer when there are not so many. The slice is valid until the next Add.
func (s *Series) Last(n, back int) []float64 {
	have := s.n - max(back, 0)
	n = min(n, have)
	if n <= 0 {
		return nil
	}
	end := s.next + Kept - max(back, 0)
	return s.twice[end-n : end]
}

// Total names a figure of the whole cluster.
type Total uint8

// The figures.
const (
	Requests Total = iota // per second
	TTFT                  // p50 in milliseconds
	Hit                   // share of 1
	Skew                  // busiest ÷ mean
	Queued                // requests
	Pins                  // conversations
	numTotals
)

// Book holds a series for each figure and each rank's tokens.
type Book struct {
	totals [numTotals]Series
	tokens map[model.Target]*Series
	times  [Kept]time.Time // of the router, by sample
	at     int             // samples taken
	back   int             // samples that a frozen screen lies behind
}

// NewBook returns an empty book.
func NewBook() *Book { return &Book{tokens: map[model.Target]*Series{}} }

// maxRanks bounds the series; a state with more ranks keeps trends of the first.
const maxRanks = 1024

// Sample adds one sample of everything in s.
func (b *Book) Sample(s *model.State) {
	t := &s.Totals
	for i, v := range [numTotals]float64{
		Requests: float64(t.RequestsPerSec), TTFT: float64(t.TTFTMsP50), Hit: float64(t.Hit), Skew: float64(t.Skew),
		Queued: float64(t.Queued), Pins: float64(t.Pins + t.OperatorPins),
	} {
		b.totals[i].Add(v)
	}
	seen := make(map[model.Target]bool, len(s.Ranks))
	for i := range s.Ranks {
		r := &s.Ranks[i]
		seen[r.Target] = true
		ring := b.tokens[r.Target]
		if ring == nil {
			if len(b.tokens) >= maxRanks {
				continue
			}
			ring = &Series{}
			b.tokens[r.Target] = ring
		}
		v := math.NaN()
		if !r.ReportedAt.IsZero() {
			v = float64(r.Tokens)
		}
		ring.Add(v)
	}
	for t, ring := range b.tokens {
		if seen[t] {
			continue
		}
		if ring.Add(math.NaN()); ring.empty() {
			delete(b.tokens, t)
		}
	}
	b.times[b.at%Kept] = s.At
	b.at++
}

// Span returns how much of the router's time n samples cover: n seconds for
// live traffic, more or less for a simulation that runs faster or slower. It is
// measured over the newest samples, and n seconds while there are too few.
func (b *Book) Span(n int) time.Duration {
	newest := b.at - 1 - b.back
	first := max(0, b.at-Kept, newest-paceSamples)
	if newest <= first || !b.times[newest%Kept].After(b.times[first%Kept]) {
		return time.Duration(n) * time.Second
	}
	pace := b.times[newest%Kept].Sub(b.times[first%Kept]).Seconds() / float64(newest-first)
	step := 0.05 // samples are not taken to the millisecond: round what they say
	if pace > 1.5 {
		step = 0.5
	}
	pace = max(step, math.Round(pace/step)*step)
	if math.Abs(pace-1) < 0.15 {
		pace = 1
	}
	return time.Duration(float64(n) * pace * float64(time.Second))
}

// paceSamples is how many of the newest samples Span looks back.
const paceSamples = 12

// empty reports whether no sample is known.
func (s *Series) empty() bool {
	for _, v := range s.Last(Kept, 0) {
		if !math.IsNaN(v) {
			return false
		}
	}
	return true
}

// SetBack makes the book end back samples ago, for a frozen screen; 0 is now.
func (b *Book) SetBack(back int) { b.back = max(back, 0) }

// Samples returns how many samples were taken so far.
func (b *Book) Samples() int { return b.at }

// Shown returns how many samples were taken by the moment that is shown: all of
// them, or fewer on a frozen screen.
func (b *Book) Shown() int { return max(0, b.at-b.back) }

// Total returns the last n samples of a figure, oldest first, fewer when fewer
// are kept. The slice is valid until the next Sample.
func (b *Book) Total(t Total, n int) []float64 { return b.totals[t].Last(n, b.back) }

// Tokens returns the last n samples of a rank's tokens likewise.
func (b *Book) Tokens(t model.Target, n int) []float64 {
	s := b.tokens[t]
	if s == nil {
		return nil
	}
	return s.Last(n, b.back)
}
