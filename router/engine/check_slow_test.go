package engine

import (
	"testing"
	"time"

	"adpdeck/router/model"
)

func sglangHost(n *network) *host {
	h := n.host("a:80")
	h.page("/v1/models", `{"data":[{"id":"m"}]}`, 200)
	h.page("/server_info", `{"version":"0.5.19","dp_size":2,"page_size":16}`, 200)
	h.slow["/health"] = 1002 * time.Millisecond
	return h
}

// TestSGLangsHealthTakesASecond: its handler sleeps a second before it looks
// whether a token came (entrypoints/http_server.py; 1.001 s measured in
// llama-swap#276 and modelplane#206), and under long prefills it goes on looking
// for up to 20 (sglang#22511).
func TestSGLangsHealthTakesASecond(t *testing.T) {
	t.Parallel()
	for name, takes := range map[string]time.Duration{"idle": 1002 * time.Millisecond, "long prefills": 19 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var h *host
			bubble(t, []model.EngineSpec{{ID: "s0", Kind: model.EngineSGLang, URL: "http://a:80"}}, func(n *network) {
				h = sglangHost(n)
				h.slow["/health"] = takes
			}, func(t *testing.T, r *rig) {
				until(t, 3*time.Second, func() bool { return r.isLive("s0/0") && r.isLive("s0/1") })
				time.Sleep(10 * time.Minute)
				if n := r.count("live "); n != 1 {
					t.Errorf("a healthy engine was told of %d times: %v", n, sortedLines(r.sink))
				}
				if n := h.times("/health"); n > 10*60 {
					t.Errorf("it was made to generate %d tokens in ten minutes", n)
				}
			})
		})
	}
}

// TestAnSGLangThatIsNotWellLeavesAndReturns: it says so at once while it starts
// and stops; a scheduler that is stuck shows after 20 s.
func TestAnSGLangThatIsNotWellLeavesAndReturns(t *testing.T) {
	t.Parallel()
	for name, fall := range map[string]func(h *host){
		"stopping":       func(h *host) { h.slow["/health"] = 0; h.pages["/health"], h.status["/health"] = "", 503 },
		"unhealthy body": func(h *host) { h.slow["/health"] = 0; h.pages["/health"] = `{"status":"unhealthy"}` },
		"half-open":      func(h *host) { h.mode = halfOpen },
		"blackhole":      func(h *host) { h.mode = blackhole },
		"refused":        func(h *host) { h.mode = refused },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, phase := range []time.Duration{0, 130, 490, 770, 1010, 1300, 1490} {
				var h *host
				bubble(t, []model.EngineSpec{{ID: "s0", Kind: model.EngineSGLang, URL: "http://a:80"}}, func(n *network) { h = sglangHost(n) }, func(t *testing.T, r *rig) {
					until(t, 3*time.Second, func() bool { return r.isLive("s0/1") })
					time.Sleep(10*time.Second + phase*time.Millisecond)
					h.mu.Lock()
					fall(h)
					h.mu.Unlock()
					until(t, 3*time.Second, func() bool { return !r.isLive("s0/0") && !r.isLive("s0/1") })
					time.Sleep(10*time.Second + phase*time.Millisecond)
					if r.isLive("s0/0") {
						t.Error("back while dead")
					}
					h.mu.Lock()
					h.mode, h.pages["/health"], h.status["/health"], h.slow["/health"] = good, "", 200, 1002*time.Millisecond
					h.mu.Unlock()
					until(t, 5*time.Second, func() bool { return r.isLive("s0/0") && r.isLive("s0/1") })
				})
			}
		})
	}
}

func TestAnSGLangThatStartsIsNotUsed(t *testing.T) {
	t.Parallel()
	var h *host
	bubble(t, []model.EngineSpec{{ID: "s0", Kind: model.EngineSGLang, URL: "http://a:80"}}, func(n *network) {
		h = sglangHost(n)
		h.slow["/health"], h.status["/health"] = 0, 503
	}, func(t *testing.T, r *rig) {
		time.Sleep(time.Minute)
		if r.isLive("s0/0") {
			t.Error("used while it warms up")
		}
		h.page("/health", "", 200)
		h.mu.Lock()
		h.slow["/health"] = 1002 * time.Millisecond
		h.mu.Unlock()
		until(t, 5*time.Second, func() bool { return r.isLive("s0/0") })
	})
}

func TestAnSGLangWhoseSchedulerIsStuckLeaves(t *testing.T) {
	t.Parallel()
	var h *host
	bubble(t, []model.EngineSpec{{ID: "s0", Kind: model.EngineSGLang, URL: "http://a:80"}}, func(n *network) { h = sglangHost(n) }, func(t *testing.T, r *rig) {
		until(t, 3*time.Second, func() bool { return r.isLive("s0/0") })
		h.page("/health", "", 503)
		h.mu.Lock()
		h.slow["/health"] = 20 * time.Second
		h.mu.Unlock()
		until(t, 25*time.Second, func() bool { return !r.isLive("s0/0") })
	})
}
