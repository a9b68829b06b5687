package settings

import "adpdeck/router/model"

// Changes lists what a set command has to set for from to become to: fields,
// and weights of ranks that either of them names.
func Changes(from, to model.Settings) []model.FieldValue {
	var out []model.FieldValue
	for _, name := range allKeys() {
		if was, is := model.FieldText(&from, name, model.Target{}), model.FieldText(&to, name, model.Target{}); was != is {
			out = append(out, model.FieldValue{Field: name, Value: is})
		}
	}
	seen := map[model.Target]bool{}
	for _, list := range [][]model.Weight{from.Weights, to.Weights} {
		for _, w := range list {
			t := w.Target
			if seen[t] || from.WeightOf(t) == to.WeightOf(t) {
				continue
			}
			seen[t] = true
			out = append(out, model.FieldValue{Field: model.FieldWeight, Target: &t, Value: model.FieldText(&to, model.FieldWeight, t)})
		}
	}
	return out
}
