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
	r.scratch.filtered = false
	if err := r.check(req); err != nil {
		if rec != nil {
			rec.Candidates = rec.Candidates[:0]
		}
		return err
	}
	done, err := r.bound(now, req, c, rec)
	if !done {
		var w wish
		if w, err = r.wish(req); err == nil {
			err = r.afresh(now, req, w, c, rec)
		}
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

// take makes slot at the choice.
func (c *Choice) take(r *Router, at int32, by string) {
	c.Slot, c.By, c.worker = at, by, r.slots[at].worker
	c.Target = model.Target{Worker: r.workers[c.worker].ID, Rank: int(r.slots[at].rank)}
}

// afresh chooses among what fits the wish.
func (r *Router) afresh(now time.Duration, req *Request, w wish, c *Choice, rec *model.Selection) error {
	var counts [exclusions]int
	r.filter(now, req, w, &counts)
	c.Eligible = len(r.scratch.live)
	if c.Eligible == 0 {
		return refuse(req, &counts)
	}
	if w.rank != model.NoRank {
		c.take(r, r.scratch.live[0], model.ByRequired)
		return nil
	}
	switch r.mode {
	case model.ModeKV, model.ModeLockstep:
		r.cheapest(now, req, c, rec)
		return nil
	default:
		return r.chooseWorker(c)
	}
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
		p.load += sc.pending[i]
		p.recent += sc.lately[i]
	}
	p.load /= float64(len(sc.live))
	p.recent /= float64(len(sc.live))
	for w := range r.workers {
		sc.taint[w] = taintFactor(&r.workers[w], req.Prefer)
	}
	additional := r.potential(req, &c.config)
	if p.lockstep {
		r.costLockstep(&p, req)
	} else {
		r.costDynamo(&p, req, additional)
	}
	if rec != nil {
		rec.MeanPending, rec.MeanRecent = p.load, p.recent
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
	g, u := &sc.group[s.worker], &sc.unplaced[s.worker]
	*f = facts{
		device: at(m.Device, i), host: at(m.Host, i), disk: at(m.Disk, i), tiers: len(m.Host)|len(m.Disk) != 0,
		known: s.known || u.requests > 0, active: sc.active[i], requests: (float64(l.requests) + u.requests) * s.inverse,
		pending: sc.pending[i], rest: sc.rest[i], high: g.high, step: g.step, lately: sc.lately[i], held: sc.held[i], full: g.full,
		waiting: g.waiting, chunk: float64(s.chunk), taint: sc.taint[s.worker], decodePool: r.workers[s.worker].DecodePool,
	}
	if len(m.Shared) > 0 {
		f.shared = beyond(m.Shared, f.device)
	}
	if cfg.TrackActiveBlocks {
		f.onWay = int(sc.depth[i])
		f.decode = (float64(roundUnits(l.units))+u.blocks)*s.inverse + float64(additional-int(sc.depth[i]))
	}
}
