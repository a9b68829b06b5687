package gateway

import (
	"encoding/json"
	"net/http"
)

// models answers /v1/models.
func (g *Gateway) models(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	// A client that does not read its answer is no concern of ours.
	_, _ = w.Write(g.engines.Models())
}

// healthAnswer is the body of /health and /ready.
type healthAnswer struct {
	// Status is ok, degraded (some ranks do not answer), unhealthy (none does) or
	// draining.
	Status  string         `json:"status"`
	Why     string         `json:"why,omitempty"`
	Open    int            `json:"open"`
	Workers []workerHealth `json:"workers"`
}

type workerHealth struct {
	ID string `json:"id"`
	// Ranks is null while it is not known.
	Ranks *int   `json:"ranks"`
	Live  int    `json:"live"`
	Why   string `json:"why,omitempty"`
}

// live says that the process answers, and nothing else.
func (g *Gateway) live(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "live"})
}

// health says whether any engine can be reached: 503 where none can, so that
// nobody has to read the body to know.
func (g *Gateway) health(w http.ResponseWriter, _ *http.Request) {
	a, up := g.condition()
	status := http.StatusOK
	if !up {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, a)
}

// ready says whether new requests are taken.
func (g *Gateway) ready(w http.ResponseWriter, _ *http.Request) {
	a, up := g.condition()
	status := http.StatusOK
	if !up || a.Status == "draining" {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, a)
}

func (g *Gateway) condition() (a healthAnswer, up bool) {
	open, draining := g.Open()
	a = healthAnswer{Status: "ok", Open: open, Workers: []workerHealth{}}
	whole := true
	for _, h := range g.engines.Health() {
		w := workerHealth{ID: h.ID, Live: h.Live, Why: h.Why}
		if h.Ranks > 0 {
			w.Ranks = &h.Ranks
		}
		up = up || h.Live > 0
		whole = whole && h.Ranks > 0 && h.Live == h.Ranks
		a.Workers = append(a.Workers, w)
	}
	switch {
	case draining:
		a.Status, a.Why = "draining", "adpdeck is shutting down"
	case !up:
		a.Status, a.Why = "unhealthy", "no rank of any worker answers: start an engine, or correct its address in the settings file"
	case !whole:
		a.Status, a.Why = "degraded", "some ranks do not answer"
	}
	return a, up
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that does not read its answer is no concern of ours.
	_ = json.NewEncoder(w).Encode(v)
}
