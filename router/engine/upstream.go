package engine

import (
	"fmt"
	"net/http"
	"net/url"

	"adpdeck/router/engine/steer"
	"adpdeck/router/model"
)

// Upstream is where a request goes and what it must carry.
type Upstream struct {
	// Base is the engine's address; the request's own path goes below it.
	Base *url.URL
	// Strip are headers of the client that must not pass, canonical; they go
	// before Header is set.
	Strip  []string
	Header http.Header
	// Body are fields to set in the body or, with a nil value, to take out of it;
	// steer.Edit does it.
	Body []steer.Field
	// Channel is how the rank is told, a Channel constant of package steer.
	Channel string
	// Transport carries it, never nil.
	Transport http.RoundTripper
}

// Upstream says how to send a request to a target: to the whole worker where
// its rank is NoRank. conv is the conversation's id where the engine may be told
// one, otherwise empty. It asks nobody.
//
// It returns ErrNoWorker for a worker that is not served, and an error for a
// rank that the worker does not have.
func (f *Fleet) Upstream(t model.Target, route model.Route, conv string) (Upstream, error) {
	w, err := f.worker(t.Worker)
	if err != nil {
		return Upstream{}, err
	}
	plan, err := steer.For(w.view.Load(), t.Rank, route, conv)
	if err != nil {
		return Upstream{}, err
	}
	if w.spec.Kind == model.EngineTRTLLM && !w.knowsConversations.Load() {
		plan.ConversationByHeader(conv)
	}
	d := w.door(t.Rank)
	if d == nil {
		return Upstream{}, fmt.Errorf("steer to %s: the rank has no address", t)
	}
	base, err := url.Parse(d.base)
	if err != nil {
		return Upstream{}, err
	}
	if w.key != "" {
		plan.Header.Set("Authorization", "Bearer "+w.key)
	}
	return Upstream{
		Base: base, Strip: plan.Strip, Header: plan.Header, Body: plan.Body, Channel: plan.Channel, Transport: f.o.Transport,
	}, nil
}

// Ran reads where an engine says that it ran a request that was sent to t, and
// how it said so. body is the JSON of a whole answer or of one chunk of a stream
// that has a usage or an nvext. It reports false where the engine does not say.
//
// A Dynamo frontend may have sent the request to another of its workers: that one
// is named where it is served here, otherwise no worker is (an empty name).
func (f *Fleet) Ran(t model.Target, h http.Header, body []byte) (ran model.Target, evidence string, known bool) {
	nowhere := model.Target{Worker: t.Worker, Rank: model.NoRank}
	w, err := f.worker(t.Worker)
	if err != nil {
		return nowhere, "", false
	}
	if w.doors[0].rank != model.NoRank { // its own address leads nowhere else
		return t, steer.ChannelPort, true
	}
	r, known := steer.Ran(w.view.Load(), h, body)
	switch {
	case !known:
		return nowhere, "", false
	case !r.Elsewhere:
		return model.Target{Worker: t.Worker, Rank: r.Rank}, r.Evidence, true
	}
	for _, o := range f.list() {
		if o.spec.Kind == w.spec.Kind && o.spec.InstanceID == r.Instance && sameAddress(o.spec.URL, w.spec.URL) {
			there, _ := steer.Ran(o.view.Load(), h, body)
			return model.Target{Worker: o.spec.ID, Rank: there.Rank}, r.Evidence, true
		}
	}
	return model.Target{Rank: model.NoRank}, r.Evidence, true
}
