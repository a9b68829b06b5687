package enginetest_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/engine/plane"
	"adpdeck/router/model"
)

// TestLoadsThatArePublished: steps with their figures, heartbeats without work,
// and each bad habit.
func TestLoadsThatArePublished(t *testing.T) {
	var mu sync.Mutex
	var all []enginetest.Batch
	newest := func(topic string) (plane.Load, error) {
		mu.Lock()
		defer mu.Unlock()
		for i := len(all) - 1; i >= 0; i-- {
			e, err := plane.ParseNATS(all[i].Payload)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case e.Topic != topic:
			case topic == plane.TopicActiveLoad:
				return plane.ActiveLoad(e.Payload)
			default:
				return plane.ForwardPass(e.Payload)
			}
		}
		t.Fatalf("nothing on %s of %d messages", topic, len(all))
		return plane.Load{}, nil
	}
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(all) }
	e := newEngine(t, enginetest.Config{
		Kind: model.EngineDynamo, Ranks: 1, InstanceBase: 1<<63 + 5, Timing: enginetest.Timing{DecodeBase: time.Millisecond},
		Events: enginetest.EventsConfig{OnLoad: func(b enginetest.Batch) { mu.Lock(); defer mu.Unlock(); all = append(all, b) }},
	})
	eventually(t, "a heartbeat", func() bool { return count() >= 1 })
	if l, err := newest(plane.TopicForwardPass); err != nil || !l.Idle || l.Running != 0 || l.Waiting != 0 || l.Worker != "9223372036854775813" {
		t.Errorf("%+v, %v", l, err)
	}
	if status, _ := callJSON(t, e, http.MethodPost, "/v1/chat/completions", chat("hello you", object{"max_tokens": 4, "ignore_eos": true})); status != http.StatusOK {
		t.Fatal(status)
	}
	if l, err := newest(plane.TopicForwardPass); err != nil || l.Idle || l.Running != 1 || l.PendingTokens != 0 || !(l.Tokens > 0) {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err := newest(plane.TopicActiveLoad); err != nil || !l.KVUsedBlocks.Known() || l.Rank != 0 {
		t.Errorf("%+v, %v", l, err)
	}
	for bad, words := range map[string]string{"version": "version 2", "text": "a number from 0 up", "cut": "cut short", "negative": "a number from 0 up"} {
		set(t, e, func(h *enginetest.Habits) { h.LoadsBad = bad })
		callJSON(t, e, http.MethodPost, "/v1/chat/completions", chat(bad, nil))
		if _, err := newest(plane.TopicForwardPass); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	set(t, e, func(h *enginetest.Habits) { h.LoadsBad = "named" })
	callJSON(t, e, http.MethodPost, "/v1/chat/completions", chat("named", nil))
	if l, err := newest(plane.TopicForwardPass); err != nil || l.Worker != "decode-a" {
		t.Errorf("%+v, %v", l, err)
	}
	set(t, e, func(h *enginetest.Habits) { h.LoadsBad, h.LoadsSilent = "", true })
	before := count()
	callJSON(t, e, http.MethodPost, "/v1/chat/completions", chat("silent", nil))
	if count() != before {
		t.Error("it is not silent")
	}
	if err := e.Set(func(h *enginetest.Habits) { h.LoadsBad = "rude" }); err == nil {
		t.Error("a habit that is none is taken")
	}
	for _, kind := range []model.EngineKind{model.EngineSGLang, model.EngineTRTLLM} {
		if _, err := enginetest.New(enginetest.Config{Kind: kind, Events: enginetest.EventsConfig{Loads: "tcp://127.0.0.1:0"}}); err == nil {
			t.Errorf("%s publishes loads", kind)
		}
	}
}

// TestAnswersThatAreSpoilt has each habit of answers on one address, by itself.
func TestAnswersThatAreSpoilt(t *testing.T) {
	for name, c := range map[string]struct {
		habit func(h *enginetest.Habits)
		path  string
		is    func(status int, header http.Header, body string, took time.Duration) bool
	}{
		"unhealthy": {func(h *enginetest.Habits) { h.Unhealthy = true }, "/health", func(status int, _ http.Header, body string, _ time.Duration) bool {
			return status == 200 && strings.Contains(body, `"status":"unhealthy"`)
		}},
		"status": {func(h *enginetest.Habits) { h.Status = 503 }, "/v1/models", func(status int, _ http.Header, body string, _ time.Duration) bool {
			return status == 503 && strings.Contains(body, "Service Unavailable")
		}},
		"a long error": {func(h *enginetest.Habits) { h.Status, h.ErrorBytes = 500, 1<<20 }, "/metrics", func(status int, _ http.Header, body string, _ time.Duration) bool {
			return status == 500 && len(body) >= 1<<20
		}},
		"latency": {func(h *enginetest.Habits) { h.Latency = enginetest.Duration(30 * time.Millisecond) }, "/health", func(status int, _ http.Header, _ string, took time.Duration) bool {
			return status == 200 && took >= 30*time.Millisecond
		}},
		"slow headers": {func(h *enginetest.Habits) { h.SlowHeaders = enginetest.Duration(30 * time.Millisecond) }, "/health", func(status int, _ http.Header, _ string, took time.Duration) bool {
			return status == 200 && took >= 30*time.Millisecond
		}},
		"content type": {func(h *enginetest.Habits) { h.ContentType = "text/html" }, "/metrics", func(status int, header http.Header, _ string, _ time.Duration) bool {
			return status == 200 && header.Get("Content-Type") == "text/html"
		}},
		"others stay": {func(h *enginetest.Habits) { h.Status, h.On = 503, []string{"metrics"} }, "/health", func(status int, _ http.Header, _ string, _ time.Duration) bool {
			return status == 200
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, enginetest.Config{Kind: model.EngineVLLM, Habits: func() (h enginetest.Habits) { c.habit(&h); return h }()})
			began := time.Now()
			resp, body := call(t, e, http.MethodGet, c.path, "")
			if !c.is(resp.StatusCode, resp.Header, body, time.Since(began)) {
				t.Errorf("%d %v %.200q", resp.StatusCode, resp.Header, body)
			}
		})
	}
}
