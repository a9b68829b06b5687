package events

import (
	"strconv"
	"strings"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
)

// entry is one event with the revision that it made.
type entry struct {
	*model.Event
	rev  *model.Revision // nil where it made none, or one that is forgotten
	kind string
	// subject is what it is about, found when first asked for.
	subject *subject
}

// join makes the rows of a state. Events are newest first already; a router of
// an older make tells no kind.
func join(s *model.State) []*entry {
	revs := make(map[uint64]*model.Revision, len(s.Revisions))
	for i := range s.Revisions {
		revs[s.Revisions[i].Version] = &s.Revisions[i]
	}
	entries := make([]entry, len(s.Events))
	rows := make([]*entry, len(entries))
	for i := range entries {
		e := &s.Events[i]
		entries[i] = entry{Event: e}
		if e.Version != 0 {
			entries[i].rev = revs[e.Version]
		}
		entries[i].kind = kindOf(s, e)
		rows[i] = &entries[i]
	}
	return rows
}

// kindOf is the event's own kind, or else what its words say: what made a
// version is an act, what an engine or a feed says is theirs.
func kindOf(s *model.State, e *model.Event) string {
	switch {
	case e.Kind != "":
		return e.Kind
	case e.Version > 1:
		return model.EventOperator
	case e.Who == "feed" || e.Who == "index":
		return model.EventIndex
	case e.Who == "router" || e.Who == "auto" || e.Who == "guard" || e.Who == "" || e.Version == 1:
		return model.EventRouter
	}
	for i := range s.Workers {
		if id := s.Workers[i].ID; e.Who == id || strings.HasPrefix(e.Who, id+"/") {
			return model.EventEngine
		}
	}
	return model.EventOperator
}

// machine reports that no operator did it.
func (e *entry) machine() bool { return e.kind != model.EventOperator }

func (e *entry) odd() bool { return e.Level != "info" && e.Level != "" }

func (e *entry) verb() string {
	if e.rev == nil {
		return ""
	}
	return string(e.rev.Verb)
}

// onConvs reports that it is an act on conversations.
func (e *entry) onConvs() bool {
	switch model.Verb(e.verb()) {
	case model.VerbPin, model.VerbUnpin, model.VerbEvict, model.VerbMigrate:
		return true
	}
	return false
}

// reason is the event's own, or that of its revision.
func (e *entry) reason() string {
	if e.Reason == "" && e.rev != nil {
		return e.rev.Reason
	}
	return e.Reason
}

func (e *entry) versionText() string {
	if e.Version == 0 {
		return ""
	}
	return strconv.FormatUint(e.Version, 10)
}

// sign is the level as one cell: nothing, ! or ✕.
func (e *entry) sign(ink cell.Ink) (cell.Role, cell.Text) {
	switch e.Level {
	case "info", "":
		return cell.Plain, cell.Text{}
	case "error":
		return cell.Crit, cell.Glyph(ink.Glyphs.Bad)
	}
	return cell.Warn, cell.Glyph(ink.Glyphs.Alert)
}

// undo says whether the event can be taken back, by the key u, and short for a
// column.
func (e *entry) undo(u cell.Text) (role cell.Role, long, short cell.Text) {
	switch {
	case e.Version == 0 && e.machine():
		return cell.Dim, cell.Lit("nothing to take back: the machine's own"), cell.Text{}
	case e.Version == 0:
		return cell.Dim, cell.Lit("nothing to take back: it changed nothing"), cell.Text{}
	case e.Version == 1:
		return cell.Dim, cell.Lit("cannot be undone: the router started so"), cell.Text{}
	case e.rev == nil:
		return cell.Dim, cell.Lit("cannot be undone: the history forgot it"), cell.Lit("too old")
	case e.rev.UndoneBy != 0:
		return cell.Warn, cell.Say("undone by v%s; %s there does it again", cell.Int(e.rev.UndoneBy), u), cell.Say("undone v%s", cell.Int(e.rev.UndoneBy))
	case !e.rev.Verb.Undoable():
		return cell.Warn, cell.Lit("cannot be undone: what it dropped is gone"), cell.Lit("final")
	case e.rev.Undoes != 0:
		return cell.Plain, cell.Say("%s: does v%s again", u, cell.Int(e.rev.Undoes)), cell.Say("undoes v%s", cell.Int(e.rev.Undoes))
	}
	return cell.Plain, cell.Say("%s: %s", u, e.back()), u
}

// back is what undoing goes back to.
func (e *entry) back() cell.Text {
	switch {
	case e.rev.Verb == model.VerbDrain:
		return cell.Lit("back to ready")
	case e.rev.Verb == model.VerbReady:
		return cell.Lit("back to draining")
	case e.onConvs():
		return cell.Lit("the pins and bindings as before")
	case e.Before != "":
		return cell.Say("back to %s", cell.Fit(e.Before, 40))
	}
	return cell.Lit("everything it changed as before")
}

// kinds are the kinds that have a chip, in their order.
func kinds() [4]string {
	return [4]string{model.EventOperator, model.EventEngine, model.EventIndex, model.EventRouter}
}

// counts is how many events there are, without the filter.
type counts struct {
	all, warn, errors int
	kind              [4]int
}

func count(rows []*entry) (c counts) {
	for _, e := range rows {
		c.all++
		for i, k := range kinds() {
			if e.kind == k {
				c.kind[i]++
			}
		}
		switch {
		case e.Level == "error":
			c.errors++
		case e.odd():
			c.warn++
		}
	}
	return c
}
