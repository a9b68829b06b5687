package feed

import "time"

// bucket is a token bucket; the zero bucket is full. It is not safe for
// concurrent use.
type bucket struct {
	rate  float64 // tokens a second
	burst float64
	spent float64 // tokens missing from a full bucket
	last  time.Time
}

// take spends one token, or says that there is none.
func (b *bucket) take(now time.Time) bool {
	if !b.last.IsZero() {
		b.spent = max(0, b.spent-b.rate*now.Sub(b.last).Seconds())
	}
	b.last = now
	if b.spent+1 > b.burst {
		return false
	}
	b.spent++
	return true
}
