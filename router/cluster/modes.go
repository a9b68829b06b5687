package cluster

import "adpdeck/router/model"

// workerLoad is what the modes that choose a worker compare.
type workerLoad struct {
	worker   int32
	inflight float64
	room     float64 // weights of its eligible ranks: 1 each by default
}

// lighter compares in-flight requests for each eligible rank, without a
// division; among workers of one size that is Dynamo's plain count.
func (a workerLoad) lighter(b workerLoad) bool { return a.inflight*b.room < b.inflight*a.room }

// chooseWorker applies the modes that leave the rank to the engine.
func (r *Router) chooseWorker(c *Choice) error {
	pool := r.pools()
	var at int
	switch r.mode {
	case model.ModeDirect:
		c.By = model.ByRequired // one is named, see wish, and the others are filtered
	case model.ModeRandom:
		at, c.By = r.uniform(len(pool)), model.ByChance
	case model.ModePowerOfTwo:
		at, c.By = r.ofTwo(pool), model.ByTwo
	case model.ModeLeastLoaded:
		at, c.By = r.least(pool, c), model.ByLoad
	default:
		at, c.By = r.rotated(pool), model.ByRotation
	}
	c.worker = pool[at].worker
	c.Slot = NoRankSlot(int(c.worker))
	c.Target = model.Target{Worker: r.workers[c.worker].ID, Rank: model.NoRank}
	return nil
}

// pools lists the workers that have an eligible rank, ordered by number.
// Requests on ranks that are not eligible do not count; those without a rank
// do.
func (r *Router) pools() []workerLoad {
	sc := &r.scratch
	sc.pool = sc.pool[:0]
	for w := range r.workers {
		k := &r.workers[w]
		p := workerLoad{worker: int32(w)}
		for _, s := range k.slots {
			if sc.why[s] == eligible {
				p.room += 1 / r.slots[s].inverse
				p.inflight += float64(r.load.ranks[s].requests)
			}
		}
		if p.room > 0 {
			p.inflight += float64(r.load.side[w].requests)
			sc.pool = append(sc.pool, p)
		}
	}
	return sc.pool
}

func (r *Router) rotated(pool []workerLoad) int {
	for i := range pool {
		if pool[i].worker > r.cursor {
			return i
		}
	}
	return 0
}

func (r *Router) least(pool []workerLoad, c *Choice) int {
	at := 0
	c.Tied = 1
	for i := 1; i < len(pool); i++ {
		switch {
		case pool[i].lighter(pool[at]):
			at, c.Tied = i, 1
		case !pool[at].lighter(pool[i]):
			if c.Tied++; r.uniform(c.Tied) == 0 {
				at = i
			}
		}
	}
	if c.Tied > 1 {
		c.Tie = model.TieReservoir
	}
	return at
}

// ofTwo draws two workers and keeps the lighter one, the first on equality.
func (r *Router) ofTwo(pool []workerLoad) int {
	n := len(pool)
	if n == 1 {
		return 0
	}
	i := r.uniform(n)
	j := (i + 1 + r.uniform(n-1)) % n
	if pool[j].lighter(pool[i]) {
		return j
	}
	return i
}
