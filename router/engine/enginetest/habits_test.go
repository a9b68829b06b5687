package enginetest_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"
)

// begin sends a request in the background and returns where its answer comes.
func begin(ctx context.Context, t *testing.T, e *enginetest.Engine, method, path, body string) <-chan error {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, e.URL(model.NoRank)+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		resp, err := client().Do(req)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
			if err == nil && resp.StatusCode != http.StatusOK {
				err = errors.New(resp.Status)
			}
		}
		done <- err
	}()
	return done
}

func TestAnswersOfASickEngine(t *testing.T) {
	tests := map[string]struct {
		habits       string
		path         string
		status       int
		contentType  string
		contains     string
		atLeast      int
		others       string // an address that stays well
		othersStatus int
	}{
		"200 and unhealthy":      {habits: `{"unhealthy": true}`, path: "/health", status: 200, contentType: "application/json", contains: "unhealthy", others: "/v1/models", othersStatus: 200},
		"503":                    {habits: `{"status": 503}`, path: "/health", status: 503, contentType: "application/json", others: "/metrics", othersStatus: 503},
		"503 of metrics alone":   {habits: `{"status": 503, "on": ["metrics"]}`, path: "/metrics", status: 503, contentType: "application/json", others: "/health", othersStatus: 200},
		"an error body of 10 MB": {habits: `{"status": 500, "error_bytes": 10485760}`, path: "/version", status: 500, contentType: "application/json", atLeast: 10 << 20, others: "/v1/models", othersStatus: 500},
		"a wrong content type":   {habits: `{"content_type": "text/html"}`, path: "/metrics", status: 200, contentType: "text/html", contains: "vllm:", others: "/health", othersStatus: 200},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM})
			if err := e.SetJSON([]byte(test.habits)); err != nil {
				t.Fatal(err)
			}
			resp, text := call(t, e, http.MethodGet, test.path, "")
			if resp.StatusCode != test.status || !strings.HasPrefix(resp.Header.Get("Content-Type"), test.contentType) || !strings.Contains(text, test.contains) || len(text) < test.atLeast {
				t.Errorf("%d %s, %d bytes: %.100s", resp.StatusCode, resp.Header.Get("Content-Type"), len(text), text)
			}
			if resp, _ := call(t, e, http.MethodGet, test.others, ""); resp.StatusCode != test.othersStatus {
				t.Errorf("%s got %d, want %d", test.others, resp.StatusCode, test.othersStatus)
			}
			call(t, e, http.MethodPost, enginetest.ControlPath, `{"do": "reset"}`)
			if resp, text := call(t, e, http.MethodGet, "/health", ""); resp.StatusCode != http.StatusOK || text != "" {
				t.Errorf("after the reset: %d %s", resp.StatusCode, text)
			}
		})
	}
}

func TestDelays(t *testing.T) {
	for name, habits := range map[string]string{"latency": `{"latency": "500ms"}`, "slow headers": `{"slow_headers": 0.5}`} {
		t.Run(name, func(t *testing.T) {
			clock := newManual()
			e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM, Clock: clock})
			if err := e.SetJSON([]byte(habits)); err != nil {
				t.Fatal(err)
			}
			done := begin(context.Background(), t, e, http.MethodPost, "/v1/chat/completions", chat("x", nil))
			eventually(t, "the delay", func() bool { return clock.waiting() == 1 })
			clock.advance(499 * time.Millisecond)
			if clock.waiting() != 1 {
				t.Error("answered too early")
			}
			clock.advance(time.Millisecond)
			if err := <-done; err != nil {
				t.Error(err)
			}
			// A client that goes takes its delay with it.
			ctx, cancel := context.WithCancel(context.Background())
			done = begin(ctx, t, e, http.MethodGet, "/metrics", "")
			eventually(t, "the delay", func() bool { return clock.waiting() == 1 })
			cancel()
			<-done
			eventually(t, "the delay's end", func() bool { return clock.waiting() == 0 })
		})
	}
}

func TestHalfOpen(t *testing.T) {
	e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM, Habits: enginetest.Habits{HTTPHabits: enginetest.HTTPHabits{HalfOpen: true}}})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := <-begin(ctx, t, e, http.MethodGet, "/health", ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a half-open engine answered: %v", err)
	}
	done := begin(context.Background(), t, e, http.MethodGet, "/health", "")
	set(t, e, func(h *enginetest.Habits) { h.HalfOpen = false })
	if err := <-done; err != nil {
		t.Errorf("after the habit was over: %v", err)
	}
}

func TestEndlessHeader(t *testing.T) {
	clock := newManual()
	e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM, Clock: clock, Habits: enginetest.Habits{HTTPHabits: enginetest.HTTPHabits{EndlessHeader: true}}})
	conn, err := net.Dial("tcp", e.Addr(model.NoRank))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	if line, err := r.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 200") {
		t.Fatal(line, err)
	}
	buf := make([]byte, 2000)
	for n := 0; n < len(buf); {
		eventually(t, "the next piece", func() bool { return clock.waiting() == 1 })
		clock.advance(100 * time.Millisecond)
		m, err := r.Read(buf[n:])
		if err != nil {
			t.Fatal(err)
		}
		n += m
	}
	if strings.Contains(string(buf), "\n") {
		t.Errorf("the header ended: %q", buf)
	}
	conn.Close()
	eventually(t, "the end", func() bool { clock.advance(100 * time.Millisecond); return clock.waiting() == 0 })
}

func TestCrashMidStream(t *testing.T) {
	for _, stream := range []bool{true, false} {
		e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM, Habits: enginetest.Habits{HTTPHabits: enginetest.HTTPHabits{CrashAfterTokens: 3}}})
		req, _ := http.NewRequest(http.MethodPost, e.URL(model.NoRank)+"/v1/chat/completions", strings.NewReader(chat("x", object{"stream": stream, "max_tokens": 50, "ignore_eos": true})))
		resp, err := client().Do(req)
		var text []byte
		if err == nil {
			text, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		if err == nil || strings.Contains(string(text), "[DONE]") {
			t.Errorf("stream %v ended well: %s", stream, text)
		}
		if stream && !strings.Contains(string(text), `"content":" `) {
			t.Errorf("nothing came before the crash: %q", text)
		}
		eventually(t, "the request's end", func() bool { return e.Open() == 0 && len(e.Served()) == 1 })
		if s := last(t, e); stream && s.CachedTokens != 0 {
			t.Errorf("served %+v", s)
		}
	}
}

func TestNoFirstToken(t *testing.T) {
	e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM, Habits: enginetest.Habits{HTTPHabits: enginetest.HTTPHabits{NoFirstToken: true}}})
	ctx, cancel := context.WithCancel(context.Background())
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, e.URL(model.NoRank)+"/v1/chat/completions", strings.NewReader(chat("x", object{"stream": true})))
	resp, err := client().Do(req) // the headers come at once, as from an engine
	if err != nil {
		t.Fatal(err)
	}
	if e.Open() != 1 {
		t.Errorf("%d requests open", e.Open())
	}
	cancel()
	resp.Body.Close()
	eventually(t, "the request's end", func() bool { return e.Open() == 0 })
	if s := last(t, e); !s.Aborted || s.OutputTokens != 0 {
		t.Errorf("served %+v", s)
	}
	done := begin(context.Background(), t, e, http.MethodPost, "/v1/chat/completions", chat("x", nil))
	eventually(t, "the next request", func() bool { return e.Open() == 1 })
	set(t, e, func(h *enginetest.Habits) { h.NoFirstToken = false })
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestUsageHabits(t *testing.T) {
	e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM, Ranks: 2, Habits: enginetest.Habits{NoCachedTokens: true, RankHeader: true}})
	resp, text := call(t, e, http.MethodPost, "/v1/chat/completions", chat("x", nil), "X-Data-Parallel-Rank", "1")
	if o := parse(t, text); at(t, o, "usage.prompt_tokens_details") != nil || at(t, o, "usage.prompt_tokens") == nil {
		t.Errorf("usage %v", o["usage"])
	}
	if resp.Header.Get(enginetest.RankHeader) != "1" {
		t.Errorf("rank header %q", resp.Header.Get(enginetest.RankHeader))
	}
	set(t, e, func(h *enginetest.Habits) { *h = enginetest.Habits{OmitZeroCached: true} })
	for _, body := range []string{chat("y", nil), chat(strings.Repeat("long ", 40), nil), chat(strings.Repeat("long ", 40), nil)} {
		_, text := call(t, e, http.MethodPost, "/v1/chat/completions", body, "X-Data-Parallel-Rank", "1")
		s := last(t, e)
		if got := at(t, parse(t, text), "usage.prompt_tokens_details.cached_tokens"); (got != nil) != (s.CachedTokens > 0) {
			t.Errorf("%d cached, told %v", s.CachedTokens, got)
		}
	}
	set(t, e, func(h *enginetest.Habits) { *h = enginetest.Habits{} })
	resp, text = call(t, e, http.MethodPost, "/v1/chat/completions", chat("x", nil))
	if at(t, parse(t, text), "usage.prompt_tokens_details.cached_tokens") == nil || resp.Header.Get(enginetest.RankHeader) != "" {
		t.Errorf("without habits: %s, %v", text, resp.Header)
	}
}

func TestHabitsAreChecked(t *testing.T) {
	e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM})
	for _, bad := range []string{
		`{"form": "tree"}`, `{"hash": "md5"}`, `{"framing": "x"}`, `{"metric_value": "2"}`, `{"on": ["all"]}`, `{"ignore_rank": ["x"]}`,
		`{"honours": {"chat": ["smoke"]}}`, `{"honours": {"x": []}}`, `{"status": 99}`, `{"metric_bytes": 1e9}`, `{"metric_bytes": 100000000}`,
		`{"drop_every": -1}`, `{"latency": "soon"}`, `{"latency": -1}`, `{"unknown_habit": true}`, `[]`, `{"out_of_range": "x"}`,
	} {
		if err := e.SetJSON([]byte(bad)); err == nil {
			t.Errorf("%s was taken", bad)
		}
		if status, o := callJSON(t, e, http.MethodPost, enginetest.ControlPath, `{"habits": `+bad+`}`); status != http.StatusBadRequest || o["error"] == "" {
			t.Errorf("%s: %d %v", bad, status, o)
		}
	}
	for _, bad := range []string{`{"do": "dance"}`, `{"do": "restart", "rank": 9}`, `{`, `{"x": 1}`} {
		if status, _ := callJSON(t, e, http.MethodPost, enginetest.ControlPath, bad); status != http.StatusBadRequest {
			t.Errorf("%s got %d", bad, status)
		}
	}
	if resp, _ := call(t, e, http.MethodDelete, enginetest.ControlPath, ""); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("DELETE got %d", resp.StatusCode)
	}
	if h := e.Habits(); h.DropEvery != 0 || h.Form != "" {
		t.Errorf("a refused change left %+v", h)
	}
	// No habit silences the control.
	set(t, e, func(h *enginetest.Habits) { h.HalfOpen, h.Status = true, 503 })
	if _, o := callJSON(t, e, http.MethodGet, enginetest.ControlPath, ""); at(t, o, "habits.half_open") != true {
		t.Errorf("status %v", o)
	}
}
