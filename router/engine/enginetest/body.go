package enginetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"adpdeck/router/model"
)

// maxBody is the longest request body.
const maxBody = 64 << 20

// body is what the routes read of a request; the rest of OpenAI's fields are
// accepted and change nothing.
type body struct {
	Model         string          `json:"model"`
	Messages      []message       `json:"messages"`
	Prompt        json.RawMessage `json:"prompt"`
	Input         json.RawMessage `json:"input"`
	Instructions  string          `json:"instructions"`
	System        json.RawMessage `json:"system"` // of /v1/messages
	Tools         json.RawMessage `json:"tools"`
	Stream        bool            `json:"stream"`
	StreamOptions struct {
		IncludeUsage    bool `json:"include_usage"`
		ContinuousUsage bool `json:"continuous_usage_stats"`
	} `json:"stream_options"`
	MaxTokens           *int   `json:"max_tokens"`
	MaxCompletionTokens *int   `json:"max_completion_tokens"`
	MaxOutputTokens     *int   `json:"max_output_tokens"`
	N                   *int   `json:"n"`
	IgnoreEOS           bool   `json:"ignore_eos"`
	CacheSalt           string `json:"cache_salt"`
	EncodingFormat      string `json:"encoding_format"`
	Dimensions          *int   `json:"dimensions"`

	RoutedDPRank     json.RawMessage `json:"routed_dp_rank"`
	DataParallelRank json.RawMessage `json:"data_parallel_rank"`
	Conversation     *struct {
		ID text `json:"conversation_id"`
	} `json:"conversation_params"`
	NVExt *nvext `json:"nvext"`

	TemplateArgs map[string]json.RawMessage `json:"chat_template_kwargs"`
	Documents    json.RawMessage            `json:"documents"`
	Effort       *string                    `json:"reasoning_effort"`
	vllm         bool                       // whose template sees its arguments

	// SGLang's /generate.
	Text     json.RawMessage `json:"text"`
	InputIDs json.RawMessage `json:"input_ids"`
	RID      string          `json:"rid"`
	Sampling struct {
		MaxNewTokens *int `json:"max_new_tokens"`
		IgnoreEOS    bool `json:"ignore_eos"`
	} `json:"sampling_params"`
}

// trtFields are the top-level fields that trtllm-serve knows; it refuses others.
const trtFields = ` model messages prompt input instructions tools tool_choice stream stream_options max_tokens max_completion_tokens
 max_output_tokens n best_of ignore_eos cache_salt temperature top_p top_k min_p min_tokens stop stop_token_ids seed logprobs
 top_logprobs logit_bias frequency_penalty presence_penalty repetition_penalty length_penalty early_stopping use_beam_search
 prompt_ignore_length prompt_logprobs return_context_logits detokenize skip_special_tokens spaces_between_special_tokens
 truncate_prompt_tokens include_stop_str_in_output add_special_tokens add_generation_prompt continue_final_message documents
 chat_template chat_template_kwargs reasoning_effort response_format user echo suffix lora_request disaggregated_params
 conversation_params agent_hierarchy mm_processor_kwargs media_io_kwargs store metadata reasoning text truncation
 parallel_tool_calls previous_response_id prompt_cache_key client_metadata service_tier safety_identifier `

// knowsField reports whether trtllm-serve has a field in its requests.
func (e *Engine) knowsField(name string) bool {
	return slices.Contains(strings.Fields(trtFields), name) && (name != "conversation_params" || !e.habits.Load().OldSchema)
}

// schema is FastAPI's description of the requests, of which only their fields are
// here.
func (e *Engine) schema(w http.ResponseWriter, _ *http.Request) {
	fields := object{}
	for _, f := range strings.Fields(trtFields) {
		if e.knowsField(f) {
			fields[f] = object{"title": f}
		}
	}
	request := object{"type": "object", "additionalProperties": false, "properties": fields}
	writeJSON(w, http.StatusOK, object{"openapi": "3.1.0", "components": object{"schemas": object{"ChatCompletionRequest": request, "CompletionRequest": request}}})
}

// readBody reads a request's JSON.
func (e *Engine) readBody(w http.ResponseWriter, r *http.Request) (*body, *apiError) {
	b := &body{vllm: e.cfg.Kind == model.EngineVLLM}
	raw, bad := readAll(w, r)
	if bad == nil {
		bad = decode(raw, b)
	}
	if bad != nil || e.cfg.Kind != model.EngineTRTLLM {
		return b, bad
	}
	var fields map[string]json.RawMessage
	if bad := decode(raw, &fields); bad != nil {
		return nil, bad
	}
	for f := range fields {
		if !e.knowsField(f) {
			return nil, badRequest(f, "[{'type': 'extra_forbidden', 'loc': ('body', '%s'), 'msg': 'Extra inputs are not permitted'}]", f)
		}
	}
	return b, nil
}

// decodeBody reads a request's JSON into v.
func decodeBody(w http.ResponseWriter, r *http.Request, v any) *apiError {
	raw, bad := readAll(w, r)
	if bad != nil {
		return bad
	}
	return decode(raw, v)
}

func readAll(w http.ResponseWriter, r *http.Request) ([]byte, *apiError) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, &apiError{status: http.StatusRequestEntityTooLarge, kind: "BadRequestError", msg: fmt.Sprintf("the body is longer than %d bytes", maxBody)}
	case err != nil:
		return nil, badRequest("", "the body could not be read: %v", err)
	}
	return raw, nil
}

func decode(raw []byte, v any) *apiError {
	if err := json.Unmarshal(raw, v); err != nil {
		return badRequest("", "invalid JSON body: %v", err)
	}
	return nil
}

// prompt tokenises what a route was sent.
func (b *body) prompt(r model.Route, keep bool) (*tokens, *apiError) {
	t := &tokens{keep: keep}
	if b.NVExt != nil && len(b.NVExt.TokenData) > 0 {
		t.ids = b.NVExt.TokenData
		return t, nil
	}
	var err error
	switch r {
	case model.RouteChat, RouteMessages:
		if len(b.Messages) == 0 {
			return nil, badRequest("messages", "messages must be a list of at least one message")
		}
		m := b.Messages
		if r == RouteMessages && len(b.System) > 0 {
			m = append([]message{{Role: "system", Content: b.System}}, m...)
		}
		if b.vllm && r == model.RouteChat {
			t.args = b.arguments()
		}
		err = t.chat(m, b.Tools, true)
	case model.RouteResponses:
		err = b.responseInput(t)
	case RouteGenerate:
		if len(b.InputIDs) > 0 {
			err = t.plain(b.InputIDs, "input_ids")
		} else {
			err = t.plain(b.Text, "text")
		}
	case model.RouteEmbeddings:
		err = t.plain(b.Input, "input")
	default:
		err = t.plain(b.Prompt, "prompt")
	}
	if err != nil {
		return nil, badRequest("", "%v", err)
	}
	if len(t.ids) == 0 {
		return nil, badRequest("prompt", "the prompt is empty")
	}
	return t, nil
}

// arguments are those that vLLM's chat handler gives to the template: the
// request's own, and some that it makes of other fields.
func (b *body) arguments() map[string]json.RawMessage {
	args := maps.Clone(b.TemplateArgs)
	if args == nil {
		args = map[string]json.RawMessage{}
	}
	if len(b.Documents) > 0 && string(b.Documents) != "null" {
		args["documents"] = b.Documents
	}
	if b.Effort != nil {
		args["reasoning_effort"] = json.RawMessage(strconv.Quote(*b.Effort))
		if args["enable_thinking"] == nil {
			args["enable_thinking"] = json.RawMessage(strconv.FormatBool(*b.Effort != "none"))
		}
	}
	return args
}

// plain appends a prompt: a string or a list of token ids.
func (t *tokens) plain(raw json.RawMessage, field string) error {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		t.text(s)
		return nil
	}
	var ids []uint32
	if err := json.Unmarshal(raw, &ids); err == nil {
		t.ids = ids
		if t.keep {
			for _, id := range ids {
				t.strs = append(t.strs, fmt.Sprintf("<%d>", id))
			}
		}
		return nil
	}
	var one []json.RawMessage // a list of one prompt
	if json.Unmarshal(raw, &one) == nil && len(one) == 1 {
		return t.plain(one[0], field)
	}
	return fmt.Errorf("%s must be a string or a list of token ids, one prompt to a request", field)
}

// responseInput appends the input of /v1/responses: a string or a list of items.
func (b *body) responseInput(t *tokens) error {
	var m []message
	if b.Instructions != "" {
		quoted, _ := json.Marshal(b.Instructions)
		m = append(m, message{Role: "system", Content: quoted})
	}
	var s string
	var items []message
	switch {
	case json.Unmarshal(b.Input, &s) == nil:
		m = append(m, message{Role: "user", Content: b.Input})
	case json.Unmarshal(b.Input, &items) == nil && len(items) > 0:
		m = append(m, items...)
	default:
		return errors.New("input must be a string or a list of messages")
	}
	return t.chat(m, b.Tools, true)
}

// want is how long the answer will be, and whether it ends by itself.
func (e *Engine) want(b *body, prompt []uint32) (n int, natural bool, err *apiError) {
	var most *int
	for _, m := range []*int{b.MaxTokens, b.MaxCompletionTokens, b.MaxOutputTokens, b.Sampling.MaxNewTokens} {
		if m != nil {
			most = m
		}
	}
	room := e.cfg.MaxModelLen - len(prompt)
	switch {
	case b.N != nil && *b.N != 1:
		return 0, false, badRequest("n", "n = %d: this engine makes one choice", *b.N)
	case most != nil && *most < 1:
		return 0, false, badRequest("max_tokens", "max_tokens must be at least 1, got %d.", *most)
	case room < 1 || most != nil && *most > room:
		asked := "at least 1 output token"
		if most != nil {
			asked = fmt.Sprintf("%d output tokens", *most)
		}
		return 0, false, badRequest("max_tokens", "This model's maximum context length is %d tokens. However, you requested %s and your prompt contains %d input tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
			e.cfg.MaxModelLen, asked, len(prompt))
	}
	limit := room
	if most != nil {
		limit = *most
	}
	if b.IgnoreEOS || b.Sampling.IgnoreEOS {
		return limit, false, nil
	}
	own := 2 + int(digest(e.cfg.Seed+1, prompt)%uint64(2*e.cfg.OutputTokens))
	if own <= limit {
		return own, true, nil
	}
	return limit, false, nil
}
