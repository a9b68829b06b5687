package convid

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"adpdeck/router/gateway/body"
	"adpdeck/router/model"
)

func doc(t testing.TB, text string) *body.Doc {
	t.Helper()
	d, err := body.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func TestRead(t *testing.T) {
	long := strings.Repeat("é", 128)
	tests := map[string]struct {
		body   string
		header http.Header
		id     string
		source Source
		err    string
	}{
		"keyless":            {`{}`, nil, "", None, ""},
		"body":               {`{"conversation_params": {"conversation_id": " c 1\t"}}`, nil, "c 1", Body, ""},
		"body wins":          {`{"conversation_params": {"conversation_id": "b"}}`, header("X-Session-ID", "h"), "b", Body, ""},
		"number":             {`{"conversation_params": {"conversation_id": 18446744073709551615}}`, nil, "18446744073709551615", Body, ""},
		"blank body":         {`{"conversation_params": {"conversation_id": " \n"}}`, header("x-session-id", "h"), "h", Header, ""},
		"null body":          {`{"conversation_params": {"conversation_id": null}}`, nil, "", None, ""},
		"params null":        {`{"conversation_params": null}`, nil, "", None, ""},
		"params empty":       {`{"conversation_params": {}}`, header("X-Session-Id", "h"), "h", Header, ""},
		"params text":        {`{"conversation_params": "c"}`, nil, "", Body, "not an object"},
		"id an object":       {`{"conversation_params": {"conversation_id": {}}}`, nil, "", Body, "neither text nor a number"},
		"id twice":           {`{"conversation_params": {"conversation_id": "a", "conversation_\u0069d": "b"}}`, nil, "", Body, "given twice"},
		"id twice, the same": {`{"conversation_params": {"conversation_id": "a", "conversation_id": "a"}}`, nil, "a", Body, ""},
		"headers in order":   {`{}`, header("X-Dynamo-Session-ID", "d", "X-Multi-Turn-Session-Id", "m", "x-claude-session-id", "c"), "c", Header, ""},
		"blank header":       {`{}`, header("X-Claude-Code-Session-Id", " ", "x-correlation-id", "c"), "c", Header, ""},
		"dynamo":             {`{}`, header("X-Dynamo-Session-ID", "d", "Thread-Id", "t"), "d", Header, ""},
		"codex":              {`{}`, header("thread-id", "t"), "t", Header, ""},
		"twice, the same":    {`{}`, header("X-Session-ID", "a", "X-Session-ID", " a ", "X-Session-ID", ""), "a", Header, ""},
		"twice, different":   {`{}`, header("X-Session-ID", "a", "x-session-id", "b"), "", Header, "more than once, with different values"},
		"metadata":           {`{"client_metadata": {"session_id": "s", "thread_id": "t"}}`, nil, "t", Body, ""},
		"agent context":      {`{"nvext": {"agent_context": {"session_id": "s"}}}`, nil, "s", Body, ""},
		"metadata text":      {`{"client_metadata": "x", "nvext": []}`, nil, "", None, ""},
		"cache key":          {`{"prompt_cache_key": "k"}`, nil, "", None, ""},
		"256 bytes":          {`{}`, header("X-Session-ID", long), long, Header, ""},
		"257 bytes":          {`{}`, header("X-Session-ID", long+"x"), "", Header, "has 257 bytes"},
		"not UTF-8":          {`{}`, header("X-Session-ID", "a\x9b31m"), "", Header, "not UTF-8"},
		"not UTF-8, body":    {"{\"conversation_params\": {\"conversation_id\": \"a\xff\"}}", nil, "", Body, "not UTF-8"},
		"hostile":            {`{"conversation_params": {"conversation_id": "\u001b]52;c;x\u0007\u202e\u009b"}}`, nil, "\x1b]52;c;x\a\u202e\u009b", Body, ""},
		"ours":               {`{}`, header("X-Session-ID", "derived:abc"), "", Header, "adpdeck makes itself"},
		"ours, spaced":       {`{}`, header("X-Session-ID", "  derived:abc"), "", Header, "adpdeck makes itself"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			id, source, err := Read(doc(t, tt.body), tt.header)
			if tt.err != "" {
				if !errors.Is(err, ErrID) || !strings.Contains(err.Error(), tt.err) || id != "" {
					t.Fatalf("got %q, %v; want ErrID with %q", id, err, tt.err)
				}
				return
			}
			if err != nil || id != tt.id || source != tt.source {
				t.Fatalf("got %q from %s, %v; want %q from %s", id, source, err, tt.id, tt.source)
			}
		})
	}
}

func TestTenant(t *testing.T) {
	tests := map[string]struct {
		header  http.Header
		name    string
		fromKey bool
		want    string
		err     string
	}{
		"off":           {header("Authorization", "Bearer k"), "", false, "", ""},
		"header":        {header("x-tenant", " blue "), "X-Tenant", true, "blue", ""},
		"no header":     {header("Authorization", "Bearer k"), "X-Tenant", true, "", ""},
		"key":           {header("Authorization", "Bearer sk-1"), "", true, "key-24cb9b8fe5ce9ec52f3d1377", ""},
		"key, x":        {header("X-Api-Key", "sk-1"), "", true, "key-24cb9b8fe5ce9ec52f3d1377", ""},
		"bearer case":   {header("Authorization", "bearer  sk-1"), "", true, "key-24cb9b8fe5ce9ec52f3d1377", ""},
		"no key":        {nil, "", true, "", ""},
		"two headers":   {header("X-Tenant", "a", "X-Tenant", "b"), "x-tenant", false, "", "more than once"},
		"two keys":      {header("Authorization", "Bearer a", "Authorization", "Bearer b"), "", true, "", "more than once"},
		"long":          {header("X-Tenant", strings.Repeat("x", 257)), "X-Tenant", false, "", "257 bytes"},
		"not UTF-8":     {header("X-Tenant", "\xff"), "X-Tenant", false, "", "not UTF-8"},
		"other schemes": {header("Authorization", "Basic a"), "", true, "key-63b0e4c2a9f3fd74e2e9df65", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Tenant(tt.header, tt.name, tt.fromKey)
			if tt.err != "" {
				if !errors.Is(err, ErrID) || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got %v, want ErrID with %q", err, tt.err)
				}
				return
			}
			if strings.HasPrefix(tt.want, "key-") {
				if len(got) != len("key-")+24 || !strings.HasPrefix(got, "key-") || strings.Contains(got, "sk-1") {
					t.Fatalf("got %q, want a hash", got)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Fatalf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
	a, _ := Tenant(header("Authorization", "Bearer sk-1"), "", true)
	b, _ := Tenant(header("X-Api-Key", "sk-1"), "", true)
	c, _ := Tenant(header("X-Api-Key", "sk-2"), "", true)
	if a != b || a == c {
		t.Errorf("one key is %s and %s, another %s", a, b, c)
	}
}

func TestForEngineKeepsTenantsApart(t *testing.T) {
	seen := map[string]string{}
	for _, k := range []model.ConvKey{{ID: "a"}, {Tenant: "x", ID: "a"}, {Tenant: "y", ID: "a"}, {Tenant: "xa", ID: "b"}, {Tenant: "x", ID: "ab"}} {
		id := ForEngine(k)
		if other, ok := seen[id]; ok {
			t.Errorf("%+v and %s are both %q", k, other, id)
		}
		seen[id] = fmt.Sprint(k)
		if again := ForEngine(k); again != id {
			t.Errorf("%+v is %q and %q", k, id, again)
		}
	}
	if got := ForEngine(model.ConvKey{ID: "a"}); got != "a" {
		t.Errorf("without a tenant the client's id is %q", got)
	}
	if got := ForEngine(model.ConvKey{Tenant: "x"}); got != "" {
		t.Errorf("a keyless request has the id %q", got)
	}
}

func chat(system, user string, more ...string) string {
	list := fmt.Sprintf(`{"role": "system", "content": %q}, {"role": "user", "content": %q}`, system, user)
	for _, m := range more {
		list += fmt.Sprintf(`, {"role": "user", "content": %q}`, m)
	}
	return `{"model": "m", "messages": [` + list + `]}`
}

func TestDerive(t *testing.T) {
	derive := func(text string, route model.Route) string { return Derive(doc(t, text), route) }
	first := derive(chat("S", "hello"), model.RouteChat)
	if !strings.HasPrefix(first, DerivedPrefix) || len(first) > model.MaxIDBytes {
		t.Fatalf("derived %q", first)
	}
	same := map[string]string{
		"grown":   chat("S", "hello", "and", "then"),
		"escaped": `{"messages": [{"content": "\u0053", "role": "system"},{"role":"user","name":"x","content":"h\u0065llo"}]}`,
		"reply":   `{"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]}`,
	}
	for name, text := range same {
		if got := derive(text, model.RouteChat); got != first {
			t.Errorf("%s: %q is another conversation than %q", name, got, first)
		}
	}
	seen := map[string]string{first: "first"}
	for name, text := range map[string]string{
		"other system": chat("T", "hello"),
		"other user":   chat("S", "hello!"),
		"shifted":      chat("Sh", "ello"),
		"no system":    `{"messages": [{"role": "user", "content": "hello"}]}`,
		"parts":        `{"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": [{"type": "text", "text": "hello"}]}]}`,
	} {
		id := derive(text, model.RouteChat)
		if other, ok := seen[id]; ok || id == "" {
			t.Errorf("%s has the id %q of %q", name, id, other)
		}
		seen[id] = name
	}
	for name, tt := range map[string]struct {
		text  string
		route model.Route
	}{
		"completions":       {`{"prompt": "x"}`, model.RouteCompletions},
		"embeddings":        {`{"input": "x"}`, model.RouteEmbeddings},
		"no user":           {`{"messages": [{"role": "system", "content": "S"}]}`, model.RouteChat},
		"no messages":       {`{"messages": "x"}`, model.RouteChat},
		"strange messages":  {`{"messages": [1, null, "x", {"role": 3}]}`, model.RouteChat},
		"kept by engine":    {`{"input": "x", "previous_response_id": "r"}`, model.RouteResponses},
		"responses, blank":  {`{"input": ""}`, model.RouteResponses},
		"responses, no one": {`{"input": []}`, model.RouteResponses},
	} {
		if got := derive(tt.text, tt.route); got != "" {
			t.Errorf("%s: derived %q, want none", name, got)
		}
	}
	a := derive(`{"instructions": "S", "input": "x"}`, model.RouteResponses)
	b := derive(`{"instructions": "S", "input": "y"}`, model.RouteResponses)
	c := derive(`{"instructions": "S", "input": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]}`, model.RouteResponses)
	if a == "" || c == "" || a == b {
		t.Errorf("responses: %q, %q, %q", a, b, c)
	}
}

// FuzzRead wants ids that are keys, or a refusal.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"conversation_params": {"conversation_id": "a"}}`), "b", "c")
	f.Add([]byte(`{"client_metadata": {"thread_id": "\ud800"}}`), "", "\x9b")
	f.Fuzz(func(t *testing.T, text []byte, one, two string) {
		d, err := body.Parse(text)
		if err != nil {
			return
		}
		id, source, err := Read(d, http.Header{"X-Session-Id": {one, two}})
		switch {
		case err != nil && (id != "" || !errors.Is(err, ErrID)):
			t.Fatalf("%q with %v", id, err)
		case err != nil:
		case (id == "") != (source == None):
			t.Fatalf("%q from %s", id, source)
		case len(id) > model.MaxIDBytes || !utf8.ValidString(id) || strings.TrimSpace(id) != id || strings.HasPrefix(id, DerivedPrefix):
			t.Fatalf("took %q", id)
		}
		for _, route := range []model.Route{model.RouteChat, model.RouteResponses} {
			if got := Derive(d, route); got != "" && len(got) != len(DerivedPrefix)+32 {
				t.Fatalf("derived %q", got)
			}
		}
	})
}

func TestVLLMsSessionIsAConversation(t *testing.T) {
	for text, want := range map[string]string{
		`{"session_id":" s "}`:                                      "s",
		`{"vllm_xargs":{"session_id":"x"}}`:                         "x",
		`{"session_id":"s","client_metadata":{"thread_id":"t"}}`:    "t",
		`{"session_id":7}`:                                          "",
		`{"session_id":{"session_id":"s"}}`:                         "",
		`{"session_id":"s","vllm_xargs":{"session_id":"other"}}`:    "s",
		`{"session_id":"","vllm_xargs":{"session_id":"the other"}}`: "the other",
	} {
		d, err := body.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if id, _, err := Read(d, http.Header{}); id != want || err != nil {
			t.Errorf("%s: %q, %v", text, id, err)
		}
	}
}

// TestDerivedStaysMarked: an engine that is told only what clients name must know
// one from the other, tenants or not.
func TestDerivedStaysMarked(t *testing.T) {
	id := ForEngine(model.ConvKey{Tenant: "t", ID: DerivedPrefix + "1"})
	if !strings.HasPrefix(id, DerivedPrefix) || id == DerivedPrefix+"1" || strings.HasPrefix(ForEngine(model.ConvKey{Tenant: "t", ID: "1"}), DerivedPrefix) {
		t.Error(id)
	}
}
