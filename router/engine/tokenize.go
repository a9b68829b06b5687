package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"

	"adpdeck/router/model"
)

// Errors of Tokenize.
var (
	// ErrNoTokenizer is returned where the engine has no tokenizer that can be
	// asked.
	ErrNoTokenizer = errors.New("the engine has no tokenizer that can be asked")
	// ErrTokenizerRefused is returned for a request that is not tokenised: it has no
	// text, is too long, or the engine does not take it. Others may be.
	ErrTokenizerRefused = errors.New("the engine's tokenizer does not take this request")
	// ErrTokenizerBusy is returned when enough requests wait for it already: the
	// request is better routed without.
	ErrTokenizerBusy = errors.New("the engine's tokenizer is busy")
)

// TokenList is a prompt as the engine counts it.
type TokenList struct {
	Tokens []uint32
	// MaxTokens is the model's context, 0 where it was not said.
	MaxTokens int
}

// tokenFields are the fields of a request that change how it is tokenised, for
// vLLM; SGLang reads those that it knows and leaves the others.
var tokenFields = []string{
	"model", "messages", "tools", "chat_template", "chat_template_kwargs", "add_generation_prompt",
	"continue_final_message", "add_special_tokens", "mm_processor_kwargs",
}

// Tokenize asks a worker's engine for the token ids of a request's prompt: body
// is that of a chat, or of a completion of one text, and valid JSON. It takes two
// seconds at most, or as long as ctx allows, and never waits for other calls.
//
// It returns ErrNoTokenizer where there is none, ErrTokenizerRefused,
// ErrTokenizerBusy, ErrNoWorker, or what went wrong on the way.
func (f *Fleet) Tokenize(ctx context.Context, worker string, route model.Route, body []byte) (TokenList, error) {
	w, err := f.worker(worker)
	if err != nil {
		return TokenList{}, err
	}
	ask, err := tokenQuestion(w.spec.Kind, route, body)
	if err != nil {
		return TokenList{}, fmt.Errorf("tokenize at %s: %w", worker, err)
	}
	d := w.anyDoor()
	if d == nil {
		return TokenList{}, fmt.Errorf("tokenize at %s: the engine does not answer", worker)
	}
	select {
	case w.slots <- struct{}{}:
		defer func() { <-w.slots }()
	default:
		return TokenList{}, fmt.Errorf("tokenize at %s: %w", worker, ErrTokenizerBusy)
	}
	a, err := w.fetch(ctx, under(d.base, "/tokenize"), ask, maxTokenPage, tokenTimeout)
	if err != nil {
		return TokenList{}, fmt.Errorf("tokenize at %s: %s", worker, plain(err, tokenTimeout))
	}
	list, err := readTokens(a)
	if err != nil {
		return TokenList{}, fmt.Errorf("tokenize at %s: %w", worker, err)
	}
	return list, nil
}

// anyDoor is an address that answers, or nil.
func (w *worker) anyDoor() *door {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.doors {
		if d.life.up {
			return d
		}
	}
	return nil
}

// tokenQuestion makes the body for /tokenize out of a request's.
func tokenQuestion(kind model.EngineKind, route model.Route, body []byte) ([]byte, error) {
	switch {
	case kind != model.EngineVLLM && kind != model.EngineSGLang:
		return nil, ErrNoTokenizer
	case len(body) > maxTokenBody:
		return nil, ErrTokenizerRefused
	}
	ask := map[string]json.RawMessage{}
	copyField := func(name string) bool {
		v := gjson.GetBytes(body, name)
		if v.Exists() {
			ask[name] = json.RawMessage(v.Raw)
		}
		return v.Exists()
	}
	switch route {
	case model.RouteChat, model.RouteExternal:
		for _, name := range tokenFields {
			copyField(name)
		}
		if ask["messages"] == nil {
			return nil, ErrTokenizerRefused
		}
		if kind == model.EngineVLLM {
			if err := templateArguments(ask, body); err != nil {
				return nil, err
			}
		}
	case model.RouteCompletions:
		if gjson.GetBytes(body, "prompt").Type != gjson.String {
			return nil, ErrTokenizerRefused // token ids as they are, or several prompts
		}
		for _, name := range []string{"model", "prompt", "add_special_tokens"} {
			copyField(name)
		}
	default:
		return nil, ErrTokenizerRefused
	}
	return json.Marshal(ask)
}

// templateArguments puts those fields of a chat among the arguments of the template
// that vLLM's chat handler puts there itself, and its tokenizer does not: without
// them a prompt has other tokens than the one that is run.
func templateArguments(ask map[string]json.RawMessage, body []byte) error {
	effort, documents := gjson.GetBytes(body, "reasoning_effort"), gjson.GetBytes(body, "documents")
	if effort.Type == gjson.Null && documents.Type == gjson.Null {
		return nil
	}
	args := map[string]json.RawMessage{}
	if raw := ask["chat_template_kwargs"]; raw != nil {
		if err := json.Unmarshal(raw, &args); err != nil {
			return ErrTokenizerRefused
		}
		if args == nil { // it was null
			args = map[string]json.RawMessage{}
		}
	}
	if documents.Type != gjson.Null {
		args["documents"] = json.RawMessage(documents.Raw)
	}
	if effort.Type != gjson.Null {
		args["reasoning_effort"] = json.RawMessage(effort.Raw)
		if args["enable_thinking"] == nil {
			args["enable_thinking"] = json.RawMessage(strconv.FormatBool(effort.Str != "none"))
		}
	}
	var err error
	ask["chat_template_kwargs"], err = json.Marshal(args)
	return err
}

// readTokens reads {"count":n,"max_model_len":m,"tokens":[id…]}.
func readTokens(a answer) (TokenList, error) {
	switch {
	case a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed || a.status == http.StatusNotImplemented:
		return TokenList{}, fmt.Errorf("it answered %d: %w", a.status, ErrNoTokenizer)
	case a.status == http.StatusBadRequest || a.status == http.StatusUnprocessableEntity:
		return TokenList{}, fmt.Errorf("it answered %d: %w", a.status, ErrTokenizerRefused)
	case a.status != http.StatusOK:
		return TokenList{}, fmt.Errorf("it answered %d", a.status)
	case len(a.body) > maxTokenPage:
		return TokenList{}, fmt.Errorf("its answer is longer than %d bytes", maxTokenPage)
	}
	// SGLang's max_model_len is its tokenizer's, 10^30 where that has no limit.
	var said struct {
		Tokens []uint32 `json:"tokens"`
		Max    float64  `json:"max_model_len"`
	}
	if err := json.Unmarshal(a.body, &said); err != nil {
		return TokenList{}, fmt.Errorf("its answer has no list of token ids: %w", err)
	}
	if said.Tokens == nil {
		return TokenList{}, errors.New("its answer has no list of token ids")
	}
	list := TokenList{Tokens: said.Tokens}
	if said.Max > 0 && said.Max < math.MaxInt32 {
		list.MaxTokens = int(said.Max)
	}
	return list, nil
}

func plainModel(id string) []byte {
	b, err := json.Marshal(struct {
		ID     string `json:"id"`
		Object string `json:"object"`
	}{id, "model"})
	if err != nil { // two strings always have a JSON form
		panic(err)
	}
	return b
}
