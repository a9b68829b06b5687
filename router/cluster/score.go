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
	pending, high              float64 // of the rank, and of the worker's ranks
	held, full                 float64 // tokens held by the rank, and by the fullest of the worker's
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
		Pending: f.pending, HighestPending: f.high, Held: f.held, HighestHeld: f.full, Taint: f.taint, Decay: 1,
	}
	if p.lockstep {
		p.scoreLockstep(f, t)
	} else {
		p.scoreDynamo(f, t)
	}
	t.Cost *= f.taint
	return t.Cost
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
const ownShare = 1.0 / 32

// scoreLockstep is our own cost, in tokens:
//
//	u + λ·rise + ω·highest + μ·pending + δ·held
//
// u is what is to be prefilled here after the match, or after what requests on
// their way there will leave behind: the next turn often comes while the one
// before it waits, and no cache holds it yet. A step of the worker
// lasts as long as its slowest rank's, so work below the highest pending of
// the worker is free for the others, and rise, what goes above it, costs all.
// ω·highest, the same for all ranks of a worker, sets workers against each
// other: without it a busy worker looks free to the last, an idle one dear.
// Decoding steps last as long as the fullest rank's, so held is what that one
// will hold with the prompt, every request counted whole: attention reads a
// shared block once for each. The rank's own share of it, a thirty-second,
// keeps ranks below the fullest level, so that there is room for what comes.
func (p *prompt) scoreLockstep(f *facts, t *model.ScoreTerms) {
	c := p.cfg
	t.New = float64(max(p.isl-max(t.CachedTokens, f.onWay*int(p.block)), 0))
	t.Rise = max(0, f.pending+t.New-f.high)
	own := f.held + float64(p.isl)
	t.FullestAfter = max(f.full, own)
	t.HeldTerm = c.LockstepDecodeWeight * (t.FullestAfter*(1-ownShare) + own*ownShare)
	t.Cost = t.New + c.LockstepWeight*t.Rise + c.WorkerPendingWeight*f.high + c.PendingWeight*f.pending + t.HeldTerm
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
