package router

import (
	"fmt"

	"adpdeck/router/model"
)

// planAvailability plans drain and ready, of one rank or, where the target names
// none, of all ranks of a worker.
func (r *Router) planAvailability(cmd *model.Command) plan {
	if cmd.Target == nil {
		return refuse(model.RefusedMalformed, "name a rank or a worker, for example w0/3 or w0", "%s: no rank is named", cmd.Verb)
	}
	t := *cmd.Target
	at, ok := r.byID[t.Worker]
	if p := r.readyParted(t); cmd.Verb == model.VerbReady && len(p.changes) > 0 && (!ok || r.rank(t) == nil && t.Rank != model.NoRank) {
		return p
	}
	if !ok && t.Rank == model.NoRank {
		return refuse(model.RefusedTarget, r.ranksAre(t.Worker), "%s %s: no such worker", cmd.Verb, t.Worker)
	}
	if !ok || t.Rank != model.NoRank && r.rank(t) == nil {
		return refuse(model.RefusedTarget, r.ranksAre(t.Worker), "%s %s: no such rank", cmd.Verb, t)
	}
	w := r.workers[at]
	drain := cmd.Verb == model.VerbDrain
	if drain && t.Rank != model.NoRank && w.picks() {
		return refuse(model.RefusedEngine, "drain all of it: "+t.Worker, "drain %s: the engine of %s picks the rank and would go on using this one", t, t.Worker)
	}
	p := plan{what: fmt.Sprintf("%s %s", cmd.Verb, t)}
	if t.Rank == model.NoRank {
		p.what = fmt.Sprintf("%s %s, all %d ranks", cmd.Verb, t.Worker, len(w.ranks))
	}
	drains := map[object]bool{}
	for k := range w.ranks {
		if s := &w.ranks[k]; (t.Rank == model.NoRank || t.Rank == k) && s.drain != drain {
			o := object{kind: availObject, target: s.load.Target}
			drains[o] = drain
			p.changes = append(p.changes, change{object: o, after: value{drain: drain}})
		}
	}
	if len(p.changes) == 0 {
		p.what += ", as it was"
		return p
	}
	if ref := r.checkEligible(p.what, r.settings, drains); ref != nil {
		return plan{refusal: ref}
	}
	return p
}

// readyParted plans to take back the drain of a rank that has left, or of all
// ranks of a worker that has, so that it takes work when it comes back.
func (r *Router) readyParted(t model.Target) (p plan) {
	for _, gone := range r.parted {
		if gone.Worker == t.Worker && (t.Rank == model.NoRank || t.Rank == gone.Rank) {
			p.changes = append(p.changes, change{object: object{kind: availObject, target: gone}})
		}
	}
	p.what = fmt.Sprintf("ready %s, for when it is back", t)
	if t.Rank == model.NoRank {
		p.what = fmt.Sprintf("ready %s, %d ranks, for when it is back", t.Worker, len(p.changes))
	}
	return p
}

// checkEligible refuses settings and drains that would leave no rank that
// takes new work: in the cluster, since every mode but one goes round a worker
// without any, and in mode direct at each worker, since there it is the client
// that names the worker. drains holds the availabilities that are to change. A
// rank that does not answer is nobody's reserve, and no reason to refuse mode
// direct.
func (r *Router) checkEligible(what string, next *model.Settings, drains map[object]bool) *model.Refusal {
	fresh := next == r.settings && drains == nil // the router starts
	left, before := 0, 0
	for _, w := range r.workers {
		here, were := 0, 0
		for k := range w.ranks {
			s := &w.ranks[k]
			drain, changes := drains[object{kind: availObject, target: s.load.Target}]
			if !changes {
				drain = s.drain
			}
			if !drain && !s.blocked && next.WeightOf(s.load.Target) > 0 {
				if here++; !s.down {
					left++
				}
			}
			if !s.drain && !s.blocked && r.settings.WeightOf(s.load.Target) > 0 {
				if were++; !s.down {
					before++
				}
			}
		}
		if here == 0 && len(w.ranks) > 0 && next.RouterMode == model.ModeDirect && (were > 0 || fresh || r.settings.RouterMode != model.ModeDirect) {
			return refusal(model.RefusedLast, "make another rank of "+w.spec.ID+" ready, or raise its weight, first",
				"%s: %s takes new work, and in mode direct clients name their worker", what, r.lastOf(w.spec.ID, w))
		}
	}
	// A cluster without such a rank before is not the command's doing: those that
	// took work may have left.
	if left == 0 && (before > 0 || fresh && len(r.workers) > 0) {
		return refusal(model.RefusedLast, "make another rank ready, or raise its weight, first",
			"%s: %s takes new work", what, r.lastOf("the cluster", r.workers...))
	}
	return nil
}

// lastOf names the rank that alone takes new work among workers, as the last
// of them.
func (r *Router) lastOf(whole string, among ...*worker) string {
	last, n := model.Target{}, 0
	for _, w := range among {
		for k := range w.ranks {
			if s := &w.ranks[k]; s.eligible() {
				last, n = s.load.Target, n+1
			}
		}
	}
	if n == 1 {
		return fmt.Sprintf("%s is the last rank of %s that", last, whole)
	}
	text := "then no rank of " + whole
	if down := r.downCount(); down > 0 {
		text += fmt.Sprintf(" (%d do not answer)", down)
	}
	return text
}

// downCount counts the ranks that do not answer.
func (r *Router) downCount() (n int) {
	for _, w := range r.workers {
		for k := range w.ranks {
			if w.ranks[k].down {
				n++
			}
		}
	}
	return n
}

// ranksAre says what targets a worker has.
func (r *Router) ranksAre(name string) string {
	w, ok := r.byID[name]
	if !ok && len(r.workers) == 0 {
		return "no worker has joined yet"
	}
	if !ok {
		return "the workers are " + r.workerNames()
	}
	return fmt.Sprintf("%s has ranks 0 to %d", name, len(r.workers[w].ranks)-1)
}
