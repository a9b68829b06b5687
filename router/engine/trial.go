package engine

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"adpdeck/router/engine/steer"
	"adpdeck/router/model"
)

// try asks ranks that requests have cast doubt on for one token of their own, so
// that no client has to find out whether they answer again.
func (w *worker) try(ctx context.Context) {
	for {
		var out []int
		w.mu.Lock()
		for r := range w.doubts {
			if w.doubts[r].out {
				out = append(out, r)
			}
		}
		name := ""
		if serves := w.learnt.serves(); len(serves) > 0 {
			name = serves[0]
		}
		w.mu.Unlock()
		if len(out) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-w.trials:
			}
			if !pause(ctx, trialPause, nil) {
				return
			}
			continue
		}
		for _, r := range out {
			w.tryOne(ctx, r, name)
			if ctx.Err() != nil {
				return
			}
		}
		if !pause(ctx, trialPause, nil) {
			return
		}
	}
}

// tryOne tries a rank. An engine that does not take the question leaves it to
// the next client's request.
func (w *worker) tryOne(ctx context.Context, rank int, name string) {
	plan, err := steer.For(w.view.Load(), rank, model.RouteCompletions, "")
	if err != nil {
		return
	}
	body, err := json.Marshal(map[string]any{"model": name, "prompt": "1", "max_tokens": 1})
	if err == nil {
		body, err = steer.Edit(body, plan.Body)
	}
	if err != nil {
		return
	}
	a, err := w.fetchWith(ctx, under(w.door(rank).base, "/v1/completions"), plan.Header, body, 1<<20, trialTimeout)
	if err != nil {
		return // it stays out
	}
	w.mu.Lock()
	turned := false
	switch {
	case rank >= len(w.doubts):
	case a.status == http.StatusOK:
		turned = w.believe(rank)
	case a.status < http.StatusInternalServerError:
		turned = w.doubts[rank].out
		w.doubts[rank].release()
	}
	w.mu.Unlock()
	if turned {
		nudge(w.poke)
	}
}

// believe takes all doubt from a rank and reports whether it was out by it.
// Callers hold mu.
func (w *worker) believe(rank int) (turned bool) {
	d := &w.doubts[rank]
	if d.fails > 0 {
		w.doubtful.Add(-1)
	}
	turned = d.out
	*d = doubt{}
	return turned
}

// trust takes the doubt from every rank behind an address. Callers hold mu.
func (w *worker) trust(d *door) {
	for r := range w.doubts {
		if w.door(r) == d {
			w.believe(r)
		}
	}
}

// A rank that answers again is back within trialPause + trialTimeout < 5 s.
const (
	trialPause   = 2 * time.Second
	trialTimeout = 2 * time.Second
)
