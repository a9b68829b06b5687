package enginetest

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"adpdeck/router/model"
)

// ControlPath is where bad habits are read and changed while an engine runs. No
// engine has it, and no habit holds for it.
const ControlPath = "/__fake"

// Handler is the engine's web server: for all ranks with model.NoRank, or that of
// one rank (counted from 0) where each has an address of its own.
func (e *Engine) Handler(rank int) http.Handler {
	mux := http.NewServeMux()
	for route, s := range routeShapes() {
		if path := e.path(route); path != "" {
			mux.HandleFunc("POST "+path, e.serve(route, rank, s))
		}
	}
	mux.HandleFunc("POST /v1/embeddings", e.embed(rank))
	mux.HandleFunc("GET /v1/models", e.models)
	e.own(mux, rank)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusNotFound, object{"detail": "Not Found"})
	})
	return e.manners(mux)
}

// path is the address of a generating route, empty where a kind lacks it.
func (e *Engine) path(r model.Route) string {
	switch r {
	case model.RouteChat:
		return "/v1/chat/completions"
	case model.RouteCompletions:
		return "/v1/completions"
	case model.RouteResponses:
		return "/v1/responses"
	case RouteMessages:
		if e.cfg.Kind == model.EngineSGLang {
			return "/v1/messages"
		}
	case RouteGenerate:
		if e.cfg.Kind == model.EngineSGLang {
			return "/generate"
		}
	}
	return ""
}

// class is the group of addresses that Habits.On names.
func class(path string) string {
	switch path {
	case "/health", "/health_generate", "/live", "/ping":
		return "health"
	case "/metrics", "/prometheus/metrics", "/v1/loads", "/get_load", "/load", "/perf_metrics":
		return "metrics"
	case "/kv_cache_events":
		return "events"
	case "/generate":
		return "openai"
	}
	if strings.HasPrefix(path, "/v1/") && path != "/v1/models" && path != "/v1/tokenize" {
		return "openai"
	}
	return "info"
}

// manners answers as the habits will have it, and passes on what they leave.
func (e *Engine) manners(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		alive, ok := e.enter()
		if !ok {
			panic(http.ErrAbortHandler)
		}
		defer e.net.handlers.Done()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(alive, cancel)()
		r = r.WithContext(ctx)
		if r.URL.Path == ControlPath {
			e.control(w, r)
			return
		}
		h, c := e.habits.Load(), class(r.URL.Path)
		if h.Unhealthy && c == "health" {
			writeJSON(w, http.StatusOK, object{"status": "unhealthy", "message": "engine is unhealthy"})
			return
		}
		if !h.on(c) {
			next.ServeHTTP(w, r)
			return
		}
		s := &spoiler{ResponseWriter: w, ctx: r.Context(), e: e, habits: h}
		switch {
		case !sleep(r.Context(), e.clock, time.Duration(h.Latency)):
			panic(http.ErrAbortHandler)
		case h.HalfOpen && !e.hang(r.Context(), c):
			panic(http.ErrAbortHandler)
		case h.EndlessHeader:
			e.endless(w, r)
		case h.Status != 0:
			e.fail(s, &apiError{status: h.Status, kind: http.StatusText(h.Status), msg: http.StatusText(h.Status) + strings.Repeat(" x", h.ErrorBytes/2)})
		default:
			next.ServeHTTP(s, r)
		}
	})
}

// enter counts a request in, unless the engine is down, and returns the engine's
// life.
func (e *Engine) enter() (alive context.Context, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.down {
		return nil, false
	}
	e.net.handlers.Add(1)
	return e.alive, true
}

// hang holds a request for as long as the half-open habit lasts; false when the
// client went first.
func (e *Engine) hang(ctx context.Context, class string) bool {
	for {
		changed := e.changed()
		if h := e.habits.Load(); !h.HalfOpen || !h.on(class) {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// endless writes a header that has no end: 64 bytes at a time, ten times a
// second, until the client goes, the habit ends or a mebibyte is out.
func (e *Engine) endless(w http.ResponseWriter, r *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil { // a recorder in a test has no connection
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	// A hijacked connection no longer ends its request's context when it breaks.
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer conn.Close()
	go func() { // ends when the connection does
		var b [1]byte
		_, _ = conn.Read(b[:])
		cancel()
	}()
	text := "HTTP/1.1 200 OK\r\nX-Padding: "
	for n := 0; n < 1<<20 && e.habits.Load().EndlessHeader; n += len(text) {
		_ = conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
		if _, err := conn.Write([]byte(text)); err != nil || !sleep(ctx, e.clock, 100*time.Millisecond) {
			return
		}
		text = strings.Repeat("a", 64)
	}
}

// spoiler delays headers and changes the content type.
type spoiler struct {
	http.ResponseWriter
	ctx    context.Context
	e      *Engine
	habits *Habits
	begun  bool
}

func (s *spoiler) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *spoiler) WriteHeader(status int) {
	if s.begun {
		return
	}
	s.begun = true
	if !sleep(s.ctx, s.e.clock, time.Duration(s.habits.SlowHeaders)) {
		panic(http.ErrAbortHandler)
	}
	if s.habits.ContentType != "" {
		s.Header().Set("Content-Type", s.habits.ContentType)
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *spoiler) Write(b []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	return s.ResponseWriter.Write(b)
}

// intQuery reads a number from a query; ok is false where it is none.
func intQuery(r *http.Request, name string) (n int, ok bool) {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	return n, err == nil
}
