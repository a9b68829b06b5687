package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// wire sends text over a connection of its own and reads so many answers.
func (g *rig) wire(t *testing.T, text string, answers int, method string) (all []string) {
	t.Helper()
	conn, err := net.Dial("tcp", g.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	for range answers {
		resp, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			return append(all, err.Error())
		}
		body, err := io.ReadAll(resp.Body)
		all = append(all, fmt.Sprint(resp.StatusCode, " ", string(body), err, " ", resp.Header))
		resp.Body.Close()
	}
	return all
}

const small = `{"model":"m","messages":[]}`

func lineAnd(method, path string, header ...string) string {
	return method + " " + path + " HTTP/1.1\r\nHost: h\r\n" + strings.Join(header, "\r\n") + "\r\n\r\n"
}

// TestOfTheWire sends what a hostile or old client would.
func TestOfTheWire(t *testing.T) {
	const chat = "/v1/chat/completions"
	length := fmt.Sprintf("Content-Length: %d", len(small))
	chunks := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(small), small)
	smuggled := lineAnd("POST", chat, "Content-Length: 2", "X-Smuggled: yes") + "{}"
	for name, tt := range map[string]struct {
		text   string
		method string
		want   []string // what each answer begins with
		sent   int      // requests at the engines
	}{
		"both lengths":              {lineAnd("POST", chat, length, "Transfer-Encoding: chunked") + chunks, "", []string{"200"}, 1},
		"both, and a second inside": {lineAnd("POST", chat, "Content-Length: "+fmt.Sprint(len(chunks)+len(smuggled)), "Transfer-Encoding: chunked", "Connection: close") + chunks + smuggled, "", []string{"200", "unexpected EOF"}, 1},
		"two lengths":               {lineAnd("POST", chat, length, "Content-Length: 3") + small, "", []string{"400"}, 0},
		"a signed length":           {lineAnd("POST", chat, "Content-Length: +2") + "{}", "", []string{"400"}, 0},
		"an unknown coding":         {lineAnd("POST", chat, "Transfer-Encoding: gzip, chunked") + chunks, "", []string{"501"}, 0},
		"a hidden coding":           {lineAnd("POST", chat, "Transfer-Encoding: \vchunked", length) + small, "", []string{"400"}, 0},
		"a space before the colon":  {lineAnd("POST", chat, "Transfer-Encoding : chunked", length) + small, "", []string{"400"}, 0},
		"folded headers":            {lineAnd("POST", chat, "X-Session-Id: a\r\n b", length) + small, "", []string{"200"}, 1},
		"a bare LF in a chunk":      {lineAnd("POST", chat, "Transfer-Encoding: chunked") + "2\n{}\r\n0\r\n\r\n", "", []string{"400"}, 0},
		"trailers":                  {lineAnd("POST", chat, "Transfer-Encoding: chunked", "Trailer: X-Adpdeck-Worker") + strings.TrimSuffix(chunks, "\r\n") + "X-Adpdeck-Worker: w9\r\n\r\n", "", []string{"200"}, 1},
		"pipelined":                 {strings.Repeat(lineAnd("POST", chat, length)+small, 3), "", []string{"200", "200", "200"}, 3},
		"continue":                  {lineAnd("POST", chat, length, "Expect: 100-continue") + small, "", []string{"100", "200"}, 1},
		"another expectation":       {lineAnd("POST", chat, length, "Expect: the-moon") + small, "", []string{"417"}, 0},
		"an upgrade":                {lineAnd("POST", chat, length, "Connection: Upgrade", "Upgrade: websocket") + small, "", []string{"200"}, 1},
		"an upgrade to HTTP/2":      {lineAnd("POST", chat, length, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk") + small, "", []string{"200"}, 1},
		"HTTP/2 without TLS":        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "", []string{"400"}, 0},
		"HEAD":                      {lineAnd("HEAD", chat), "HEAD", []string{"405"}, 0},
		"HEAD of what is read":      {lineAnd("HEAD", "/v1/models"), "HEAD", []string{"200"}, 0},
		"OPTIONS":                   {lineAnd("OPTIONS", chat, "Origin: http://evil", "Access-Control-Request-Method: POST"), "", []string{"405"}, 0},
		"OPTIONS of all":            {lineAnd("OPTIONS", "*"), "", []string{"200"}, 0},
		"CONNECT":                   {"CONNECT engine:80 HTTP/1.1\r\nHost: engine:80\r\n\r\n", "CONNECT", []string{"404"}, 0},
		"TRACE":                     {lineAnd("TRACE", chat), "", []string{"405"}, 0},
		"another host":              {lineAnd("POST", "http://evil"+chat, length) + small, "", []string{"200"}, 1},
		"an empty body":             {lineAnd("POST", chat, "Content-Length: 0"), "", []string{"400"}, 0},
		"no body":                   {lineAnd("POST", chat), "", []string{"400"}, 0},
		"HTTP/1.0":                  {"POST " + chat + " HTTP/1.0\r\n" + length + "\r\n\r\n" + small, "", []string{"200"}, 1},
		"a huge header":             {lineAnd("POST", chat, "X-A: "+strings.Repeat("a", 80<<10), length) + small, "", []string{"431"}, 0},
		"a path that climbs":        {lineAnd("POST", "/v1/route/../chat/completions", length) + small, "", []string{"3"}, 0},
		"a path in code":            {lineAnd("POST", "/v1/chat%2Fcompletions", length) + small, "", []string{"404"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, rigOptions{workers: 1, ranks: 1})
			got := g.wire(t, tt.text, len(tt.want), tt.method)
			for i, want := range tt.want {
				if i >= len(got) || !strings.HasPrefix(got[i], want) {
					t.Errorf("%d: %.300q, want %s", i, got, want)
				}
			}
			seen := g.requests()
			if len(seen) != tt.sent {
				t.Errorf("%d requests reached an engine, want %d", len(seen), tt.sent)
			}
			until(t, "the books are even", func() bool { return g.inFlight() == 0 })
			for _, r := range seen {
				for _, name := range []string{"Upgrade", "Http2-Settings", "Transfer-Encoding", "Trailer", "Expect", "X-Smuggled", "X-Adpdeck-Worker"} {
					if r.header[name] != nil {
						t.Errorf("the header %s reached the engine", name)
					}
				}
			}
		})
	}
}

// TestHopByHop: what a connection's two ends agree on stays between them.
func TestHopByHop(t *testing.T) {
	g := newRig(t, rigOptions{workers: 1, ranks: 1, handler: func(w http.ResponseWriter, _ *http.Request, _ string, _ []byte) {
		h := w.Header()
		h.Set("Connection", "X-Private")
		h.Set("X-Private", "1")
		h.Set("Proxy-Authenticate", "Basic")
		h.Set("Keep-Alive", "timeout=5")
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Allow-Credentials", "true")
		h.Set("X-Request-Id", "7")
		_, _ = io.WriteString(w, okBody)
	}})
	resp, _ := g.post(t, "/v1/chat/completions", small, "Connection", "X-Mine", "X-Mine", "1", "Te", "trailers", "Proxy-Authorization", "Basic x",
		"Keep-Alive", "9", "Origin", "http://evil", "X-Forwarded-For", "1.2.3.4", "X-Keep", "1")
	seen := g.requests()[0].header
	for _, name := range []string{"X-Mine", "Proxy-Authorization", "Keep-Alive", "X-Forwarded-For"} {
		if seen.Get(name) != "" {
			t.Errorf("%s reached the engine", name)
		}
	}
	for _, name := range []string{"X-Private", "Proxy-Authenticate", "Keep-Alive", "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials"} {
		if resp.Header.Get(name) != "" {
			t.Errorf("%s reached the client", name)
		}
	}
	if seen.Get("X-Keep") != "1" || resp.Header.Get("X-Request-Id") != "7" {
		t.Errorf("lost on the way: %v, %v", seen, resp.Header)
	}
}

// TestWhatEnginesAnswer: interim answers, and refusals with their time to come again.
func TestWhatEnginesAnswer(t *testing.T) {
	const full = "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\n{}"
	for name, tt := range map[string]struct {
		text, want string
		status     int
		retryAfter string
	}{
		"early hints":            {"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + json200 + okBody, okBody, 200, ""},
		"continue":               {"HTTP/1.1 100 Continue\r\n\r\n" + json200 + okBody, okBody, 200, ""},
		"another protocol":       {"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "engine_failed", 502, "1"},
		"too much":               {full, "{}", 429, "7"},
		"not now":                {strings.Replace(full, "429 Too Many Requests", "503 Service Unavailable", 1), "{}", 503, "7"},
		"both lengths":           {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "{}", 200, ""},
		"less than it announced": {"HTTP/1.1 200 OK\r\nContent-Length: 400\r\nContent-Type: application/json\r\n\r\n{}", "unexpected EOF", 200, ""},
		"two lengths":            {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 2\r\n\r\n{}{}", "engine_failed", 502, "1"},
		"no HTTP":                {"SSH-2.0-OpenSSH_9.6\r\n", "engine_failed", 502, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, rigOptions{workers: 1, ranks: 1, handler: rawAnswer})
			resp, body := g.post(t, "/v1/chat/completions", fmt.Sprintf(`{"model":"m","behave":%q}`, tt.text))
			if resp.StatusCode != tt.status || !strings.Contains(body, tt.want) || resp.Header.Get("Retry-After") != tt.retryAfter {
				t.Errorf("%d, %q, %v", resp.StatusCode, body, resp.Header)
			}
			if n := len(g.requests()); n != 1 {
				t.Errorf("%d requests sent", n)
			}
			until(t, "the books are even", func() bool { return g.inFlight() == 0 })
		})
	}
}

// TestBodiesPassAsTheyAre: what makes a request special is the engine's to read.
func TestBodiesPassAsTheyAre(t *testing.T) {
	g := newRig(t, rigOptions{workers: 1, ranks: 1})
	for _, body := range []string{
		`{"model":"m","n":3,"messages":[{"role":"user","content":[{"type":"text","text":"what?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"input_audio","input_audio":{"data":"AA","format":"wav"}}]}]}`,
		`{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"error\":1}"}}]},{"role":"tool","tool_call_id":"1","content":"\"usage\""}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto"}`,
		`{"model":"m","stream":false,"seed":12345678901234567890,"messages":[{"role":"user","content":"\ud83d\ude00 \u0000"}]}`,
	} {
		resp, _ := g.post(t, "/v1/chat/completions", body)
		seen := g.requests()
		if resp.StatusCode != 200 || seen[len(seen)-1].body != body {
			t.Errorf("%d, the engine got %s", resp.StatusCode, seen[len(seen)-1].body)
		}
	}
	for options, same := range map[string]bool{`{"include_usage":true}`: true, `{"include_usage":false}`: false, `null`: false, `{"include_usage":true,"continuous_usage_stats":true}`: true} {
		body := `{"stream":true,"stream_options":` + options + `,"n":2}`
		_, got := g.post(t, "/v1/completions", body)
		seen := g.requests()
		if sent := seen[len(seen)-1].body; (sent == body) != same || !strings.Contains(sent, `"include_usage":true`) || strings.Contains(got, `"choices":[],"usage"`) != same {
			t.Errorf("%s: sent %s, answered %s", options, sent, got)
		}
	}
}
