package prompt

import (
	"slices"
	"testing"

	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

// TestWhatTheTokeniserWouldNotSee: two prompts that the engine keeps apart never
// have the same blocks, and what is a guess is marked so, whatever a tokeniser that
// is asked makes of it.
func TestWhatTheTokeniserWouldNotSee(t *testing.T) {
	const say = `{"role":"user","content":"what do you make of all of this, dear reader?"}`
	picture := func(url string) string {
		return `{"messages":[{"role":"user","content":[{"type":"text","text":"what is to be seen on this picture?"},{"type":"image_url","image_url":{"url":"` + url + `"}}]},` + say + `]}`
	}
	for name, tt := range map[string]struct {
		route model.Route
		a, b  string
		how   How
		same  int // blocks in common, at most
	}{
		"pictures":         {model.RouteChat, picture("a"), picture("b"), Text, 16},
		"documents":        {model.RouteChat, `{"documents":[{"text":"a"}],"messages":[` + say + `]}`, `{"documents":[{"text":"b"}],"messages":[` + say + `]}`, Text, 7},
		"effort":           {model.RouteChat, `{"reasoning_effort":"low","messages":[` + say + `]}`, `{"reasoning_effort":"high","messages":[` + say + `]}`, Text, 4},
		"tools not chosen": {model.RouteChat, `{"tool_choice":"none","tools":[{"a":1}],"messages":[` + say + `]}`, `{"tool_choice":"none","tools":[{"a":2}],"messages":[` + say + `]}`, Text, 3},
		"a gap":            {model.RouteCompletions, `{"prompt":"what do you make of it","suffix":"a"}`, `{"prompt":"what do you make of it","suffix":"b"}`, Text, 0},
		"what came before": {model.RouteResponses, `{"previous_response_id":"resp_a","input":"and now what, dear reader?"}`, `{"previous_response_id":"resp_b","input":"and now what, dear reader?"}`, Text, 1},
		"a list behind it": {model.RouteResponses, `{"previous_response_id":"resp_a","input":[` + say + `]}`, `{"input":[` + say + `]}`, "", 0},
		"a conversation":   {model.RouteResponses, `{"conversation":"a","input":[` + say + `]}`, `{"conversation":"b","input":[` + say + `]}`, Text, 0},
		"template":         {model.RouteResponses, `{"chat_template_kwargs":{"t":1},"input":[` + say + `]}`, `{"chat_template_kwargs":{"t":2},"input":[` + say + `]}`, Text, 3},
		"the end alone":    {model.RouteCompletions, `{"prompt":"what do you make of it","truncate_prompt_tokens":4}`, `{"prompt":"what do you make of it","truncate_prompt_tokens":4}`, Unhashed, 0},
		"of tokens too":    {model.RouteCompletions, `{"prompt":[1,2,3,4,5],"truncate_prompt_tokens":4}`, `{"prompt":[1,2,3,4,5],"truncate_prompt_tokens":4}`, Unhashed, 0},
		"the middle out":   {model.RouteResponses, `{"truncation":"auto","input":[` + say + `]}`, `{"truncation":"auto","input":[` + say + `]}`, Unhashed, 0},
		"embeddings":       {model.RouteEmbeddings, `{"input":["a long text to embed","another"]}`, `{"input":[[1,2,3,4,5],[6]]}`, Unhashed, 0},
	} {
		r := newReader(t, ModeEngine, &toy{})
		a, b := r.Read(t.Context(), source(t, tt.route, "", tt.a)), r.Read(t.Context(), source(t, tt.route, "", tt.b))
		if tt.how != "" && (a.How != tt.how || b.How != tt.how) || a.Guessed != (a.How == Text) {
			t.Errorf("%s: %s and %s", name, a.How, b.How)
		}
		same := 0
		for same < min(len(a.Locals), len(b.Locals)) && a.Locals[same] == b.Locals[same] {
			same++
		}
		if same > tt.same || len(a.Locals) > 0 && slices.Equal(a.Locals, b.Locals) {
			t.Errorf("%s: %d of %d blocks are taken for the same", name, same, len(a.Locals))
		}
	}
}

// TestOfSeveralPromptsTheFirstIsMatched: the others count with their tokens.
func TestOfSeveralPromptsTheFirstIsMatched(t *testing.T) {
	r := newReader(t, ModeEngine, &toy{})
	one := r.Read(t.Context(), source(t, model.RouteCompletions, "", `{"prompt":"to be or not to be, that is it"}`))
	for text, want := range map[string]struct{ tokens, children int }{
		`{"prompt":["to be or not to be, that is it"]}`:              {one.Tokens, 0},
		`{"prompt":["to be or not to be, that is it","ab"],"n":2}`:   {one.Tokens + 1, 3},
		`{"prompt":["to be or not to be, that is it",[1,2,3],[10]]}`: {one.Tokens + 4, 2},
	} {
		got := r.Read(t.Context(), source(t, model.RouteCompletions, "", text))
		if got.How != Tokenized || got.Guessed || !slices.Equal(got.Locals, one.Locals) || got.Tokens != want.tokens || got.Children != want.children {
			t.Errorf("%s: %+v", text, got)
		}
	}
	if got := r.Read(t.Context(), source(t, model.RouteEmbeddings, "", `{"input":[[1,2,3,4,5],[6,7]]}`)); got.Tokens != 7 || got.Children != 1 || got.Locals != nil {
		t.Errorf("embeddings: %+v", got)
	}
}

// TestAdaptersHaveBlocksOfTheirOwn, as events have that name them.
func TestAdaptersHaveBlocksOfTheirOwn(t *testing.T) {
	r := newReader(t, ModeText, nil)
	h, _ := prefix.NewHasher(4, prefix.Seed("tuned", "s"))
	for _, text := range []string{`{"prompt":[1,2,3,4],"cache_salt":"s"}`, `{"prompt":"one two three","cache_salt":"s"}`} {
		s := source(t, model.RouteCompletions, "c", text)
		base := r.Read(t.Context(), s)
		s.LoRA = "tuned"
		got := r.Read(t.Context(), s)
		if len(got.Locals) == 0 || got.Locals[0] == base.Locals[0] {
			t.Errorf("%s: %v, the base model's %v", text, got.Locals, base.Locals)
		}
		if got.How == Tokens && !slices.Equal(got.Locals, plainLocals(h.Locals(nil, []uint32{1, 2, 3, 4}))) {
			t.Errorf("%v are not what an event says", got.Locals)
		}
	}
}
