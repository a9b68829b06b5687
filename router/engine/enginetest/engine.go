package enginetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"adpdeck/router/adp"
	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

// maxServed is how many requests Engine.Served remembers.
const maxServed = 4096

// Engine is a fake engine, or a Dynamo frontend with its workers. It is safe for
// concurrent use. It owns a timer for each group of ranks while there is work,
// and the goroutines of its listeners between Start and Close.
type Engine struct {
	cfg    Config
	clock  Clock
	habits atomic.Pointer[Habits]
	hasher prefix.Hasher

	life sync.Mutex // held over Start, Kill, Revive and Close
	end  context.CancelFunc

	mu         sync.Mutex // guards what follows, ranks and groups included
	ranks      []*rank
	groups     []*group
	publishers []*publisher
	adp        *adpQueue // TensorRT-LLM's, nil for others
	trt        *iterations
	dyn        *frontend // Dynamo's, nil for others
	starts     uint64    // of ranks; each seeds its block hashes afresh
	down       bool      // killed
	alive      context.Context
	turn       int // of SGLang's and Dynamo's rotation
	requests   uint64
	outbox     []parcel
	loadbox    []Batch
	spoken     map[string]uint64 // loads published, by topic
	beating    Timer             // of heartbeats; nil: none
	served     []Served
	frozen     map[string][]byte
	thaw       chan struct{} // closed and made anew when habits change

	sending  sync.Mutex // guards the way out of the outbox
	wires    *wires
	speakers *speakers
	late     map[int]*Batch

	net network
}

// Served is one request that came over an OpenAI route.
type Served struct {
	ID    string
	Route model.Route
	Model string
	// Asked is the rank that the engine took from the request, counted from 0 over
	// all workers, or NoRank; By is the channel.
	Asked int
	By    string
	// Ran is the rank that ran it, counted from 0 over all workers.
	Ran          int
	Conversation string
	// PromptTokens, CachedTokens of them found in the cache, OutputTokens.
	PromptTokens, CachedTokens, OutputTokens int
	// Aborted says that the client went, or the engine, before the end.
	Aborted bool
}

// New returns an engine that answers through Handler at once, and over the
// network after Start. Its errors wrap ErrConfig.
func New(cfg Config) (*Engine, error) {
	cfg.Models, cfg.Adapters = slices.Clone(cfg.Models), slices.Clone(cfg.Adapters)
	cfg.Habits = cfg.Habits.clone()
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	h, err := prefix.NewHasher(cfg.BlockTokens, prefix.Seed("", ""))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	e := &Engine{cfg: cfg, clock: cfg.Clock, hasher: h, late: map[int]*Batch{}, spoken: map[string]uint64{}, thaw: make(chan struct{})}
	e.habits.Store(&cfg.Habits)
	e.alive, e.end = context.WithCancel(context.Background())
	e.net.init(e)
	e.build()
	return e, nil
}

// build makes ranks, the groups that step together, and their publishers.
func (e *Engine) build() {
	cfg := &e.cfg
	for w := range cfg.Workers {
		if cfg.Kind == model.EngineDynamo {
			e.publishers = append(e.publishers, &publisher{e: e, at: w})
		}
		var g *group
		for r := range cfg.Ranks {
			if g == nil || !cfg.Timing.Barrier {
				g = &group{e: e}
				e.groups = append(e.groups, g)
			}
			k := &rank{e: e, at: w*cfg.Ranks + r, worker: w, local: r, group: g, count: newCounters()}
			k.cache = newCache(cfg.Blocks, cfg.Kind == model.EngineVLLM)
			g.ranks = append(g.ranks, k)
			e.ranks = append(e.ranks, k)
			if cfg.Kind != model.EngineDynamo {
				e.publishers = append(e.publishers, &publisher{e: e, at: k.at})
			}
			k.pub = e.publishers[len(e.publishers)-1]
		}
	}
	switch cfg.Kind {
	case model.EngineTRTLLM:
		e.adp = newADP(cfg)
		e.trt = newIterations(e)
	case model.EngineDynamo:
		e.dyn = &frontend{sessions: adp.NewLRU(1 << 16), busy: map[string]thresholds{}}
	}
	for _, k := range e.ranks {
		k.start()
	}
}

// instance is the id of a worker behind a Dynamo frontend.
func (e *Engine) instance(worker int) uint64 { return e.cfg.InstanceBase + uint64(worker) }

// topic is the first frame of batches.
func (e *Engine) topic() string {
	if e.cfg.Kind == model.EngineDynamo && e.cfg.Events.Topic == "" {
		return planeTopic
	}
	return e.cfg.Events.Topic
}

// Config returns the configuration, defaults filled in.
func (e *Engine) Config() Config { return e.cfg }

// Habits returns the bad habits in force.
func (e *Engine) Habits() Habits { return e.habits.Load().clone() }

// Set changes the bad habits: change gets a copy of those in force. Habits that
// cannot be change nothing and are the error.
func (e *Engine) Set(change func(*Habits)) error {
	e.sending.Lock()
	defer e.sending.Unlock()
	h := e.habits.Load().clone()
	change(&h)
	if err := h.check(); err != nil {
		return err
	}
	e.habits.Store(&h)
	if e.wires != nil {
		e.wires.hang()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !h.MetricsFrozen {
		e.frozen = nil
	}
	close(e.thaw)
	e.thaw = make(chan struct{})
	for _, g := range e.groups {
		g.kick()
	}
	return nil
}

// SetJSON changes the habits that a JSON object names, and no others.
func (e *Engine) SetJSON(object []byte) error {
	var bad error
	err := e.Set(func(h *Habits) {
		was := h.clone()
		if bad = decodeStrict(object, h); bad != nil {
			*h = was
		}
	})
	return errors.Join(bad, err)
}

// changed is closed at the next change of habits.
func (e *Engine) changed() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.thaw
}

// errBusy is returned to requests beyond Config.MaxWaiting.
var errBusy = errors.New("too many requests are waiting")

// submit gives a request to the rank that was asked for, or to the engine's own
// choice.
func (e *Engine) submit(j job) (*work, error) {
	w := &work{job: j, bell: make(chan struct{}, 1), tokens: slices.Clone(j.prompt)}
	w.seed = digest(e.cfg.Seed, j.prompt)
	w.prompt = w.tokens[:len(w.tokens):len(w.tokens)]
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.down {
		return nil, errCrashed
	}
	if e.queued() >= e.cfg.MaxWaiting {
		return nil, errBusy
	}
	w.arrived = e.clock.Now()
	if e.adp != nil {
		e.adp.queue = append(e.adp.queue, w)
		e.groups[0].kick()
		return w, nil
	}
	k := e.pick(&w.job)
	k.enqueue(w)
	return w, nil
}

func (e *Engine) queued() int {
	n := 0
	if e.adp != nil {
		n = len(e.adp.queue)
	}
	for _, k := range e.ranks {
		n += len(k.waiting)
	}
	return n
}

// leave ends a request for its handler: it is taken off its rank if it still
// runs, and remembered. A second call does nothing.
func (e *Engine) leave(w *work) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.left {
		return
	}
	w.left = true
	s := Served{
		ID: w.id, Route: w.route, Model: w.model, Asked: w.choice.rank, By: w.choice.by, Ran: model.NoRank, Conversation: w.conv,
		PromptTokens: len(w.prompt), CachedTokens: w.cached, OutputTokens: w.answered(), Aborted: !w.ended || w.err != nil,
	}
	if w.rank != nil {
		s.Ran = w.rank.at
	}
	if !w.ended {
		w.ended = true
		if w.rank != nil {
			w.rank.remove(w)
			w.rank.count.aborted++
			w.rank.group.kick()
		} else if e.adp != nil {
			e.adp.queue = slices.DeleteFunc(e.adp.queue, func(o *work) bool { return o == w })
		}
	}
	if len(e.served) == maxServed {
		e.served = e.served[1:]
	}
	e.served = append(e.served, s)
}

// Served returns the last requests, at most 4,096, oldest first.
func (e *Engine) Served() []Served {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.served)
}

// Open is how many requests the engine has taken and not ended.
func (e *Engine) Open() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	if e.adp != nil {
		n = len(e.adp.queue)
	}
	for _, k := range e.ranks {
		n += k.open()
	}
	return n
}

// Peak is the most requests that a rank (counted from 0 over all workers) has had
// at one time, running or waiting.
func (e *Engine) Peak(rank int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ranks[rank].peak
}

// Holds is how many tokens of a prompt, in full blocks, the cache of a rank
// (counted from 0 over all workers) has at this moment: what events ought to
// have told. Adapter and salt are empty for none.
func (e *Engine) Holds(rank int, prompt []uint32, adapter, salt string) (tokens int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	k := e.ranks[rank]
	w := &work{job: job{lora: adapter, salt: salt}, tokens: prompt}
	k.hash(w, len(prompt)/e.cfg.BlockTokens)
	n, _ := k.cache.match(w.hashes)
	return n * e.cfg.BlockTokens
}

// DropBatches loses the next n batches of a rank (of a worker behind a Dynamo
// frontend) on their way; a replay has them.
func (e *Engine) DropBatches(rank, n int) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if rank < 0 || rank >= len(e.publishers) || n < 0 {
		return fmt.Errorf("drop %d batches of rank %d: want ranks 0 to %d", n, rank, len(e.publishers)-1)
	}
	e.publishers[rank].lose = n
	return nil
}

// decodeStrict reads a JSON object of known fields.
func decodeStrict(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
