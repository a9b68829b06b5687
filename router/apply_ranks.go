package router

import (
	"fmt"

	"adpdeck/router/model"
)

// planAvailability plans drain and ready.
func (r *Router) planAvailability(cmd *model.Command) plan {
	if cmd.Target == nil {
		return refuse(model.RefusedMalformed, "name a rank, for example w0/3", "%s: no rank is named", cmd.Verb)
	}
	t := *cmd.Target
	s := r.rank(t)
	if s == nil {
		return refuse(model.RefusedTarget, r.ranksAre(t.Worker), "%s %s: no such rank", cmd.Verb, t)
	}
	drain := cmd.Verb == model.VerbDrain
	o := object{kind: availObject, target: t}
	p := plan{what: fmt.Sprintf("%s %s", cmd.Verb, t)}
	if s.drain == drain {
		p.what += ", as it was"
		return p
	}
	if ref := r.checkEligible(p.what, r.settings, map[object]bool{o: drain}); ref != nil {
		return plan{refusal: ref}
	}
	p.changes = []change{{object: o, after: value{drain: drain}}}
	return p
}

// checkEligible refuses settings and drains that would leave a worker without
// a rank that takes new work. drains holds the availabilities that are to
// change.
func (r *Router) checkEligible(what string, next *model.Settings, drains map[object]bool) *model.Refusal {
	for _, w := range r.workers {
		left, last := 0, model.Target{}
		for k := range w.ranks {
			s := &w.ranks[k]
			drain, changes := drains[object{kind: availObject, target: s.load.Target}]
			if !changes {
				drain = s.drain
			}
			if !drain && !s.blocked && next.WeightOf(s.load.Target) > 0 {
				left++
			}
			if s.eligible() {
				last = s.load.Target
			}
		}
		// One without such a rank before is not the command's doing: its ranks may
		// be down, or those that took work have left.
		if left == 0 && last.Worker != "" {
			return refusal(model.RefusedLast, "make another rank of "+w.spec.ID+" ready, or raise its weight, first",
				"%s: %s is the last rank of %s that takes new work", what, last, w.spec.ID)
		}
	}
	return nil
}

// ranksAre says what targets a worker has.
func (r *Router) ranksAre(name string) string {
	w, ok := r.byID[name]
	if !ok {
		return "the workers are " + r.workerNames()
	}
	return fmt.Sprintf("%s has ranks 0 to %d", name, len(r.workers[w].ranks)-1)
}
