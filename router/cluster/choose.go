package cluster

import (
	"math"
	"time"

	"adpdeck/router/model"
)

// Choose decides where a request goes and books nothing; Book does. Two
// choices in a row without a booking between them see the same load, so a
// caller that shares the Router books before it lets go of it. rec, if not nil,
// is filled with the record; without it a choice allocates nothing. The error
// is a *Refusal.
func (r *Router) Choose(now time.Duration, req *Request, c *Choice, rec *model.Selection) error {
	*c = Choice{Slot: none, RunnerUp: none, Target: model.Target{Rank: model.NoRank}, worker: -1}
	c.config = r.effective(req.Overrides)
	if rec != nil {
		r.begin(req, c, rec)
	}
	if err := r.check(req); err != nil {
		if rec != nil {
			rec.Candidates = rec.Candidates[:0]
		}
		return err
	}
	done, err := r.bound(now, req, c)
	if !done {
		err = r.afresh(now, req, c, rec)
	}
	if err != nil {
		if rec != nil {
			r.recordRefusal(req, c, rec, done)
		}
		return err
	}
	r.reach(req, c)
	if rec != nil {
		r.finish(now, req, c, rec)
	}
	return nil
}

// Preview is Choose without a trace: rotation, generator and all else stay as
// they are, and the same call made by Choose next would answer the same.
func (r *Router) Preview(now time.Duration, req *Request, c *Choice, rec *model.Selection) error {
	before := r.rng
	err := r.Choose(now, req, c, rec)
	r.rng = before
	return err
}

func (r *Router) effective(o *Overrides) Config {
	c := r.cfg
	if o == nil {
		return c
	}
	float := func(at *float64, v *float64) {
		if v != nil {
			*at = *v
		}
	}
	float(&c.KVOverlapScoreCredit, o.KVOverlapScoreCredit)
	float(&c.PrefillLoadScale, o.PrefillLoadScale)
	float(&c.Temperature, o.Temperature)
	float(&c.SharedCacheMultiplier, o.SharedCacheMultiplier)
	if o.AssumeKVReuse != nil {
		c.AssumeKVReuse = *o.AssumeKVReuse
	}
	if o.TrackPrefillTokens != nil {
		c.TrackPrefillTokens = *o.TrackPrefillTokens
	}
	return c
}

// check refuses a request that makes no sense.
func (r *Router) check(req *Request) error {
	var detail, next string
	switch {
	case req.PromptTokens < 0 || req.PromptTokens > MaxPrompt:
		detail, next = "prompt length out of bounds", "give 0 to 268435456 tokens"
	case len(req.Blocks) > req.PromptTokens/r.opt.BlockTokens:
		detail, next = "more blocks than the prompt has", "give its full blocks only"
	case !req.Overrides.valid():
		detail, next = "router_config_override is negative or not a number", "give finite numbers from 0"
	default:
		return nil
	}
	return &Refusal{Err: ErrRequest, Request: req.ID, Detail: detail, Next: next, Status: 400}
}

// valid reports whether all numbers are finite and 0 or more.
func (o *Overrides) valid() bool {
	if o == nil {
		return true
	}
	for _, v := range [...]*float64{o.KVOverlapScoreCredit, o.PrefillLoadScale, o.Temperature, o.SharedCacheMultiplier} {
		if v != nil && !(*v >= 0 && *v <= math.MaxFloat32) {
			return false
		}
	}
	return true
}

// bound follows the conversation's binding, or refuses. done is false when the
// request is to be placed afresh.
func (r *Router) bound(now time.Duration, req *Request, c *Choice) (done bool, err error) {
	if req.Bound == nil {
		return false, nil
	}
	at, ok := r.Slot(req.Bound.Target)
	if !ok || r.slots[at].blocked {
		c.BoundGone = true
		return false, nil
	}
	why := eligible
	if s := &r.slots[at]; s.cap > 0 && int(r.load.ranks[at].requests) >= s.cap {
		why = exCap
	} else {
		why = r.slots[at].overloaded(float64(r.load.ranks[at].active(now)))
	}
	if why != eligible {
		if !req.Bound.Hard {
			return false, nil
		}
		ref := &Refusal{Err: ErrOverloaded, Request: req.ID, Detail: "bound to " + req.Bound.Target.String() + ", " + why.word(), Status: 529}
		ref.Next = "retry later, or set router_session_affinity_mode soft"
		if why == exCap {
			ref.Err = ErrFull
		}
		return true, ref
	}
	c.take(r, at, model.ByBinding)
	c.Eligible = 1
	c.Conflict = req.Explicit != nil && (req.Explicit.Worker != c.Target.Worker ||
		req.Explicit.Rank != model.NoRank && req.Explicit.Rank != c.Target.Rank)
	return true, nil
}

// take makes slot at the choice.
func (c *Choice) take(r *Router, at int32, by string) {
	c.Slot, c.By, c.worker = at, by, r.slots[at].worker
	c.Target = model.Target{Worker: r.workers[c.worker].ID, Rank: int(r.slots[at].rank)}
}

func (r *Router) afresh(now time.Duration, req *Request, c *Choice, rec *model.Selection) error {
	var counts [exclusions]int
	if err := r.filter(now, req, &counts); err != nil {
		return err
	}
	c.Eligible = len(r.scratch.live)
	if c.Eligible == 0 {
		return refuse(req, &counts)
	}
	if req.Explicit != nil && req.Explicit.Rank != model.NoRank {
		c.take(r, r.scratch.live[0], model.ByRequired)
		return nil
	}
	switch r.mode {
	case model.ModeKV, model.ModeLockstep:
		r.cheapest(now, req, c, rec)
		return nil
	default:
		return r.chooseWorker(req, c)
	}
}

// filter finds the eligible slots, rank by rank, and their load.
func (r *Router) filter(now time.Duration, req *Request, counts *[exclusions]int) error {
	sc := &r.scratch
	sc.live = sc.live[:0]
	sc.filtered = false
	wantWorker, wantRank := int32(-1), -1
	if e := req.Explicit; e != nil {
		var ok bool
		if wantWorker, ok = r.byID[e.Worker]; !ok {
			return &Refusal{Err: ErrNoWorker, Request: req.ID, Detail: e.Worker, Next: "name a worker that is there, or none", Status: 400}
		}
		if wantRank = e.Rank; wantRank < model.NoRank || wantRank >= r.workers[wantWorker].Ranks {
			return &Refusal{Err: ErrNoRank, Request: req.ID, Detail: e.String(), Next: "name a rank of the worker, or none", Status: 400}
		}
	}
	for w := range r.workers {
		sc.barred[w], sc.high[w] = r.barred(int32(w), req), 0
	}
	if wantWorker >= 0 && sc.barred[wantWorker] == exNotAllowed {
		return &Refusal{Err: ErrNotAllowed, Request: req.ID, Detail: req.Explicit.Worker, Next: "allow it, or name another", Status: 400}
	}
	for i := range r.slots {
		s := &r.slots[i]
		why := exGone
		if s.worker >= 0 {
			why = sc.barred[s.worker]
			if why == eligible {
				why = r.excluded(now, int32(i), wantWorker, wantRank)
			}
		}
		sc.why[i] = why
		counts[why]++
		if why == eligible {
			sc.live = append(sc.live, int32(i))
			l := &r.load.ranks[i]
			sc.pending[i] = float64(l.pending+l.foreign) * s.inverse
			sc.high[s.worker] = max(sc.high[s.worker], sc.pending[i])
		}
	}
	sc.filtered = true
	return nil
}

// barred says whether a whole worker is out for this request.
func (r *Router) barred(w int32, req *Request) exclusion {
	if len(req.Allowed) > 0 {
		allowed := false
		for _, id := range req.Allowed {
			allowed = allowed || id == r.workers[w].ID
		}
		if !allowed {
			return exNotAllowed
		}
	}
	for _, t := range req.Required {
		if !hasTaint(&r.workers[w], t) {
			return exTaint
		}
	}
	return eligible
}

// excluded applies the rules of one rank, and leaves its active tokens behind.
func (r *Router) excluded(now time.Duration, at, wantWorker int32, wantRank int) exclusion {
	s, l := &r.slots[at], &r.load.ranks[at]
	switch {
	case wantWorker >= 0 && s.worker != wantWorker:
		return exOtherWorker
	case wantRank >= 0 && int(s.rank) != wantRank:
		return exOtherRank
	case s.weight <= 0:
		return exWeight
	case s.blocked:
		return exBlocked
	case s.draining:
		return exDraining
	case s.cap > 0 && int(l.requests) >= s.cap:
		return exCap
	}
	active := float64(l.active(now))
	r.scratch.active[at] = active * s.inverse
	return s.overloaded(active)
}

// reach finds the longest match that any living rank has, and what it was
// given up for.
func (r *Router) reach(req *Request, c *Choice) {
	p := newPrompt(r.mode, &c.config, req.PromptTokens, r.opt.BlockTokens)
	m := &req.Matches
	best := none
	if len(m.Host)|len(m.Disk) == 0 {
		most := int32(0)
		for i, d := range m.Device[:min(len(m.Device), len(r.slots))] {
			if d > most && r.slots[i].worker >= 0 {
				most, best = d, int32(i)
			}
		}
		c.Reachable = int(most) * r.opt.BlockTokens
	} else {
		best, c.Reachable = r.reachTiers(&p, m)
	}
	if c.Slot >= 0 {
		f := facts{device: at(m.Device, int(c.Slot)), host: at(m.Host, int(c.Slot)), disk: at(m.Disk, int(c.Slot))}
		_, c.CachedTokens = p.overlap(&f)
	}
	if best == none || c.Slot >= 0 && c.CachedTokens >= c.Reachable {
		return
	}
	c.LostTo = r.lost(c, best)
}

func (r *Router) reachTiers(p *prompt, m *Matches) (best int32, reachable int) {
	best = none
	for i := range r.slots {
		f := facts{device: at(m.Device, i), host: at(m.Host, i), disk: at(m.Disk, i)}
		if _, tokens := p.overlap(&f); tokens > reachable && r.slots[i].worker >= 0 {
			reachable, best = tokens, int32(i)
		}
	}
	return best, reachable
}

func (r *Router) lost(c *Choice, best int32) string {
	sc := &r.scratch
	switch {
	case c.By == model.ByBinding || c.By == model.ByRequired:
		return LostPin
	case sc.why[best] == exCap || sc.why[best] == exPrefill || sc.why[best] == exBlocks:
		return LostCap
	case sc.why[best] != eligible:
		return LostFilter
	case c.By == model.ByTemperature && sc.cost[best] < c.Cost:
		return LostTemperature
	case c.By != model.ByCost && c.By != model.ByTemperature:
		return LostMode
	case sc.cost[best] == c.Cost:
		return LostTie
	}
	return LostLoad
}

func at(v []int32, i int) int {
	if i < len(v) {
		return int(v[i])
	}
	return 0
}

// cheapest scores every eligible rank and picks one.
func (r *Router) cheapest(now time.Duration, req *Request, c *Choice, rec *model.Selection) {
	sc := &r.scratch
	p := newPrompt(r.mode, &c.config, req.PromptTokens, r.opt.BlockTokens)
	p.minActive = math.Inf(1)
	for _, i := range sc.live {
		p.minActive = min(p.minActive, sc.active[i])
	}
	for w := range r.workers {
		sc.taint[w] = taintFactor(&r.workers[w], req.Prefer)
	}
	additional := r.potential(req, &c.config)
	if p.lockstep {
		r.costLockstep(&p, req, additional)
	} else {
		r.costDynamo(&p, req, additional)
	}
	if rec != nil {
		r.recordTerms(&p, req, additional, rec)
	}
	r.pick(req, c, rec)
}

// potential returns how many blocks the prompt has that can be tracked, and
// leaves in depth how many of them are active on each slot already.
func (r *Router) potential(req *Request, cfg *Config) int {
	clear(r.scratch.depth)
	if !cfg.TrackActiveBlocks {
		return 0
	}
	if req.Blocks == nil {
		return req.PromptTokens / r.opt.BlockTokens
	}
	if cfg.AssumeKVReuse {
		r.load.tree.depths(req.Blocks, r.scratch.depth)
	}
	return len(req.Blocks)
}

// facts gathers what is known of slot i.
func (r *Router) facts(i int, req *Request, cfg *Config, additional int, f *facts) {
	sc, s, l, m := &r.scratch, &r.slots[i], &r.load.ranks[i], &req.Matches
	*f = facts{
		device: at(m.Device, i), host: at(m.Host, i), disk: at(m.Disk, i), tiers: len(m.Host)|len(m.Disk) != 0,
		known: s.known, active: sc.active[i], requests: float64(l.requests) * s.inverse,
		pending: sc.pending[i], high: sc.high[s.worker], taint: sc.taint[s.worker], decodePool: r.workers[s.worker].DecodePool,
	}
	if len(m.Shared) > 0 {
		f.shared = beyond(m.Shared, f.device)
	}
	if cfg.TrackActiveBlocks {
		f.decode = float64(roundUnits(l.units))*s.inverse + float64(additional-int(sc.depth[i]))
	}
}
