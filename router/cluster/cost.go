package cluster

// The two functions here are score without its terms, for the hot path: the
// same expressions in the same order. A record takes its costs from here.

// costDynamo fills in the cost of every eligible slot in mode kv.
func (r *Router) costDynamo(p *prompt, req *Request, additional int) {
	sc, cfg, m := &r.scratch, p.cfg, &req.Matches
	tiers := len(m.Host)|len(m.Disk) != 0
	k, credit, isl := cfg.KVOverlapScoreCreditDecay, cfg.KVOverlapScoreCredit, float64(p.isl)
	for _, i := range sc.live {
		s, l := &r.slots[i], &r.load.ranks[i]
		u := sc.unplacedOn(s)
		device := at(m.Device, int(i))
		overlap, lower := float64(device), 0.0
		if tiers {
			host, disk := float64(at(m.Host, int(i))), float64(at(m.Disk, int(i)))
			overlap = overlap + p.hostWeight*host + p.diskWeight*disk
			lower = p.hostWeight*host + p.diskWeight*disk
		}
		raw, decay := 0.0, 1.0
		if cfg.TrackPrefillTokens {
			raw = isl
			if s.known || u.requests > 0 {
				raw = sc.active[i] + float64(max(p.isl, int(overlap*p.block+0.5)))
			}
			raw /= p.block
			if k != 0 {
				decay = 1 / (1 + k*((sc.active[i]-p.minActive)/p.block)/p.blocks)
			}
		}
		taken := credit*decay*float64(device) + lower
		if len(m.Shared) > 0 {
			taken += p.shared * float64(beyond(m.Shared, device))
		}
		decode := 0.0
		if cfg.TrackActiveBlocks {
			decode = (float64(roundUnits(l.units))+u.blocks)*s.inverse + float64(additional-int(sc.depth[i]))
		}
		active := cfg.DecodeActiveRequestWeight * ((float64(l.requests) + u.requests) * s.inverse)
		cost := 0.0
		if !cfg.TrackPrefillTokens && credit > 0 && r.workers[s.worker].DecodePool {
			cost = max(0, decode-taken) + active
		} else {
			cost = cfg.PrefillLoadScale*max(0, raw-taken) + decode + active
		}
		sc.cost[i] = (cost + p.recentCost(sc.lately[i])) * sc.taint[s.worker]
	}
}

// costLockstep fills in the cost of every eligible slot in mode lockstep.
func (r *Router) costLockstep(p *prompt, req *Request) {
	sc, cfg, m := &r.scratch, p.cfg, &req.Matches
	tiers := len(m.Host)|len(m.Disk) != 0
	isl, price := float64(p.isl), p.workPrice()
	for _, i := range sc.live {
		s := &r.slots[i]
		g, chunk := &sc.group[s.worker], float64(s.chunk)
		overlap := float64(at(m.Device, int(i)))
		if tiers {
			overlap = overlap + p.hostWeight*float64(at(m.Host, int(i))) + p.diskWeight*float64(at(m.Disk, int(i)))
		}
		here := int(overlap*p.block + 0.5)
		if cfg.TrackActiveBlocks && sc.depth[i] > 0 {
			here = max(here, onWay(int(sc.depth[i])*int(p.block), sc.rest[i], chunk))
		}
		fresh := float64(max(p.isl-here, 0))
		after := sc.rest[i] + fresh
		rise := max(0, after-g.high)
		own := sc.held[i] + isl
		held := max(g.full, own)*(1-ownShare) + own*ownShare
		wait := firstWait(after, g.high, g.step, chunk)
		cost := price*fresh + cfg.WaitWeight*wait + cfg.LockstepWeight*(1+g.waiting)*rise + cfg.PendingWeight*sc.pending[i] + cfg.LockstepDecodeWeight*held
		sc.cost[i] = (cost + p.recentCost(sc.lately[i])) * sc.taint[s.worker]
	}
}
