package router

import (
	"math"
	"time"

	"adpdeck/router/model"
)

// proveByLoads sees where a request is that is alone at its worker: the engine
// says that one of its ranks has one request, twice in a row, while none but this
// was open there all the time.
func (r *Router) proveByLoads(w *worker, at time.Time, loads []model.RankReport) {
	p := &w.proofs
	b := r.alone(w, at)
	rank := onlyBusy(loads, len(w.ranks))
	if b == nil || rank == model.NoRank {
		p.seen = 0
		return
	}
	if b.ID != p.alone || rank != p.rank {
		p.alone, p.rank, p.seen = b.ID, rank, 0
	}
	if p.seen++; p.seen < 2 {
		return
	}
	t := &b.Value
	r.begun(b, true)
	ran := model.Target{Worker: w.spec.ID, Rank: rank}
	r.prove(t.proof, t.target, ran, evidenceLoads)
	r.ranOn(b.ID, t.decision, ran)
}

// maxAlone is the most open requests among which the only one of a worker is
// looked for.
const maxAlone = 1024

// alone is the request that is the only one of a worker, has been at its engine
// for certain, and of which nothing is proven; nil for none.
func (r *Router) alone(w *worker, at time.Time) (b *booking) {
	if r.book.WorkerOpen(w.index) != 1 || r.book.Len() > maxAlone || len(w.proofs.list) == 0 {
		return nil
	}
	r.book.Each(func(k *booking) {
		if k.Worker == w.index {
			b = k
		}
	})
	if t := &b.Value; t.proof == nil || t.proven || t.proof.told() || !t.first || b.Rank == model.NoRank || !t.firstAt.Before(at.Add(-reachWithin)) {
		return nil
	}
	return b
}

// onlyBusy is the rank that has one request where no other has any, NoRank
// where that is not so or not known.
func onlyBusy(loads []model.RankReport, ranks int) int {
	rank, sum, said := model.NoRank, 0.0, 0
	for i := range loads {
		l := &loads[i]
		if l.Rank < 0 || l.Rank >= ranks {
			continue
		}
		waiting := float64(l.Waiting)
		if !l.Waiting.Known() {
			waiting = 0
		}
		if !l.Running.Known() {
			return model.NoRank
		}
		said++
		if n := float64(l.Running) + waiting; n > 0 {
			rank, sum = l.Rank, sum+n
		}
	}
	if said != ranks || math.Abs(sum-1) > 1e-9 {
		return model.NoRank
	}
	return rank
}
