package gateway

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"adpdeck/router/engine"
	"adpdeck/router/model"
)

// viewTime is how long what is known of the workers may be used.
const viewTime = time.Second

// view keeps what the engines' list of workers says, so that not every request
// makes one.
type view struct {
	engines Engines
	clock   interface{ Now() time.Time }
	next    atomic.Uint64 // worker whose tokenizer is asked

	mu      sync.Mutex // guards what follows
	at      time.Time
	workers []model.EngineSpec
	fails   map[asked]time.Time // until when
}

// list returns the workers, at most viewTime old. It is not to be written.
func (v *view) list() []model.EngineSpec {
	now := v.clock.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.at.IsZero() || now.Sub(v.at) >= viewTime || now.Before(v.at) {
		v.at, v.workers = now, v.engines.Workers()
	}
	return v.workers
}

// serves reports that a worker serves a model; one that names none serves all.
func serves(w *model.EngineSpec, name string) bool {
	return name == "" || len(w.Models) == 0 || slices.Contains(w.Models, name)
}

// tokenize asks a worker that serves the model, another one each time. One that
// fails is left alone for a while: workers that do not say what they serve may
// serve something else.
func (v *view) tokenize(ctx context.Context, name string, route model.Route, body []byte) ([]uint32, error) {
	list := v.list()
	from := v.next.Add(1)
	err := errors.New("no worker serves the model")
	tries := 0
	for k := range list {
		w := &list[(from+uint64(k))%uint64(len(list))]
		if !serves(w, name) || v.failing(name, w.ID) {
			continue
		}
		var got engine.TokenList
		if got, err = v.engines.Tokenize(ctx, w.ID, route, body); err == nil {
			return got.Tokens, nil
		}
		if ctx.Err() != nil {
			break
		}
		if !errors.Is(err, engine.ErrTokenizerBusy) {
			v.failed(name, w.ID)
		}
		if tries++; tries == maxTries {
			break
		}
	}
	return nil, err
}

// maxTries is how many workers are asked to tokenise one prompt, failTime how long
// one that failed is not asked for that model, maxFailing how many of those are
// remembered.
const (
	maxTries   = 3
	failTime   = time.Minute
	maxFailing = 4096
)

// asked is a worker that was asked for a model.
type asked struct{ model, worker string }

func (v *view) failing(name, worker string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	until, ok := v.fails[asked{name, worker}]
	return ok && v.clock.Now().Before(until)
}

func (v *view) failed(name, worker string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.fails == nil || len(v.fails) >= maxFailing {
		v.fails = map[asked]time.Time{}
	}
	v.fails[asked{name, worker}] = v.clock.Now().Add(failTime)
}

// global finds the rank that its engines' number names. Where groups of workers
// count their ranks apart it may name several, or none.
func (v *view) global(rank int) (found []model.Target) {
	list := v.list()
	for i := range list {
		if w := &list[i]; rank >= w.StartRank && rank < w.StartRank+w.Ranks {
			found = append(found, model.Target{Worker: w.ID, Rank: rank - w.StartRank})
		}
	}
	return found
}

// instance finds the worker with an id behind a Dynamo frontend.
func (v *view) instance(id uint64) (worker string, found bool) {
	list := v.list()
	for i := range list {
		if list[i].InstanceID == id && id != 0 {
			return list[i].ID, true
		}
	}
	return "", false
}
