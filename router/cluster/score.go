package cluster

import (
	"math"

	"adpdeck/router/model"
)

// prompt is what the cost needs of a request, the same for all candidates.
type prompt struct {
	isl        int
	block      float64 // block size in tokens
	blocks     float64 // R: prompt blocks, the last one counted whole, at least 1
	lockstep   bool
	minActive  float64 // A_min
	recent     float64 // mean of what was sent to the candidates lately, in tokens
	load       float64 // mean pending tokens of the candidates, mode lockstep
	hostWeight float64
	diskWeight float64
	shared     float64 // effective shared multiplier
	cfg        *Config
}

func newPrompt(mode model.RouterMode, cfg *Config, isl, blockTokens int) prompt {
	p := prompt{
		isl: isl, block: float64(blockTokens), blocks: float64(max(1, (isl+blockTokens-1)/blockTokens)),
		lockstep: mode == model.ModeLockstep, hostWeight: cfg.HostCacheHitWeight, diskWeight: cfg.DiskCacheHitWeight, cfg: cfg,
	}
	if cfg.SharedCacheType != model.SharedCacheNone {
		p.shared = cfg.SharedCacheMultiplier
	}
	return p
}

// facts are what is known of one candidate.
type facts struct {
	device, host, disk, shared int
	onWay                      int     // leading blocks of requests that are open there
	tiers                      bool    // the request came with tier maps
	known                      bool    // a load entry exists
	active                     float64 // A
	requests                   float64 // Q
	decode                     float64 // D
	pending, rest              float64 // of the rank, and what the step that runs leaves of it
	high, step                 float64 // of the worker's ranks: highest rest, longest part in the step that runs
	held, full                 float64 // tokens held by the rank, and by the fullest of the worker's
	waiting                    float64 // requests of the worker's ranks without a first token
	chunk                      float64 // prompt tokens that the rank prefills in one step
	lately                     float64 // prompt tokens sent to the rank lately
	taint                      float64
	decodePool                 bool
}

// overlap returns the effective overlap in blocks and in tokens.
func (p *prompt) overlap(f *facts) (blocks float64, tokens int) {
	blocks = float64(f.device) + p.hostWeight*float64(f.host) + p.diskWeight*float64(f.disk)
	return blocks, int(blocks*p.block + 0.5)
}

// score fills in what the facts cost, term by term, and returns the cost.
func (p *prompt) score(f *facts, t *model.ScoreTerms) float64 {
	overlap, cached := p.overlap(f)
	*t = model.ScoreTerms{
		Device: f.device, Host: f.host, Disk: f.disk, Shared: f.shared, OnWay: f.onWay, Overlap: overlap, CachedTokens: cached,
		ActiveTokens: f.active, Requests: f.requests, DecodeBlocks: f.decode,
		Pending: f.pending, Rest: f.rest, HighestRest: f.high, Step: f.step, Recent: f.lately, Held: f.held, HighestHeld: f.full,
		Waiting: f.waiting, Chunk: f.chunk, Taint: f.taint, Decay: 1,
	}
	if p.lockstep {
		p.scoreLockstep(f, t)
	} else {
		p.scoreDynamo(f, t)
	}
	t.RecentTerm = p.recentCost(f.lately)
	t.Cost += t.RecentTerm
	t.Cost *= f.taint
	return t.Cost
}

// recentFloor keeps the price of recent work low while there was little of it,
// in tokens.
const recentFloor = 1 << 17

// recentCost is the price of what was sent to a rank lately: a load that stays
// for a while, so that ranks which all stand idle between requests still share
// work out. It is our own and 0 by default. Only what is above the mean of the
// candidates has a price,
//
//	ρ·over·(over / (mean + 131,072))⁴
//
// which leaves ranks near the mean alone and is as good as a wall at twice the
// mean: a few long conversations move on, the others stay where their blocks
// are. Mode kv weighs it by its prefill scale, like the prefill that it is held
// against.
func (p *prompt) recentCost(tokens float64) float64 {
	if p.cfg.RecentWeight == 0 {
		return 0
	}
	over := max(0, tokens-p.recent)
	share := over / (p.recent + recentFloor)
	share *= share
	price := p.cfg.RecentWeight * over * share * share
	if p.lockstep {
		return price
	}
	return p.cfg.PrefillLoadScale * price / p.block
}

// scoreDynamo is dynamo.md 1.2.
func (p *prompt) scoreDynamo(f *facts, t *model.ScoreTerms) {
	c := p.cfg
	if c.TrackPrefillTokens {
		raw := float64(p.isl)
		if f.known {
			raw = f.active + float64(max(p.isl-t.CachedTokens, 0)+t.CachedTokens)
		}
		t.RawPrefillBlocks = raw / p.block
		if k := c.KVOverlapScoreCreditDecay; k != 0 {
			t.Decay = 1 / (1 + k*((f.active-p.minActive)/p.block)/p.blocks)
		}
	}
	device := t.Overlap
	if f.tiers {
		device = float64(f.device)
	}
	t.CreditBlocks = c.KVOverlapScoreCredit*t.Decay*device + p.hostWeight*float64(f.host) + p.diskWeight*float64(f.disk) +
		p.shared*float64(f.shared)
	t.Active = c.DecodeActiveRequestWeight * f.requests
	if f.decodePool && !c.TrackPrefillTokens && c.KVOverlapScoreCredit > 0 {
		t.Cost = max(0, f.decode-t.CreditBlocks) + t.Active
		return
	}
	t.Prefill = c.PrefillLoadScale * max(0, t.RawPrefillBlocks-t.CreditBlocks)
	t.Cost = t.Prefill + f.decode + t.Active
}

// ownShare is what the rank itself, rather than the fullest of its worker,
// weighs in the price of tokens held.
const ownShare = 1.0 / 8

// scoreLockstep is our own cost, in tokens:
//
//	ν·u + ω·wait + λ·(1 + waiting)·rise + μ·pending + δ·held
//
// u is what is to be prefilled here after the match, or after what requests on
// their way there will leave behind. Its price ν = 1 + load/χ follows the mean
// backlog of all candidates: what is computed twice costs nobody while ranks
// idle, and everybody when all are behind. wait is how long the first token
// takes. A step of the worker lasts as long as its slowest rank's, so work below
// the highest backlog of the worker is free for the others; rise, what goes
// above it, costs each request that waits on the worker for its first token,
// and this one. Decoding steps last as long as the fullest rank's, so held is
// what that one will hold with the prompt, every request counted whole:
// attention reads a shared block once for each. The rank's own share of it, an
// eighth, keeps ranks below the fullest level, so that there is room for what
// comes.
func (p *prompt) scoreLockstep(f *facts, t *model.ScoreTerms) {
	c := p.cfg
	t.New = float64(max(p.isl-max(t.CachedTokens, onWay(f.onWay*int(p.block), f.rest, f.chunk)), 0))
	after := f.rest + t.New
	t.Rise = max(0, after-f.high)
	own := f.held + float64(p.isl)
	t.FullestAfter = max(f.full, own)
	t.HeldTerm = c.LockstepDecodeWeight * (t.FullestAfter*(1-ownShare) + own*ownShare)
	t.WorkPrice = p.workPrice()
	t.Wait = firstWait(after, f.high, f.step, f.chunk)
	t.Cost = t.WorkPrice*t.New + c.WaitWeight*t.Wait + c.LockstepWeight*(1+f.waiting)*t.Rise + c.PendingWeight*f.pending + t.HeldTerm
}

// firstWait is how long the first token of a prompt takes, in tokens, on a rank
// that will have after tokens to prefill with it once the step that runs has
// ended; half of that step is still to come, take it all in all. Prompts are
// done at the end of a step, and a step is as long as the worker's slowest rank
// makes it: a chunk each, until the highest backlog comes to its end. So on a
// rank with nothing to do beside one with a long backlog a short prompt waits
// for one chunk: not for the backlog, and not for its own work alone.
func firstWait(after, highest, step, chunk float64) float64 {
	switch {
	case after >= highest:
		return step/2 + after
	case highest <= chunk:
		return step/2 + highest
	}
	return step/2 + min(max(1, math.Ceil(after/chunk))*chunk, highest)
}

// ownSteps is how many steps a backlog may have and still be the conversation's
// own: in a longer one other prompts stand in between.
const ownSteps = 3

// onWay is how many of the tokens that open requests will leave on a rank are
// there when a prompt begins that is sent to it now. The next turn of a
// conversation often comes before the last one is prefilled, and no cache holds
// that yet. It begins in the step in which the rank's backlog ends, and of what
// is prefilled in that same step it finds nothing: the part of a short backlog
// that fills no whole step is taken off.
func onWay(tokens int, rest, chunk float64) int {
	if rest >= ownSteps*chunk {
		return tokens
	}
	if rest >= chunk {
		rest -= float64(chunk * math.Floor(rest/chunk))
	}
	return tokens - int(rest)
}

// workPrice is ν, the price of a token of work.
func (p *prompt) workPrice() float64 {
	if p.cfg.WorkLoadTokens <= 0 {
		return 1
	}
	return 1 + p.load/p.cfg.WorkLoadTokens
}

// taintFactor is exp(−tanh(Σ weights of the matching taints)): below 1 draws
// the request, above 1 pushes it away.
func taintFactor(w *worker, prefer []Preference) float64 {
	sum := 0.0
	for _, q := range prefer {
		if hasTaint(w, q.Taint) {
			sum += q.Weight
		}
	}
	if sum == 0 {
		return 1
	}
	return math.Exp(-math.Tanh(sum))
}

func hasTaint(w *worker, taint string) bool {
	for _, t := range w.Taints {
		if t == taint {
			return true
		}
	}
	return false
}

// beyond counts the positions of spans at or after from.
func beyond(spans []Span, from int) int {
	n := 0
	for _, s := range spans {
		if lo := max(s.From, from); s.To > lo {
			n += s.To - lo
		}
	}
	return n
}
