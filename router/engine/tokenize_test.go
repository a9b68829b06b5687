package engine

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"
)

// TestReadTokens: vLLM tells its max_model_len; SGLang its tokenizer's
// model_max_length (openai/serving_tokenize.py), which is int(1e30) where the
// tokenizer names none, and -1 where it has none.
func TestReadTokens(t *testing.T) {
	t.Parallel()
	for page, most := range map[string]int{
		`{"tokens":[5,6],"count":2,"max_model_len":131072}`:                          131072,
		`{"tokens":[5,6],"count":2,"max_model_len":1000000000000000019884624838656}`: 0,
		`{"tokens":[5,6],"count":2,"max_model_len":-1}`:                              0,
		`{"tokens":[5,6],"count":2}`:                                                 0,
	} {
		got, err := readTokens(answer{status: 200, body: []byte(page)})
		if d := cmp.Diff(TokenList{Tokens: []uint32{5, 6}, MaxTokens: most}, got); d != "" || err != nil {
			t.Errorf("%s: %v %s", page, err, d)
		}
	}
	for _, page := range []string{`{"tokens":[[5],[6]],"count":[1,1]}`, `{"tokens":[-1]}`, `{}`} {
		if got, err := readTokens(answer{status: 200, body: []byte(page)}); err == nil {
			t.Errorf("%s: %v", page, got)
		}
	}
}

// TestTokenQuestionRendersAsTheChatDoes: vLLM's chat puts documents,
// reasoning_effort and what follows of it among the template's arguments
// (chat_completion/protocol.py, build_chat_params); TokenizeChatRequest has no
// such fields, only the arguments themselves.
func TestTokenQuestionRendersAsTheChatDoes(t *testing.T) {
	t.Parallel()
	for sent, args := range map[string]string{
		``:                                  ``,
		`,"reasoning_effort":null`:          ``,
		`,"chat_template_kwargs":{"a":1.0}`: `,"chat_template_kwargs":{"a":1.0}`,
		`,"reasoning_effort":"high"`:        `,"chat_template_kwargs":{"enable_thinking":true,"reasoning_effort":"high"}`,
		`,"reasoning_effort":"none"`:        `,"chat_template_kwargs":{"enable_thinking":false,"reasoning_effort":"none"}`,
		`,"reasoning_effort":"low","chat_template_kwargs":null`:                                                `,"chat_template_kwargs":{"enable_thinking":true,"reasoning_effort":"low"}`,
		`,"reasoning_effort":"low","chat_template_kwargs":{"reasoning_effort":"high","enable_thinking":false}`: `,"chat_template_kwargs":{"enable_thinking":false,"reasoning_effort":"low"}`,
		`,"documents":[{"text":"d"}],"chat_template_kwargs":{"a":12345678901234567890}`:                        `,"chat_template_kwargs":{"a":12345678901234567890,"documents":[{"text":"d"}]}`,
	} {
		ask, err := tokenQuestion(model.EngineVLLM, model.RouteChat, []byte(`{"messages":[]`+sent+`}`))
		want := `{` + args[min(1, len(args)):] + `,"messages":[]}`
		if args == "" {
			want = `{"messages":[]}`
		}
		if string(ask) != want || err != nil {
			t.Errorf("%s: %s, want %s, %v", sent, ask, want, err)
		}
	}
	if _, err := tokenQuestion(model.EngineVLLM, model.RouteChat, []byte(`{"messages":[],"reasoning_effort":"low","chat_template_kwargs":7}`)); err == nil {
		t.Error("took arguments that are none")
	}
}

// TestTokenizedAsRun compares what a fake's tokenizer says with what its chat runs.
func TestTokenizedAsRun(t *testing.T) {
	t.Parallel()
	e, err := enginetest.New(enginetest.Config{Kind: model.EngineVLLM, Ranks: 1, Timing: enginetest.Timing{Instant: true}})
	if err != nil {
		t.Fatal(err)
	}
	s, f := serve(t, e, []string{"127.0.0.1:0"}, model.EngineSpec{ID: "w", Kind: model.EngineVLLM}, func(s *model.EngineSpec) { s.URL = e.URL(model.NoRank) })
	s.await(t, "it joins", 10*time.Second, func() bool { return s.live["w/0"] })
	for _, more := range []string{``, `,"reasoning_effort":"high"`, `,"documents":[{"text":"one two three"}],"chat_template_kwargs":{"a":1}`} {
		chat := []byte(`{"model":"fake-model","max_tokens":1,"messages":[{"role":"user","content":"hello there"}]` + more + `}`)
		list, err := f.Tokenize(t.Context(), "w", model.RouteChat, chat)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.URL(model.NoRank)+"/v1/chat/completions", bytes.NewReader(chat))
		if err != nil {
			t.Fatal(err)
		}
		req.Close = true
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var said struct {
			Usage struct {
				Prompt int `json:"prompt_tokens"`
			} `json:"usage"`
		}
		err = json.NewDecoder(resp.Body).Decode(&said)
		resp.Body.Close()
		if err != nil || said.Usage.Prompt != len(list.Tokens) {
			t.Errorf("%s: %d tokens by the tokenizer, %d run, %v", more, len(list.Tokens), said.Usage.Prompt, err)
		}
	}
}
