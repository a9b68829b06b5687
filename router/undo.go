package router

import (
	"fmt"

	"adpdeck/router/model"
)

// planUndo plans a new version that restores exactly what a version changed.
// It refuses when a later version in effect changed one of the same objects.
// An undo is a version like any other: naming it takes it back, which is the
// redo. Without a version the newest one in effect that is no undo itself is
// taken, so that two undos in a row take back two changes.
func (r *Router) planUndo(cmd *model.Command) plan {
	version := cmd.Undo
	if version == 0 {
		version = r.newestToUndo()
	}
	rev, rec := r.history.revision(version), r.history.record(version)
	switch {
	case cmd.Undo == 0 && version == 0:
		return refuse(model.RefusedUndo, "change something first", "undo: nothing to take back")
	case version > r.version:
		return refuse(model.RefusedUndo, "name a version from the history", "undo v%d: there is no such version yet", version)
	case rev == nil || rec == nil:
		return refuse(model.RefusedUndo, "set it back by hand", "undo v%d: it is too old or nothing that can be taken back", version)
	case rev.UndoneBy != 0:
		return refuse(model.RefusedUndo, fmt.Sprintf("undo v%d to have it again", rev.UndoneBy),
			"undo v%d: v%d took it back already", version, rev.UndoneBy)
	}
	if later := r.history.blocker(rec); later != 0 {
		return refuse(model.RefusedUndo, fmt.Sprintf("undo v%d first, or set it by hand", later),
			"undo v%d: v%d changed the same since", version, later)
	}
	p := plan{undoes: version, what: r.history.undoText(rev)}
	for i := len(rec.changes) - 1; i >= 0; i-- {
		c := &rec.changes[i]
		p.changes = append(p.changes, change{object: c.object, after: c.before, old: c.old})
	}
	p.what += r.undoLimits(rev, p.changes)
	p.refusal = r.checkUndo(version, p.changes)
	return p
}

// undoText says what an undo of rev does. In a chain of undos of undos it names
// the change that they are about, and not each undo inside the next.
func (h *history) undoText(rev *revision) string {
	origin, again := rev, false
	for origin.Undoes != 0 {
		next := h.revision(origin.Undoes)
		if next == nil {
			break
		}
		origin, again = next, !again
	}
	text := fmt.Sprintf("undo v%d", rev.Version)
	switch what := cut(origin.What, maxUndoneBytes); {
	case origin == rev:
		return fmt.Sprintf("%s (%s)", text, what)
	case again:
		return fmt.Sprintf("%s: v%d again (%s)", text, origin.Version, what)
	default:
		return fmt.Sprintf("%s: v%d taken back again (%s)", text, origin.Version, what)
	}
}

// maxUndoneBytes bounds what an undo repeats of the change it is about, a
// chain whose beginning the history has lost included.
const maxUndoneBytes = 1024

// undoLimits says what of an undo cannot be as it was: bindings to ranks that
// have left are not made again (changes is corrected so that its event does not
// claim them), operator pins to ranks that take nothing wait for them, and the
// workers of a settings file are no part of the history.
func (r *Router) undoLimits(rev *revision, changes []change) (note string) {
	unbound, waiting := 0, 0
	for i := range changes {
		c := &changes[i]
		switch {
		case c.object.kind == bindingObject && c.after.binding.Source != model.PinNone && !r.there(c.after.binding.Target):
			c.after, c.old = value{}, false
			unbound++
		case c.object.kind == pinObject && c.after.pin.Note != nil:
			if t := c.after.pin.Target; !r.there(t) || !r.workers[r.byID[t.Worker]].answers(t.Rank) {
				waiting++
			}
		}
	}
	if unbound > 0 {
		note += fmt.Sprintf(", %s not bound again: the rank has left", conversations(unbound))
	}
	if waiting > 0 {
		note += fmt.Sprintf(", operator pins of %s wait for a rank that does not answer", conversations(waiting))
	}
	if rev.Verb == model.VerbReload {
		note += ", the settings alone: workers stay as the file names them"
	}
	return note
}

func (r *Router) newestToUndo() uint64 {
	for i := len(r.history.undo) - 1; i >= 0; i-- {
		rev := r.history.revision(r.history.undo[i].version)
		if rev != nil && rev.UndoneBy == 0 && rev.Undoes == 0 {
			return rev.Version
		}
	}
	return 0
}

// checkUndo refuses an undo whose outcome no command could have reached.
func (r *Router) checkUndo(version uint64, changes []change) *model.Refusal {
	next := *r.settings
	drains := map[object]bool{}
	pins := r.ops.Len()
	for i := range changes {
		c := &changes[i]
		switch c.object.kind {
		case fieldObject:
			copyField(&next, c.after.settings, c.object.field)
		case weightObject:
			next.SetWeight(c.object.target, c.after.weight)
		case availObject:
			drains[c.object] = c.after.drain
		case pinObject:
			if _, had := r.ops.Get(c.object.conv); had {
				pins--
			}
			if c.after.pin.Note != nil {
				pins++
			}
		}
	}
	what := fmt.Sprintf("undo v%d", version)
	if pins > model.MaxOperatorPins {
		return refusal(model.RefusedFull, "unpin some first", "%s: all %d operator pins are in use", what, model.MaxOperatorPins)
	}
	if ref := next.Check(); ref != nil {
		return refusal(ref.Code, ref.Next, "%s: %s", what, ref.Message)
	}
	return r.checkEligible(what, &next, drains)
}
