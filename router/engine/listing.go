package engine

import (
	"bytes"

	"adpdeck/router/model"
)

// Models is the answer to /v1/models: what all workers serve, each model once
// and as the first worker that lists it describes it. A worker whose settings
// name its models serves those, even if it has not been reached.
func (f *Fleet) Models() []byte {
	var b bytes.Buffer
	b.WriteString(`{"object":"list","data":[`)
	seen := map[string]bool{}
	add := func(id string, raw []byte) {
		if seen[id] {
			return
		}
		if len(seen) > 0 {
			b.WriteByte(',')
		}
		seen[id] = true
		b.Write(raw)
	}
	for _, w := range f.list() {
		w.mu.Lock()
		listed := w.learnt.models
		serves := w.learnt.serves()
		w.mu.Unlock()
		for _, id := range serves {
			raw := plainModel(id)
			for _, m := range listed {
				if m.ID == id {
					raw = m.Raw
				}
			}
			add(id, raw)
		}
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

// WorkerHealth is one worker as the gateway's health routes show it.
type WorkerHealth struct {
	ID string
	// Ranks is how many it has, 0 while that is not known; Live of them answer.
	Ranks, Live int
	// Why is why the others do not, the first reason.
	Why string
}

// Health lists the workers in the order configured.
func (f *Fleet) Health() []WorkerHealth {
	var all []WorkerHealth
	for _, w := range f.list() {
		h := WorkerHealth{ID: w.spec.ID}
		w.mu.Lock()
		h.Ranks = w.learnt.ranks
		for r := range h.Ranks {
			up, why := w.alive(r)
			switch {
			case up:
				h.Live++
			case h.Why == "":
				h.Why = why
			}
		}
		if d := w.doors[0]; h.Ranks == 0 && !d.life.up {
			h.Why = d.life.why
		}
		w.mu.Unlock()
		if h.Live < max(h.Ranks, 1) && h.Why == "" {
			h.Why = "not asked yet"
		}
		all = append(all, h)
	}
	return all
}

// Workers lists the ids of the workers served, in the order configured, with
// what is known of each: Ranks is 0 while that is not known.
func (f *Fleet) Workers() []model.EngineSpec {
	var all []model.EngineSpec
	for _, w := range f.list() {
		all = append(all, *w.view.Load())
	}
	return all
}
