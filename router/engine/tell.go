package engine

import (
	"fmt"
	"reflect"
	"slices"

	"adpdeck/router/model"
)

// Codes of the findings of a fleet.
const (
	FindingDisagrees = model.FindingEngineDisagrees // the settings and the engine say different things
	FindingUnknown   = "engine_unknown"             // nothing is known of a worker yet
	FindingRefused   = "engine_refused"             // the router does not take the worker
	FindingFigures   = "metrics_refused"            // some of its loads cannot be used
	FindingEvents    = "events_unheard"             // a publisher of KV events cannot be heard
	FindingLoads     = "loads_unheard"              // a publisher of loads cannot be heard, or says what cannot be used
	FindingMixed     = "engines_mixed"              // several processes answer at one address
)

// picture is what the sink should know of a worker.
type picture struct {
	spec     model.WorkerSpec
	up       []bool
	why      []string
	restarts []restart
	// unknown says why the worker cannot join yet, empty when it can.
	unknown string
	wrong   string
}

// look makes the picture. ready is false while an address has not been asked.
func (w *worker) look() (p picture, ready bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &w.learnt
	for _, d := range w.doors {
		if !d.life.judged {
			return p, false
		}
	}
	if l.ranks == 0 {
		p.unknown = "the settings do not say how many ranks it has, and the engine has not said yet"
		if d := w.doors[0]; !d.life.up {
			p.unknown = "the settings do not say how many ranks it has, and the engine does not answer: " + d.life.why
		}
		return p, true
	}
	live, replay := w.endpoints()
	transport := transportOf(&w.spec)
	p.spec = model.WorkerSpec{
		ID: w.spec.ID, Ranks: l.ranks, MaxNumActiveRequests: l.maxActive, Engine: string(w.spec.Kind),
		KVEvents:    transport == transportHTTP || transport == transportNATS || len(live) > 0,
		KVReplay:    len(replay) > 0,
		BlockTokens: l.blockTokens, StartRank: w.spec.StartRank, KVBlocks: l.kvBlocks, MaxBatchedTokens: l.maxBatched,
		Address: w.doors[0].base, Steering: w.steering(), Models: l.serves(),
	}
	p.wrong = l.disagreements()
	p.restarts, w.restarts = w.restarts, nil
	for r := range l.ranks {
		up, why := w.alive(r)
		p.up = append(p.up, up)
		p.why = append(p.why, why)
	}
	return p, true
}

// alive says whether a rank may take requests. Callers hold mu.
func (w *worker) alive(rank int) (up bool, why string) {
	d := w.door(rank)
	if d == nil || !d.life.up {
		if d == nil {
			return false, "it has no address"
		}
		return false, d.life.why
	}
	if why, ill := w.sick[rank]; ill {
		return false, why
	}
	if q := &w.doubts[rank]; q.out {
		return false, fmt.Sprintf("%d%s: %s", failsToDoubt, wordsDoubt, q.why)
	}
	return true, ""
}

// tell brings the sink up to date. It belongs to run.
func (w *worker) tell() {
	p, ready := w.look()
	if !ready {
		return
	}
	id := model.Target{Worker: w.spec.ID, Rank: model.NoRank}
	w.finding(FindingUnknown, id, p.unknown, "set ranks, or start the engine")
	if p.unknown != "" {
		return
	}
	if w.joined == nil || !reflect.DeepEqual(*w.joined, p.spec) {
		err := w.f.sink.Join(p.spec)
		words := ""
		if err != nil {
			words = err.Error()
		}
		w.finding(FindingRefused, id, words, "change what it names in the settings file and reload")
		w.mu.Lock()
		w.taken = err == nil || w.joined != nil
		w.notTaken = !w.taken
		w.mu.Unlock()
		if err != nil {
			return
		}
		w.joined = &p.spec
		for r := range w.told {
			if r >= p.spec.Ranks {
				delete(w.told, r)
			}
		}
	}
	w.finding(FindingDisagrees, id, p.wrong, "correct the settings file, or the engine's start; the settings count until then")
	for _, r := range p.restarts {
		w.f.sink.Restarted(w.spec.ID, r.rank, r.why)
	}
	w.tellLife(&p)
}

// tellLife tells what changed of each rank's life: in one word where it is the
// same for all.
func (w *worker) tellLife(p *picture) {
	var turned []int
	for r, up := range p.up {
		if was, known := w.told[r]; !known || was != up {
			turned = append(turned, r)
			w.told[r] = up
		}
	}
	same := !slices.Contains(p.up, !p.up[0]) && !slices.ContainsFunc(p.why, func(s string) bool { return s != p.why[0] })
	if same && len(turned) == len(p.up) {
		w.live(model.NoRank, p.up[0], p.why[0])
		return
	}
	for _, r := range turned {
		w.live(r, p.up[r], p.why[r])
	}
}

func (w *worker) live(rank int, up bool, why string) {
	// The only error is a worker or rank that is not there: it joined just now.
	_ = w.f.sink.Live(w.spec.ID, rank, up, why)
}

// finding keeps one finding up to date: words empty clears it. It belongs to
// run, but for the codes of replays.
func (w *worker) finding(code string, t model.Target, words, next string) {
	key := code + " " + t.String()
	w.mu.Lock()
	was, there := w.found[key]
	if there == (words != "") && was.Message == words {
		w.mu.Unlock()
		return
	}
	f := model.Finding{Code: code, Target: t, Message: words, Next: next, Since: w.f.o.Clock.Now()}
	if there {
		f.Since = was.Since
	}
	if words == "" {
		delete(w.found, key)
	} else {
		w.found[key] = f
	}
	w.mu.Unlock()
	if words == "" {
		w.f.sink.Cleared(code, t)
	} else {
		w.f.sink.Found(f)
	}
}

// forget clears the findings of a worker that has stopped.
func (w *worker) forget() {
	w.mu.Lock()
	left := w.found
	w.found = map[string]model.Finding{}
	w.mu.Unlock()
	for _, f := range left {
		w.f.sink.Cleared(f.Code, f.Target)
	}
}
