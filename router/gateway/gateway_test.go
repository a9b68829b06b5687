package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"adpdeck/router/engine/steer"
	"adpdeck/router/model"
)

var headersOn = model.GatewaySpec{DecisionHeaders: true, Retry: true}

func TestCarries(t *testing.T) {
	g := newRig(t, rigOptions{spec: headersOn})
	for _, path := range []string{"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings"} {
		resp, body := g.post(t, path+"?x=%2F1", `{"model":"m","prompt":[1,2,3],"big":18446744073709551615, "f": 1.50}`, "X-Other", "kept", "Accept-Encoding", "gzip", "X-Data-Parallel-Rank", "")
		if resp.StatusCode != 200 || body != okBody {
			t.Fatalf("%s: %d %s", path, resp.StatusCode, body)
		}
		worker, rank := resp.Header.Get("X-Adpdeck-Worker"), resp.Header.Get("X-Adpdeck-Rank")
		all := g.requests()
		got := all[len(all)-1]
		if got.worker != worker || got.rank != rank || rank == "" || resp.Header.Get("X-Adpdeck-Decision") == "" {
			t.Errorf("%s ran on %s/%s, its answer says %s/%s", path, got.worker, got.rank, worker, rank)
		}
		if got.path != path+"?x=%2F1" || got.header.Get("X-Other") != "kept" || got.header.Get("Accept-Encoding") != "" {
			t.Errorf("%s reached the engine as %s with %v", path, got.path, got.header)
		}
		if !strings.Contains(got.body, `"big":18446744073709551615`) || !strings.Contains(got.body, "1.50") {
			t.Errorf("the body was changed: %s", got.body)
		}
	}
	if n := g.inFlight(); n != 0 {
		t.Errorf("%d requests are left on the books", n)
	}
	s := g.router.Snapshot()
	if s.Totals.Keyless != 4 {
		t.Errorf("%d keyless requests", s.Totals.Keyless)
	}
}

func TestStreams(t *testing.T) {
	g := newRig(t, rigOptions{spec: headersOn})
	tokens := chunk(0) + chunk(1) + chunk(2)
	for name, tt := range map[string]struct{ path, body, want, sent string }{
		"usage not asked for": {"/v1/chat/completions", `{"stream":true}`, tokens + "data: [DONE]\n\n", `"include_usage":true`},
		"usage refused":       {"/v1/completions", `{"stream":true,"stream_options":{"include_usage":false,"x":1}}`, tokens + "data: [DONE]\n\n", `{"x":1,"include_usage":true}`},
		"usage in each":       {"/v1/chat/completions", `{"stream":true,"stream_options":{"continuous_usage_stats":true}}`, tokens + "data: [DONE]\n\n", `"stream_options":{"include_usage":true}`},
		"usage asked for":     {"/v1/chat/completions", `{"stream":true,"stream_options":{"include_usage":true}}`, tokens + usageEvent + "data: [DONE]\n\n", `{"stream":true,"stream_options":{"include_usage":true}}`},
		"responses":           {"/v1/responses", `{"stream":true}`, tokens + "data: [DONE]\n\n", `{"stream":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := g.post(t, tt.path, tt.body)
			if resp.StatusCode != 200 || body != tt.want || resp.Header.Get("Content-Type") != "text/event-stream" {
				t.Errorf("%d %q, want %q", resp.StatusCode, body, tt.want)
			}
			all := g.requests()
			if got := all[len(all)-1].body; !strings.Contains(got, tt.sent) {
				t.Errorf("the engine got %s, want %s in it", got, tt.sent)
			}
		})
	}
}

// TestEachEventPassesAtOnce reads an event before the engine sends the next one.
func TestEachEventPassesAtOnce(t *testing.T) {
	next := make(chan struct{})
	g := newRig(t, rigOptions{handler: func(w http.ResponseWriter, r *http.Request, _ string, _ []byte) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 20 {
			_, _ = io.WriteString(w, chunk(i))
			_ = http.NewResponseController(w).Flush()
			<-next
		}
	}})
	resp, err := g.send(t.Context(), "/v1/chat/completions", `{"stream":true}`)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	buf := make([]byte, 4096)
	for i := range 20 {
		n, err := resp.Body.Read(buf)
		if string(buf[:n]) != chunk(i) {
			t.Fatalf("event %d: %q, %v", i, buf[:n], err)
		}
		next <- struct{}{}
	}
}

func TestUsageReachesTheRouter(t *testing.T) {
	g := newRig(t, rigOptions{workers: 1, ranks: 2, handler: func(w http.ResponseWriter, r *http.Request, b string, body []byte) {
		w.Header().Set("X-Ran", r.Header.Get("X-Data-Parallel-Rank"))
		behaves(w, r, b, body)
	}})
	g.post(t, "/v1/chat/completions", `{"model":"m","messages":[]}`, "X-Session-ID", "plain")
	g.post(t, "/v1/chat/completions", `{"model":"m","stream":true}`, "X-Session-ID", "stream")
	for _, id := range []string{"plain", "stream"} {
		c := conv(t, g, model.ConvKey{Model: "m", ID: id})
		if c.Honoured != 1 || c.Lost != 0 {
			t.Errorf("%s: %+v", id, c)
		}
	}
	text := g.get(t, "/metrics")
	for _, want := range []string{
		`adpdeck_gateway_requests_total{code="200",route="chat"} 2`, `adpdeck_gateway_conversations_total{source="header"} 2`,
		`adpdeck_rank_in_flight{rank="0",worker="w0"} 0`, `adpdeck_gateway_outcomes_total{outcome="ok"} 2`, `adpdeck_gateway_open_requests{route="chat"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
	if strings.Contains(text, "stream") && strings.Contains(text, `="plain"`) {
		t.Error("/metrics names conversations")
	}
}

func conv(t *testing.T, g *rig, key model.ConvKey) model.Conv {
	t.Helper()
	s := g.router.Snapshot()
	for i := range s.Convs {
		if s.Convs[i].Key == key {
			return *s.Convs[i]
		}
	}
	t.Fatalf("no conversation %+v", key)
	return model.Conv{}
}

// TestAnotherWorkerRanIt wants a frontend that sent a request to another of its
// workers to be found out.
func TestAnotherWorkerRanIt(t *testing.T) {
	g := newRig(t, rigOptions{spec: headersOn})
	g.engines.ran = func(model.Target, http.Header, []byte) (model.Target, string, bool) {
		return model.Target{Worker: "w1", Rank: 1}, steer.EvidenceUsage, true
	}
	g.post(t, "/v1/chat/completions", `{"model":"m"}`, "X-Session-ID", "c", "X-Adpdeck-Worker", "w0", "X-Adpdeck-Rank", "0")
	if c := conv(t, g, model.ConvKey{Model: "m", ID: "c"}); c.Lost != 1 || c.Last != (model.Target{Worker: "w1", Rank: 1}) {
		t.Errorf("%+v", c)
	}
}

func (g *rig) get(t *testing.T, path string) string {
	t.Helper()
	resp, err := g.client.Get(g.server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return string(b)
}

// TestRefusals wants an OpenAI error object that says what to do.
func TestRefusals(t *testing.T) {
	g := newRig(t, rigOptions{})
	big := strings.Repeat("x", MaxBodyBytes)
	for name, tt := range map[string]struct {
		path, body string
		header     []string
		status     int
		code, word string
	}{
		"not JSON":          {"/v1/chat/completions", `{`, nil, 400, "bad_body", "send one JSON object"},
		"model no text":     {"/v1/chat/completions", `{"model":1}`, nil, 400, "bad_request", "name a model"},
		"two ids":           {"/v1/chat/completions", `{}`, []string{"X-Session-ID", "a", "X-Session-ID", "b"}, 400, "bad_conversation", "send one"},
		"long id":           {"/v1/chat/completions", `{}`, []string{"X-Session-ID", strings.Repeat("x", 300)}, 400, "bad_conversation", "300 bytes"},
		"long model":        {"/v1/chat/completions", `{"model":"` + strings.Repeat("m", 300) + `"}`, nil, 400, "bad_id", "300 bytes"},
		"not UTF-8":         {"/v1/chat/completions", `{}`, []string{"X-Session-ID", "a\x9b"}, 400, "bad_conversation", "not UTF-8"},
		"gzip":              {"/v1/chat/completions", `{}`, []string{"Content-Encoding", "gzip"}, 415, "bad_encoding", "as it is"},
		"too large":         {"/v1/chat/completions", `{"x":"` + big + `"}`, nil, 413, "body_too_large", "32 MiB"},
		"unknown path":      {"/v2/x", `{}`, nil, 404, "not_found", "/v1/chat/completions"},
		"rank, no worker":   {"/v1/chat/completions", `{}`, []string{"X-Adpdeck-Rank", "1"}, 400, "bad_rank", "X-Adpdeck-Worker"},
		"rank, no number":   {"/v1/chat/completions", `{}`, []string{"X-Data-Parallel-Rank", "one"}, 400, "bad_rank", "whole number"},
		"rank that is none": {"/v1/chat/completions", `{}`, []string{"X-Data-Parallel-Rank", "4"}, 400, "no_such_rank", "/health"},
		"no such worker":    {"/v1/chat/completions", `{}`, []string{"X-Adpdeck-Worker", "w9"}, 400, "no_such_worker", "choose one of"},
		"rank elsewhere":    {"/v1/chat/completions", `{}`, []string{"X-Adpdeck-Worker", "w1", "X-Data-Parallel-Rank", "1"}, 400, "no_such_rank", "are 2 to 3"},
		"no such instance":  {"/v1/chat/completions", `{}`, []string{"X-Dynamo-Worker-Instance-Id", "9"}, 400, "no_such_worker", "instance_id"},
		"priority":          {"/v1/chat/completions", `{}`, []string{"X-Dynamo-Request-Priority", "x"}, 400, "bad_hint", "whole number"},
		"hint no number":    {"/v1/chat/completions", `{"nvext":{"agent_hints":{"osl":"x"}}}`, nil, 400, "bad_hint", "whole number"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := g.post(t, tt.path, tt.body, tt.header...)
			var said struct {
				Error struct{ Message, Type, Code string }
			}
			if err := json.Unmarshal([]byte(body), &said); err != nil {
				t.Fatalf("%d %q: %v", resp.StatusCode, body, err)
			}
			if resp.StatusCode != tt.status || said.Error.Code != tt.code || !strings.Contains(said.Error.Message, tt.word) || said.Error.Type != "invalid_request_error" {
				t.Errorf("%d %+v, want %d %s with %q", resp.StatusCode, said.Error, tt.status, tt.code, tt.word)
			}
		})
	}
	if n := len(g.requests()); n != 0 {
		t.Errorf("%d refused requests reached an engine", n)
	}
	resp, err := g.client.Get(g.server.URL + "/v1/chat/completions")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 405 || resp.Header.Get("Allow") != "POST" {
		t.Errorf("GET: %d", resp.StatusCode)
	}
	resp, _ = g.post(t, "/v1/chat/completions", `{}`, "X-Large", strings.Repeat("x", 80<<10))
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("80 KiB of headers: %d", resp.StatusCode)
	}
}

func TestRanksAskedFor(t *testing.T) {
	g := newRig(t, rigOptions{spec: headersOn})
	g.engines.specs[1].InstanceID = 1<<63 + 7
	for name, tt := range map[string]struct {
		header []string
		want   string
	}{
		"ours":       {[]string{"X-Adpdeck-Worker", "w1", "X-Adpdeck-Rank", "1"}, "w1/1"},
		"global":     {[]string{"X-Data-Parallel-Rank", "2"}, "w1/0"},
		"dynamo":     {[]string{"X-Dynamo-Worker-Instance-Id", "9223372036854775815", "X-Dynamo-Dp-Rank", "3"}, "w1/1"},
		"named":      {[]string{"X-Adpdeck-Worker", "w1", "X-Data-Parallel-Rank", "2"}, "w1/0"},
		"old dynamo": {[]string{"X-Dp-Rank", "1"}, "w0/1"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := g.post(t, "/v1/chat/completions", `{}`, tt.header...)
			if got := resp.Header.Get("X-Adpdeck-Worker") + "/" + resp.Header.Get("X-Adpdeck-Rank"); got != tt.want {
				t.Errorf("went to %s, want %s (%s)", got, tt.want, body)
			}
		})
	}
}

// TestTenantsAreApart is report A6: two keys, one session id.
func TestTenantsAreApart(t *testing.T) {
	g := newRig(t, rigOptions{workers: 1, ranks: 4, spec: model.GatewaySpec{TenantFromKey: true, DecisionHeaders: true}, settings: func(s *model.Settings) {
		ttl := 600.0
		s.ClusterConfig.SessionAffinityTTLSecs = &ttl
	}})
	at := map[string]string{}
	for turn := range 3 {
		for _, key := range []string{"sk-a", "sk-b"} {
			resp, _ := g.post(t, "/v1/chat/completions", `{"model":"m","behave":""}`, "Authorization", "Bearer "+key, "X-Session-ID", "chat-1")
			got := resp.Header.Get("X-Adpdeck-Rank")
			if turn > 0 && got != at[key] {
				t.Errorf("%s moved from %s to %s", key, at[key], got)
			}
			at[key] = got
		}
	}
	s := g.router.Snapshot()
	tenants := map[string]bool{}
	for _, c := range s.Convs {
		tenants[c.Key.Tenant] = true
		if strings.Contains(c.Key.Tenant, "sk-") {
			t.Error("the key itself is shown")
		}
	}
	if len(s.Convs) != 2 || len(tenants) != 2 {
		t.Errorf("%d conversations of %d tenants, want two of two", len(s.Convs), len(tenants))
	}
}

// TestKeylessRequestsSpread is report A14.
func TestKeylessRequestsSpread(t *testing.T) {
	g := newRig(t, rigOptions{workers: 2, ranks: 4, settings: func(s *model.Settings) {
		ttl := 600.0
		s.ClusterConfig.SessionAffinityTTLSecs = &ttl
	}})
	const n = 800
	for range n {
		g.post(t, "/v1/chat/completions", `{"model":"m"}`)
	}
	at := map[string]int{}
	for _, r := range g.requests() {
		at[r.worker+"/"+r.rank]++
	}
	for target, got := range at {
		if got < 80 || got > 120 {
			t.Errorf("%s got %d of %d", target, got, n)
		}
	}
	if s := g.router.Snapshot(); len(at) != 8 || s.Totals.Keyless != n {
		t.Errorf("%d targets, %d keyless", len(at), s.Totals.Keyless)
	}
}

func TestDerivedConversations(t *testing.T) {
	g := newRig(t, rigOptions{spec: model.GatewaySpec{DeriveConversation: true}})
	turn := func(user string, more string) {
		g.post(t, "/v1/chat/completions", fmt.Sprintf(`{"model":"m","messages":[{"role":"system","content":"S"},{"role":"user","content":%q}%s]}`, user, more))
	}
	turn("a", "")
	turn("a", `,{"role":"assistant","content":"x"},{"role":"user","content":"y"}`)
	turn("b", "")
	s := g.router.Snapshot()
	if len(s.Convs) != 2 {
		t.Fatalf("%d conversations, want two", len(s.Convs))
	}
	turns := 0
	for _, c := range s.Convs {
		turns += c.Turns
		if !strings.HasPrefix(c.Key.ID, "derived:") {
			t.Errorf("%q is not marked", c.Key.ID)
		}
	}
	if turns != 3 {
		t.Errorf("%d turns", turns)
	}
}

func TestHealth(t *testing.T) {
	g := newRig(t, rigOptions{})
	code := func(path string) int {
		resp, err := g.client.Get(g.server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if code("/live") != 200 || code("/health") != 200 || code("/ready") != 200 {
		t.Error("not healthy")
	}
	if got := g.get(t, "/v1/models"); !strings.Contains(got, `"id":"m"`) {
		t.Errorf("models: %s", got)
	}
	g.engines.mu.Lock()
	g.engines.specs = nil
	g.engines.mu.Unlock()
	if code("/live") != 200 || code("/health") != 503 || code("/ready") != 503 || !strings.Contains(g.get(t, "/health"), "start an engine") {
		t.Error("healthy without an engine")
	}
}

func TestUnknownModel(t *testing.T) {
	g := newRig(t, rigOptions{workers: 1, ranks: 1, models: []string{"m", "n"}})
	resp, body := g.post(t, "/v1/chat/completions", `{"model":"x"}`)
	if resp.StatusCode != 404 || !strings.Contains(body, "model_not_found") || !strings.Contains(body, `is not among [\"m\" \"n\"]`) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if resp, body = g.post(t, "/v1/chat/completions", `{"model":"n"}`); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// TestTokenizersAreAskedInTurn leaves one that fails alone.
func TestTokenizersAreAskedInTurn(t *testing.T) {
	g := newRig(t, rigOptions{workers: 3, ranks: 1, spec: model.GatewaySpec{Tokenize: "engine"}})
	g.engines.dumb = "w1"
	g.engines.tokens = func([]byte) ([]uint32, error) { return []uint32{1, 2, 3, 4, 5}, nil }
	for i := range 20 {
		g.post(t, "/v1/completions", fmt.Sprintf(`{"model":"m","prompt":"prompt %d"}`, i))
	}
	g.engines.mu.Lock()
	defer g.engines.mu.Unlock()
	at := map[string]int{}
	for _, w := range g.engines.asked {
		at[w]++
	}
	if at["w1"] != 1 || at["w0"] < 5 || at["w2"] < 5 {
		t.Errorf("asked %v", at)
	}
	if text := g.get(t, "/metrics"); !strings.Contains(text, `adpdeck_gateway_prompts_total{how="tokenized"} 20`) {
		t.Errorf("not all were tokenised")
	}
}

// TestSeriesAreOfLiveWorkers is report A15.
func TestSeriesAreOfLiveWorkers(t *testing.T) {
	g := newRig(t, rigOptions{})
	resp, err := g.send(t.Context(), "/v1/chat/completions", `{"stream":true,"behave":"stuck"}`, "X-Adpdeck-Worker", "w1")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(g.get(t, "/metrics"), `worker="w1"`) {
		t.Error("a worker is missing")
	}
	if err := g.router.Leave("w1"); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close() // ends after its worker left
	until(t, "the request has ended", func() bool { n, _ := g.Open(); return n == 0 })
	if text := g.get(t, "/metrics"); strings.Contains(text, `worker="w1"`) || !strings.Contains(text, `worker="w0"`) {
		t.Error("a worker that left is in the metrics, or one that stayed is not")
	}
}

// TestDownRanks wants a pin to a rank that does not answer to be refused with the
// reason, and other requests to go elsewhere.
func TestDownRanks(t *testing.T) {
	g := newRig(t, rigOptions{spec: headersOn})
	if err := g.router.Live("w0", model.NoRank, false, "host engine-7.corp is not known"); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		if resp, body := g.post(t, "/v1/chat/completions", `{}`); resp.StatusCode != 200 || resp.Header.Get("X-Adpdeck-Worker") != "w1" {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
	}
	resp, body := g.post(t, "/v1/chat/completions", `{}`, "X-Adpdeck-Worker", "w0", "X-Adpdeck-Rank", "1")
	if resp.StatusCode != 503 || !strings.Contains(body, "rank_down") || !strings.Contains(body, "does not answer since") || strings.Contains(body, "corp") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if err := g.router.Live("w1", model.NoRank, false, "dial tcp 10.0.0.1:80: no route to host"); err != nil {
		t.Fatal(err)
	}
	if resp, body = g.post(t, "/v1/chat/completions", `{}`); resp.StatusCode != 503 || !strings.Contains(body, "4 ranks do not answer") || strings.Contains(body, "corp") || strings.Contains(body, "10.0") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestDrain(t *testing.T) {
	g := newRig(t, rigOptions{})
	resp, err := g.send(t.Context(), "/v1/chat/completions", `{"stream":true,"behave":"stuck"}`)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	drained := make(chan struct{})
	go func() { g.Drain(context.Background()); close(drained) }()
	until(t, "draining", func() bool { _, d := g.Open(); return d })
	late, body := g.post(t, "/v1/chat/completions", `{}`)
	if late.StatusCode != 503 || late.Header.Get("Retry-After") == "" || !strings.Contains(body, "shutting down") {
		t.Errorf("while draining: %d %s", late.StatusCode, body)
	}
	if !strings.Contains(g.get(t, "/ready"), "draining") {
		t.Error("/ready does not say that it drains")
	}
	select {
	case <-drained:
		t.Fatal("a stream that was open was not waited for")
	default:
	}
	g.Drain(context.Background()) // the second one does not wait
	<-drained
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the stream ended as if it was complete")
	}
	if g.inFlight() != 0 {
		t.Error("requests are left on the books")
	}
}

func TestDrainLimit(t *testing.T) {
	g := newRig(t, rigOptions{spec: model.GatewaySpec{DrainSecs: 0.05}})
	resp, err := g.send(t.Context(), "/v1/chat/completions", `{"stream":true,"behave":"stuck"}`)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	start := time.Now()
	g.Drain(context.Background())
	if took := time.Since(start); took < 40*time.Millisecond || took > 3*time.Second {
		t.Errorf("drained in %v", took)
	}
}

func TestTarget(t *testing.T) {
	for _, tt := range [][3]string{
		{"http://h:1", "/v1/x?a=%2F", "http://h:1/v1/x?a=%2F"},
		{"http://h:1/", "/v1/x", "http://h:1/v1/x"},
		{"https://h/base/", "/v1/x", "https://h/base/v1/x"},
	} {
		base, _ := url.Parse(tt[0])
		called, _ := url.Parse(tt[1])
		if got := target(base, called).String(); got != tt[2] {
			t.Errorf("%s under %s is %s, want %s", tt[1], tt[0], got, tt[2])
		}
	}
}
