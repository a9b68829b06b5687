package router

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"adpdeck/router/model"
	"adpdeck/router/pin"
)

const (
	maxAnswers     = 4096    // command ids whose answers are remembered
	maxAnswerItems = 1 << 17 // items in those answers, over all
	maxActorBytes  = 64
	maxSetValues   = 1024
)

// plan is what a command would do: nothing has changed yet. A refusal that
// concerns the whole command leaves the rest empty.
type plan struct {
	changes []change
	items   []model.ItemResult
	what    string
	undoes  uint64
	act     func() // what no undo brings back, nil for nothing
	refusal *model.Refusal
}

// planner plans a command under the lock.
type planner func(*model.Command) plan

func refuse(code model.RefusalCode, next, format string, args ...any) plan {
	return plan{refusal: refusal(code, next, format, args...)}
}

func refusal(code model.RefusalCode, next, format string, args ...any) *model.Refusal {
	return &model.Refusal{Code: code, Message: fmt.Sprintf(format, args...), Next: next}
}

// Apply carries out a command, all or nothing: an accepted one makes exactly
// one version, one revision and one event. Of several conversations those that
// can be acted on are, and Items says which; when none can, the command is
// refused. The same id again, among the last 4,096, returns the first answer
// and acts once. The reply is the caller's to read, not to write.
func (r *Router) Apply(cmd model.Command) model.Reply {
	now := r.clock.Now()
	reply := r.applyAt(now, &cmd, r.plan)
	r.endDoubts(now) // a resync is carried out without the lock
	return reply
}

// Answered returns the first answer to a command id, if it is remembered.
func (r *Router) Answered(id string) (first model.Reply, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answers.Get(id)
}

func (r *Router) applyAt(now time.Time, cmd *model.Command, by planner) model.Reply {
	r.lock(now)
	defer r.unlock()
	if ref := checkID(cmd.ID); ref != nil {
		return model.Reply{ID: cmd.ID, Version: r.version, Refusal: ref}
	}
	if first, ok := r.answers.Get(cmd.ID); ok {
		return first
	}
	reply := r.apply(cmd, by)
	r.answers.Add(cmd.ID, reply)
	r.answered += len(reply.Items)
	for r.answered > maxAnswerItems && r.answers.Len() > 1 {
		r.answers.RemoveOldest()
	}
	return reply
}

func (r *Router) forgetAnswer(_ string, reply model.Reply) { r.answered -= len(reply.Items) }

func checkID(id string) *model.Refusal {
	if id == "" || len(id) > model.MaxCommandIDBytes || !utf8.ValidString(id) {
		return refusal(model.RefusedMalformed, "send each command with an id of its own",
			"command id of %d bytes: it needs 1 to %d bytes of UTF-8", len(id), model.MaxCommandIDBytes)
	}
	return nil
}

func (r *Router) apply(cmd *model.Command, by planner) model.Reply {
	p := plan{refusal: checkCommand(cmd)}
	if p.refusal == nil {
		p.refusal = r.checkVersion(cmd)
	}
	if p.refusal == nil {
		p = by(cmd)
	}
	if p.refusal != nil {
		return model.Reply{ID: cmd.ID, Version: r.version, Refusal: p.refusal, Items: p.items}
	}
	r.commit(cmd, &p)
	return model.Reply{ID: cmd.ID, Accepted: true, Version: r.version, Items: p.items, What: p.what}
}

func checkCommand(cmd *model.Command) *model.Refusal {
	tooLong := func(name string, n, most int) *model.Refusal {
		return refusal(model.RefusedMalformed, "send less", "%s: %s of %d, at most %d are taken", cmd.Verb, name, n, most)
	}
	switch {
	case len(cmd.Verb) > model.MaxIDBytes:
		return checkNames(cmd)
	case len(cmd.Reason) > model.MaxReasonBytes:
		return tooLong("reason bytes", len(cmd.Reason), model.MaxReasonBytes)
	case len(cmd.Actor) > maxActorBytes:
		return tooLong("actor bytes", len(cmd.Actor), maxActorBytes)
	case len(cmd.Convs) > model.MaxCommandConvs:
		return tooLong("conversations", len(cmd.Convs), model.MaxCommandConvs)
	case len(cmd.Set) > maxSetValues:
		return tooLong("values", len(cmd.Set), maxSetValues)
	case !utf8.ValidString(cmd.Reason) || !utf8.ValidString(cmd.Actor):
		return refusal(model.RefusedMalformed, "send text as UTF-8", "%s: reason or actor is not UTF-8", cmd.Verb)
	}
	return checkNames(cmd)
}

// checkNames bounds every name in a command, so that answers, which quote them
// and are remembered, are bounded too.
func checkNames(cmd *model.Command) (ref *model.Refusal) {
	check := func(what, text string) {
		if ref == nil && len(text) > model.MaxIDBytes {
			ref = refusal(model.RefusedMalformed, "send a shorter one", "%s of %d bytes, at most %d are taken", what, len(text), model.MaxIDBytes)
		}
	}
	check("verb", string(cmd.Verb))
	if cmd.Target != nil {
		check("worker", cmd.Target.Worker)
	}
	for i := range cmd.Set {
		v := &cmd.Set[i]
		check("field", v.Field)
		check("value", v.Value)
		if v.Target != nil {
			check("worker", v.Target.Worker)
		}
	}
	for i := range cmd.Convs {
		k := &cmd.Convs[i]
		check("conversation id", k.ID)
		check("tenant", k.Tenant)
		check("model", k.Model)
	}
	return ref
}

func (r *Router) checkVersion(cmd *model.Command) *model.Refusal {
	if cmd.Expect == 0 || cmd.Expect == r.version {
		return nil
	}
	newest := r.history.newest()
	ref := refusal(model.RefusedConflict, "look at it and send the command again with the new version",
		"%s: v%d is not current, %s made v%d (%s)", cmd.Verb, cmd.Expect, newest.Actor, newest.Version, newest.What)
	ref.Current, ref.Settings = &newest, r.settings
	return ref
}

func (r *Router) plan(cmd *model.Command) plan {
	switch cmd.Verb {
	case model.VerbSet:
		return r.planSet(cmd)
	case model.VerbPin, model.VerbUnpin, model.VerbEvict, model.VerbMigrate:
		return r.planConvs(cmd)
	case model.VerbDrain, model.VerbReady:
		return r.planAvailability(cmd)
	case model.VerbClear:
		return r.planClear(cmd)
	case model.VerbResync:
		return r.planResync(cmd)
	case model.VerbUndo:
		return r.planUndo(cmd)
	case model.VerbSpeed:
		return refuse(model.RefusedVerb, "send it to the simulation", "speed: it acts on a simulation, not on the router")
	case model.VerbReload:
		return refuse(model.RefusedVerb, "change fields with set", "reload: this router was not started from a settings file by adpdeck serve")
	}
	return refuse(model.RefusedVerb, "choose one of set, pin, unpin, evict, migrate, drain, ready, clear, resync, undo",
		"%q: no such verb", cmd.Verb)
}

// commit carries out a plan under a new version. Bindings that it pushes out of
// the table are changes like those that it names.
func (r *Router) commit(cmd *model.Command, p *plan) {
	r.version++
	r.drops = nil
	own := map[model.ConvKey]bool{} // bindings that the plan names
	for i := range p.changes {
		c := &p.changes[i]
		c.before = r.read(&c.object)
		if c.object.kind == bindingObject {
			own[c.object.conv] = true
		}
	}
	settings := r.writeAll(p.changes)
	for _, e := range r.drops {
		if !own[e.Key] {
			o := object{kind: bindingObject, conv: e.Key}
			p.changes = append(p.changes, change{object: o, before: value{binding: e.Binding}, old: true})
		}
	}
	r.drops = nil
	if settings {
		r.reconfigure()
	}
	if p.act != nil {
		p.act()
	}
	r.enter(cmd, p)
	r.requeue()
}

// writeAll gives every object its new value and reports whether settings or
// availabilities are among them. Bindings go first that are to go, so that
// room is there for those that come; the bound of the table may change between.
func (r *Router) writeAll(changes []change) (settings bool) {
	for i := range changes {
		if c := &changes[i]; c.object.kind == bindingObject && c.after.binding.Source == model.PinNone {
			r.binds.Remove(c.object.conv)
		}
	}
	var back []pin.Entry
	for i := range changes {
		c := &changes[i]
		switch c.object.kind {
		case bindingObject:
			if c.after.binding.Source == model.PinNone {
				continue
			}
			if c.old {
				back = append(back, pin.Entry{Key: c.object.conv, Binding: c.after.binding})
				continue
			}
		case fieldObject, weightObject, availObject:
			settings = true
		}
		r.write(c)
	}
	slices.Reverse(back) // an undo goes through its changes backwards
	r.binds.Restore(back)
	return settings
}

// enter writes what was done into the history.
func (r *Router) enter(cmd *model.Command, p *plan) {
	actor := cmd.Actor
	if actor == "" {
		actor = "operator"
	}
	r.stamp++
	rev := model.Revision{
		Version: r.version, At: r.now, Actor: actor, Verb: cmd.Verb, What: p.what, Reason: cmd.Reason, Undoes: p.undoes,
	}
	r.history.add(rev, undoRecord{version: r.version, changes: p.changes}, r.stamp)
	r.history.took(r.version, p.undoes, r.stamp)
	e := model.Event{
		Level: "info", Who: actor, Kind: model.EventOperator, What: p.what, Version: r.version, Reason: cmd.Reason, Command: cmd.ID,
	}
	if cmd.Target != nil {
		t := *cmd.Target
		e.Target = &t
	}
	e.Before, e.After = acts(p.changes)
	r.tell(e)
}

// read returns the value of an object as it stands.
func (r *Router) read(o *object) (v value) {
	switch o.kind {
	case fieldObject:
		v.settings = r.settings
	case weightObject:
		v.weight = r.settings.WeightOf(o.target)
	case availObject:
		v.drain = r.drains(o.target)
	case pinObject:
		v.pin, _ = r.ops.Get(o.conv)
	case bindingObject:
		v.binding, _ = r.binds.Get(o.conv)
	}
	return v
}

// write gives an object its new value and keeps what bindings that pushed out.
func (r *Router) write(c *change) {
	o := &c.object
	switch o.kind {
	case fieldObject, weightObject:
		next := *r.settings
		if o.kind == weightObject {
			next.SetWeight(o.target, c.after.weight)
		} else {
			copyField(&next, c.after.settings, o.field)
		}
		r.settings = &next
		if o.field == model.FieldMaxSessions {
			r.drops = append(r.drops, r.binds.Resize(next.AttentionDpConfig.KVCacheRoutingMaxSessions)...)
		}
	case availObject:
		r.setDrain(o.target, c.after.drain)
	case pinObject:
		// The plan has made sure that there is room.
		_ = r.ops.Set(o.conv, c.after.pin)
	case bindingObject:
		r.drops = append(r.drops, r.binds.Set(o.conv, c.after.binding)...)
	}
}
