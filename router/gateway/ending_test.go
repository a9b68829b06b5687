package gateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"adpdeck/router"
	"adpdeck/router/model"
)

// rawAnswer is an engine that answers a request with the text of its field raw and
// closes the connection.
func rawAnswer(w http.ResponseWriter, _ *http.Request, text string, _ []byte) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(conn, text)
	_ = conn.Close()
}

// asks is a request whose engine answers with text.
func asks(text string) string { return fmt.Sprintf(`{"model":"m","stream":true,"behave":%q}`, text) }

const (
	sse        = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	untilClose = sse + "Connection: close\r\n\r\n"
	inChunks   = sse + "Transfer-Encoding: chunked\r\n\r\n"
	hello      = `data: {"choices":[{"index":0,"delta":{"content":"hello"}}]}` + "\n\n"
	done       = "data: [DONE]\n\n"
	json200    = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
	delta      = `data: {"type":"response.output_text.delta","delta":"a"}` + "\n\n"
	lastEvent  = `data: {"type":"response.completed","response":{}}` + "\n\n"
)

func inOneChunk(text string) string { return fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(text), text) }

// TestAnAnswerIsWholeWhereItSaysSo: what HTTP takes for an end is none for a stream
// without its mark; the outcome says so in the decision's record and the metrics,
// and what came passes all the same.
func TestAnAnswerIsWholeWhereItSaysSo(t *testing.T) {
	const chat, completions, responses = "/v1/chat/completions", "/v1/completions", "/v1/responses"
	for name, tt := range map[string]struct {
		path, text string
		ok         bool
		unfinished int
	}{
		"close, with its mark":            {chat, untilClose + hello + done, true, 0},
		"close, without":                  {chat, untilClose + hello, false, 1},
		"chunks, with its mark":           {completions, inChunks + inOneChunk(hello+done), true, 0},
		"chunks, without":                 {completions, inChunks + inOneChunk(hello), false, 1},
		"chunks, broken after the mark":   {chat, inChunks + strings.TrimSuffix(inOneChunk(hello+done), "0\r\n\r\n"), true, 0},
		"nothing":                         {chat, untilClose, false, 1},
		"an error in the middle":          {chat, untilClose + hello + "data: {\"error\":{\"message\":\"no\"}}\n\n", false, 0},
		"an error and then the mark":      {chat, untilClose + "data: {\"error\":{\"message\":\"no\"}}\n\n" + done, false, 0},
		"responses end with an event":     {responses, untilClose + delta + lastEvent, true, 0},
		"responses may be incomplete":     {responses, untilClose + delta + strings.Replace(lastEvent, "completed", "incomplete", 1), true, 0},
		"responses may fail":              {responses, untilClose + delta + strings.Replace(lastEvent, "completed", "failed", 1), false, 0},
		"responses, cut":                  {responses, untilClose + delta, false, 1},
		"an event of 1 MiB":               {chat, untilClose + "data: {\"choices\":[{\"delta\":{\"content\":\"" + strings.Repeat("x", 1<<20) + "\"}}]}\n\n" + done, true, 0},
		"\\r\\n":                          {chat, untilClose + strings.ReplaceAll(hello+done, "\n", "\r\n"), true, 0},
		"a document":                      {chat, json200 + okBody, true, 0},
		"a document that is an error":     {chat, json200 + `{"object":"error","message":"no"}`, false, 0},
		"another that is":                 {chat, json200 + `{"error":{"message":"no"}}`, false, 0},
		"compressed, though nobody asked": {chat, strings.Replace(untilClose, "\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n", 1) + "\x1f\x8b\x08", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, rigOptions{workers: 1, ranks: 1, handler: rawAnswer})
			watch := g.router.Subscribe()
			if tt.text != strings.ToValidUTF8(tt.text, "") {
				text := tt.text
				g.shut()
				g = newRig(t, rigOptions{workers: 1, ranks: 1, handler: func(w http.ResponseWriter, r *http.Request, _ string, b []byte) { rawAnswer(w, r, text, b) }})
				watch, tt.text = g.router.Subscribe(), ""
			}
			watch.Start()
			resp, got := g.post(t, tt.path, asks(tt.text))
			if _, body, _ := strings.Cut(tt.text, "\r\n\r\n"); resp.StatusCode != 200 || strings.Contains(tt.text, "close") && got != body {
				t.Errorf("%d %.200q", resp.StatusCode, got)
			}
			outcome := model.OutcomeError
			if tt.ok {
				outcome = model.OutcomeOK
			}
			until(t, "the end is told", func() bool { return g.inFlight() == 0 })
			text := g.get(t, "/metrics")
			for _, line := range []string{
				fmt.Sprintf(`outcomes_total{outcome="%s"} 1`, outcome), fmt.Sprintf("unfinished_streams_total %d\n", tt.unfinished),
			} {
				if !strings.Contains(text, line) {
					t.Errorf("no %s in the metrics", line)
				}
			}
			settled := last(watch)
			if len(settled) != 1 || settled[0].Outcome != outcome {
				t.Errorf("the decision's record: %+v", settled)
			}
			if n := g.engines.failed[model.Target{Worker: "w0"}]; n != tt.unfinished {
				t.Errorf("%d failures were told of", n)
			}
		})
	}
}

// last is the newest word on the decisions that were made since it was asked.
func last(s *router.Subscription) []model.Settled {
	c, _ := s.Take(model.MaxDecisions)
	if c == nil || len(c.Settled) == 0 {
		return nil
	}
	return c.Settled[len(c.Settled)-1:]
}
