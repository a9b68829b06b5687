package compare

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"adpdeck/router/sim"
)

// Result is what one entry came to.
type Result struct {
	Name string `json:"name"`
	sim.Report
}

// Run plays every entry to its end on the cluster that build returns for it,
// and returns the results in the order of the entries. build is called by
// several goroutines. progress, when not nil, is told how many of the rows of
// all entries have been sent, by one goroutine at a time. The first error, or
// the context's end, stops the rest.
func Run(ctx context.Context, entries []Entry, build func(Entry) (*sim.Sim, error), progress func(sent, total int)) ([]Result, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	results := make([]Result, len(entries))
	next := make(chan int)
	var wg sync.WaitGroup
	told := &tally{sent: make([]int, len(entries)), total: make([]int, len(entries)), tell: progress}
	for range min(len(entries), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := range next {
				report, err := play(ctx, &entries[i], build, func(sent, total int) { told.note(i, sent, total) })
				if err != nil {
					stop(fmt.Errorf("%s: %w", entries[i].Name, err))
					continue
				}
				results[i] = Result{Name: entries[i].Name, Report: report}
			}
		})
	}
	for i := range entries {
		next <- i
	}
	close(next)
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return results, nil
}

func play(ctx context.Context, e *Entry, build func(Entry) (*sim.Sim, error), progress func(sent, total int)) (sim.Report, error) {
	if err := ctx.Err(); err != nil {
		return sim.Report{}, err
	}
	s, err := build(*e)
	if err != nil {
		return sim.Report{}, err
	}
	began := time.Now()
	if err := s.Run(ctx, progress); err != nil {
		return sim.Report{}, err
	}
	r := s.Report(time.Since(began))
	if e.Rotate {
		r.Policy = PolicyRotate
	}
	return r, nil
}

// tally sums what the entries have sent.
type tally struct {
	mu          sync.Mutex // guards the rest
	sent, total []int
	tell        func(sent, total int)
}

func (t *tally) note(i, sent, total int) {
	if t.tell == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent[i], t.total[i] = sent, total
	all := 0
	for _, n := range t.sent {
		all += n
	}
	t.tell(all, total*len(t.total))
}
