package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"adpdeck/router/engine/steer"
	"adpdeck/router/model"
)

// worker is one engine that is watched. Its goroutines, all of them bounded in
// number by its ranks:
//
//	run       owns the sink's picture of the worker: joins, tells life and death
//	check     one for each address: does it answer?
//	load      how busy are the ranks?
//	learn     what is it: ranks, models, capacity
//	follow    one for each publisher of KV events
//
// What they find goes into the worker under mu, and poke wakes run.
type worker struct {
	f      *Fleet
	spec   model.EngineSpec // as configured
	key    string           // of the engine, from the environment
	doors  []*door
	poke   chan struct{} // capacity 1
	again  chan struct{} // capacity 1: learn now
	trials chan struct{} // capacity 1: a rank is in doubt
	// view is what requests need, see upstream.go.
	view  atomic.Pointer[model.EngineSpec]
	slots chan struct{} // of calls to its tokenizer
	// knowsConversations says that a trtllm-serve has the field
	// conversation_params in its requests.
	knowsConversations atomic.Bool

	cancel context.CancelFunc
	done   chan struct{}

	mu       sync.Mutex // guards what follows
	learnt   learnt
	doubts   []doubt // by rank
	doubtful atomic.Int32
	sick     map[int]string // ranks that the engine itself says are not well
	restarts []restart
	started  map[int]starts // of processes, by rank or NoRank
	found    map[string]model.Finding
	replays  map[int]replay // by rank
	taken    bool           // the sink has taken it in
	notTaken bool           // the sink refused it

	loads published // has its own lock

	// What follows belongs to run, and while it does not run to Set.
	joined *model.WorkerSpec
	told   map[int]bool // what the sink knows of each rank's life
	subs   map[feed]*subscription
}

// restart is a process that began anew.
type restart struct {
	rank int
	why  string
}

// door is one address of a worker: its only one, or that of one rank.
type door struct {
	base string
	rank int // NoRank: all of them
	life life
	slow slow
	wake chan struct{} // capacity 1: check now
	// heard is the fleet's age when a request through it was last answered, in
	// nanoseconds.
	heard atomic.Int64
	// said is what its server has said of itself, guarded by the worker's mu.
	said said
}

func newWorker(f *Fleet, spec *model.EngineSpec) (*worker, error) {
	w := &worker{
		f: f, spec: *spec, poke: make(chan struct{}, 1), again: make(chan struct{}, 1), trials: make(chan struct{}, 1), slots: make(chan struct{}, maxTokenCalls),
		replays: map[int]replay{}, sick: map[int]string{}, started: map[int]starts{}, found: map[string]model.Finding{},
		told: map[int]bool{}, subs: map[feed]*subscription{},
	}
	w.spec.Ranks = ranksOf(spec)
	if name := spec.APIKeyEnv; name != "" {
		if w.key = f.o.Getenv(name); w.key == "" {
			return nil, fmt.Errorf("worker %q: the variable %s of its key is empty; set it, or leave api_key_env out", spec.ID, name)
		}
	}
	if spec.URL != "" {
		w.doors = []*door{{base: spec.URL, rank: model.NoRank, wake: make(chan struct{}, 1)}}
	}
	for r, u := range spec.RankURLs {
		w.doors = append(w.doors, &door{base: u, rank: r, wake: make(chan struct{}, 1)})
	}
	w.learnt.begin(&w.spec)
	w.doubts = make([]doubt, w.spec.Ranks)
	w.show()
	return w, nil
}

// show publishes the spec with what was learnt, for requests. Callers hold mu,
// or are the only ones who know w.
func (w *worker) show() {
	v := w.spec
	v.Ranks = w.learnt.ranks
	w.view.Store(&v)
}

func (w *worker) start(parent context.Context) {
	ctx, cancel := context.WithCancel(parent)
	w.cancel, w.done = cancel, make(chan struct{})
	go func() {
		defer close(w.done)
		w.run(ctx)
	}()
}

// stop ends all that the worker has going and waits for it.
func (w *worker) stop() {
	if w.cancel == nil {
		return
	}
	w.cancel()
	<-w.done
}

// inherit takes over what the sink knows under the same id from the worker's
// earlier form, which has stopped.
func (w *worker) inherit(was *worker) {
	w.joined, w.taken = was.joined, was.joined != nil
	if !sameDoors(w, was) || w.spec.Kind != was.spec.Kind {
		w.restarts = append(w.restarts, restart{model.NoRank, "the settings name another engine under its id"})
	} else {
		w.started = was.started
	}
}

func sameDoors(a, b *worker) bool {
	if len(a.doors) != len(b.doors) {
		return false
	}
	for i := range a.doors {
		if !sameAddress(a.doors[i].base, b.doors[i].base) {
			return false
		}
	}
	return true
}

func (w *worker) run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, d := range w.doors {
		wg.Go(func() { w.check(ctx, d) })
	}
	wg.Go(func() { w.load(ctx) })
	wg.Go(func() { w.learn(ctx) })
	wg.Go(func() { w.try(ctx) })
	if transportOf(&w.spec) == transportHTTP {
		wg.Go(func() { w.drain(ctx) })
	}
	tick := time.NewTicker(hearPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			wg.Wait()
			w.unfollow()
			return
		case <-w.poke:
			w.tell()
			w.follow(ctx)
			for rank, from := range w.wanted() {
				wg.Go(func() { w.refill(ctx, rank, from) })
			}
		case <-tick.C:
			w.hear()
		}
	}
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pause waits, and reports false when ctx has ended; a nudge of wake ends the
// wait early.
func pause(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-t.C:
	}
	return ctx.Err() == nil
}

// steering is how the worker is steered, for the screen.
func (w *worker) steering() model.Steering {
	how, _ := steer.Resolve(&w.spec)
	return how
}
