package cluster

import (
	"math"
	"time"
)

// lately is how many prompt tokens were sent to a rank, those of long ago
// counting less: by a factor e for each recent_secs.
type lately struct {
	tokens float64
	at     time.Duration
}

// value is the figure at now.
func (l *lately) value(now time.Duration, secs float64) float64 {
	if l.tokens == 0 || now <= l.at {
		return l.tokens
	}
	return l.tokens * math.Exp((l.at-now).Seconds()/secs)
}

// add counts a prompt.
func (l *lately) add(now time.Duration, secs float64, tokens int) {
	l.tokens = l.value(now, secs) + float64(tokens)
	l.at = max(l.at, now)
}
