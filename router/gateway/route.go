package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"adpdeck/router/engine"
	"adpdeck/router/engine/steer"
	"adpdeck/router/gateway/body"
	"adpdeck/router/gateway/convid"
	"adpdeck/router/model"
)

// routeAsk is the body of /v1/route: one of token_ids, block_hashes and prompt, or
// none of them.
type routeAsk struct {
	Model        string   `json:"model"`
	Conversation string   `json:"conversation"`
	Tenant       string   `json:"tenant"`
	TokenIDs     []uint32 `json:"token_ids"`
	// BlockHashes are local hashes of the prompt's full blocks, PromptTokens its
	// length then.
	BlockHashes    hashes `json:"block_hashes"`
	PromptTokens   int    `json:"prompt_tokens"`
	Prompt         string `json:"prompt"`
	CacheSalt      string `json:"cache_salt"`
	LoRAName       string `json:"lora_name"`
	Priority       int    `json:"priority"`
	StrictPriority uint32 `json:"strict_priority"`
	ExpectedOutput int    `json:"expected_output"`
	Worker         string `json:"worker"`
	Rank           *int   `json:"rank"`
	// Route is what the client will call, for how the engine is steered; chat when
	// empty.
	Route model.Route `json:"route"`
}

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

// request makes the router's request of what was asked.
func (g *Gateway) request(r *http.Request, ask *routeAsk) (*model.Request, model.Route, error) {
	tenant, err := convid.Tenant(r.Header, g.spec.TenantHeader, g.spec.TenantFromKey)
	if err != nil {
		return nil, "", err
	}
	if ask.Tenant == "" {
		ask.Tenant = tenant
	}
	ask.Conversation = strings.TrimSpace(ask.Conversation)
	how := ask.Route
	switch how {
	case "":
		how = model.RouteChat
	case model.RouteChat, model.RouteCompletions, model.RouteResponses, model.RouteEmbeddings:
	default:
		return nil, "", refusal(http.StatusBadRequest, "bad_route", "route is %.40q: give chat, completions, responses or embeddings", how)
	}
	req := &model.Request{
		Conv:     model.ConvKey{Tenant: ask.Tenant, Model: ask.Model, ID: ask.Conversation},
		Priority: ask.Priority, StrictPriority: ask.StrictPriority, ExpectedOutput: ask.ExpectedOutput,
		Route: model.RouteExternal, LoRA: ask.LoRAName,
	}
	if err := g.fillPrompt(req, ask); err != nil {
		return nil, "", err
	}
	switch {
	case ask.Worker != "":
		req.Explicit = &model.Target{Worker: ask.Worker, Rank: model.NoRank}
		if ask.Rank != nil {
			req.Explicit.Rank = *ask.Rank
		}
		if req.Explicit.Rank < model.NoRank {
			return nil, "", refusal(http.StatusBadRequest, "bad_rank", "rank is %d: ranks count from 0", *ask.Rank)
		}
	case ask.Rank != nil:
		return nil, "", refusal(http.StatusBadRequest, "bad_rank", "rank counts inside a worker: name it in worker")
	}
	return req, how, nil
}

// fillPrompt takes the prompt in whichever form it came.
func (g *Gateway) fillPrompt(req *model.Request, ask *routeAsk) error {
	forms := 0
	for _, there := range []bool{ask.TokenIDs != nil, ask.BlockHashes != nil, ask.Prompt != ""} {
		if there {
			forms++
		}
	}
	if forms > 1 {
		return refusal(http.StatusBadRequest, "bad_prompt", "give one of token_ids, block_hashes and prompt")
	}
	switch {
	case ask.BlockHashes != nil:
		req.Locals, req.BlockTokens, req.PromptTokens = ask.BlockHashes, g.router.BlockTokens(), ask.PromptTokens
		if least := len(req.Locals) * req.BlockTokens; req.PromptTokens == 0 {
			req.PromptTokens = least
		}
	case forms == 0:
		req.PromptTokens = ask.PromptTokens
	default:
		p := g.prompts.ReadRaw(req.Conv, ask.TokenIDs, ask.Prompt, ask.LoRAName, ask.CacheSalt)
		p.Fill(req)
	}
	req.Salt = ask.CacheSalt
	return nil
}

// Whether a body may have fields that are not known.
const (
	knownFields = true
	anyField    = false
)

// decode reads a JSON body, an empty one as {}.
func (g *Gateway) decode(ctx context.Context, w http.ResponseWriter, r *http.Request, into any, strict bool) error {
	held := int64(0)
	defer func() { g.held.Add(-held) }()
	raw, err := g.take(ctx, w, r, &held)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	if !utf8.Valid(raw) {
		return fmt.Errorf("%w is not UTF-8: send text that is", body.ErrBody)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %v: send one JSON object with the fields that %s takes", body.ErrBody, err, r.URL.Path)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w has something after its end: send one JSON object", body.ErrBody)
	}
	return nil
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
