package engine

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"adpdeck/router/model"
)

// Errors of a fleet.
var (
	// ErrNoWorker is returned for a worker that is not among those served.
	ErrNoWorker = errors.New("no such worker")
	// ErrRunning is returned by a second Run.
	ErrRunning = errors.New("the fleet runs already")
)

// Fleet watches the engines of a configuration and tells a Sink what they are,
// hold and do. All its methods may be called from any goroutine; Upstream, Ran,
// Answered and Failed wait for nothing.
type Fleet struct {
	o     Options
	sink  Sink
	born  time.Time
	conns atomic.Uint64 // subscribers made so far: their connections' numbers never meet

	set sync.Mutex // held through a change of workers

	binds sync.Mutex // guards bound
	bound map[string]*binding

	mu      sync.RWMutex // guards what follows
	workers map[string]*worker
	order   []string        // ids as configured
	ctx     context.Context // of Run, nil while it does not run
	ran     bool
}

// New returns a fleet of the workers, which asks nothing before Run. It returns
// Check's error for a configuration that cannot be served.
func New(workers []model.EngineSpec, sink Sink, o Options) (*Fleet, error) {
	o.defaults()
	f := &Fleet{o: o, sink: sink, born: time.Now(), workers: map[string]*worker{}, bound: map[string]*binding{}}
	return f, f.Set(workers)
}

// Run asks the engines until ctx ends, and returns nil when all that it started
// has ended. Workers stay known to the sink. It can be called once.
func (f *Fleet) Run(ctx context.Context) error {
	f.set.Lock()
	f.mu.Lock()
	if f.ran {
		f.mu.Unlock()
		f.set.Unlock()
		return ErrRunning
	}
	f.ran, f.ctx = true, ctx
	f.mu.Unlock()
	for _, w := range f.list() {
		w.start(ctx)
	}
	f.set.Unlock()

	f.fillGaps(ctx)
	f.set.Lock()
	defer f.set.Unlock()
	for _, w := range f.list() {
		w.stop()
	}
	if t, ok := f.o.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
	return nil
}

// fillGaps has the replays begun that the sink asks for, until ctx ends.
func (f *Fleet) fillGaps(ctx context.Context) {
	gaps := f.sink.Gaps()
	for {
		select {
		case <-ctx.Done():
			return
		case g, ok := <-gaps:
			if !ok {
				gaps = nil
				continue
			}
			f.replay(g)
		}
	}
}

// Check says what is wrong with workers for Set; it changes nothing.
func (f *Fleet) Check(workers []model.EngineSpec) error {
	_, _, err := f.prepare(workers)
	return err
}

// prepare makes workers that nothing has begun yet, and their order.
func (f *Fleet) prepare(workers []model.EngineSpec) (next map[string]*worker, order []string, err error) {
	if err := Check(workers); err != nil {
		return nil, nil, err
	}
	next = make(map[string]*worker, len(workers))
	for i := range workers {
		w, err := newWorker(f, &workers[i])
		if err != nil {
			return nil, nil, err
		}
		next[w.spec.ID] = w
		order = append(order, w.spec.ID)
	}
	return next, order, nil
}

// Set changes the workers to those given: who is gone leaves the sink, who is
// new joins, who changed is watched anew under the same id, so that pins stay;
// all others notice nothing. On an error of Check nothing changes.
func (f *Fleet) Set(workers []model.EngineSpec) error {
	next, order, err := f.prepare(workers)
	if err != nil {
		return err
	}
	f.set.Lock()
	defer f.set.Unlock()
	old := f.list()
	for _, was := range old {
		if w := next[was.spec.ID]; w != nil && reflect.DeepEqual(w.spec, was.spec) && w.key == was.key {
			next[was.spec.ID] = was
		}
	}
	f.mu.Lock()
	f.workers, f.order = next, order
	ctx := f.ctx
	f.mu.Unlock()
	var errs []error
	for _, was := range old {
		w := next[was.spec.ID]
		if w == was {
			continue
		}
		was.stop()
		was.forget()
		if w == nil {
			if was.joined != nil {
				errs = append(errs, f.sink.Leave(was.spec.ID))
			}
			continue
		}
		w.inherit(was)
	}
	if ctx != nil && ctx.Err() == nil {
		for _, id := range order {
			if !slices.Contains(old, next[id]) {
				next[id].start(ctx)
			}
		}
	}
	return errors.Join(errs...)
}

// age is a time that no clock's correction moves.
func (f *Fleet) age() time.Duration { return time.Since(f.born) }

// list are the workers in the order configured.
func (f *Fleet) list() []*worker {
	f.mu.RLock()
	defer f.mu.RUnlock()
	all := make([]*worker, 0, len(f.order))
	for _, id := range f.order {
		all = append(all, f.workers[id])
	}
	return all
}

func (f *Fleet) worker(id string) (*worker, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	w := f.workers[id]
	if w == nil {
		return nil, fmt.Errorf("worker %q: %w", id, ErrNoWorker)
	}
	return w, nil
}
