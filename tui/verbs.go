package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"adpdeck/router/model"
	"adpdeck/themes"
	"adpdeck/tui/cell"
	"adpdeck/tui/command"
	"adpdeck/tui/view"
)

// verb is a command that can be typed with arguments.
type verb struct {
	name  string
	usage string // as the palette prints it
	does  string
	// args gives the words that complete the n-th argument.
	args func(m *Model, n int) []string
	run  func(m *Model, args []string) (view.Intent, error)
}

// verbs are the palette's own words, beside the names of the command table.
func verbs() []verb {
	rank := func(at int) func(*Model, int) []string {
		return func(m *Model, n int) []string {
			if n == at {
				return m.rankNames()
			}
			return m.convNames()
		}
	}
	fleet := func(m *Model, _ int) []string { return append(m.rankNames(), m.workerNames()...) }
	return []verb{
		{"view", "view NAME", "show a view", func(*Model, int) []string { return viewNames() }, runView},
		{"theme", "theme NAME", "night, day, mono, or a file", func(m *Model, _ int) []string { return m.themeNames() }, runTheme},
		{"filter", "filter TERMS", "show only what matches", nil, runFilter},
		{"sort", "sort COLUMN", "order this list", func(m *Model, _ int) []string { return m.sortNames() }, runSort},
		{"policy", "policy NAME", "stage a policy", func(*Model, int) []string {
			return []string{string(model.PolicyDefault), string(model.PolicyKVAware), string(model.PolicyConversation)}
		}, stageField(model.FieldPolicy)},
		{"placement", "placement NAME", "stage where new ones go", func(*Model, int) []string {
			return []string{model.PlaceRoundRobin, model.PlaceLeastQueued, model.PlaceLeastTokens}
		}, stageField("kv_cache_routing_new_conv_placement")},
		{"set", "set FIELD VALUE", "stage a value", func(_ *Model, n int) []string {
			if n == 0 {
				return fieldNames()
			}
			return nil
		}, runSet},
		{"weight", "weight RANK VALUE", "stage a rank's weight, 0 to 2", rank(0), runWeight},
		{"discard", "discard", "drop what is staged", nil, func(*Model, []string) (view.Intent, error) { return view.Unstage{}, nil }},
		{"pin", "pin CONVERSATION RANK", "hold a conversation on a rank", rank(1), convVerb(model.VerbPin, true)},
		{"migrate", "migrate CONVERSATION RANK", "move it to another rank", rank(1), convVerb(model.VerbMigrate, true)},
		{"unpin", "unpin CONVERSATION", "remove the operator's pin", rank(9), convVerb(model.VerbUnpin, false)},
		{"evict", "evict CONVERSATION", "place its next turn afresh", rank(9), convVerb(model.VerbEvict, false)},
		{"drain", "drain RANK or WORKER", "no new conversations", fleet, fleetVerb(model.VerbDrain)},
		{"ready", "ready RANK or WORKER", "take new work again", fleet, fleetVerb(model.VerbReady)},
		{"clear", "clear RANK", "drop its phantom load", rank(0), rankVerb(model.VerbClear)},
		{"resync", "resync RANK", "learn its cache afresh", rank(0), rankVerb(model.VerbResync)},
		{"speed", "speed FACTOR", "simulation speed, 0.25 to 64, 0 pauses", nil, runSpeed},
	}
}

// fieldNames are the fields that set stages: all but a rank's weight.
func fieldNames() []string {
	var out []string
	for _, f := range model.Fields() {
		if !f.PerTarget {
			out = append(out, f.Name)
		}
	}
	return out
}

func (m *Model) rankNames() []string {
	var out []string
	for i := range m.frame.State.Ranks {
		out = append(out, m.frame.State.Ranks[i].Target.String())
	}
	return out
}

func (m *Model) workerNames() []string {
	var out []string
	for i := range m.frame.State.Workers {
		out = append(out, m.frame.State.Workers[i].ID)
	}
	return out
}

func viewNames() []string {
	var out []string
	for _, v := range command.Views() {
		out = append(out, string(v))
	}
	return out
}

func runView(_ *Model, args []string) (view.Intent, error) {
	if err := want(args, 1, "view NAME"); err != nil {
		return nil, err
	}
	if !slices.Contains(viewNames(), args[0]) {
		return nil, fmt.Errorf("no view %s: views are %s", args[0], strings.Join(viewNames(), " "))
	}
	return view.Goto{View: command.View(args[0])}, nil
}

func (m *Model) convNames() []string {
	var out []string
	for _, c := range m.frame.State.Convs[:min(len(m.frame.State.Convs), 500)] {
		out = append(out, c.Key.ID)
	}
	return out
}

func (m *Model) themeNames() []string {
	var out []string
	for _, f := range m.opt.Themes {
		out = append(out, f.Name)
	}
	return out
}

func (m *Model) sortNames() []string {
	if s, ok := m.current().(view.Sorter); ok {
		names, _, _ := s.SortFields()
		return names
	}
	return nil
}

func want(args []string, n int, usage string) error {
	if len(args) != n {
		return fmt.Errorf("want %s", usage)
	}
	return nil
}

func runTheme(m *Model, args []string) (view.Intent, error) {
	if err := want(args, 1, "theme NAME, for example theme day"); err != nil {
		return nil, err
	}
	for _, f := range m.opt.Themes {
		if f.Name == args[0] {
			return themeIntent{file: f}, nil
		}
	}
	f, err := themes.Load(args[0])
	if err != nil {
		return nil, err
	}
	return themeIntent{file: f}, nil
}

func runFilter(m *Model, args []string) (view.Intent, error) {
	f, ok := m.current().(view.Filterer)
	if !ok {
		return nil, fmt.Errorf("this view has no filter")
	}
	f.SetFilter(strings.Join(args, " "))
	return nil, nil
}

func runSort(m *Model, args []string) (view.Intent, error) {
	s, ok := m.current().(view.Sorter)
	if !ok {
		return nil, fmt.Errorf("this view has no order")
	}
	if err := want(args, 1, "sort COLUMN"); err != nil {
		return nil, err
	}
	if !s.SortBy(args[0]) {
		return nil, fmt.Errorf("no column %s: columns are %s", args[0], strings.Join(m.sortNames(), " "))
	}
	return nil, nil
}

// mayAct says why staging and sending are off now.
func (m *Model) mayAct() error {
	if why := m.table.Get(command.Policy).Reason(m.situation()); why != "" {
		return fmt.Errorf("off: %s", why)
	}
	return nil
}

func stageField(field string) func(*Model, []string) (view.Intent, error) {
	return func(m *Model, args []string) (view.Intent, error) {
		return runSet(m, append([]string{field}, args...))
	}
}

func runSet(m *Model, args []string) (view.Intent, error) {
	if err := want(args, 2, "a field and a value"); err != nil {
		return nil, err
	}
	if !slices.Contains(fieldNames(), args[0]) {
		return nil, fmt.Errorf("no field %s: tab shows the fields", args[0])
	}
	if err := m.mayAct(); err != nil {
		return nil, err
	}
	return view.All{
		view.Stage{Values: []model.FieldValue{{Field: args[0], Value: args[1]}}},
		view.Toast{Level: view.Done, Text: cell.Say("staged %s %s · %s applies", cell.Foreign(args[0]), cell.Foreign(args[1]), m.keyOf(command.Apply))},
	}, nil
}

func (m *Model) rankNamed(s string) (*model.Target, error) {
	t, err := model.ParseTarget(s)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(m.rankNames(), t.String()) {
		return nil, fmt.Errorf("no rank %s", t)
	}
	return &t, nil
}

func runWeight(m *Model, args []string) (view.Intent, error) {
	if err := want(args, 2, "weight RANK VALUE, for example weight w0/3 0.8"); err != nil {
		return nil, err
	}
	t, err := m.rankNamed(args[0])
	if err != nil {
		return nil, err
	}
	value := args[1]
	if value == "default" {
		value = "1"
	}
	w, err := strconv.ParseFloat(value, 64)
	if err != nil || !(w >= model.MinWeight && w <= model.MaxWeight) {
		return nil, fmt.Errorf("weight %s: want a number from 0 to 2, or default", args[1])
	}
	if err := m.mayAct(); err != nil {
		return nil, err
	}
	return view.All{
		view.Stage{Values: []model.FieldValue{{Field: model.FieldWeight, Target: t, Value: value}}},
		view.Toast{Level: view.Done, Text: cell.Say("staged %s weight %s · %s applies", cell.Foreign(t.String()), cell.Foreign(value), m.keyOf(command.Apply))},
	}, nil
}

// convVerb sends a command for one conversation named by its id, after a
// question.
func convVerb(v model.Verb, target bool) func(*Model, []string) (view.Intent, error) {
	return func(m *Model, args []string) (view.Intent, error) {
		n := 1
		if target {
			n = 2
		}
		if err := want(args, n, string(v)+" CONVERSATION"+map[bool]string{true: " RANK"}[target]); err != nil {
			return nil, err
		}
		var keys []model.ConvKey
		for _, c := range m.frame.State.Convs {
			if c.Key.ID == args[0] {
				keys = append(keys, c.Key)
			}
		}
		switch {
		case len(keys) == 0:
			return nil, fmt.Errorf("no conversation %q on this screen", args[0])
		case len(keys) > 1:
			return nil, fmt.Errorf("%d conversations have the id %q: choose one in Convs", len(keys), args[0])
		}
		c := model.Command{Verb: v, Convs: keys}
		if target {
			t, err := m.rankNamed(args[1])
			if err != nil {
				return nil, err
			}
			c.Target = t
		}
		return m.ask(c)
	}
}

func rankVerb(v model.Verb) func(*Model, []string) (view.Intent, error) {
	return func(m *Model, args []string) (view.Intent, error) {
		if err := want(args, 1, string(v)+" RANK"); err != nil {
			return nil, err
		}
		t, err := m.rankNamed(args[0])
		if err != nil {
			return nil, err
		}
		return m.ask(model.Command{Verb: v, Target: t})
	}
}

// fleetVerb is rankVerb that takes the name of a worker too, for all its ranks.
func fleetVerb(v model.Verb) func(*Model, []string) (view.Intent, error) {
	return func(m *Model, args []string) (view.Intent, error) {
		if len(args) == 1 && slices.Contains(m.workerNames(), args[0]) {
			return m.ask(model.Command{Verb: v, Target: &model.Target{Worker: args[0], Rank: model.NoRank}})
		}
		return rankVerb(v)(m, args)
	}
}

// ask opens the question for a command that was typed.
func (m *Model) ask(c model.Command) (view.Intent, error) {
	if err := m.mayAct(); err != nil {
		return nil, err
	}
	return m.askFor(c)
}

func runSpeed(m *Model, args []string) (view.Intent, error) {
	if err := want(args, 1, "speed FACTOR"); err != nil {
		return nil, err
	}
	x, err := strconv.ParseFloat(args[0], 64)
	if err != nil || !(x == 0 || x >= minSpeed && x <= maxSpeed) {
		return nil, fmt.Errorf("speed %s: want 0, or 0.25 to 64", args[0])
	}
	if why := m.table.Get(command.Faster).Reason(m.situation()); why != "" || m.link == command.LinkReplay {
		return nil, fmt.Errorf("off: %s", cmp.Or(why, "use ( ) and p for a recording"))
	}
	return view.Send{Command: model.Command{Verb: model.VerbSpeed, Speed: x}}, nil
}

// runNamed runs a command by name. Without arguments a name of the table acts
// on what is selected, like its key; views may know more.
func (m *Model) runNamed(name string, args []string) (view.Intent, error) {
	c := m.table.Get(command.ID(name))
	s := m.situation()
	if c != nil && len(args) == 0 && c.Applies(s.View) {
		if why := c.Reason(s); why != "" {
			return nil, fmt.Errorf("%s is off: %s", name, why)
		}
		return view.Perform{Command: c.ID}, nil
	}
	if m.frame.State == nil {
		return nil, fmt.Errorf("nothing has arrived from the router yet")
	}
	if r, ok := m.current().(view.Runner); ok {
		in, why, known := r.Run(&m.frame, command.ID(name), args)
		switch {
		case known && why != "":
			return nil, fmt.Errorf("%s: %s", name, why)
		case known:
			return in, nil
		}
	}
	for _, v := range verbs() {
		if v.name == name {
			return v.run(m, args)
		}
	}
	if c != nil && !c.Applies(s.View) {
		return nil, fmt.Errorf("%s does not belong to this view", name)
	}
	return nil, fmt.Errorf("no command %s: tab shows the names", name)
}
