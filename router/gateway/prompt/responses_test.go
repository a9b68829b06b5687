package prompt

import (
	"testing"

	"adpdeck/router/gateway/body"
	"adpdeck/router/model"
)

func TestResponsesAsChats(t *testing.T) {
	for name, tt := range map[string]struct{ body, want string }{
		"text":         {`{"model":"m","input":"hi"}`, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`},
		"instructions": {`{"instructions":"be kind","input":"hi","max_output_tokens":3}`, `{"messages":[{"role":"system","content":"be kind"},{"role":"user","content":"hi"}]}`},
		"messages": {
			`{"input":[{"role":"user","content":"hi"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ho"}]},{"role":"user","content":"why"}]}`,
			`{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"ho"},{"role":"user","content":"why"}]}`,
		},
		"earlier one":    {`{"previous_response_id":"resp_1","input":"hi"}`, ""},
		"tools":          {`{"tools":[{"type":"web_search"}],"input":"hi"}`, ""},
		"a picture":      {`{"input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}]}`, ""},
		"two parts":      {`{"input":[{"role":"user","content":[{"text":"a"},{"text":"b"}]}]}`, ""},
		"another item":   {`{"input":[{"type":"function_call_output","output":"x"}]}`, ""},
		"no role":        {`{"input":[{"content":"hi"}]}`, ""},
		"no message":     {`{"input":["hi"]}`, ""},
		"no input":       {`{"model":"m"}`, ""},
		"odd directions": {`{"instructions":[1],"input":"hi"}`, ""},
	} {
		d, err := body.Parse([]byte(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		chat, ok := asChat(d)
		if got := ""; ok != (tt.want != "") {
			t.Errorf("%s: %v", name, ok)
		} else if ok {
			if got = string(chat.Bytes()); got != tt.want {
				t.Errorf("%s: %s\nwant %s", name, got, tt.want)
			}
		}
	}
}

// TestResponsesAreTokenised: a response's prompt has the blocks of the same chat.
func TestResponsesAreTokenised(t *testing.T) {
	y := &toy{}
	r := newReader(t, ModeEngine, y)
	chat := r.Read(t.Context(), source(t, model.RouteChat, "", `{"model":"m","messages":[{"role":"user","content":"hello there, how do you do?"}]}`))
	got := r.Read(t.Context(), source(t, model.RouteResponses, "", `{"model":"m","input":"hello there, how do you do?","cache_salt":""}`))
	if got.How != Tokenized || got.Guessed || len(got.Locals) == 0 || got.Tokens != chat.Tokens || got.Locals[0] != chat.Locals[0] {
		t.Errorf("%+v\nthe chat %+v", got, chat)
	}
}
