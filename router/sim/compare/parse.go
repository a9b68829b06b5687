package compare

import (
	"strconv"

	"adpdeck/router/model"
	"adpdeck/router/settings"
	"adpdeck/router/sim"
)

// Entry is one cluster of a comparison.
type Entry struct {
	Name string
	// Workers, Ranks, Blocks and MaxActive shape the cluster; 0 blocks and 0
	// active requests mean: chosen for the traffic.
	Workers, Ranks, Blocks, MaxActive int
	// Speed is how much closer arrivals are than the traffic says.
	Speed float64
	// Rotate routes by plain rotation over all ranks, whatever Settings say.
	Rotate   bool
	Settings model.Settings
}

// PolicyRotate is the word for plain rotation, beside the policies.
const PolicyRotate = "rotate"

// Keys of an entry beside a settings file's.
const (
	keyWorkers   = "workers"
	keyRanks     = "ranks"
	keyBlocks    = "blocks"
	keyMaxActive = "max_active"
	keySpeed     = "speed"
	keyPlacement = "placement"
)

// fields are those keys, with their bounds.
func fields() []model.Field {
	whole := func(name string, lo, hi float64) model.Field {
		return model.Field{Name: name, Kind: model.KindInt, Min: lo, Max: hi}
	}
	policy, _ := model.FieldByName(model.FieldPolicy)
	placement, _ := model.FieldByName(model.FieldNewConvPlacement)
	policy.Options = append(policy.Options, PolicyRotate)
	placement.Name = keyPlacement
	return []model.Field{
		whole(keyWorkers, 1, MaxWorkers), whole(keyRanks, 1, MaxRanks), whole(keyBlocks, 0, sim.MaxBlocks), whole(keyMaxActive, 0, 65536),
		{Name: keySpeed, Kind: model.KindFloat, Min: MinSpeed, Max: MaxSpeed},
		policy, placement,
	}
}

// Bounds of an entry.
const (
	MaxWorkers = 64
	MaxRanks   = 512
	MinSpeed   = 0.001
	MaxSpeed   = 1000
)

// Parse reads a list of entries: the keys of a settings file, and name,
// workers, ranks, blocks, max_active, speed, policy and placement. What an
// entry does not mention is as in base. Errors are a *settings.Error with the
// place in the file.
func Parse(file string, text []byte, base Entry) ([]Entry, error) {
	items, err := settings.ParseList(file, text, base.Settings, fields())
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(items))
	for i, it := range items {
		e := base
		e.Name, e.Settings = it.Name, it.Settings
		if err := e.take(it.Extra); err != nil {
			return nil, &settings.Error{File: file, Line: it.Line, Column: it.Column, Message: err.Error()}
		}
		entries[i] = e
	}
	return entries, nil
}

// take sets what an entry says in its own keys; their bounds have been checked.
func (e *Entry) take(extra map[string]string) error {
	for key, at := range map[string]*int{
		keyWorkers: &e.Workers, keyRanks: &e.Ranks, keyBlocks: &e.Blocks, keyMaxActive: &e.MaxActive,
	} {
		if text, ok := extra[key]; ok {
			v, err := strconv.Atoi(text)
			if err != nil {
				return err
			}
			*at = v
		}
	}
	if text, ok := extra[keySpeed]; ok {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return err
		}
		e.Speed = v
	}
	if policy, ok := extra[model.FieldPolicy]; ok {
		e.Rotate = policy == PolicyRotate
	}
	for key, field := range map[string]string{model.FieldPolicy: model.FieldPolicy, keyPlacement: model.FieldNewConvPlacement} {
		text, ok := extra[key]
		if !ok || text == PolicyRotate {
			continue
		}
		if _, err := model.SetField(&e.Settings, model.FieldValue{Field: field, Value: text}); err != nil {
			return err
		}
	}
	return nil
}
