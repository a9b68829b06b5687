package router

import (
	"fmt"

	"adpdeck/router/model"
	"adpdeck/router/pin"
)

// planConvs plans pin, unpin, evict and migrate, conversation by conversation.
// A migration that names no rank spreads them by least tokens.
func (r *Router) planConvs(cmd *model.Command) plan {
	if len(cmd.Convs) == 0 {
		return refuse(model.RefusedMalformed, "name at least one", "%s: no conversation is named", cmd.Verb)
	}
	var auto *spread
	switch {
	case cmd.Verb == model.VerbMigrate && cmd.Target == nil:
		auto = r.newSpread()
	case cmd.Verb == model.VerbPin || cmd.Verb == model.VerbMigrate:
		if ref := r.checkTaking(cmd); ref != nil {
			return plan{refusal: ref}
		}
	}
	p := plan{items: make([]model.ItemResult, 0, len(cmd.Convs))}
	note := &pin.Note{By: cmd.Actor, At: r.now, Version: r.version + 1, Reason: cmd.Reason}
	if note.By == "" {
		note.By = "operator"
	}
	room := model.MaxOperatorPins - r.ops.Len()
	seen := make(map[model.ConvKey]bool, len(cmd.Convs))
	var texts []string
	for _, key := range cmd.Convs {
		if seen[key] {
			p.items = append(p.items, model.ItemResult{Conv: key, Done: true})
			continue
		}
		seen[key] = true
		changes, text, ref := r.planConv(cmd, key, note, &room, auto)
		p.items = append(p.items, model.ItemResult{Conv: key, Done: ref == nil, Refusal: ref})
		if ref == nil {
			p.changes = append(p.changes, changes...)
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		p.refusal = p.items[0].Refusal
		return p
	}
	p.what = whatConvs(cmd, texts)
	if n := pinsAmong(p.changes); n > 0 && cmd.Verb == model.VerbEvict && len(texts) > 1 {
		p.what += fmt.Sprintf(", operator pins of %s with them", conversations(n))
	}
	if t := cmd.Target; t != nil && r.picksRank(t.Worker) {
		p.what += fmt.Sprintf(" (only worker %s is held: its engine picks the rank)", t.Worker)
	}
	return p
}

// pinsAmong counts the operator pins that changes concern.
func pinsAmong(changes []change) (n int) {
	for i := range changes {
		if changes[i].object.kind == pinObject {
			n++
		}
	}
	return n
}

// picksRank reports that there is such a worker and that its engine picks the
// rank.
func (r *Router) picksRank(id string) bool {
	at, ok := r.byID[id]
	return ok && r.workers[at].picks()
}

// whatConvs says what was done: in full for one conversation, as a count for
// several.
func whatConvs(cmd *model.Command, texts []string) string {
	if len(texts) == 1 {
		return texts[0]
	}
	what := fmt.Sprintf("%s %d conversations", cmd.Verb, len(texts))
	switch {
	case cmd.Verb == model.VerbMigrate && cmd.Target == nil:
		what += " to the ranks with the fewest tokens"
	case cmd.Verb == model.VerbPin || cmd.Verb == model.VerbMigrate:
		what += " to " + cmd.Target.String()
	case cmd.Verb == model.VerbEvict:
		what += evictNote
	}
	return what
}

const evictNote = " (blocks on the engine are not touched)"

// checkTaking refuses a target that takes no conversations.
func (r *Router) checkTaking(cmd *model.Command) *model.Refusal {
	if cmd.Target == nil {
		return refusal(model.RefusedMalformed, "name a rank, for example w0/3", "%s: no rank is named", cmd.Verb)
	}
	t := *cmd.Target
	s := r.rank(t)
	switch {
	case s == nil:
		return refusal(model.RefusedTarget, r.ranksAre(t.Worker), "%s to %s: no such rank", cmd.Verb, t)
	case s.down:
		return refusal(model.RefusedDraining, "choose another rank", "%s to %s: the rank does not answer", cmd.Verb, t)
	case s.blocked && cmd.Verb == model.VerbMigrate: // it would count as gone
		return refusal(model.RefusedDraining, "choose another rank", "%s to %s: rank is blocked", cmd.Verb, t)
	case s.drain:
		return refusal(model.RefusedDraining, "choose another rank or make it ready", "%s to %s: rank is draining", cmd.Verb, t)
	case s.weight == 0:
		return refusal(model.RefusedDraining, "choose another rank or raise its weight",
			"%s to %s: rank has weight 0 and takes no new work", cmd.Verb, t)
	}
	return nil
}

// planConv plans the command for one conversation; room counts the operator
// pins that may still be made, auto chooses where a migration that names no
// rank goes.
func (r *Router) planConv(cmd *model.Command, key model.ConvKey, note *pin.Note, room *int, auto *spread) ([]change, string, *model.Refusal) {
	c := r.convs.byKey[key]
	op, pinned := r.ops.Get(key)
	if c == nil || key.Keyless() {
		return nil, "", refusal(model.RefusedConv, "it may have been idle for long; name one that is listed",
			"%s %s: no such conversation", cmd.Verb, key.ID)
	}
	if t := cmd.Target; t != nil && (cmd.Verb == model.VerbPin || cmd.Verb == model.VerbMigrate) && !r.servesModel(r.workers[r.byID[t.Worker]], key.Model) {
		return nil, "", refusal(model.RefusedTarget, "choose a rank of a worker that does",
			"%s %s to %s: %s does not serve its model %.100q", cmd.Verb, key.ID, t, t.Worker, key.Model)
	}
	pinTo := change{object: object{kind: pinObject, conv: key}}
	switch cmd.Verb {
	case model.VerbPin:
		if !pinned && *room == 0 {
			return nil, "", refusal(model.RefusedFull, "unpin or evict some first",
				"pin %s to %s: all %d operator pins are in use", key.ID, cmd.Target, model.MaxOperatorPins)
		}
		if !pinned {
			*room--
		}
		pinTo.after.pin = pin.Pin{Target: *cmd.Target, Note: note}
		if pinned && op.Target != *cmd.Target {
			return []change{pinTo}, fmt.Sprintf("pin %s %s → %s", key.ID, op.Target, cmd.Target), nil
		}
		return []change{pinTo}, fmt.Sprintf("pin %s to %s", key.ID, cmd.Target), nil
	case model.VerbUnpin:
		if !pinned {
			return nil, "", refusal(model.RefusedConv, "evict it to forget its binding", "unpin %s: no operator pinned it", key.ID)
		}
		what := fmt.Sprintf("unpin %s from %s", key.ID, op.Target)
		if bind, bound := r.bound(key); bound && bind.Target != op.Target {
			what += fmt.Sprintf(": it goes back to %s, where it was bound", bind.Target)
		}
		return []change{pinTo}, what, nil
	case model.VerbMigrate:
		return r.planMigrate(cmd, c, note, auto)
	}
	return r.planEvict(key)
}

// planMigrate moves the pin of c, or without one its binding.
func (r *Router) planMigrate(cmd *model.Command, c *conv, note *pin.Note, auto *spread) ([]change, string, *model.Refusal) {
	key := c.data.Key
	op, pinned := r.ops.Get(key)
	from := c.data.Last
	if bind, ok := r.binds.Get(key); ok {
		from = bind.Target
	}
	if pinned {
		from = op.Target
	}
	var to model.Target
	if auto == nil {
		to = *cmd.Target
	} else if best, ok := auto.take(from, c.data.PromptTokens, r.who(key.Model)); ok {
		to = best
	} else {
		work, who := "new work", "no rank"
		if s := r.rank(from); s != nil && s.eligible() {
			who = "no rank but " + from.String()
		}
		if r.serves.some {
			work = "new work for its model"
		}
		return nil, "", refusal(model.RefusedLast, "make another rank ready, or raise its weight, first",
			"migrate %s: %s takes %s", key.ID, who, work)
	}
	if to == from { // it holds from now on, where a turn alone had bound it
		return movePlanned(key, pinned, to, note), fmt.Sprintf("migrate %s to %s, where it is", key.ID, to), nil
	}
	where := from.String()
	if from.Rank == model.NoRank {
		where = "unplaced"
	}
	return movePlanned(key, pinned, to, note), fmt.Sprintf("migrate %s %s → %s", key.ID, where, to), nil
}

// movePlanned is a conversation's pin, or without one its binding, at another rank.
func movePlanned(key model.ConvKey, pinned bool, to model.Target, note *pin.Note) []change {
	move := change{object: object{kind: bindingObject, conv: key}}
	if pinned {
		move.object.kind = pinObject
		move.after.pin = pin.Pin{Target: to, Note: note}
	} else {
		move.after.binding = pin.Binding{Target: to, Source: model.PinMigrated, Note: note}
	}
	return []change{move}
}

// planEvict forgets pin and binding.
func (r *Router) planEvict(key model.ConvKey) ([]change, string, *model.Refusal) {
	var changes []change
	from := ""
	if bind, bound := r.binds.Get(key); bound {
		changes = append(changes, change{object: object{kind: bindingObject, conv: key}})
		from = " from " + bind.Target.String()
	}
	if op, pinned := r.ops.Get(key); pinned {
		changes = append(changes, change{object: object{kind: pinObject, conv: key}})
		from = fmt.Sprintf(" from %s, where an operator pinned it", op.Target)
	}
	return changes, fmt.Sprintf("evict %s%s%s", key.ID, from, evictNote), nil
}
