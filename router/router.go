package router

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"adpdeck/router/adp"
	"adpdeck/router/load"
	"adpdeck/router/model"
	"adpdeck/router/pin"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// maxCandidates bounds the ranks that one decision record explains, for each
// tier, the chosen and the best others; 4,096 records then take about 25 MB at
// most, and 100 MB where the cluster tier chooses among as many ranks.
const maxCandidates = 64

// Clock is the time that the router lives in: the wall's, or a simulation's.
// It is read before the router's lock is taken. Where two calls read it out of
// order the router keeps the later time.
type Clock interface{ Now() time.Time }

// Config is what a router is made from.
type Config struct {
	Clock    Clock
	Workers  []model.WorkerSpec
	Settings model.Settings
	// MaxRanks is how many ranks there may be at one time, those of workers that
	// join later included; with it Workers may be empty, and weights may name
	// ranks that are not there yet. 0: those of Workers, and none can join.
	MaxRanks int
	// Record keeps a decision record of each routed request, for a screen.
	Record bool
	// MaxConvs bounds the tracked conversations; 0 means model.MaxConvs.
	MaxConvs int
	// Wall times decisions (Decision.TookNs); nil leaves them untimed.
	Wall func() time.Time
	// Seed seeds what the cluster tier leaves to chance.
	Seed uint64
}

// Router is the live router. All its methods may be called from any goroutine.
type Router struct {
	clock  Clock
	wall   func() time.Time
	record bool
	fields []model.Field
	// tierFields counts the cluster tier's own, which are the last of fields.
	tierFields int

	know *knowledge
	view indexView
	gaps chan model.Gap
	// watched counts probes, for who does not have the lock.
	watched atomic.Int32
	// topo is held while workers and ranks come and go; taken before mu.
	topo sync.Mutex

	mu       sync.Mutex // guards everything below
	start    time.Time
	now      time.Time
	stamp    uint64          // counts changes; objects carry the stamp of their last
	workers  []*worker       // in the order in which they joined
	byID     map[string]int  // place in workers
	sorted   []*worker       // by name
	places   []*worker       // by worker.index, nil where nobody is
	numbers  []*worker       // by worker.number, nil where nobody is
	serves   audiences       // who serves which model
	parted   []model.Target  // drained ranks that have left, longest gone first
	settings *model.Settings // published: replaced, never written
	initial  model.Settings
	version  uint64
	source   model.Source

	book      *load.Book[turn]
	binds     *pin.Table
	owners    *tenants // of the bindings
	ops       *pin.Operators
	convs     *tracker
	notes     []note         // of the step being made
	loads     []workerLoad   // scratch of the cluster tier
	exclude   []model.Target // what the request being routed must not go to
	late      uint64         // ends of requests whose worker or rank had left
	cursor    int            // of the cluster tier
	steer     steering
	probes    []*probe  // requests whose blocks are looked for
	nextProbe time.Time // not before then
	found     findings
	steps     uint64 // calls of Step

	history  history
	answers  *simplelru.LRU[string, model.Reply]
	answered int // items kept in answers
	drops    []pin.Entry

	decisions ring[*model.Decision]
	settled   ring[model.Settled]
	totals    model.Totals // the counters; windows are summed when published
	routed    uint64       // decision ids given
	lost      uint64       // turns of held conversations that ran elsewhere
	lostAt    time.Time    // when an operator was last told
	refusedAt time.Time    // when an operator was last told of a refusal
	refusing  refusing
	submitted uint64
	arrivals  window
	hits      window
	ttft      ttfts
	subs      []*Subscription
}

// worker is one worker with its engine-tier router.
type worker struct {
	spec     model.WorkerSpec
	index    int     // of the book and of places, its own as long as it is there
	slots    []int32 // of the cluster tier and of the index, by rank
	number   int     // the cluster tier's
	joined   time.Time
	live     liveness
	told     told
	proofs   proofs
	engine   *adp.Router
	ranks    []rankState
	eligible int
	weights  []float64 // by rank, nil when all are 1
	closed   []bool    // by rank, nil when none is
	shut     []bool    // scratch: closed and what a request must not go to

	reported bool
	bound    int // conversations bound to it and to no rank: its engine picks that
	// stepped says that the engine routes inside; its newest step was at
	// steppedAt, its newest report at reportedAt, since the router's start.
	stepped               bool
	steppedAt, reportedAt time.Duration
	waiting               int
	held                  int
	softCap               int

	batch   batch
	request adp.Batch
	result  adp.Result
}

// rankState is what the router knows of one rank.
type rankState struct {
	drain    bool
	blocked  bool
	down     bool // its engine does not answer
	observed bool // its figures come from Observe
	weight   float64
	load     model.Rank // the engine's figures and the counters, published from here
	hits     window
	pins     int
	operator int
	restarts uint64
}

// New returns a router over the workers of cfg. It refuses a cluster without
// workers, a worker without an id or ranks, ids given twice, and settings that
// leave no eligible rank or name a rank that is not there. With Config.MaxRanks
// workers may come later.
func New(cfg Config) (*Router, error) {
	if cfg.Clock == nil {
		return nil, errors.New("router: no clock: Config.Clock must be set")
	}
	if len(cfg.Workers) == 0 && cfg.MaxRanks <= 0 {
		return nil, errors.New("router: no workers: name at least one, or set Config.MaxRanks so that they may join")
	}
	if cfg.MaxConvs <= 0 {
		cfg.MaxConvs = model.MaxConvs
	}
	if cfg.Settings.RouterMode == "" {
		cfg.Settings.RouterMode = model.ModeRoundRobin
	}
	cfg.Settings.Weights = slices.Clone(cfg.Settings.Weights)
	cfg.Settings.ClusterConfig = cfg.Settings.Cluster()
	settings := cfg.Settings
	r := &Router{
		clock: cfg.Clock, wall: cfg.Wall, record: cfg.Record, fields: model.Fields(), tierFields: len(model.ClusterFields()),
		byID: map[string]int{}, settings: &settings, initial: cfg.Settings, version: 1,
		convs: newTracker(cfg.MaxConvs), owners: newTenants(),
		arrivals: newWindow(time.Second, 10), hits: newWindow(time.Second, 10), refusing: newRefusing(),
		decisions: newRing[*model.Decision](model.MaxDecisions), settled: newRing[model.Settled](2 * model.MaxDecisions),
	}
	r.start = cfg.Clock.Now()
	r.now, r.stamp = r.start, 1
	r.binds = pin.NewTable(settings.AttentionDpConfig.KVCacheRoutingMaxSessions, r.bindingChanged)
	r.ops = pin.NewOperators(r.operatorChanged)
	var err error
	if r.answers, err = simplelru.NewLRU[string, model.Reply](maxAnswers, r.forgetAnswer); err != nil {
		return nil, err
	}
	if err := r.addWorkers(&cfg); err != nil {
		return nil, err
	}
	if err := r.checkSettings(cfg.MaxRanks > 0); err != nil {
		return nil, err
	}
	r.history = newHistory(model.Revision{Version: 1, At: r.start, Actor: "router", Verb: "start", What: "started"})
	r.seat()
	return r, nil
}

// addWorkers makes the cluster tier, what is known of caches, and the workers
// that are there from the start.
func (r *Router) addWorkers(cfg *Config) (err error) {
	if r.know, err = newKnowledge(cfg); err != nil {
		return err
	}
	r.gaps = make(chan model.Gap, max(1, r.know.room))
	r.book = load.New[turn](nil)
	r.view.init(r)
	if err := r.newSteering(cfg.Seed); err != nil {
		return err
	}
	for i := range cfg.Workers {
		if _, ok := r.byID[cfg.Workers[i].ID]; ok {
			return fmt.Errorf("router: worker %q is named twice", cfg.Workers[i].ID)
		}
		if err := r.checkSpec(&cfg.Workers[i]); err != nil {
			return fmt.Errorf("router: worker %d %w", i, err)
		}
		if err := r.admit(&cfg.Workers[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkSettings checks the settings of the start. later allows weights of ranks
// that may yet come.
func (r *Router) checkSettings(later bool) error {
	for _, w := range r.settings.Weights {
		err := r.checkTarget(w.Target)
		if later {
			err = nil
		}
		if err == nil && w.Target.Rank == model.NoRank {
			err = ErrNoRank
		}
		if err != nil {
			return fmt.Errorf("router: weight of %s: %w", w.Target, err)
		}
		if !(w.Weight >= model.MinWeight && w.Weight <= model.MaxWeight) {
			return fmt.Errorf("router: weight of %s is %v: give 0 to 2", w.Target, w.Weight)
		}
	}
	if ref := r.settings.Check(); ref != nil {
		return fmt.Errorf("router: settings: %w", ref)
	}
	r.reconfigure()
	if ref := r.checkEligible("settings", r.settings, nil); ref != nil {
		return fmt.Errorf("router: %w: %w", ErrNoEligible, ref)
	}
	return nil
}

// reconfigure brings what is derived from settings and availabilities up to
// date; it acts on the next batch and keeps bindings, cursors and warm-up.
func (r *Router) reconfigure() {
	for _, w := range r.workers {
		w.engine.Configure(r.settings.AttentionDpConfig)
		w.eligible, w.weights, w.closed = 0, nil, nil
		for k := range w.ranks {
			s := &w.ranks[k]
			s.weight = r.settings.WeightOf(s.load.Target)
			if s.weight != model.DefaultWeight && w.weights == nil {
				w.weights = slices.Repeat([]float64{model.DefaultWeight}, len(w.ranks))
			}
			if w.weights != nil {
				w.weights[k] = s.weight
			}
			shut := s.drain || s.blocked || s.down
			if shut && w.closed == nil {
				w.closed = make([]bool, len(w.ranks))
			}
			if shut {
				w.closed[k] = true
			}
			if s.eligible() {
				w.eligible++
			}
			r.steer.tier.SetWeight(s.load.Target, s.weight)
			r.steer.tier.SetDraining(s.load.Target, s.drain)
			r.steer.tier.SetBlocked(s.load.Target, s.blocked || s.down)
		}
		if w.eligible == 0 {
			w.serveOut()
		}
	}
	// Mode and settings were checked before they were set, and every slot has
	// its place, so that neither can be refused.
	_ = r.steer.tier.Configure(r.settings.RouterMode, r.settings.ClusterConfig)
	r.steer.queue.Reorder(&r.settings.ClusterConfig)
	_ = r.know.guessBy(r.workers, rulesOf(&r.settings.ClusterConfig, r.know.texts.Load()))
}

// serveOut opens the ranks of a worker that takes no new work to what it has
// taken already: a request that waits at its engine for a rank cannot leave it,
// and an engine's router has no answer when no rank is open (TensorRT-LLM's
// default one fails, its KV-aware one drops the request). The cluster tier sends
// nothing new here. Blocked and dead ranks stay shut.
func (w *worker) serveOut() {
	weighs := false
	for k := range w.ranks {
		s := &w.ranks[k]
		if w.closed != nil {
			w.closed[k] = s.blocked || s.down
		}
		weighs = weighs || s.weight > 0 && !s.blocked && !s.down
	}
	if !weighs {
		w.weights = nil
	}
}

func (s *rankState) eligible() bool { return !s.drain && !s.blocked && !s.down && s.weight > 0 }

func (r *Router) policy() model.Policy { return r.settings.AttentionDpConfig.Policy() }

// lock takes the lock at a time read before, and returns the router's time.
func (r *Router) lock(now time.Time) time.Time {
	r.mu.Lock()
	if now.After(r.now) {
		r.now = now
	}
	return r.now
}

// elapsed is the router's time since its start.
func (r *Router) elapsed() time.Duration { return r.now.Sub(r.start) }

// unlock lets requests go whose turn in the queue has come, wakes the
// subscribers, without waiting for any, and frees the lock.
func (r *Router) unlock() {
	if r.steer.queue.Len() > 0 || len(r.steer.waiting.moved) > 0 {
		r.wake()
	}
	for _, s := range r.subs {
		select {
		case s.c <- struct{}{}:
		default:
		}
	}
	r.mu.Unlock()
}

func (r *Router) rank(t model.Target) *rankState {
	w, ok := r.byID[t.Worker]
	if !ok || t.Rank < 0 || t.Rank >= len(r.workers[w].ranks) {
		return nil
	}
	return &r.workers[w].ranks[t.Rank]
}
