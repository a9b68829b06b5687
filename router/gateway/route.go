package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"adpdeck/router/engine"
	"adpdeck/router/engine/steer"
	"adpdeck/router/gateway/convid"
	"adpdeck/router/model"
)

// routeAnswer is a placement, with all that a gateway needs to carry the request
// itself.
type routeAnswer struct {
	ID     string `json:"id"`
	Worker string `json:"worker"`
	// Rank is inside the worker, null where the engine picks it.
	Rank    *int              `json:"rank"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`        // to set
	Strip   []string          `json:"strip_headers"`  // not to pass on
	Body    []routeField      `json:"body,omitempty"` // to change
	Channel string            `json:"channel"`
	// MatchedTokens are those that the rank is taken to hold.
	MatchedTokens int    `json:"matched_tokens"`
	PromptTokens  int    `json:"prompt_tokens"`
	Decision      uint64 `json:"decision"`
	Why           string `json:"why,omitempty"`
	// ExpiresSecs is how long the placement stands without a first_token or DELETE.
	ExpiresSecs float64 `json:"expires_secs"`
}

type routeField struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"` // null: take it out
	Add   bool            `json:"add,omitempty"`
}

// routeOnly answers /v1/route: it places and books a request that another gateway
// carries.
func (g *Gateway) routeOnly(w http.ResponseWriter, r *http.Request) {
	if !g.enter() {
		refuse(w, problemOf(errStopped))
		return
	}
	defer g.leave()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(g.hard, func() { cancel(errStopped) })()
	a, err := g.placeFor(ctx, w, r)
	if err != nil {
		refuse(w, problemOf(err))
		return
	}
	writeJSON(w, http.StatusOK, a)
}

func (g *Gateway) placeFor(ctx context.Context, w http.ResponseWriter, r *http.Request) (*routeAnswer, error) {
	var ask routeAsk
	if err := g.decode(ctx, w, r, &ask, knownFields); err != nil {
		return nil, err
	}
	req, how, err := g.request(r, &ask)
	if err != nil {
		return nil, err
	}
	if s := g.spec.QueueTimeoutSecs; s > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeoutCause(ctx, seconds(s), errQueue)
		defer done()
	}
	req.ID = g.ids.Add(1)
	d, err := g.router.RouteWait(ctx, req, nil)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
			return nil, cause
		}
		return nil, err
	}
	up, err := g.engines.Upstream(d.Target, how, convid.ForEngine(req.Conv))
	if err == nil {
		err = r.Context().Err() // nobody would end it
	}
	if err != nil {
		g.router.Done(req.ID, model.OutcomeError)
		return nil, refusal(http.StatusBadGateway, "cannot_steer", "%v", err)
	}
	g.router.Sent(req.ID, up.Channel)
	a := g.routeAnswer(req, &d, &up)
	a.ID = g.leases.add(req.ID, d.Target, g.clock.Now())
	return a, nil
}

// routeAnswer words a placement, its id apart. The engine's key is not in it: who
// asks for placements is not told it.
func (g *Gateway) routeAnswer(req *model.Request, d *model.Decision, up *engine.Upstream) *routeAnswer {
	a := &routeAnswer{
		Worker: d.Target.Worker, URL: up.Base.String(), Headers: map[string]string{},
		Strip: up.Strip, Channel: up.Channel, MatchedTokens: d.Placement.MatchTokens, PromptTokens: req.PromptTokens,
		Decision: d.ID, Why: d.Why, ExpiresSecs: g.leases.ttl.Seconds(),
	}
	if d.Target.Rank != model.NoRank {
		a.Rank = &d.Target.Rank
	}
	for name := range up.Header {
		if name != "Authorization" {
			a.Headers[name] = up.Header.Get(name)
		}
	}
	for _, f := range up.Body {
		a.Body = append(a.Body, routeField{f.Name, f.JSON, f.Add})
	}
	return a
}

// firstAsk is the body of /v1/route/{id}/first_token, which may be empty.
type firstAsk struct {
	// Rank is where the engine says that it ran, CachedTokens what it found there.
	Rank         *int     `json:"rank"`
	CachedTokens *int     `json:"cached_tokens"`
	TTFTMs       *float64 `json:"ttft_ms"`
}

// routeFirst notes the first token of a placement.
func (g *Gateway) routeFirst(w http.ResponseWriter, r *http.Request) {
	var ask firstAsk
	if err := g.decode(r.Context(), w, r, &ask, knownFields); err != nil {
		refuse(w, problemOf(err))
		return
	}
	now := g.clock.Now()
	l, ok := g.leases.firstToken(r.PathValue("id"), now)
	if !ok {
		refuse(w, noLease(r))
		return
	}
	if !l.first {
		u := model.Usage{Ran: model.Target{Worker: l.target.Worker, Rank: model.NoRank}, CachedUnknown: true, TTFTMs: float64(now.Sub(l.start).Microseconds()) / 1000}
		if ask.Rank != nil && *ask.Rank >= 0 {
			u.Ran.Rank, u.Evidence = *ask.Rank, steer.EvidenceUsage
		}
		if ask.CachedTokens != nil && *ask.CachedTokens >= 0 {
			u.CachedTokens, u.CachedUnknown = *ask.CachedTokens, false
		}
		if ask.TTFTMs != nil && *ask.TTFTMs >= 0 {
			u.TTFTMs = *ask.TTFTMs
		}
		g.router.FirstToken(l.id, u)
	}
	w.WriteHeader(http.StatusNoContent)
}

// routeEnds ends a placement; ?outcome= says how, ok when it does not.
func (g *Gateway) routeEnds(w http.ResponseWriter, r *http.Request) {
	o := model.Outcome(r.URL.Query().Get("outcome"))
	switch o {
	case "":
		o = model.OutcomeOK
	case model.OutcomeOK, model.OutcomeError, model.OutcomeCancelled:
	default:
		refuse(w, refusal(http.StatusBadRequest, "bad_outcome", "outcome is %.40q: give ok, error or cancelled", o))
		return
	}
	id, ok := g.leases.end(r.PathValue("id"))
	if !ok {
		refuse(w, noLease(r))
		return
	}
	g.router.Done(id, o)
	w.WriteHeader(http.StatusNoContent)
}

func noLease(r *http.Request) *problem {
	return refusal(http.StatusNotFound, "no_such_placement", "placement %.40q is not open: it has ended, expired without a word, or never was; ask /v1/route for another", r.PathValue("id"))
}
