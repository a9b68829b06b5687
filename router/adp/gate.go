package adp

// GateRank is what one rank gathers for the context-balance gate.
type GateRank struct {
	Ctx     int // context (prefill) requests scheduled
	Gen     int // generation requests scheduled
	RealGen int // the same without padding dummies
}

// GateConfig are the gate's settings: attention_dp_config's two iteration
// counts, the engine's batch size, and the two low-occupancy knobs (which
// upstream reads from the environment).
type GateConfig struct {
	TimeoutIters             int
	BatchingWaitIters        int
	MaxBatchSize             int
	MinGenerationRequests    int
	LowOccupancyTimeoutIters int
}

// Gate decides once per step whether the ranks of a worker may run their
// scheduled prefill (_balance_adp_requests). It moves nothing between ranks.
// It is consulted only while enable_balance is on. The zero value is ready.
type Gate struct {
	cfg               GateConfig
	waiting, batching int
}

// Configure changes the settings between two steps; both counters stay.
func (g *Gate) Configure(cfg GateConfig) { g.cfg = cfg }

// Step takes the scheduled numbers of all ranks and reports whether prefill
// may run on them in this step. Without ranks it always may.
func (g *Gate) Step(ranks []GateRank) (release bool) {
	if len(ranks) == 0 {
		return true
	}
	free, ctx, gen, least := true, true, true, ranks[0].RealGen
	for _, k := range ranks {
		free = free && k.Gen < g.cfg.MaxBatchSize
		ctx = ctx && k.Ctx > 0
		gen = gen && k.Gen > 0
		least = min(least, k.RealGen)
	}
	if free && ctx {
		g.waiting = 0
		if !gen {
			return true
		}
		if g.batching < g.cfg.BatchingWaitIters {
			g.batching++
			return false
		}
		g.batching = 0
		return true
	}
	g.waiting++
	limit := g.cfg.TimeoutIters
	if least < g.cfg.MinGenerationRequests {
		limit = g.cfg.LowOccupancyTimeoutIters
	}
	if g.waiting >= limit || !gen {
		g.waiting = 0
		return true
	}
	return false
}

// Waiting counts the steps in a row for which the gate has waited for a rank
// without prefill.
func (g *Gate) Waiting() int { return g.waiting }

// Batching counts the steps for which the gate has held a full set of ranks
// to gather a larger batch.
func (g *Gate) Batching() int { return g.batching }
