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
	ask.Model, ask.LoRAName = g.placed(ask.Model, ask.LoRAName)
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
