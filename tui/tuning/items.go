package tuning

import (
	"slices"

	"adpdeck/router/model"
	"adpdeck/tui/cell"
	"adpdeck/tui/view"
)

// kind is what an item is.
type kind uint8

const (
	kindNone kind = iota
	kindKnob
	kindWeight
	kindMore // "14 more at 1.00"
	kindRevision
)

// item is what the cursor can be on. It is an identity: equal items are the
// same thing at any moment.
type item struct {
	kind    kind
	name    string
	target  model.Target
	version uint64
}

// field is the settings field of a knob or a weight.
func (it item) field() *model.Field {
	name := it.name
	if it.kind == kindWeight {
		name = model.FieldWeight
	}
	f, _ := model.FieldByName(name)
	return &f
}

// value is the field, and the rank where it is a rank's, of an item that has a
// value.
func (it item) value() (f model.Field, t *model.Target, ok bool) {
	switch it.kind {
	case kindKnob:
		return *it.field(), nil, true
	case kindWeight:
		at := it.target
		return *it.field(), &at, true
	}
	return model.Field{}, nil, false
}

// line is one row of the list: a title, a blank row, or an item.
type line struct {
	title cell.Text
	item  item
}

// doc is the settings as they would be with what is staged, and the fields in
// the order of the screen.
type doc struct {
	policy  model.Policy     // with what is staged
	mode    model.RouterMode // likewise
	cluster model.ClusterConfig
	gate    bool
	// used are the names of the engine tier's that act, groups the cluster tier's.
	used, gates, unused, switchs []string
	groups                       []group
}

// group is a part of the cluster tier's fields.
type group struct {
	title  cell.Text
	fields []string
}

// groupOf is the group that begins with the cluster tier's field called name.
func groupOf(name string) (title cell.Text, begins bool) {
	switch name {
	case "router_prefill_load_scale":
		return cell.Lit("COST OF A RANK"), true
	case "router_track_active_blocks":
		return cell.Lit("WHAT IS TRACKED"), true
	case "router_queue_threshold":
		return cell.Lit("LIMITS, QUEUE, AFFINITY"), true
	}
	return cell.Text{}, false
}

func gather(f *view.Frame) doc {
	trial := f.State.Settings
	if _, err := model.SetFields(&trial, f.Staged); err != nil {
		for _, fv := range f.Staged {
			// One that cannot stand is left out; the apply dialog says so.
			_, _ = model.SetField(&trial, fv)
		}
	}
	d := doc{
		policy: trial.AttentionDpConfig.Policy(), mode: trial.RouterMode, cluster: trial.Cluster(), gate: trial.AttentionDpConfig.EnableBalance,
		groups: []group{{title: cell.Lit("CLUSTER TIER")}},
	}
	tier := false // from here on the fields are the cluster tier's
	all := model.Fields()
	for i := range all {
		field := &all[i]
		if title, begins := groupOf(field.Name); begins {
			d.groups = append(d.groups, group{title: title})
			tier = true
		}
		switch {
		case field.Name == model.FieldPolicy || field.PerTarget:
		case field.Name == model.FieldRouterMode:
			d.groups[0].fields = append(d.groups[0].fields, field.Name)
		case field.Name == model.FieldKVCacheAware || field.Name == model.FieldConversationAffinity:
			d.switchs = append(d.switchs, field.Name)
		case field.Name == model.FieldEnableBalance || field.Needs == model.FieldEnableBalance:
			d.gates = append(d.gates, field.Name)
		case !d.reads(field):
			d.unused = append(d.unused, field.Name)
		case tier:
			last := &d.groups[len(d.groups)-1]
			last.fields = append(last.fields, field.Name)
		default:
			d.used = append(d.used, field.Name)
		}
	}
	return d
}

// steers reports that the cluster tier chooses the rank, so that no policy of
// the engine tier is asked.
func (d *doc) steers() bool { return d.mode == model.ModeKV || d.mode == model.ModeLockstep }

// idle reports that the field belongs to a policy, and none is asked. The bound
// on bindings holds in every mode.
func (d *doc) idle(field *model.Field) bool {
	return d.steers() && len(field.Policies) > 0 && field.Name != model.FieldMaxSessions
}

// reads reports whether the mode and the policy look at the field.
func (d *doc) reads(field *model.Field) bool {
	if field.Name == model.FieldMaxSessions && d.steers() {
		return true
	}
	return field.UsedBy(d.policy) && field.UsedIn(d.mode) && !d.idle(field)
}

// off says why a field does nothing now, empty when it acts.
func (d *doc) off(field *model.Field) cell.Text {
	switch {
	case d.idle(field):
		return cell.Say("mode %s picks ranks itself", cell.Foreign(string(d.mode)))
	case !d.reads(field) && !field.UsedIn(d.mode):
		return usedBy(cell.Lit("mode"), field.Modes)
	case !d.reads(field):
		return usedBy(cell.Lit("policy"), field.Policies)
	case field.Needs == model.FieldEnableBalance && !d.gate:
		return cell.Lit("needs the balance gate on")
	case field.Name == "shared_cache_multiplier" && d.cluster.SharedCacheType == model.SharedCacheNone:
		return cell.Lit("needs a shared cache")
	case field.Name == "router_track_output_blocks" && !d.cluster.TrackActiveBlocks:
		return cell.Lit("needs track blocks on")
	}
	return cell.Text{}
}

// usedBy says which of what kind read a field.
func usedBy[T ~string](kind cell.Text, names []T) cell.Text {
	var t cell.Text
	for i, n := range names {
		if i == 2 && len(names) > 3 {
			t = cell.Say("%s +%s", t, cell.Int(len(names)-i))
			break
		}
		if i > 0 {
			t = cell.Say("%s, %s", t, cell.Foreign(string(n)))
		} else {
			t = cell.Foreign(string(n))
		}
	}
	if len(names) == 1 {
		return cell.Say("%s %s uses it", kind, t)
	}
	if kind == cell.Lit("policy") {
		kind = cell.Lit("policie")
	}
	return cell.Say("%ss %s use it", kind, t)
}

// knobs are the lines of fields and weights.
func (v *View) knobs(f *view.Frame, d *doc, airy bool) []line {
	out := make([]line, 0, 96)
	add := func(names []string) {
		for _, n := range names {
			out = append(out, line{item: item{kind: kindKnob, name: n}})
		}
	}
	title := func(t cell.Text) {
		if airy && len(out) > 0 {
			out = append(out, line{})
		}
		out = append(out, line{title: t})
	}
	groups := d.groups
	if d.steers() { // what decides comes first
		add(groups[0].fields)
		add(groups[1].fields)
		groups = groups[2:]
	}
	add(d.used)
	title(cell.Lit("RANK WEIGHT"))
	out = append(out, v.weights(f)...)
	for _, g := range groups {
		if len(g.fields) > 0 {
			title(g.title)
			add(g.fields)
		}
	}
	title(cell.Lit("BALANCE GATE"))
	add(d.gates)
	if len(d.unused) > 0 {
		title(cell.Lit("NOT USED NOW"))
		add(d.unused)
	}
	title(cell.Lit("UPSTREAM'S SWITCHES"))
	add(d.switchs)
	return out
}

// weights lists the ranks whose weight differs or is staged, or all of them.
func (v *View) weights(f *view.Frame) []line {
	var out []line
	rest := 0
	for i := range f.State.Ranks {
		t := f.State.Ranks[i].Target
		_, staged := f.StagedValue(model.FieldWeight, &t)
		if v.allRanks || staged || f.State.Settings.WeightOf(t) != model.DefaultWeight || (v.at == item{kind: kindWeight, target: t}) {
			out = append(out, line{item: item{kind: kindWeight, target: t}})
		} else {
			rest++
		}
	}
	if rest > 0 || v.allRanks {
		out = append(out, line{item: item{kind: kindMore}})
	}
	return out
}

// past are the lines of the history.
func past(f *view.Frame) []line {
	out := make([]line, 0, len(f.State.Revisions))
	for i := range f.State.Revisions {
		out = append(out, line{item: item{kind: kindRevision, version: f.State.Revisions[i].Version}})
	}
	return out
}

// items are what the cursor moves over, in order.
func (v *View) items(f *view.Frame, d *doc) []item {
	var out []item
	for _, l := range append(v.knobs(f, d, false), past(f)...) {
		if l.item.kind != kindNone {
			out = append(out, l.item)
		}
	}
	return out
}

// cursor is the item under the cursor; when it is gone, the one that stands in
// its line.
func (v *View) cursor(f *view.Frame, d *doc) item {
	all := v.items(f, d)
	if i := index(all, v.at); i >= 0 {
		v.line = i
		return v.at
	}
	if len(all) == 0 {
		return item{}
	}
	v.line = min(max(v.line, 0), len(all)-1)
	v.at = all[v.line]
	return v.at
}

func index(all []item, it item) int { return slices.Index(all, it) }

// lineOf is the line of an item, -1 when it has none.
func lineOf(lines []line, it item) int {
	return slices.IndexFunc(lines, func(l line) bool { return l.item == it && it.kind != kindNone })
}
