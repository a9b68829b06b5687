package enginetest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"
)

// TestSGLangsHealthSleepsASecond: its handler looks for a token only after one
// (entrypoints/http_server.py), unless it knows at once that it is not ready.
// The others answer at once.
func TestSGLangsHealthSleepsASecond(t *testing.T) {
	for kind, takes := range map[model.EngineKind]time.Duration{
		model.EngineVLLM: 0, model.EngineSGLang: time.Second, model.EngineTRTLLM: 0, model.EngineDynamo: 0,
	} {
		e, err := enginetest.New(enginetest.Config{Kind: kind, Ranks: 2, Timing: instant()})
		if err != nil {
			t.Fatal(err)
		}
		h := e.Handler(model.NoRank)
		ask := func() (int, time.Duration) {
			w, began := httptest.NewRecorder(), time.Now()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/health", nil))
			return w.Code, time.Since(began)
		}
		synctest.Test(t, func(t *testing.T) {
			if code, took := ask(); code != http.StatusOK || took != takes {
				t.Errorf("%s: %d after %v", kind, code, took)
			}
			if err := e.Set(func(h *enginetest.Habits) { h.NotReady = true }); err != nil {
				t.Fatal(err)
			}
			if _, took := ask(); took != 0 {
				t.Errorf("%s is not ready and says so after %v", kind, took)
			}
		})
	}
}
