package gateway

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"
)

// answerRaw answers with text instead of HTTP's own words, and tells when the
// gateway has closed the connection.
func answerRaw(w http.ResponseWriter, text string) (closed bool) {
	conn, buf, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return false
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, text)
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, err = buf.ReadByte()
	return err == io.EOF
}

// TestAnswersThatAreNone wants a status that ends no request to be the engine's
// failure, and its connection to be closed.
func TestAnswersThatAreNone(t *testing.T) {
	for name, text := range map[string]string{
		"another protocol":   "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		"a status below 200": "HTTP/1.1 099 What\r\nContent-Length: 0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			closed := make(chan bool, 1)
			g := newRig(t, rigOptions{spec: model.GatewaySpec{Retry: true}, handler: func(w http.ResponseWriter, _ *http.Request, _ string, _ []byte) {
				closed <- answerRaw(w, text)
			}})
			resp, body := g.post(t, "/v1/chat/completions", `{}`)
			if resp.StatusCode != 502 || !strings.Contains(body, "engine_failed") || len(g.requests()) != 1 {
				t.Errorf("%d %s, sent %d times", resp.StatusCode, body, len(g.requests()))
			}
			if !<-closed {
				t.Error("the connection to the engine stays open")
			}
			if g.inFlight() != 0 || g.router.Strays() != 0 {
				t.Errorf("%d on the books, %d ends too many", g.inFlight(), g.router.Strays())
			}
		})
	}
}

// TestRequestHeadersThatAskOfUs wants what the client asked of this hop, and of
// HTTP, not to be asked of the engine again.
func TestRequestHeadersThatAskOfUs(t *testing.T) {
	g := newRig(t, rigOptions{})
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n"+
		"Upgrade: websocket\r\nConnection: Upgrade\r\nX-Adpdeck-Decision: 7\r\n\r\n")
	in := bufio.NewReader(conn)
	if line, _ := in.ReadString('\n'); !strings.Contains(line, " 100 ") {
		t.Fatalf("asked to go on: %q", line)
	}
	_, _ = in.ReadString('\n')
	_, _ = io.WriteString(conn, "2\r\n{}\r\n0\r\nX-T: 1\r\n\r\n")
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	h := g.requests()[0].header
	for _, name := range []string{"Expect", "Upgrade", "Connection", "Trailer", "X-Adpdeck-Decision"} {
		if h.Get(name) != "" {
			t.Errorf("the engine was sent %s: %q", name, h.Get(name))
		}
	}
	if h.Get("Content-Length") != "2" {
		t.Errorf("the engine was not told the body's length: %v", h)
	}
}

// TestAKeyWithoutAValue wants a blank Idempotency-Key not to have the transport
// send again what the engine has read.
func TestAKeyWithoutAValue(t *testing.T) {
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		g := newRig(t, rigOptions{workers: 1, ranks: 1})
		g.post(t, "/v1/responses", `{}`) // leaves a connection to be used again
		g.post(t, "/v1/responses", `{"behave":"reset"}`, name, "")
		if n := len(g.requests()); n != 2 {
			t.Errorf("%s: the engine read the second request %d times", name, n-1)
		}
	}
}
