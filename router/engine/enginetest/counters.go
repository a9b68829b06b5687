package enginetest

import "time"

// counters are a rank's figures since it started, for its metrics.
type counters struct {
	promptTokens, generationTokens int
	queries, hits                  int // prompt tokens looked up, and found
	preemptions                    int
	stopped, length, aborted       int // requests by how they ended
	ttft, itl, e2e, queued         histogram
}

func newCounters() counters {
	buckets := []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120}
	h := func() histogram { return histogram{upTo: buckets, counts: make([]int, len(buckets)+1)} }
	return counters{ttft: h(), itl: h(), e2e: h(), queued: h()}
}

func (c *counters) admitted(w *work, now time.Time) {
	c.queries += len(w.prompt)
	c.hits += w.cached
	c.promptTokens += len(w.prompt)
	c.queued.observe(now.Sub(w.arrived))
}

func (c *counters) token(w *work, now time.Time) {
	c.generationTokens++
	if w.first.IsZero() {
		w.first = now
		c.ttft.observe(now.Sub(w.arrived))
		return
	}
	c.itl.observe(now.Sub(w.last))
}

func (c *counters) finished(w *work, now time.Time) {
	if w.natural || w.want == 0 {
		c.stopped++
	} else {
		c.length++
	}
	c.e2e.observe(now.Sub(w.arrived))
}

// hitRate is the share of looked-up prompt tokens that were found.
func (c *counters) hitRate() float64 {
	if c.queries == 0 {
		return 0
	}
	return float64(c.hits) / float64(c.queries)
}

// histogram counts durations by upper bound in seconds.
type histogram struct {
	upTo   []float64
	counts []int // one more than upTo, for what is above all
	sum    float64
	n      int
}

func (h *histogram) observe(d time.Duration) {
	s := d.Seconds()
	at := 0
	for at < len(h.upTo) && s > h.upTo[at] {
		at++
	}
	h.counts[at]++
	h.sum += s
	h.n++
}
