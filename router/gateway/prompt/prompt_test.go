package prompt

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"adpdeck/router/gateway/body"
	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newReader(t testing.TB, mode string, y *toy, change ...func(*Options)) *Reader {
	t.Helper()
	o := Options{Mode: mode, BlockTokens: func() int { return 4 }, Clock: &stoppedClock{now: time.Unix(1, 0)}, Wait: time.Minute, Limit: time.Hour}
	if y != nil {
		o.Tokenize = y.tokenize
	}
	for _, f := range change {
		f(&o)
	}
	r := New(o)
	t.Cleanup(r.Close)
	return r
}

func source(t testing.TB, route model.Route, conv, text string) Source {
	t.Helper()
	d, err := body.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return Source{Route: route, Doc: d, Conv: model.ConvKey{Model: "m", ID: conv}}
}

func hashed(ids []uint32, salt string) []uint64 {
	h, _ := prefix.NewHasher(4, prefix.Seed("", salt))
	return plainLocals(h.Locals(nil, ids))
}

// settle waits until no call runs any more.
func (r *Reader) settle() { r.calls.Wait() }

func TestTokenPrompts(t *testing.T) {
	r := newReader(t, ModeText, nil)
	tests := map[string]struct {
		body string
		want Prompt
	}{
		"tokens": {`{"prompt": [1, 2,3,4,5]}`, Prompt{How: Tokens, Tokens: 5, Locals: hashed([]uint32{1, 2, 3, 4}, ""), BlockTokens: 4, Lead: []int32{1, 2, 3, 4, 5}}},
		"salted": {`{"prompt": [1,2,3,4], "cache_salt": "s"}`, Prompt{How: Tokens, Tokens: 4, Locals: hashed([]uint32{1, 2, 3, 4}, "s"), BlockTokens: 4, Lead: []int32{1, 2, 3, 4}, Salt: "s"}},
		"nvext":  {`{"prompt": [1], "nvext": {"cache_salt": "s"}}`, Prompt{How: Tokens, Tokens: 1, BlockTokens: 4, Lead: []int32{1}, Salt: "s"}},
		"two":    {`{"prompt": [[1,2,3,4], [5,6,7,8]], "n": 3}`, Prompt{How: Tokens, Tokens: 8, Children: 5, Locals: hashed([]uint32{1, 2, 3, 4}, ""), BlockTokens: 4, Lead: []int32{1, 2, 3, 4}}},
		"none":   {`{}`, Prompt{How: Unhashed}},
		"empty":  {`{"prompt": []}`, Prompt{How: Unhashed}},
		"large":  {`{"prompt": [4294967296]}`, Prompt{How: Unhashed}},
		"broken": {`{"prompt": [1.5, -2]}`, Prompt{How: Unhashed, Tokens: 1, Children: 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := r.Read(t.Context(), source(t, model.RouteCompletions, "", tt.body))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			var req model.Request
			got.Fill(&req)
			if len(req.Locals) > req.PromptTokens/4 {
				t.Error("more blocks than the prompt has tokens: the router would refuse it")
			}
		})
	}
}

// TestTextIsAPrefix wants the blocks of a grown chat to begin with those of the
// chat before it, marked as a guess.
func TestTextIsAPrefix(t *testing.T) {
	for _, route := range []model.Route{model.RouteChat, model.RouteResponses, model.RouteCompletions} {
		r := newReader(t, ModeText, nil)
		var before Prompt
		messages, text := "", "Once upon a time"
		for turn := range 5 {
			if turn > 0 {
				messages += ","
			}
			messages += fmt.Sprintf(`{"role": "user", "content": "turn %d: tell me more of it"}`, turn)
			text += fmt.Sprintf(" and turn %d of it", turn)
			doc := map[model.Route]string{
				model.RouteChat: `{"messages": [` + messages + `]}`, model.RouteResponses: `{"input": [` + messages + `]}`,
				model.RouteCompletions: fmt.Sprintf(`{"prompt": %q}`, text),
			}[route]
			got := r.Read(t.Context(), source(t, route, "c", doc))
			if got.How != Text || !got.Guessed || len(got.Locals) < 2 || got.Tokens < 4*len(got.Locals) || got.Lead != nil {
				t.Fatalf("%s: %+v", route, got)
			}
			shared := 0
			for shared < len(before.Locals) && before.Locals[shared] == got.Locals[shared] {
				shared++
			}
			if shared < len(before.Locals) {
				t.Errorf("%s, turn %d: %d of %d blocks are shared", route, turn, shared, len(before.Locals))
			}
			if got.Known < len(before.Locals) {
				t.Errorf("%s, turn %d: %d of %d blocks were known", route, turn, got.Known, len(before.Locals))
			}
			before = got
		}
		exact := hashed(pseudo(nil, []byte("Once upon a time")), "")
		if got := r.Read(t.Context(), source(t, model.RouteCompletions, "", `{"prompt": "Once upon a time"}`)); got.Locals[0] == exact[0] {
			t.Error("a hash of text is one of tokens")
		}
	}
}

func TestModesAndRoutes(t *testing.T) {
	chat := `{"messages": [{"role": "user", "content": "hello there, how do you do?"}]}`
	for name, tt := range map[string]struct {
		mode  string
		route model.Route
		body  string
		want  How
	}{
		"none":        {ModeNone, model.RouteChat, chat, Unhashed},
		"embeddings":  {ModeText, model.RouteEmbeddings, `{"input": "hello there, how do you do?"}`, Unhashed},
		"responses":   {ModeEngine, model.RouteResponses, `{"previous_response_id": "r", "input": "hello there, how do you do?"}`, Text},
		"chat":        {ModeEngine, model.RouteChat, chat, Tokenized},
		"completions": {ModeEngine, model.RouteCompletions, `{"prompt": ["hello there, how do you do?"]}`, Tokenized},
		"unset":       {"", model.RouteChat, chat, Text},
	} {
		t.Run(name, func(t *testing.T) {
			got := newReader(t, tt.mode, &toy{}).Read(t.Context(), source(t, tt.route, "c", tt.body))
			if got.How != tt.want || got.Tokens == 0 || (got.How == Unhashed) != (got.Locals == nil) {
				t.Errorf("%+v, want %s", got, tt.want)
			}
		})
	}
	r := newReader(t, ModeText, nil, func(o *Options) { o.BlockTokens = func() int { return 0 } })
	if got := r.Read(t.Context(), source(t, model.RouteChat, "c", chat)); got.How != Unhashed || got.Tokens == 0 {
		t.Errorf("without a block size: %+v", got)
	}
	picture := `{"messages": [{"role": "user", "content": [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": "data:` + strings.Repeat("A", 1<<20) + `"}}]}]}`
	if got := newReader(t, ModeText, nil).Read(t.Context(), source(t, model.RouteChat, "c", picture)); got.Tokens > 100 {
		t.Errorf("a picture's bytes count as %d tokens", got.Tokens)
	}
}

// talk is a conversation that grows, as bodies.
type talk struct {
	route    model.Route
	text     string
	messages []map[string]string
	tools    bool
}

func (k *talk) body() string {
	b := map[string]any{"model": "m", "prompt": k.text}
	if k.route == model.RouteChat {
		b = map[string]any{"model": "m", "messages": k.messages}
	}
	if k.tools {
		b["tools"] = []any{map[string]any{"type": "function"}}
	}
	raw, _ := json.Marshal(b)
	return string(raw)
}

// TestTailsAreWholes tokenises growing, and now and then changed, conversations
// and wants what the whole would give, at every turn.
func TestTailsAreWholes(t *testing.T) {
	tails := 0
	rapid.Check(t, func(t *rapid.T) {
		y := &toy{}
		r := New(Options{Mode: ModeEngine, BlockTokens: func() int { return 4 }, Tokenize: y.tokenize, Clock: &stoppedClock{now: time.Unix(1, 0)}, Wait: time.Minute, Limit: time.Hour})
		defer r.Close()
		piece := rapid.StringMatching(`[a-d \n.<|é]{0,20}`)
		talks := []*talk{{route: model.RouteChat}, {route: model.RouteChat, tools: true}, {route: model.RouteCompletions}}
		for range 25 {
			i := rapid.IntRange(0, 2).Draw(t, "talk")
			k := talks[i]
			switch {
			case k.route == model.RouteCompletions && rapid.IntRange(0, 9).Draw(t, "anew") == 0:
				k.text = piece.Draw(t, "text")
			case k.route == model.RouteCompletions:
				k.text += piece.Draw(t, "text")
			default:
				if n := len(k.messages); n > 0 && rapid.IntRange(0, 9).Draw(t, "anew") == 0 {
					k.messages = k.messages[:rapid.IntRange(0, n-1).Draw(t, "kept")]
				} else if n > 0 {
					k.messages = append(k.messages, map[string]string{"role": "assistant", "content": piece.Draw(t, "answer")})
				}
				k.messages = append(k.messages, map[string]string{"role": "user", "content": piece.Draw(t, "text")})
			}
			if k.route == model.RouteCompletions && k.text == "" {
				continue
			}
			text := k.body()
			d, err := body.Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			got := r.Read(context.Background(), Source{Route: k.route, Doc: d, Conv: model.ConvKey{Model: "m", ID: fmt.Sprint(i)}})
			r.settle()
			want, err := (&toy{}).tokenize(context.Background(), "m", k.route, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if got.How != Tokenized && got.How != Tail {
				t.Fatalf("%s was read as %s", text, got.How)
			}
			if diff := cmp.Diff(hashed(want, ""), got.Locals); diff != "" || got.Tokens != len(want) {
				t.Fatalf("%s (%s): %d tokens, want %d\n%s", text, got.How, got.Tokens, len(want), diff)
			}
			if got.How == Tail {
				tails++
			}
		}
		if r.models.of(kind{model: "m", route: model.RouteChat}).distrusted() || r.models.of(kind{model: "m", route: model.RouteCompletions}).distrusted() {
			t.Fatal("a tokeniser that divides is not trusted")
		}
	})
	if tails == 0 {
		t.Error("no tail was ever used")
	}
}

// TestWhatDoesNotDivideIsNotTrusted runs a tokeniser whose merges cross line
// ends, and a template that changes what it rendered before.
func TestWhatDoesNotDivideIsNotTrusted(t *testing.T) {
	for name, tt := range map[string]struct {
		toy  *toy
		talk talk
	}{
		"merges across lines": {&toy{cross: true}, talk{route: model.RouteCompletions}},
		"thoughts taken out":  {&toy{think: true}, talk{route: model.RouteChat}},
	} {
		t.Run(name, func(t *testing.T) {
			y, k := tt.toy, tt.talk
			r := newReader(t, ModeEngine, y)
			for turn := range 12 {
				if turn > 0 {
					k.messages = append(k.messages, map[string]string{"role": "assistant", "content": "no, not so: look at the book over there"})
				}
				k.messages = append(k.messages, map[string]string{"role": "user", "content": "why?"})
				k.text += fmt.Sprintf("line %d of a longer text\nthat goes\non and on", turn)
				got := r.Read(t.Context(), source(t, k.route, "c", k.body()))
				r.settle()
				want, _ := y.tokenize(t.Context(), "m", k.route, []byte(k.body()))
				if diff := cmp.Diff(hashed(want, ""), got.Locals); diff != "" {
					t.Fatalf("turn %d, %s: %s", turn, got.How, diff)
				}
			}
			if !r.models.of(kind{model: "m", route: k.route}).distrusted() {
				t.Error("it is trusted")
			}
		})
	}
}

// TestACutOfTheLastTurnMayBeNoneNow changes what follows a cut: the old word goes
// on.
func TestACutOfTheLastTurnMayBeNoneNow(t *testing.T) {
	r := newReader(t, ModeEngine, &toy{})
	for range enough {
		r.models.of(kind{model: "m", route: model.RouteCompletions}).compared(true)
	}
	for _, text := range []string{"word\n", "wordabcd and more", "word\nand more\n", "word\nand more"} {
		got := r.Read(t.Context(), source(t, model.RouteCompletions, "c", fmt.Sprintf(`{"prompt":%q}`, text)))
		r.settle()
		want, _ := (&toy{}).tokenize(t.Context(), "m", model.RouteCompletions, []byte(fmt.Sprintf(`{"prompt":%q}`, text)))
		if diff := cmp.Diff(hashed(want, ""), got.Locals); diff != "" || got.Tokens != len(want) {
			t.Errorf("%q (%s): %d tokens, want %d", text, got.How, got.Tokens, len(want))
		}
	}
}

// TestOnlyTheTailIsTokenised measures what a tokeniser is given of a conversation
// that it is trusted with.
func TestOnlyTheTailIsTokenised(t *testing.T) {
	for _, k := range []*talk{{route: model.RouteChat}, {route: model.RouteCompletions}} {
		y := &toy{}
		r := newReader(t, ModeEngine, y)
		long := strings.Repeat("a long text that was sent before\n", 500)
		k.text = long
		k.messages = []map[string]string{{"role": "user", "content": long}}
		for turn := range 20 {
			y.mu.Lock()
			y.bytes, y.calls = 0, 0
			y.mu.Unlock()
			got := r.Read(t.Context(), source(t, k.route, "c", k.body()))
			r.settle()
			if turn > 8 && (got.How != Tail || y.bytes > 200 || y.calls > 2 || got.Known < 1000) {
				t.Fatalf("%s, turn %d: %s, %d bytes in %d calls, %d blocks known", k.route, turn, got.How, y.bytes, y.calls, got.Known)
			}
			k.text += "and a little more\nof it"
			k.messages = append(k.messages, map[string]string{"role": "assistant", "content": "yes"}, map[string]string{"role": "user", "content": "and?"})
		}
	}
}

func TestSlowTokeniser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := &toy{delay: make(chan struct{})}
		r := newReader(t, ModeEngine, y, func(o *Options) { o.Wait, o.Limit, o.AtOnce = 30*time.Millisecond, 5*time.Second, 2 })
		ask := func(conv, more string) (Prompt, time.Duration) {
			start := time.Now()
			got := r.Read(t.Context(), source(t, model.RouteChat, conv, `{"messages": [{"role": "user", "content": "hello, is anybody there?"}`+more+`]}`))
			return got, time.Since(start)
		}
		grown := `, {"role": "assistant", "content": "yes"}, {"role": "user", "content": "who?"}`
		if got, took := ask("a", ""); got.How != Text || took != 30*time.Millisecond {
			t.Errorf("slow: %s after %v", got.How, took)
		}
		if got, took := ask("a", ""); got.How != Text || took != 0 {
			t.Errorf("known to be slow: %s after %v", got.How, took)
		}
		if got, took := ask("b", ""); got.How != Text || took != 0 {
			t.Errorf("no call is free: %s after %v", got.How, took)
		}
		close(y.delay) // what was asked for comes late and is remembered
		r.settle()
		y.delay = make(chan struct{})
		r.models.of(kind{model: "m", route: model.RouteChat}).took(time.Second)
		got, took := ask("a", grown)
		want, _ := (&toy{}).tokenize(t.Context(), "m", model.RouteChat, []byte(`{"add_generation_prompt": false, "messages": [{"role": "user", "content": "hello, is anybody there?"}]}`))
		if got.How != Remembered || got.Guessed || took != 0 {
			t.Errorf("grown: %s after %v", got.How, took)
		}
		if diff := cmp.Diff(hashed(want, ""), got.Locals); diff != "" {
			t.Errorf("what is remembered is not what was sent: %s", diff)
		}
		time.Sleep(6 * time.Second) // the bubble's clock: the call has ended
		synctest.Wait()
		if got, took := ask("c", ""); got.How != Text || took != 0 {
			t.Errorf("resting: %s after %v", got.How, took)
		}
	})
}

func TestFailingTokeniserIsLeftAlone(t *testing.T) {
	y := &toy{refuses: true}
	clock := &stoppedClock{now: time.Unix(1, 0)}
	calls := 0
	r := newReader(t, ModeEngine, nil, func(o *Options) {
		o.Clock = clock
		o.Tokenize = func(ctx context.Context, m string, route model.Route, b []byte) ([]uint32, error) {
			calls++
			return y.tokenize(ctx, m, route, b)
		}
	})
	text := `{"prompt": "hello, is anybody there?"}`
	for range 5 {
		if got := r.Read(t.Context(), source(t, model.RouteCompletions, "a", text)); got.How != Text {
			t.Errorf("read as %s", got.How)
		}
		r.settle()
	}
	if calls != 1 {
		t.Errorf("it was asked %d times", calls)
	}
	y.refuses = false
	clock.advance(restTime)
	if got := r.Read(t.Context(), source(t, model.RouteCompletions, "a", text)); got.How != Tokenized {
		t.Errorf("later it is read as %s", got.How)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	r := newReader(t, ModeText, nil, func(o *Options) { o.MaxBytes, o.MaxConversations = 200_000, 100 })
	for i := range 1000 {
		text := fmt.Sprintf(`{"prompt": %q}`, strings.Repeat("x", 1+i*37%20000))
		r.Read(t.Context(), source(t, model.RouteCompletions, fmt.Sprint("c", i), text))
		if n, bytes := r.Stats(); n > 100 || bytes > 200_000 {
			t.Fatalf("%d conversations in %d bytes", n, bytes)
		}
	}
	for range r.memory.turns.Len() {
		r.memory.turns.RemoveOldest()
	}
	if _, bytes := r.Stats(); bytes != 0 {
		t.Errorf("an empty memory counts %d bytes", bytes)
	}
}

func TestHugePrompt(t *testing.T) {
	r := newReader(t, ModeText, nil)
	got := r.Read(t.Context(), source(t, model.RouteCompletions, "c", `{"prompt": "`+strings.Repeat("x", 4*(MaxBlocks*4+100))+`"}`))
	if len(got.Locals) != MaxBlocks || got.Tokens != MaxBlocks*4+100 {
		t.Errorf("%d blocks of %d tokens", len(got.Locals), got.Tokens)
	}
}

// FuzzForm wants no body to be read beyond its bounds.
func FuzzForm(f *testing.F) {
	f.Add([]byte(`{"messages": [{"role": "user", "content": [{"text": "x"}, 1]}, null], "prompt": [[1], "x"], "input": {"a": 1}, "n": 1e9}`))
	f.Add([]byte(`{"prompt": [1,,2], "tools": 1, "instructions": {}}`))
	r := New(Options{BlockTokens: func() int { return 4 }})
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := body.Parse(text)
		if err != nil {
			return
		}
		for _, route := range []model.Route{model.RouteChat, model.RouteCompletions, model.RouteResponses, model.RouteEmbeddings} {
			p := r.Read(t.Context(), Source{Route: route, Doc: d, Conv: model.ConvKey{ID: "c"}})
			if p.Tokens < 0 || p.Children < 0 || len(p.Locals) > p.Tokens/4 || len(p.Lead) > 64 {
				t.Fatalf("%s %q: %+v", route, text, p)
			}
		}
	})
}
