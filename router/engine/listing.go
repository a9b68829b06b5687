package engine

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

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
	// Ranks is how many it has, 0 while that is not known; Live of them answer, none
	// where the sink refused the worker.
	Ranks, Live int
	// Why is why the others do not, the first reason, in words that name no address
	// and repeat nothing of an engine's: anybody may read them. What the sink is told
	// says more.
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
			case w.notTaken:
				h.Why = wordsNotTaken
			case up:
				h.Live++
			case h.Why == "":
				h.Why = public(why)
			}
		}
		if d := w.doors[0]; h.Ranks == 0 && !d.life.up {
			h.Why = public(d.life.why)
		}
		w.mu.Unlock()
		if h.Live < max(h.Ranks, 1) && h.Why == "" {
			h.Why = "not asked yet"
		}
		all = append(all, h)
	}
	return all
}

// wordsNotTaken is why no rank of a worker counts as live though its engine answers.
const wordsNotTaken = "it does not fit in and gets no requests: adpdeck ctl get findings says why"

// public are the words on an engine that does not answer without what only its
// operator should read: errors name addresses, and so may an engine's own text.
func public(why string) string {
	switch why {
	case "", wordsRefused, wordsReset, wordsEnded, noAnswerWithin(checkTimeout), wordsNoConnection:
		return why
	}
	if n, _, ok := strings.Cut(why, wordsDoubt); ok && n == strconv.Itoa(failsToDoubt) {
		return n + wordsDoubt
	}
	return "it is not well: the console and adpdeck ctl get workers say why"
}

// Workers lists the ids of the workers served, in the order configured, with
// what is known of each: Ranks is 0 while that is not known, Models are empty while
// neither the settings nor the engine have named any.
func (f *Fleet) Workers() []model.EngineSpec {
	var all []model.EngineSpec
	for _, w := range f.list() {
		spec := *w.view.Load()
		w.mu.Lock()
		spec.Models = w.learnt.serves()
		w.mu.Unlock()
		all = append(all, spec)
	}
	return all
}

// Adapter is a LoRA adapter that a worker serves beside its base model.
type Adapter struct {
	Worker string
	Kind   model.EngineKind
	// Name is what requests call it by, Parent the base model.
	Name, Parent string
}

// Adapters lists the adapters that the workers' lists of models tell of by naming
// their base model: vLLM's and newer SGLang's do. It is in no particular order.
func (f *Fleet) Adapters() []Adapter {
	var all []Adapter
	for _, w := range f.list() {
		w.mu.Lock()
		serves := w.learnt.serves()
		for _, m := range w.learnt.models {
			// A model that names itself is none; some lists do.
			if m.Parent != "" && m.Parent != m.ID && slices.Contains(serves, m.ID) {
				all = append(all, Adapter{Worker: w.spec.ID, Kind: w.spec.Kind, Name: m.ID, Parent: m.Parent})
			}
		}
		w.mu.Unlock()
	}
	return all
}
