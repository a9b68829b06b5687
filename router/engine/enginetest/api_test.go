package enginetest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"
)

func kinds() []model.EngineKind {
	return []model.EngineKind{model.EngineVLLM, model.EngineSGLang, model.EngineTRTLLM, model.EngineDynamo}
}

// events splits a stream into its events' data, the last of which is [DONE] where
// the route has that.
func events(t *testing.T, text string) (names []string, data []string) {
	t.Helper()
	for part := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
		name := ""
		if rest, ok := strings.CutPrefix(part, "event: "); ok {
			name, part, _ = strings.Cut(rest, "\n")
		}
		d, ok := strings.CutPrefix(part, "data: ")
		if !ok {
			t.Fatalf("%q is no event of %q", part, text)
		}
		names, data = append(names, name), append(data, d)
	}
	return names, data
}

func parse(t *testing.T, text string) object {
	t.Helper()
	var o object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return o
}

func TestChatStreams(t *testing.T) {
	for _, kind := range kinds() {
		e := newEngine(t, enginetest.Config{Kind: kind})
		resp, text := call(t, e, http.MethodPost, "/v1/chat/completions", chat("hello you", object{"stream": true, "max_tokens": 3, "ignore_eos": true, "stream_options": object{"include_usage": true}}))
		if got := resp.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") {
			t.Errorf("%s: content type %s", kind, got)
		}
		_, data := events(t, text)
		if data[len(data)-1] != "[DONE]" {
			t.Fatalf("%s: the stream ends with %s", kind, data[len(data)-1])
		}
		answer := ""
		for _, d := range data[:len(data)-2] {
			o := parse(t, d)
			if s, ok := at(t, o, "choices.0.delta.content").(string); ok {
				answer += s
			}
			if o["usage"] != nil || o["object"] != "chat.completion.chunk" {
				t.Errorf("%s: chunk %s", kind, d)
			}
		}
		if got := at(t, parse(t, data[0]), "choices.0.delta.role"); got != "assistant" {
			t.Errorf("%s: the first chunk's role is %v", kind, got)
		}
		if got := at(t, parse(t, data[len(data)-3]), "choices.0.finish_reason"); got != "length" {
			t.Errorf("%s: finish reason %v", kind, got)
		}
		usage := parse(t, data[len(data)-2])
		if at(t, usage, "usage.completion_tokens") != 3.0 || len(usage["choices"].([]any)) != 0 {
			t.Errorf("%s: usage %v", kind, usage)
		}
		// The same whole: the prompt alone decides the answer.
		_, whole := callJSON(t, e, http.MethodPost, "/v1/chat/completions", chat("hello you", object{"max_tokens": 3, "ignore_eos": true}))
		if got := at(t, whole, "choices.0.message.content"); got != answer || len(enginetest.Tokenize(answer)) != 3 {
			t.Errorf("%s: streamed %q, whole %q", kind, answer, got)
		}
	}
}

func TestOtherRoutes(t *testing.T) {
	e := newEngine(t, enginetest.Config{Kind: model.EngineSGLang})
	_, o := ask(t, e, model.RouteCompletions, "hello", nil)
	if at(t, o, "choices.0.text") == "" || o["object"] != "text_completion" {
		t.Errorf("completions: %v", o)
	}
	_, o = ask(t, e, model.RouteResponses, "hello", nil)
	if at(t, o, "output.0.content.0.text") == "" || at(t, o, "usage.input_tokens_details.cached_tokens") == nil {
		t.Errorf("responses: %v", o)
	}
	_, o = ask(t, e, enginetest.RouteGenerate, "hello", nil)
	if at(t, o, "meta_info.cached_tokens") == nil || at(t, o, "text") == "" {
		t.Errorf("generate: %v", o)
	}
	_, o = ask(t, e, enginetest.RouteMessages, "hello", nil)
	if at(t, o, "content.0.text") == "" || at(t, o, "usage.input_tokens") == nil {
		t.Errorf("messages: %v", o)
	}
	for route, last := range map[model.Route]string{
		model.RouteCompletions: "[DONE]", model.RouteResponses: "response.", enginetest.RouteGenerate: "[DONE]", enginetest.RouteMessages: "message_stop",
	} {
		path := map[model.Route]string{
			model.RouteCompletions: "/v1/completions", model.RouteResponses: "/v1/responses", enginetest.RouteGenerate: "/generate", enginetest.RouteMessages: "/v1/messages",
		}[route]
		body := object{"model": "fake-model", "stream": true, "prompt": "hi", "input": "hi", "text": "hi", "messages": []object{{"role": "user", "content": "hi"}}}
		_, text := call(t, e, http.MethodPost, path, marshal(body))
		names, data := events(t, text)
		if end := names[len(names)-1] + data[len(data)-1]; !strings.Contains(end, last) {
			t.Errorf("%s ends with %s, want %s", route, end, last)
		}
	}
}

func TestEmbeddings(t *testing.T) {
	e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM})
	for input, n := range map[string]int{`"one text"`: 1, `["one", "two", "three"]`: 3, `[1, 2, 3]`: 1, `[[1, 2], [3]]`: 2} {
		status, o := callJSON(t, e, http.MethodPost, "/v1/embeddings", `{"model": "fake-model", "input": `+input+`, "dimensions": 4}`)
		if status != http.StatusOK || len(o["data"].([]any)) != n || len(at(t, o, "data.0.embedding").([]any)) != 4 {
			t.Errorf("%s: %d %v", input, status, o)
		}
	}
	_, o := callJSON(t, e, http.MethodPost, "/v1/embeddings", `{"model": "fake-model", "input": "x y", "encoding_format": "base64"}`)
	if _, ok := at(t, o, "data.0.embedding").(string); !ok {
		t.Errorf("base64: %v", o)
	}
	if status, _ := callJSON(t, e, http.MethodPost, "/v1/embeddings", `{"model": "fake-model", "input": 7}`); status != http.StatusBadRequest {
		t.Errorf("a number as input got %d", status)
	}
}

func TestErrors(t *testing.T) {
	type want struct {
		status int
		path   string // where the message is
		text   string
	}
	unknown := `{"model": "other", "messages": [{"role": "user", "content": "x"}], "max_tokens": 1}`
	tests := map[model.EngineKind]map[string]want{
		model.EngineVLLM: {
			unknown:                         {404, "error.message", "does not exist"},
			`{`:                             {400, "error.message", "invalid JSON"},
			`{"messages": []}`:              {400, "error.message", "at least one message"},
			chat("x", object{"n": 2}):       {400, "error.message", "one choice"},
			chat("x", object{"foreign": 1}): {200, "", ""},
			chat(strings.Repeat("a ", 99999), object{"max_tokens": 1 << 20}): {400, "error.message", "maximum context length"},
		},
		model.EngineSGLang: {unknown: {200, "", ""}, `{`: {400, "message", "invalid JSON"}},
		model.EngineTRTLLM: {unknown: {200, "", ""}, `[]`: {400, "message", "invalid JSON"}, chat("x", object{"foreign": 1}): {400, "message", "extra_forbidden"}},
		model.EngineDynamo: {unknown: {404, "message", "Model not found: other"}, `{`: {400, "message", "invalid JSON"}},
	}
	for kind, bodies := range tests {
		e := newEngine(t, enginetest.Config{Kind: kind})
		for body, want := range bodies {
			status, o := callJSON(t, e, http.MethodPost, "/v1/chat/completions", body)
			if status != want.status {
				t.Errorf("%s: %.60s got %d %v, want %d", kind, body, status, o, want.status)
			}
			if want.path != "" && !strings.Contains(fmt.Sprint(at(t, o, want.path)), want.text) {
				t.Errorf("%s: %.60s got %v, want %q", kind, body, o, want.text)
			}
		}
		if resp, _ := call(t, e, http.MethodGet, "/nowhere", ""); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: an unknown address got %d", kind, resp.StatusCode)
		}
	}
}

func TestRequestID(t *testing.T) {
	e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM})
	resp, text := call(t, e, http.MethodPost, "/v1/chat/completions", chat("x", nil), "X-Request-Id", "mine")
	if o := parse(t, text); o["id"] != "chatcmpl-mine" || resp.Header.Get("X-Request-Id") != "mine" {
		t.Errorf("id %v, header %q", o["id"], resp.Header.Get("X-Request-Id"))
	}
}

// TestTokenize compares what /tokenize says with what the engine counts, for
// chats, texts and token ids.
func TestTokenize(t *testing.T) {
	for _, kind := range []model.EngineKind{model.EngineVLLM, model.EngineSGLang} {
		e := newEngine(t, enginetest.Config{Kind: kind})
		messages := []object{{"role": "system", "content": "Be brief."}, {"role": "user", "content": []object{{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": object{"url": "x"}}}}}
		tools := []object{{"type": "function", "function": object{"name": "f"}}}
		_, o := callJSON(t, e, http.MethodPost, "/tokenize", marshal(object{"model": "fake-model", "messages": messages, "tools": tools, "return_token_strs": true}))
		_, answer := callJSON(t, e, http.MethodPost, "/v1/chat/completions", marshal(object{"model": "fake-model", "messages": messages, "tools": tools, "max_tokens": 2}))
		if fmt.Sprint(o["count"]) != fmt.Sprint(at(t, answer, "usage.prompt_tokens")) {
			t.Errorf("%s: /tokenize counts %v, the engine %v", kind, o["count"], at(t, answer, "usage.prompt_tokens"))
		}
		if kind == model.EngineVLLM && len(o["token_strs"].([]any)) != len(o["tokens"].([]any)) {
			t.Errorf("token_strs %v", o["token_strs"])
		}
		_, o = callJSON(t, e, http.MethodPost, "/tokenize", `{"model": "fake-model", "prompt": "plain text"}`)
		if len(o["tokens"].([]any)) != len(enginetest.Tokenize("plain text")) {
			t.Errorf("%s: %v", kind, o)
		}
		// Token ids as the prompt run as they are.
		_, answer = callJSON(t, e, http.MethodPost, "/v1/completions", marshal(object{"model": "fake-model", "prompt": o["tokens"], "max_tokens": 2}))
		if fmt.Sprint(at(t, answer, "usage.prompt_tokens")) != fmt.Sprint(o["count"]) {
			t.Errorf("%s: %v tokens of %v", kind, at(t, answer, "usage.prompt_tokens"), o["count"])
		}
	}
	for _, kind := range []model.EngineKind{model.EngineTRTLLM, model.EngineDynamo} {
		e := newEngine(t, enginetest.Config{Kind: kind})
		if resp, _ := call(t, e, http.MethodPost, "/tokenize", `{"prompt": "x"}`); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s has a /tokenize: %d", kind, resp.StatusCode)
		}
	}
}

// TestTokenizerJoins says that texts cut before a space have the tokens of their
// parts.
func TestTokenizerJoins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		whole, parts := enginetest.Tokenize(a+" "+b), slices.Concat(enginetest.Tokenize(a), enginetest.Tokenize(" "+b))
		if !slices.Equal(whole, parts) {
			t.Fatalf("%q + %q: %v, together %v", a, " "+b, parts, whole)
		}
	})
}

func TestModelsHealthVersion(t *testing.T) {
	for _, kind := range kinds() {
		e := newEngine(t, enginetest.Config{Kind: kind, Models: []string{"m-1"}, Adapters: []string{"m-1-tuned"}})
		_, o := callJSON(t, e, http.MethodGet, "/v1/models", "")
		if at(t, o, "data.0.id") != "m-1" || at(t, o, "data.1.id") != "m-1-tuned" {
			t.Errorf("%s: models %v", kind, o)
		}
		if resp, text := call(t, e, http.MethodGet, "/health", ""); resp.StatusCode != http.StatusOK || kind != model.EngineDynamo && text != "" {
			t.Errorf("%s: health %d %q", kind, resp.StatusCode, text)
		}
		set(t, e, func(h *enginetest.Habits) { h.NotReady = true })
		resp, text := call(t, e, http.MethodGet, "/health", "")
		want := http.StatusServiceUnavailable
		if kind == model.EngineDynamo {
			want = http.StatusOK
			if !strings.Contains(text, `"unhealthy"`) || !strings.Contains(text, `"instances":[]`) {
				t.Errorf("dynamo before its workers: %s", text)
			}
			if status, _ := callJSON(t, e, http.MethodPost, "/v1/chat/completions", `{"model": "m-1", "messages": [{"role": "user", "content": "x"}]}`); status != http.StatusNotFound {
				t.Errorf("dynamo without workers answers %d", status)
			}
		}
		if resp.StatusCode != want {
			t.Errorf("%s not ready: %d, want %d", kind, resp.StatusCode, want)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	for text, cfg := range map[string]enginetest.Config{
		"kind":          {Kind: "other"},
		"ranks":         {Kind: "vllm", Ranks: -1},
		"in all":        {Kind: "dynamo", Ranks: 64, Workers: 64},
		"only a Dynamo": {Kind: "vllm", Workers: 2},
		"blocks":        {Kind: "vllm", Blocks: 1},
		"start rank":    {Kind: "vllm", StartRank: -1},
		"rank numbers":  {Kind: "vllm", Numbers: "roman"},
		"no name":       {Kind: "vllm", Models: []string{""}},
		"replay needs":  {Kind: "vllm", Events: enginetest.EventsConfig{Replay: "tcp://*:1"}},
		"out_of_range":  {Kind: "vllm", Habits: enginetest.Habits{OutOfRange: "maybe"}},
		"backend":       {Kind: "dynamo", Backend: "other"},
	} {
		if _, err := enginetest.New(cfg); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
