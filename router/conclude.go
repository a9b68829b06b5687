package router

import (
	"slices"

	"adpdeck/router/model"
)

// conclude books what a batch decided for its request i and records it. A
// request without a rank is recorded when it begins to wait, not at every step.
func (r *Router) conclude(w *worker, i int, tookNs int64) {
	g := &w.batch
	b, rank := g.bookings[i], int(g.ranks[i])
	t := &b.Value
	t.reach, t.compared = reachable(g.matches[i], t.prompt), g.matches[i] != nil
	if t.chosen != model.NoRank && t.looked {
		t.reach, t.compared = min(t.known, t.prompt), true
	}
	if rank == model.NoRank {
		if !t.waited {
			t.waited = true
			r.totals.Unplaced++
			r.decide(w, i, tookNs)
		}
		return
	}
	held := r.heldAt(w, i, rank)
	r.book.Place(b, rank, t.prompt, max(t.prompt-held, 0))
	t.target = model.Target{Worker: w.spec.ID, Rank: rank}
	if rank != t.chosen {
		r.steer.tier.Place(r.elapsed(), b.ID, t.target, t.prompt, held)
		r.loseTo(t, w, i, rank)
	}
	if len(t.chain) > 0 {
		r.notes = append(r.notes, note{slices.Clone(t.chain), r.slot(t.target), t.chainGen})
		t.chain = t.chain[:0]
	}
	w.ranks[rank].load.Requests++
	if c := t.conv; c != nil {
		t.before = c.data.Last
		t.moved = t.before.Rank != model.NoRank && t.before != t.target
		if t.moved {
			c.data.Moves++
		}
		c.data.Last = t.target
		r.convs.touch(c, &r.stamp)
		r.tie(b)
	}
	r.stamp++
	r.decide(w, i, tookNs)
	if t.channel != "" || len(r.probes) > 0 {
		r.ask(w, b)
	}
}

// heldAt is how many tokens of request i the rank holds: what the engine found,
// or where it did not look, what the index said when the request came.
func (r *Router) heldAt(w *worker, i, rank int) int {
	g := &w.batch
	if t := &g.bookings[i].Value; g.matches[i] == nil && t.looked && rank != model.NoRank {
		return t.heldOn(rank)
	}
	return match(g.matches[i], rank)
}

// loseTo says what a longer match was given up for where the engine tier, or a
// pin, chose the rank.
func (r *Router) loseTo(t *turn, w *worker, i, rank int) {
	t.lostTo = ""
	if !t.looked || t.heldOn(rank) >= t.known {
		return
	}
	t.lostTo = model.LostMode
	switch w.batch.how[i] {
	case byOperator, byBinding:
		t.lostTo = model.LostPin
	}
	// The engine tier has bound a first turn by now; what counts is what was
	// bound before.
	if t.bound == t.target || t.steered && t.rank == rank {
		t.lostTo = model.LostPin
	}
}

func reachable(matches []int32, prompt int) int {
	best := 0
	for _, m := range matches {
		best = max(best, int(m))
	}
	return min(best, prompt)
}

// decide counts the decision on request i of the batch of w, with the wish
// that it overruled, and keeps a record when recording.
func (r *Router) decide(w *worker, i int, tookNs int64) {
	b := w.batch.bookings[i]
	r.routed++
	b.Value.decision = r.routed
	overruled := r.overruled(w, i)
	if overruled != noWish && !b.Value.conflicted {
		b.Value.conflicted = true
		r.totals.Conflicts++
	}
	if !r.record {
		return
	}
	p := r.placement(w, i)
	d := &model.Decision{
		ID: r.routed, At: r.now, Target: model.Target{Worker: w.spec.ID, Rank: p.Rank},
		Policy: r.policy(), Mode: r.settings.RouterMode, Version: r.version,
		WorkerWhy: b.Value.workerWhy, RunnerUp: model.NoRank, Margin: model.Unknown(),
		Reachable: b.Value.reach, TookNs: tookNs, Placement: p,
	}
	if c := b.Value.conv; c != nil {
		d.Conv = c.data.Key
	}
	d.Why = r.why(w, i, &p)
	d.Conflict = r.conflictText(w, i, overruled)
	d.RunnerUp, d.Margin = runnerUp(&p)
	if t := &b.Value; t.chosen != model.NoRank {
		d.RunnerUp, d.Margin = t.runnerUp, t.margin
	}
	d.Selection, d.LostTo = b.Value.selection, b.Value.lostTo
	r.decisions.push(d)
}

// placement is the record of request i: the engine tier's, or one made here for
// what was placed by hand.
func (r *Router) placement(w *worker, i int) model.Placement {
	g := &w.batch
	if j := int(g.at[i]); j >= 0 && j < len(w.result.Placements) {
		// The engine tier makes the lists of each record new, so they are ours.
		return w.result.Placements[j]
	}
	b, rank := g.bookings[i], int(g.ranks[i])
	p := model.Placement{
		Request: b.ID, Rank: rank, Phase: model.PhaseUnplaced, PromptTokens: b.Value.prompt,
		MatchTokens: r.heldAt(w, i, rank), Expected: w.softCap, HardCap: g.hardCap,
		HitRate: model.Unknown(), Denom: model.Unknown(),
	}
	switch g.how[i] {
	case byOperator:
		p.Phase = model.PhaseOperator
	case byBinding, bySession:
		p.Phase = model.PhaseBound
	case bySteering:
		p.Phase = model.PhaseSteered
	case enginePicks:
		p.Phase = model.PhaseEngine
	}
	if rank != model.NoRank {
		p.AddedTokens = float64(stateTokens(r.policy(), p.PromptTokens, p.MatchTokens))
	}
	return p
}

// runnerUp is the eligible candidate with the next best score, where scores
// were compared.
func runnerUp(p *model.Placement) (rank int, margin model.Maybe) {
	rank, margin = model.NoRank, model.Unknown()
	if p.Phase != model.PhaseScored {
		return rank, margin
	}
	won := model.Unknown()
	for k := range p.Candidates {
		if p.Candidates[k].Rank == p.Rank {
			won = p.Candidates[k].Score
		}
	}
	if !won.Known() {
		return rank, margin
	}
	for k := range p.Candidates {
		c := &p.Candidates[k]
		if c.Rank == p.Rank || c.Excluded != "" || !c.Score.Known() {
			continue
		}
		if m := c.Score - won; rank == model.NoRank || m < margin {
			rank, margin = c.Rank, m
		}
	}
	return rank, margin
}

// wish is which wish a decision overruled.
type wish uint8

const (
	noWish      wish = iota
	overPin          // the client's, by an operator pin
	overBinding      // the client's, by a binding
	overRoom         // the client's: its rank had no room or was closed
	pinTooLate       // an operator's pin: set after the request went elsewhere
)

// overruled says which wish the decision on request i overruled. A binding
// that an operator's pin stands above is no conflict: nobody asked this turn.
func (r *Router) overruled(w *worker, i int) wish {
	g := &w.batch
	t := &g.bookings[i].Value
	at := model.Target{Worker: w.spec.ID, Rank: int(g.ranks[i])}
	if t.conv != nil {
		if p, ok := r.ops.Get(t.conv.data.Key); ok {
			switch {
			case p.Target.Worker != w.spec.ID:
				return pinTooLate
			case t.wished && differs(t.asked, p.Target):
				return overPin
			}
			return noWish
		}
	}
	if !t.wished || !differs(t.asked, at) || at.Rank == model.NoRank && t.asked.Worker == at.Worker {
		return noWish
	}
	if t.bound.Rank != model.NoRank && differs(t.asked, t.bound) {
		return overBinding
	}
	return overRoom
}

// differs reports that got is not what was asked, where NoRank asks for a
// worker alone.
func differs(asked, got model.Target) bool {
	return asked.Worker != got.Worker || asked.Rank != model.NoRank && asked.Rank != got.Rank
}
