package gateway

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"adpdeck/router/model"
)

// FuzzRequest sends any header and body over every route, and wants an answer, no
// panic, balanced books, and refusals that are OpenAI error objects.
func FuzzRequest(f *testing.F) {
	f.Add("X-Session-ID", "a\x9b", []byte(`{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true}`), uint8(0))
	f.Add("X-Adpdeck-Rank", "-1", []byte(`{"prompt":[[1],[2]],"n":4}`), uint8(1))
	f.Add("X-Dynamo-Request-Priority", "99999999999", []byte(`{"input":"x","nvext":{"agent_hints":{"osl":1.5}}}`), uint8(2))
	f.Add("X-Data-Parallel-Rank", "1", []byte(`{"conversation_params":{"conversation_id":"\u001b]52;c;\u0007"}}`), uint8(3))
	f.Add("Content-Encoding", "gzip", []byte(`{"token_ids":[1,2,3],"worker":"w0","rank":1}`), uint8(4))
	f.Add("Idempotency-Key", "k", []byte(`{"block_hashes":[-1,2]}`), uint8(5))
	f.Add("Upgrade", "websocket", []byte(`{}`), uint8(0))
	g := newRig(f, rigOptions{spec: model.GatewaySpec{TenantFromKey: true, DeriveConversation: true, DecisionHeaders: true, Retry: true}})
	g.Gateway.engines = &inProcess{fakeEngines: g.engines}
	paths := []string{"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/embeddings", "/v1/route", "/query_by_hash", "/query", "/v1/route/1/first_token"}
	f.Fuzz(func(t *testing.T, name, value string, text []byte, which uint8) {
		if name == "" || strings.ContainsAny(name, "\r\n: ") {
			return
		}
		r := httptest.NewRequest(http.MethodPost, paths[int(which)%len(paths)], bytes.NewReader(text))
		r.Header.Set(name, value)
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if w.Code < 200 || w.Code > 599 {
			t.Fatalf("status %d", w.Code)
		}
		if w.Code >= 400 && !strings.HasPrefix(w.Body.String(), `{"error":{"message":"`) {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if open, _ := g.Open(); open != 0 || g.inFlight() != g.leases.len() {
			t.Fatalf("%d open, %d on the books, %d lent", open, g.inFlight(), g.leases.len())
		}
		g.clock.ahead.Add(int64(g.leases.ttl)) // what was lent expires
	})
}
