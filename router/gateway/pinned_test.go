package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"adpdeck/router/model"
)

// TestBodiesAreLetGo wants no body to stay in memory because of the few words of
// it that are remembered: names of models, conversations, salts.
func TestBodiesAreLetGo(t *testing.T) {
	const conversations = 100
	for name, mode := range map[string]string{"unhashed": "none", "by text": "text"} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, rigOptions{spec: model.GatewaySpec{Tokenize: mode}})
			g.Gateway.engines = &inProcess{fakeEngines: g.engines}
			inUse := func() uint64 {
				var m runtime.MemStats
				runtime.GC()
				runtime.GC()
				runtime.ReadMemStats(&m)
				return m.HeapAlloc
			}
			before := inUse()
			padding := strings.Repeat(" ", 1<<20)
			for i := range conversations {
				text := fmt.Sprintf(`{"model":"m%d","conversation_params":{"conversation_id":"c%d"},"cache_salt":"s%d","messages":[{"role":"user","content":"x"}]%s}`, i, i, i, padding)
				r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(text))
				w := httptest.NewRecorder()
				g.ServeHTTP(w, r)
				if w.Code != 200 {
					t.Fatal(w.Code, w.Body)
				}
			}
			if after := inUse(); after > before+conversations<<20/4 {
				t.Errorf("%d MiB stay of %d bodies of 1 MiB", (after-before)>>20, conversations)
			}
		})
	}
}
