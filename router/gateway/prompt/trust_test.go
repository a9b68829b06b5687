package prompt

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"adpdeck/router/model"
)

// TestTrustIsOfOneKindOfPrompt wants what was learnt of plain texts not to be
// believed of chats: here the template changes what it rendered before.
func TestTrustIsOfOneKindOfPrompt(t *testing.T) {
	y := &toy{think: true}
	r := newReader(t, ModeEngine, y)
	text := ""
	for i := range 8 {
		text += fmt.Sprintf("line %d of a text\nand so", i)
		r.Read(t.Context(), source(t, model.RouteCompletions, "text", fmt.Sprintf(`{"model":"m","prompt":%q}`, text)))
		r.settle()
	}
	k := talk{route: model.RouteChat}
	for turn := range 6 {
		if turn > 0 {
			k.messages = append(k.messages, map[string]string{"role": "assistant", "content": "no, not so: look at the book over there"})
		}
		k.messages = append(k.messages, map[string]string{"role": "user", "content": "why?"})
		got := r.Read(t.Context(), source(t, model.RouteChat, "chat", k.body()))
		r.settle()
		want, _ := y.tokenize(t.Context(), "m", model.RouteChat, []byte(k.body()))
		if diff := cmp.Diff(hashed(want, ""), got.Locals); diff != "" {
			t.Fatalf("turn %d, %s: %s", turn, got.How, diff)
		}
	}
}

// TestOneClientsRefusalIsNotEverybodys wants requests that a tokeniser refuses, or
// has no time for, to leave it to the others.
func TestOneClientsRefusalIsNotEverybodys(t *testing.T) {
	for name, err := range map[string]error{"refused": ErrRefused, "busy": ErrBusy} {
		t.Run(name, func(t *testing.T) {
			y := &toy{}
			var now error
			r := newReader(t, ModeEngine, nil, func(o *Options) {
				o.Tokenize = func(ctx context.Context, m string, route model.Route, b []byte) ([]uint32, error) {
					if now != nil {
						return nil, fmt.Errorf("a request: %w", now)
					}
					return y.tokenize(ctx, m, route, b)
				}
			})
			text := `{"model":"m","prompt":"hello, is anybody there?"}`
			for i := range 3 * maxRefusals {
				if now = nil; i%2 == 0 {
					now = err
				}
				got := r.Read(t.Context(), source(t, model.RouteCompletions, "a", text))
				r.settle()
				if (got.How == Tokenized) != (now == nil) {
					t.Fatalf("request %d was read as %s, the tokeniser said %v", i, got.How, now)
				}
			}
			now = err
			for range maxRefusals {
				r.Read(t.Context(), source(t, model.RouteCompletions, "a", text))
				r.settle()
			}
			now = nil
			got := r.Read(t.Context(), source(t, model.RouteCompletions, "a", text))
			if want := map[error]How{ErrRefused: Text, ErrBusy: Tokenized}[err]; got.How != want {
				t.Errorf("after nothing but %v it is read as %s, want %s", err, got.How, want)
			}
		})
	}
}

// TestOneClientsTemplateIsNotEverybodys wants a template that a client brings, and
// that cannot be taken apart, to leave the model's own to the others; so does a
// tokeniser that is gone for a moment.
func TestOneClientsTemplateIsNotEverybodys(t *testing.T) {
	for name, bad := range map[string]error{"refused": ErrRefused, "gone": errors.New("connection refused")} {
		t.Run(name, func(t *testing.T) {
			y := &toy{}
			calls, fail := 0, false
			clock := &stoppedClock{}
			r := newReader(t, ModeEngine, nil, func(o *Options) {
				o.Clock = clock
				o.Tokenize = func(ctx context.Context, m string, route model.Route, b []byte) ([]uint32, error) {
					if calls++; fail && calls > 1 { // the opening, asked for after the whole
						return nil, bad
					}
					return y.tokenize(ctx, m, route, b)
				}
			})
			settings := ""
			if bad == ErrRefused {
				settings = `"chat_template":"{{ x }}",`
			}
			fail = true
			r.Read(t.Context(), source(t, model.RouteChat, "other", `{"model":"m",`+settings+`"messages":[{"role":"user","content":"x"}]}`))
			r.settle()
			fail = false
			clock.advance(restTime)
			k := talk{route: model.RouteChat}
			how := How("")
			for range 10 {
				k.messages = append(k.messages, map[string]string{"role": "user", "content": "why?"})
				how = r.Read(t.Context(), source(t, model.RouteChat, "c", k.body())).How
				r.settle()
				k.messages = append(k.messages, map[string]string{"role": "assistant", "content": "so"})
			}
			if how != Tail {
				t.Errorf("the tenth turn is read as %s", how)
			}
		})
	}
}
