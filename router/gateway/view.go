package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"adpdeck/router/engine"
	"adpdeck/router/gateway/prompt"
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
	loras   adapters
	fails   map[asked]time.Time // until when
}

// list returns the workers, at most viewTime old. It is not to be written.
func (v *view) list() []model.EngineSpec {
	_, list := v.known()
	return list
}

// known returns the adapters beside the workers.
func (v *view) known() (adapters, []model.EngineSpec) {
	now := v.clock.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.at.IsZero() || now.Sub(v.at) >= viewTime || now.Before(v.at) {
		v.at, v.workers = now, v.engines.Workers()
		v.loras = v.engines.Adapters()
	}
	return v.loras, v.workers
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
	err := fmt.Errorf("%w: no worker serves the model", prompt.ErrRefused)
	tries := 0
	for k := range list {
		w := &list[(from+uint64(k))%uint64(len(list))]
		if !serves(w, name) {
			continue
		}
		if v.failing(name, w.ID) {
			if tries == 0 {
				err = errResting
			}
			continue
		}
		var got engine.TokenList
		if got, err = v.engines.Tokenize(ctx, w.ID, route, body); err == nil {
			return got.Tokens, nil
		}
		if ctx.Err() != nil {
			break
		}
		if !errors.Is(err, engine.ErrTokenizerBusy) && !errors.Is(err, engine.ErrTokenizerRefused) {
			v.failed(name, w.ID)
		}
		if tries++; tries == maxTries {
			break
		}
	}
	switch {
	case errors.Is(err, engine.ErrTokenizerBusy):
		return nil, fmt.Errorf("%w: %w", prompt.ErrBusy, err)
	case errors.Is(err, engine.ErrTokenizerRefused):
		return nil, fmt.Errorf("%w: %w", prompt.ErrRefused, err)
	}
	return nil, err
}

var errResting = errors.New("the tokenizers of this model failed lately and are asked again later")

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

// inside is the rank of a worker that its engine's number names; header is where
// the number was read.
func (v *view) inside(worker string, rank int, header string) (*model.Target, error) {
	list := v.list()
	for i := range list {
		w := &list[i]
		switch {
		case w.ID != worker || w.Ranks == 0:
		case rank < w.StartRank || rank >= w.StartRank+w.Ranks:
			return nil, refusal(http.StatusBadRequest, "no_such_rank", "%s asks for rank %d, and those of %s are %d to %d: it counts over all workers, X-Adpdeck-Rank inside one",
				header, rank, worker, w.StartRank, w.StartRank+w.Ranks-1)
		default:
			return &model.Target{Worker: worker, Rank: rank - w.StartRank}, nil
		}
	}
	return &model.Target{Worker: worker, Rank: rank}, nil // the router says what is wrong
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
