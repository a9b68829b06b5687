package router

import (
	"slices"
	"time"

	"adpdeck/router/model"
)

// slot is one slice of a window: what was added in it.
type slot struct {
	epoch             int64
	count             int64
	prompt, cached    int64 // tokens of prompts, and of them found in cache
	lookedAt, reached int64 // tokens of prompts that were looked up, and of them what the best rank held
}

// window sums over the last len(slots) slices of router time, the present one
// included. Times are since the router's start and never run backwards.
type window struct {
	width time.Duration
	slots []slot
}

func newWindow(width time.Duration, slots int) window {
	return window{width: width, slots: make([]slot, slots)}
}

func (w *window) at(now time.Duration) *slot {
	epoch := int64(now / w.width)
	s := &w.slots[epoch%int64(len(w.slots))]
	if s.epoch != epoch {
		*s = slot{epoch: epoch}
	}
	return s
}

func (w *window) sum(now time.Duration) (total slot) {
	oldest := int64(now/w.width) - int64(len(w.slots))
	for i := range w.slots {
		if s := &w.slots[i]; s.epoch > oldest {
			total.count += s.count
			total.prompt += s.prompt
			total.cached += s.cached
			total.lookedAt += s.lookedAt
			total.reached += s.reached
		}
	}
	return total
}

// span is the time that sum covers at now, at least one slice.
func (w *window) span(now time.Duration) time.Duration {
	whole := w.width * time.Duration(len(w.slots)-1)
	return max(w.width, min(now, whole+now%w.width))
}

func share(part, whole int64) model.Maybe {
	if whole == 0 {
		return model.Unknown()
	}
	return model.Maybe(float64(part) / float64(whole))
}

const (
	ttftKept   = 512
	ttftWindow = 10 * time.Second
)

// ttfts keeps the newest first-token times: the last 512 at most.
type ttfts struct {
	at   [ttftKept]time.Duration
	ms   [ttftKept]float64
	n    uint64
	sort []float64
}

func (t *ttfts) add(now time.Duration, ms float64) {
	i := t.n % ttftKept
	t.at[i], t.ms[i] = now, ms
	t.n++
}

// quantiles returns the median and the 99th percentile (nearest rank) of those
// of the last ten seconds, unknown when there are none.
func (t *ttfts) quantiles(now time.Duration) (p50, p99 model.Maybe) {
	t.sort = t.sort[:0]
	for i := uint64(0); i < min(t.n, ttftKept); i++ {
		if now-t.at[i] < ttftWindow {
			t.sort = append(t.sort, t.ms[i])
		}
	}
	n := len(t.sort)
	if n == 0 {
		return model.Unknown(), model.Unknown()
	}
	slices.Sort(t.sort)
	return model.Maybe(t.sort[(n*50+99)/100-1]), model.Maybe(t.sort[(n*99+99)/100-1])
}
