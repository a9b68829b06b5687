package router

import (
	"errors"
	"fmt"
	"time"

	"adpdeck/router/cluster"
	"adpdeck/router/model"
	"adpdeck/router/pin"
)

// steering is the cluster tier with its working space. What choose found lies
// in req and choice until the request is booked.
type steering struct {
	tier     *cluster.Router
	caps     bool // some rank has a hard cap
	picks    bool // some worker's engine picks the rank
	req      cluster.Request
	bound    cluster.Bound
	choice   cluster.Choice
	record   model.Selection
	phantoms []cluster.Phantom
	queue    *cluster.Queue[*parked]
	waiting  waiting   // by conversation who is in queue
	audience *audience // who serves the request's model, nil for all
	exclude  []model.Target
	lane     int32 // where the request waits if it has to
	swept    time.Duration
	again    bool // the request at hand has waited: what it counts for is counted
	how      how  // byEngine where the rank is left to the engine tier
	// followed says that the conversation's first turn is on its way there.
	followed bool
}

// defaultBlock is the block size that costs are counted in where no engine
// names its own, in tokens.
const defaultBlock = 16

func (r *Router) newSteering(seed uint64) error {
	s := &r.steer
	s.queue = cluster.NewQueue[*parked]()
	s.waiting.byConv = map[model.ConvKey][]int64{}
	block := r.know.blockTokens()
	if block == 0 {
		block = defaultBlock
	}
	var err error
	s.tier, err = cluster.New(r.settings.RouterMode, r.settings.ClusterConfig, cluster.Options{
		BlockTokens: block, Seed: seed, MaxCandidates: maxCandidates, Outstanding: r.outstanding,
	})
	if err != nil {
		return fmt.Errorf("router: %w", err)
	}
	return nil
}

// outstanding is what the books say of a rank, or with NoRank of a worker's
// requests that have none; number is the cluster tier's of the worker.
func (r *Router) outstanding(number, rank int) int {
	if number >= len(r.numbers) || r.numbers[number] == nil {
		return 0
	}
	w := r.numbers[number]
	if rank == model.NoRank {
		return r.book.Waiting(w.index)
	}
	if rank >= len(w.ranks) {
		return 0
	}
	return r.book.Rank(w.index, rank).InFlight
}

// scored reports that the cluster tier chooses a rank by cost.
func (r *Router) scored() bool { return scoredMode(r.settings.RouterMode) }

func scoredMode(m model.RouterMode) bool { return m == model.ModeKV || m == model.ModeLockstep }

// slot is the cluster tier's and the index's number of a rank.
func (r *Router) slot(t model.Target) int {
	return int(r.workers[r.byID[t.Worker]].slots[t.Rank])
}

// choose is the cluster tier. It applies the order of precedence: operator pin,
// binding, what the client asked for, policy.
func (r *Router) choose(req *model.Request, l *lookup, rule roomRule) (why string, err error) {
	s := &r.steer
	s.how, s.followed, s.lane = byEngine, false, cluster.SharedLane
	s.req = cluster.Request{ID: req.ID, PromptTokens: req.PromptTokens, ExpectedOutput: req.ExpectedOutput, Overrides: req.Overrides, Exclude: r.excluding(req.Exclude)}
	if err := r.serving(req); err != nil {
		return "", err
	}
	if l != nil {
		s.req.Blocks = l.blocks
		s.req.Matches.Device = l.matches.Device
		if l.lower {
			s.req.Matches.Host, s.req.Matches.Disk = l.matches.Host, l.matches.Disk
		}
	}
	bind, bound := pin.Binding{}, false
	if !req.Conv.Keyless() {
		if p, ok := r.ops.Get(req.Conv); ok {
			if err := r.reaches(req, p.Target, "operator pin"); err != nil {
				return "", err
			}
			s.lane = s.tier.LaneOf(p.Target)
			return "operator pin", r.takeInTurn(p.Target, model.ByBinding, rule)
		}
		r.forgetGone(req.Conv)
		bind, bound = r.bound(req.Conv)
		bound = bound && !r.passes(req, bind.Target)
	}
	if req.Explicit != nil && !bound {
		if err := r.reaches(req, *req.Explicit, "the client's wish"); err != nil {
			return "", err
		}
	}
	switch scored := r.scored(); {
	case bound && !scored:
		s.lane = s.tier.LaneOf(model.Target{Worker: bind.Target.Worker, Rank: model.NoRank})
		return "bound", r.take(bind.Target, model.ByBinding)
	case bound:
		return r.chooseBound(bind, req, rule)
	case req.Explicit != nil && (!scored || req.Explicit.Rank != model.NoRank) && r.workers[r.byID[req.Explicit.Worker]].eligible == 0:
		return "", fmt.Errorf("request %d: %w of %s, which it names; make one ready, or name another worker", req.ID, ErrNoEligible, req.Explicit.Worker)
	case req.Explicit != nil && (!scored || req.Explicit.Rank != model.NoRank):
		s.lane = s.tier.LaneOf(*req.Explicit)
		if req.Relax {
			s.lane = s.tier.LaneOf(model.Target{Worker: req.Explicit.Worker, Rank: model.NoRank})
		}
		return "asked for", r.takeInTurn(*req.Explicit, model.ByRequired, rule)
	case scored:
		return r.chooseRank(req, rule)
	}
	return r.chooseWorker(req, rule)
}

// take books nothing: it makes the choice that stands above all scores.
func (r *Router) take(t model.Target, by string) error {
	s := &r.steer
	return r.named(s.tier.Take(r.elapsed(), &s.req, t, by, &s.choice, r.selection()))
}

// takeInTurn is take for what holds a request to a rank on arrival: it has to
// queue as any other, but looks at that rank alone. Upstream's queue does so with
// requests that name a rank. Where the rank is full, who places it says so.
func (r *Router) takeInTurn(t model.Target, by string, rule roomRule) error {
	s := &r.steer
	if rule == refuses && r.scored() && s.tier.Thresholds() && s.tier.HeldWaits(r.elapsed(), s.lane, r.backlog()) {
		return fmt.Errorf("request %d: %w: %s, which it is held to, is busy, %d requests wait; let it queue, or raise router_queue_threshold",
			s.req.ID, ErrFull, t, s.queue.Len())
	}
	return r.take(t, by)
}

// selection is where the cluster tier writes its record, nil where none is kept.
func (r *Router) selection() *model.Selection {
	if !r.record || !r.scored() {
		return nil
	}
	return &r.steer.record
}

// chooseBound follows a binding; a soft one gives way to caps and overload. A
// hard one waits at the engine where its rank is full.
func (r *Router) chooseBound(bind pin.Binding, req *model.Request, rule roomRule) (string, error) {
	s := &r.steer
	s.bound = cluster.Bound{Target: bind.Target, Hard: true}
	if bind.Source == model.PinAuto {
		s.bound.Hard = r.settings.ClusterConfig.SessionAffinityMode == model.AffinityHard
	}
	s.req.Bound, s.req.Explicit = &s.bound, req.Explicit
	if err := r.mustWait(rule); err != nil {
		return "", err
	}
	err := s.tier.Choose(r.elapsed(), &s.req, &s.choice, r.selection())
	if errors.Is(err, cluster.ErrFull) && rule == engineQueues {
		err = s.tier.Take(r.elapsed(), &s.req, bind.Target, model.ByBinding, &s.choice, r.selection())
	}
	return r.steered("bound"), r.named(err)
}

// chooseRank lets the cost decide. A turn that comes while the first one of its
// conversation is on its way goes after it, if that rank has room.
func (r *Router) chooseRank(req *model.Request, rule roomRule) (string, error) {
	s := &r.steer
	s.req.Explicit = req.Explicit
	if c := r.convs.byKey[req.Conv]; c != nil && c.starting.Rank != model.NoRank && r.affinity() && req.Explicit == nil {
		s.bound = cluster.Bound{Target: c.starting}
		s.req.Bound, s.followed = &s.bound, true
	}
	if err := r.mustWait(rule); err != nil {
		return "", err
	}
	err := s.tier.Choose(r.elapsed(), &s.req, &s.choice, r.selection())
	if errors.Is(err, cluster.ErrFull) && rule == engineQueues && s.caps {
		err = r.uncapped()
	}
	return r.steered(""), r.named(err)
}

// mustWait refuses a request that has to queue.
func (r *Router) mustWait(rule roomRule) error {
	s := &r.steer
	s.lane = r.sharedAs(s.tier.Lane(&s.req))
	if rule != refuses || !s.tier.MustWait(r.elapsed(), &s.req, r.backlog()) {
		return nil
	}
	return fmt.Errorf("request %d: %w: the ranks that may take it are busy, %d requests wait; let it queue, or raise router_queue_threshold",
		s.req.ID, ErrFull, s.queue.Len())
}

// backlog reports that others wait where the request would.
func (r *Router) backlog() bool {
	s := &r.steer
	return s.queue.Backlog(s.lane) > 0 ||
		s.lane < cluster.SharedLane && s.queue.Backlog(cluster.SharedLane) > 0 // who may go there too
}

// steered notes how the chosen rank was come by.
func (r *Router) steered(why string) string {
	s := &r.steer
	if s.choice.Slot < 0 {
		return why
	}
	s.how = bySteering
	if s.choice.By != model.ByBinding {
		s.followed = false
		if r.settings.RouterMode == model.ModeLockstep {
			return "lockstep cost"
		}
		return "kv cost"
	}
	if s.followed {
		return "after its first turn"
	}
	s.how = bySession
	return why
}

// uncapped chooses among ranks that are all at their hard cap: the engine that
// is chosen queues the request.
func (r *Router) uncapped() error {
	s := &r.steer
	r.setCaps(false)
	err := s.tier.Choose(r.elapsed(), &s.req, &s.choice, r.selection())
	r.setCaps(true)
	return err
}

func (r *Router) setCaps(on bool) {
	for _, w := range r.workers {
		c := cluster.Capacity{MaxBatchedTokens: w.spec.MaxBatchedTokens, KVBlocks: w.spec.KVBlocks}
		if on {
			c.MaxRequests = w.spec.MaxNumActiveRequests
		}
		for k := range w.ranks {
			r.steer.tier.SetCapacity(w.ranks[k].load.Target, c)
		}
	}
}

// chooseWorker leaves the rank to the engine tier. Who asks for a rank now is
// given a worker that has room, if there is one.
func (r *Router) chooseWorker(req *model.Request, rule roomRule) (string, error) {
	s := &r.steer
	s.lane = r.sharedAs(s.lane)
	mode := r.settings.RouterMode
	if mode == model.ModeRoundRobin || mode == model.ModeLeastLoaded {
		full := false
		for i, w := range r.workers {
			r.loads[i] = workerLoad{open: r.book.WorkerOpen(w.index), eligible: r.mayTake(w, req)}
			if rule != engineQueues && r.loads[i].eligible > 0 && !r.hasRoom(w, req) {
				r.loads[i].eligible, full = 0, true
			}
		}
		at, next, why := pickWorker(mode, r.loads, r.cursor)
		switch {
		case at < 0 && full:
			return "", fmt.Errorf("request %d: %w: every rank that may take it is at its hard cap; let it queue, or send it again when a request has ended", req.ID, ErrFull)
		case at < 0:
			return "", r.noneEligible(req)
		}
		r.cursor = next
		by := model.ByRotation
		if mode == model.ModeLeastLoaded {
			by = model.ByLoad
		}
		return why, r.take(model.Target{Worker: r.workers[at].spec.ID, Rank: model.NoRank}, by)
	}
	err := s.tier.Choose(r.elapsed(), &s.req, &s.choice, nil)
	if errors.Is(err, cluster.ErrFull) && rule == engineQueues && s.caps {
		err = r.uncapped()
	}
	why := "random"
	if mode == model.ModePowerOfTwo {
		why = "lighter of two"
	}
	return why, r.named(err)
}

// named gives an error of the cluster tier this package's name.
func (r *Router) named(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, cluster.ErrFiltered), errors.Is(err, cluster.ErrNoTargets):
		if down := r.downText(); down != "" {
			return fmt.Errorf("%w: %w; %s", ErrNoEligible, err, down)
		}
		return fmt.Errorf("%w: %w", ErrNoEligible, err)
	case errors.Is(err, cluster.ErrFull):
		return fmt.Errorf("%w: %w", ErrFull, err)
	case errors.Is(err, cluster.ErrRequest):
		return fmt.Errorf("%w: %w", ErrRequest, err)
	}
	return err
}
