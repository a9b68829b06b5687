package enginetest

import (
	"adpdeck/router/adp"
	"adpdeck/router/model"
)

// adpQueue is TensorRT-LLM's one queue before all ranks, and its rank router.
type adpQueue struct {
	router *adp.Router
	queue  []*work
	next   int64
	out    adp.Result
}

func newADP(cfg *Config) *adpQueue {
	return &adpQueue{router: adp.New(cfg.Ranks, *cfg.Balance, nil, adp.Options{}), next: int64(cfg.MaxActive)}
}

// place spreads what waits over the ranks at the start of a step, as far as the
// hard cap admits.
func (q *adpQueue) place(g *group) {
	size, hardCap := g.e.cfg.BlockTokens, g.e.cfg.MaxActive
	room := len(g.ranks) * hardCap
	states := make([]model.RankState, len(g.ranks))
	for i, k := range g.ranks {
		room -= k.open()
		states[i] = model.RankState{Rank: i, NumActiveRequests: k.open(), NumActiveTokens: k.prompts()}
	}
	n := min(room, len(q.queue))
	if n <= 0 || g.e.habits.Load().NoFirstToken {
		return
	}
	batch := adp.Batch{States: states, HardCap: hardCap}
	taken := q.queue[:n]
	for _, w := range taken {
		r := adp.Request{ID: q.next, Tokens: len(w.prompt), Conv: w.conv, Params: &adp.Params{}}
		q.next++
		for _, id := range w.prompt[:min(64, len(w.prompt))] {
			r.Lead = append(r.Lead, int32(id))
		}
		if g.e.cfg.Balance.Policy() == model.PolicyKVAware {
			for _, k := range g.ranks {
				k.hash(w, (len(w.prompt)-1)/size)
				found, _ := k.cache.match(w.hashes[:(len(w.prompt)-1)/size])
				r.Matches = append(r.Matches, int32(found*size))
			}
		}
		batch.Requests = append(batch.Requests, r)
	}
	_ = q.router.Route(&batch, &q.out) // an error is parity mode's only
	var back []*work
	for i, w := range taken {
		if at := q.out.Ranks[i]; at >= 0 {
			w.rank = g.ranks[at]
			w.rank.take(w)
			w.ring()
		} else {
			back = append(back, w)
		}
	}
	q.queue = append(back, q.queue[n:]...)
}

// prompts is the prompt tokens of the rank's requests, what the rank router
// balances.
func (k *rank) prompts() int {
	n := 0
	for _, w := range k.running {
		n += len(w.prompt)
	}
	for _, w := range k.waiting {
		n += len(w.prompt)
	}
	return n
}
