package router

import (
	"fmt"

	"adpdeck/router/model"
	"adpdeck/router/pin"
)

// planConvs plans pin, unpin, evict and migrate, conversation by conversation.
func (r *Router) planConvs(cmd *model.Command) plan {
	if len(cmd.Convs) == 0 {
		return refuse(model.RefusedMalformed, "name at least one", "%s: no conversation is named", cmd.Verb)
	}
	if cmd.Verb == model.VerbPin || cmd.Verb == model.VerbMigrate {
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
		changes, text, ref := r.planConv(cmd, key, note, &room)
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
	return p
}

// whatConvs says what was done: in full for one conversation, as a count for
// several.
func whatConvs(cmd *model.Command, texts []string) string {
	if len(texts) == 1 {
		return texts[0]
	}
	what := fmt.Sprintf("%s %d conversations", cmd.Verb, len(texts))
	switch cmd.Verb {
	case model.VerbPin, model.VerbMigrate:
		what += " to " + cmd.Target.String()
	case model.VerbEvict:
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
	case s.drain:
		return refusal(model.RefusedDraining, "choose another rank or make it ready", "%s to %s: rank is draining", cmd.Verb, t)
	case s.weight == 0:
		return refusal(model.RefusedDraining, "choose another rank or raise its weight",
			"%s to %s: rank has weight 0 and takes no new work", cmd.Verb, t)
	}
	return nil
}

// planConv plans the command for one conversation; room counts the operator
// pins that may still be made.
func (r *Router) planConv(cmd *model.Command, key model.ConvKey, note *pin.Note, room *int) ([]change, string, *model.Refusal) {
	c := r.convs.byKey[key]
	op, pinned := r.ops.Get(key)
	bind, bound := r.binds.Get(key)
	if c == nil && !pinned || key.Keyless() {
		return nil, "", refusal(model.RefusedConv, "it may have been idle for long; name one that is listed",
			"%s %s: no such conversation", cmd.Verb, key.ID)
	}
	pinTo := change{object: object{kind: pinObject, conv: key}}
	bindTo := change{object: object{kind: bindingObject, conv: key}}
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
		return []change{pinTo}, fmt.Sprintf("unpin %s from %s", key.ID, op.Target), nil
	case model.VerbMigrate:
		if pinned {
			pinTo.after.pin = pin.Pin{Target: *cmd.Target, Note: note}
			return []change{pinTo}, fmt.Sprintf("migrate %s %s → %s", key.ID, op.Target, cmd.Target), nil
		}
		bindTo.after.binding = pin.Binding{Target: *cmd.Target, Source: model.PinMigrated, Note: note}
		return []change{bindTo}, fmt.Sprintf("migrate %s %s → %s", key.ID, r.standsAt(c, bind, bound), cmd.Target), nil
	}
	text := fmt.Sprintf("evict %s%s", key.ID, evictNote)
	var changes []change
	if pinned {
		changes = append(changes, pinTo)
		text = fmt.Sprintf("evict %s from %s%s", key.ID, op.Target, evictNote)
	}
	if bound {
		changes = append(changes, bindTo)
		if !pinned {
			text = fmt.Sprintf("evict %s from %s%s", key.ID, bind.Target, evictNote)
		}
	}
	return changes, text, nil
}

// standsAt is where a conversation is: bound, or where its last turn ran.
func (r *Router) standsAt(c *conv, bind pin.Binding, bound bool) string {
	switch {
	case bound:
		return bind.Target.String()
	case c.data.Last.Rank == model.NoRank:
		return "unplaced"
	}
	return c.data.Last.String()
}
