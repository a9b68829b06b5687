package sim

import (
	"errors"
	"fmt"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"adpdeck/router/adp"
	"adpdeck/router/model"
)

// Engine is a plain Router over TensorRT-LLM's rank routers, one per worker:
// what an engine does on its own. Above it workers take turns, by fewest open
// requests or in rotation; under the conversation policy a conversation stays
// with its worker. It has no commands, no pins by hand and no screen.
type Engine struct {
	settings model.Settings
	workers  []model.WorkerSpec
	byID     map[string]*engineWorker
	next     int
	homes    *simplelru.LRU[string, int] // worker of a conversation
	open     map[int64]engineRequest
	result   adp.Result
	batch    adp.Batch
}

type engineWorker struct {
	router *adp.Router
	open   int
}

type engineRequest struct {
	req    adp.Request
	worker string
}

// ErrEngine is wrapped by the errors of NewEngine and Engine.
var ErrEngine = errors.New("engine")

// NewEngine returns an Engine that works under settings from now on.
func NewEngine(workers []model.WorkerSpec, settings model.Settings) (*Engine, error) {
	if len(workers) == 0 {
		return nil, fmt.Errorf("%w: no worker is named", ErrEngine)
	}
	homes, err := simplelru.NewLRU[string, int](max(1, settings.AttentionDpConfig.KVCacheRoutingMaxSessions), nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEngine, err)
	}
	e := &Engine{
		settings: settings, workers: workers, homes: homes,
		byID: map[string]*engineWorker{}, open: map[int64]engineRequest{},
	}
	for _, w := range workers {
		e.byID[w.ID] = &engineWorker{router: adp.New(w.Ranks, settings.AttentionDpConfig, nil, adp.Options{})}
	}
	return e, nil
}

// Submit picks a worker.
func (e *Engine) Submit(req *model.Request) (model.Target, error) {
	conv := ""
	if !req.Conv.Keyless() {
		conv = req.Conv.Tenant + "\x00" + req.Conv.Model + "\x00" + req.Conv.ID
	}
	at := e.pick(conv)
	id := e.workers[at].ID
	e.byID[id].open++
	e.open[req.ID] = engineRequest{worker: id, req: adp.Request{
		ID: req.ID, Tokens: req.PromptTokens, Lead: req.Lead, Conv: conv, Children: req.Children,
	}}
	return model.Target{Worker: id, Rank: model.NoRank}, nil
}

func (e *Engine) pick(conv string) int {
	stays := conv != "" && e.settings.AttentionDpConfig.Policy() == model.PolicyConversation
	if stays {
		if at, ok := e.homes.Get(conv); ok {
			return at
		}
	}
	at := e.next
	e.next = (e.next + 1) % len(e.workers)
	if e.settings.RouterMode == model.ModeLeastLoaded {
		for i := range e.workers {
			if e.byID[e.workers[i].ID].open < e.byID[e.workers[at].ID].open {
				at = i
			}
		}
	}
	if stays {
		e.homes.Add(conv, at)
	}
	return at
}

// Step routes the batch with the worker's rank router.
func (e *Engine) Step(worker string, in *model.StepInput, out *model.StepOutput) error {
	w := e.byID[worker]
	if w == nil {
		return fmt.Errorf("%w: no worker %q", ErrEngine, worker)
	}
	b := &e.batch
	b.States, b.HardCap, b.Requests = in.States, in.HardCap, b.Requests[:0]
	for _, q := range in.Requests {
		o, ok := e.open[q.ID]
		if !ok || o.worker != worker {
			return fmt.Errorf("%w: request %d was not submitted to %s", ErrEngine, q.ID, worker)
		}
		o.req.Matches = q.Matches
		b.Requests = append(b.Requests, o.req)
	}
	if err := w.router.Route(b, &e.result); err != nil {
		return fmt.Errorf("%w: %w", ErrEngine, err)
	}
	resetOutput(out, len(in.States))
	out.Ranks = append(out.Ranks, e.result.Ranks...)
	for k, order := range e.result.Assignments {
		out.Order[k] = append(out.Order[k], order...)
	}
	out.Expected = e.result.Expected
	return nil
}

// FirstToken does nothing.
func (e *Engine) FirstToken(int64, model.Usage) {}

// Done forgets the request.
func (e *Engine) Done(id int64, _ model.Outcome) {
	if o, ok := e.open[id]; ok {
		e.byID[o.worker].open--
		delete(e.open, id)
	}
}

// Output does nothing.
func (e *Engine) Output(int64, int) {}

// TracksOutput is false: nothing looks at it.
func (e *Engine) TracksOutput() bool { return false }

// Report does nothing.
func (e *Engine) Report(string, int, int, []model.RankState, []model.RankLoad) {}

// SetSource does nothing.
func (e *Engine) SetSource(model.Source) {}

// Events does nothing: the engines probe their own caches.
func (e *Engine) Events(string, int, uint64, []byte) {}

// Mode is how workers are picked.
func (e *Engine) Mode() model.RouterMode { return e.settings.RouterMode }

// Gate returns the settings of the engine.
func (e *Engine) Gate(string) (cfg model.AttentionDpConfig, minGenerationRequests, lowOccupancyTimeoutIters int) {
	return e.settings.AttentionDpConfig, e.settings.MinGenerationRequests, e.settings.LowOccupancyTimeoutIters
}

// Use changes the settings between two calls; bindings stay.
func (e *Engine) Use(settings model.Settings) {
	e.settings = settings
	for _, w := range e.byID {
		w.router.Configure(settings.AttentionDpConfig)
	}
}
