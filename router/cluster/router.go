package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"adpdeck/router/model"
)

// Bounds of a Router.
const (
	MaxSlots  = 4096
	MaxPrompt = 1 << 28 // tokens
)

// Errors of the Router's set-up.
var (
	// ErrWorker is returned for a worker that cannot be added.
	ErrWorker = errors.New("worker cannot be added")
	// ErrConfig is returned for settings out of bounds.
	ErrConfig = errors.New("cluster settings")
)

// Options are fixed for the life of a Router.
type Options struct {
	// BlockTokens is the size of a KV block.
	BlockTokens int
	// Seed seeds temperature, ties and the random modes.
	Seed uint64
	// MaxCandidates bounds the candidates of one record, 0 keeps all.
	MaxCandidates int
	// Outstanding, if not nil, says how many requests are out at a rank of a worker
	// (Router.Number), with model.NoRank at none of its ranks. Hard caps count what
	// it says where that is more than what is booked: a booking expires, or is
	// cleared, while its request may be running.
	Outstanding func(worker, rank int) int
}

// Router chooses targets and books them. It belongs to one goroutine at a
// time; times are monotonic, counted from any fixed moment.
type Router struct {
	mode    model.RouterMode
	cfg     Config
	opt     Options
	rng     rand.PCG
	load    *Load
	workers []worker // by worker number; gone ones have no ranks
	byID    map[string]int32
	slots   []slot
	cursor  int32 // worker number that rotation chose last, -1 before
	recent  recent
	scratch scratch
	dropped bool // a booking was, without its request's end, so that Options.Outstanding counts
}

type worker struct {
	Worker
	slots []int32 // by rank
}

type slot struct {
	worker   int32 // -1: no target has this number
	rank     int32
	draining bool
	blocked  bool
	latch    bool // overloaded by blocks
	known    bool // a load entry exists: it was booked once
	weight   float64
	inverse  float64 // 1/weight
	lately   lately
	cap      int
	batch    int     // max_num_batched_tokens, 0 unknown
	chunk    int64   // prompt tokens that it prefills in one step
	overload float64 // active tokens above which it is overloaded, infinite when unset
	kvTotal  int
	kvUsed   int // -1 unknown
}

// group is what is known of a worker's eligible ranks together.
type group struct {
	high    float64 // most pending tokens that the step that runs leaves on one of them
	step    float64 // most that it does on one of them
	full    float64 // most tokens held by one of them
	waiting float64 // their requests without a first token, at most mostWaiting
}

// scratch is reused by every choice.
type scratch struct {
	filtered bool // the filter has run for this request
	why      []exclusion
	active   []float64
	pending  []float64
	rest     []float64 // of pending, what the step that runs leaves
	cost     []float64
	prob     []float64
	depth    []int32
	live     []int32   // eligible slots
	lately   []float64 // prompt tokens sent there lately, where they have a price
	held     []float64
	group    []group     // by worker: its eligible ranks together
	taint    []float64   // by worker: factor
	barred   []exclusion // by worker
	unplaced []unplaced  // by worker; all zero unless picks
	picks    bool        // some worker's engine picks the rank
	placed   unplaced    // nothing, of all others
	pool     []workerLoad
}

// New returns a Router without workers.
func New(mode model.RouterMode, cfg Config, opt Options) (*Router, error) {
	if opt.BlockTokens <= 0 {
		return nil, fmt.Errorf("%w: block size %d: give the engines' block size in tokens", ErrConfig, opt.BlockTokens)
	}
	r := &Router{
		opt: opt, rng: *rand.NewPCG(opt.Seed, 0x5bd1e995), load: NewLoad(opt.BlockTokens, opt.Seed),
		byID: map[string]int32{}, cursor: -1,
	}
	r.recent.init()
	return r, r.Configure(mode, cfg)
}

// Configure changes mode and settings from the next request on. Load, cursor
// and generator go on. An overload latch whose threshold is unset opens.
func (r *Router) Configure(mode model.RouterMode, cfg Config) error {
	switch mode {
	case model.ModeKV, model.ModeLockstep, model.ModeRoundRobin, model.ModeRandom, model.ModeLeastLoaded,
		model.ModePowerOfTwo, model.ModeDirect:
	default:
		return fmt.Errorf("%w: router_mode %q: give kv, lockstep, round_robin, random, least_loaded, power_of_two or direct", ErrConfig, mode)
	}
	if ref := cfg.Check(); ref != nil {
		return fmt.Errorf("%w: %w", ErrConfig, ref)
	}
	r.mode, r.cfg = mode, cfg
	for s := range r.slots {
		if cfg.ActiveDecodeBlocksThreshold == nil {
			r.slots[s].latch = false
		}
		r.limits(int32(s))
		r.relatch(int32(s))
	}
	return nil
}

// Mode returns the mode and Config the settings in force.
func (r *Router) Mode() model.RouterMode { return r.mode }

// Config returns the settings in force.
func (r *Router) Config() Config { return r.cfg }

// Load is the router's view of what is active. Its owner may report progress
// to it and clear phantoms; bookings go through Book, FirstToken, Output, Free.
func (r *Router) Load() *Load { return r.load }

// Slots is one more than the highest slot in use.
func (r *Router) Slots() int { return len(r.slots) }

// Slot returns the number of a target; ok is false when it does not exist.
func (r *Router) Slot(t model.Target) (s int32, ok bool) {
	at, ok := r.byID[t.Worker]
	if !ok || t.Rank < 0 || t.Rank >= r.workers[at].Ranks {
		return 0, false
	}
	return r.workers[at].slots[t.Rank], true
}

// Target returns the target of a slot; ok is false when nobody has it.
func (r *Router) Target(s int32) (t model.Target, ok bool) {
	if s < 0 {
		if at := int(-1 - s); at < len(r.workers) && r.workers[at].Ranks > 0 {
			return model.Target{Worker: r.workers[at].ID, Rank: model.NoRank}, true
		}
		return model.Target{Rank: model.NoRank}, false
	}
	if int(s) >= len(r.slots) || r.slots[s].worker < 0 {
		return model.Target{Rank: model.NoRank}, false
	}
	return model.Target{Worker: r.workers[r.slots[s].worker].ID, Rank: int(r.slots[s].rank)}, true
}

// resize fits the scratch to the slots and workers.
func (r *Router) resize() {
	c, n, w := &r.scratch, len(r.slots), len(r.workers)
	if len(c.why) >= n && len(c.group) >= w {
		return
	}
	c.why, c.active, c.pending = make([]exclusion, n), make([]float64, n), make([]float64, n)
	c.cost, c.prob, c.depth = make([]float64, n), make([]float64, n), make([]int32, n)
	c.live = make([]int32, 0, n)
	c.lately, c.rest = make([]float64, n), make([]float64, n)
	c.held, c.group = make([]float64, n), make([]group, w)
	c.taint, c.barred = make([]float64, w), make([]exclusion, w)
	c.unplaced, c.pool = make([]unplaced, w), make([]workerLoad, 0, w)
}
