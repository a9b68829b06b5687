package engine

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"adpdeck/router/engine/scrape"
	"adpdeck/router/model"
)

// learn asks the engine what it is: at once, when it has come back or begun
// anew, and now and then.
func (w *worker) learn(ctx context.Context) {
	var schema time.Time // when it was read
	for {
		whole := w.askModels(ctx)
		switch {
		case w.spec.Kind == model.EngineSGLang:
			whole = w.askInfo(ctx) && whole
		case w.spec.Kind == model.EngineTRTLLM && time.Since(schema) >= schemaPeriod:
			if w.askSchema(ctx) {
				schema = time.Now()
			} else {
				whole = false
			}
		}
		wait := learnPeriod
		if !whole {
			wait = learnRetry
		}
		if !pause(ctx, w.f.o.spread(wait), w.again) {
			return
		}
	}
}

// askModels reads the list of models.
func (w *worker) askModels(ctx context.Context) bool {
	a, err := w.fetch(ctx, under(w.doors[0].base, "/v1/models"), nil, scrape.MaxPageBytes, learnTimeout)
	if err != nil {
		return false
	}
	models, _, err := scrape.Models(a.read())
	if err != nil {
		return false
	}
	w.mu.Lock()
	l := &w.learnt
	same := l.modelsKnown && slices.EqualFunc(l.models, models, func(a, b scrape.Model) bool { return a.ID == b.ID })
	l.models, l.modelsKnown = models, true
	changed := !same
	var not []string
	for _, m := range w.spec.Models {
		if !slices.ContainsFunc(models, func(o scrape.Model) bool { return o.ID == m }) {
			not = append(not, m)
		}
	}
	words := ""
	if len(not) > 0 && w.spec.Kind != model.EngineDynamo {
		words = fmt.Sprintf("models: %s in the settings, not by its list", cut(strings.Join(not, ", ")))
	}
	changed = l.agree("models", words) || changed
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

// askInfo reads SGLang's description of itself.
func (w *worker) askInfo(ctx context.Context) bool {
	for _, path := range []string{"/server_info", "/get_server_info"} {
		a, err := w.fetch(ctx, under(w.doors[0].base, path), nil, scrape.MaxPageBytes, learnTimeout)
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
		if len(w.doors) > 1 { // a server of one rank tells of the deployment
			info.Advertised = nil
		} else {
			p := scrape.Page{Advert: info.Advert}
			p.Inside(w.spec.StartRank, w.spec.Ranks, model.NumbersAuto)
			info.Advert = p.Advert
		}
		w.mu.Lock()
		changed := w.learnt.advert(fromInfo, &info.Advert)
		if at := info.Events; at != nil && (w.learnt.events == nil || *w.learnt.events != *at) {
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
