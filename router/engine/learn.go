package engine

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"adpdeck/router/engine/scrape"
	"adpdeck/router/model"
)

// learn asks the engine what it is: at once, when it has come back or begun
// anew, and now and then. Where each rank has an address of its own all are
// asked; one that does not answer hides none of the others.
func (w *worker) learn(ctx context.Context) {
	var schema time.Time // when it was read
	for {
		var missing atomic.Bool
		var wg sync.WaitGroup
		for _, d := range w.doors {
			wg.Go(func() {
				whole := w.askModels(ctx, d)
				if w.spec.Kind == model.EngineSGLang {
					whole = w.askInfo(ctx, d) && whole
				}
				if !whole {
					missing.Store(true)
				}
			})
		}
		if w.spec.Kind == model.EngineTRTLLM && time.Since(schema) >= schemaPeriod {
			if w.askSchema(ctx) {
				schema = time.Now()
			} else {
				missing.Store(true)
			}
		}
		wg.Wait()
		wait := learnPeriod
		if missing.Load() {
			wait = learnRetry
		}
		if !pause(ctx, w.f.o.spread(wait), w.again) {
			return
		}
	}
}

// askModels reads one address's list of models.
func (w *worker) askModels(ctx context.Context, d *door) bool {
	a, err := w.fetch(ctx, under(d.base, "/v1/models"), nil, scrape.MaxPageBytes, learnTimeout)
	if err != nil {
		return false
	}
	models, _, err := scrape.Models(a.read())
	if err != nil {
		return false
	}
	w.mu.Lock()
	d.said.models, d.said.modelsKnown = models, true
	changed := w.learnt.take(w.doors)
	w.mu.Unlock()
	if changed {
		nudge(w.poke)
	}
	return true
}

// askSchema looks whether a trtllm-serve's requests have conversation_params: it
// refuses fields that it does not know, and this one came with 1.3.0rc20
// (TensorRT-LLM#15452). A server that does not show its schema is told by header.
func (w *worker) askSchema(ctx context.Context) bool {
	a, err := w.fetch(ctx, under(w.doors[0].base, "/openapi.json"), nil, scrape.MaxPageBytes, learnTimeout)
	if err != nil || a.status >= http.StatusInternalServerError {
		return false
	}
	w.knowsConversations.Store(a.status == http.StatusOK && bytes.Contains(a.body, []byte(`"conversation_params"`)))
	return true
}

// askInfo reads SGLang's description of itself from one address.
func (w *worker) askInfo(ctx context.Context, d *door) bool {
	for _, path := range []string{"/server_info", "/get_server_info"} {
		a, err := w.fetch(ctx, under(d.base, path), nil, scrape.MaxPageBytes, learnTimeout)
		if err != nil {
			return false
		}
		if a.status == http.StatusNotFound {
			continue
		}
		info, err := scrape.SGLangInfo(a.read())
		if err != nil {
			return false
		}
		if d.rank != model.NoRank { // a server of one rank tells of the deployment
			info.Advertised = nil
		} else {
			p := scrape.Page{Advert: info.Advert}
			p.Inside(w.spec.StartRank, w.spec.Ranks, model.NumbersAuto)
			info.Advert = p.Advert
		}
		w.mu.Lock()
		d.said.info = &info.Advert
		advert, words := together(w.doors)
		changed := w.learnt.agree("ranks' server info", words)
		changed = w.learnt.advert(fromInfo, &advert) || changed
		if at := info.Events; at != nil && d.rank == model.NoRank && (w.learnt.events == nil || *w.learnt.events != *at) {
			w.learnt.events, changed = at, true
		}
		if changed {
			w.settle()
		}
		w.mu.Unlock()
		if changed {
			nudge(w.poke)
		}
		return true
	}
	return false
}

// read is the answer in scrape's form.
func (a *answer) read() scrape.Answer {
	return scrape.Answer{Status: a.status, ContentType: a.contentType, Body: a.body}
}

// settle makes what was learnt count: as many doubts as ranks, and a new view.
// Callers hold mu.
func (w *worker) settle() {
	n := w.learnt.ranks
	for len(w.doubts) < n {
		w.doubts = append(w.doubts, doubt{})
	}
	for len(w.doubts) > n {
		last := len(w.doubts) - 1
		if w.doubts[last].fails > 0 {
			w.doubtful.Add(-1)
		}
		w.doubts = w.doubts[:last]
	}
	for r := range w.sick {
		if r >= n {
			delete(w.sick, r)
		}
	}
	w.show()
}

// unwell says why an answer to /health is no good one, empty for a good one.
func (w *worker) unwell(a answer) string {
	s := scrape.Health(w.spec.Kind, a.read())
	if s.Live && w.spec.InstanceID != 0 && len(s.Instances) > 0 && !slices.Contains(s.Instances, w.spec.InstanceID) {
		return fmt.Sprintf("the frontend does not list instance %d", w.spec.InstanceID)
	}
	return cut(s.Why)
}
