package router

import (
	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

// Matches says how much of a prompt each rank holds, as Route would see it now,
// and books nothing: ranks of the workers that serve its model, ordered by
// target, those without a match too. It is nil where that cannot be known: the
// request names no hashes, or such as no engine here has, or no engine has named
// its block size.
func (r *Router) Matches(req *model.Request) []model.TargetMatch {
	now := r.clock.Now()
	if checkRequest(req) != nil {
		return nil
	}
	l, err := r.know.look(req, now.Sub(r.start))
	if err != nil || l == nil {
		return nil
	}
	defer r.know.drop(l)
	r.lock(now)
	defer r.mu.Unlock()
	r.renew(l)
	block := r.know.blockTokens()
	tokens := func(blocks []int32, slot int32) int {
		if int(slot) >= len(blocks) {
			return 0
		}
		return int(blocks[slot]) * block
	}
	var out []model.TargetMatch
	m, g := &l.matches, r.know.guess.Load()
	for _, w := range r.sorted {
		if req.Conv.Model != "" && !w.serves(req.Conv.Model) {
			continue
		}
		for k, slot := range w.slots {
			out = append(out, model.TargetMatch{
				Target: w.ranks[k].load.Target, Device: tokens(m.Device, slot), Host: tokens(m.Host, slot), Disk: tokens(m.Disk, slot),
				Approximate: l.text || m.Approximate(prefix.ID(slot)) || g.guesses(int(slot)),
			})
		}
	}
	return out
}

// BlockTokens is the block size that prompts are to be hashed with, in tokens; 0
// while no engine has named its own. It takes no lock.
func (r *Router) BlockTokens() int { return r.know.blockTokens() }
