package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"
)

// raw opens a connection to the gateway and sends text.
func (g *rig) raw(t testing.TB, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// head is a request's, whose body is not sent.
func head(path, more string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: x\r\n" + more + "\r\n\r\n"
}

// TestBodiesThatDoNotComeShutNobodyOut wants what clients announce, and do not
// send, to take nothing from others.
func TestBodiesThatDoNotComeShutNobodyOut(t *testing.T) {
	g := newRig(t, rigOptions{})
	for i := range 80 {
		more := fmt.Sprintf("Content-Length: %d", MaxBodyBytes)
		if i%2 == 0 {
			more = "Transfer-Encoding: chunked"
		}
		g.raw(t, head("/v1/chat/completions", more))
	}
	until(t, "all are open", func() bool { open, _ := g.Open(); return open == 80 })
	if resp, body := g.post(t, "/v1/chat/completions", `{"x":"`+strings.Repeat("x", 100_000)+`"}`); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	if g.held.Load() != 0 {
		t.Errorf("%d bytes are held of bodies that did not come", g.held.Load())
	}
}

func TestTooMuchAtOnce(t *testing.T) {
	g := newRig(t, rigOptions{})
	g.held.Store(MaxHeldBytes - 100)
	for _, path := range []string{"/v1/chat/completions", "/v1/route", "/query"} {
		resp, body := g.post(t, path, `{"token_ids":[`+strings.Repeat("1,", 100)+`1]}`)
		if resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" || !strings.Contains(body, "too_much_at_once") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	if n := g.held.Load(); n != MaxHeldBytes-100 {
		t.Errorf("%d bytes are held after all, want %d", n, MaxHeldBytes-100)
	}
	if resp, _ := g.post(t, "/v1/chat/completions", `{}`); resp.StatusCode != 200 {
		t.Errorf("what fits: %d", resp.StatusCode)
	}
}

// TestABodyHasATime wants every route to give up on a body that stops, and its
// connection to be closed: the server must not wait for the rest after its answer.
func TestABodyHasATime(t *testing.T) {
	g := newRig(t, rigOptions{})
	g.patience = 50 * time.Millisecond
	for path, status := range map[string]string{
		"/v1/chat/completions": "408", "/v1/route": "408", "/query": "408", "/v1/route/1/first_token": "408",
		"/nowhere": "404", "/v1/models": "405",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			conn := g.raw(t, head(path, "Content-Length: 100")+`{"mo`)
			_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
			all, err := io.ReadAll(conn)
			if err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 "+status) {
				t.Errorf("%v: %.300s", err, all)
			}
		})
	}
}

// TestATimeForABodyIsNoTimeForTheAnswer wants the body's deadline gone with the
// body.
func TestATimeForABodyIsNoTimeForTheAnswer(t *testing.T) {
	g := newRig(t, rigOptions{handler: func(w http.ResponseWriter, _ *http.Request, _ string, _ []byte) {
		time.Sleep(150 * time.Millisecond)
		_, _ = io.WriteString(w, okBody)
	}})
	g.patience = 50 * time.Millisecond
	for range 2 {
		if resp, body := g.post(t, "/v1/chat/completions", `{}`); resp.StatusCode != 200 || body != okBody {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
	}
}

// TestDrainWaitsForNobodyWhoStalls opens what could keep a gateway from ending: a
// body that does not come, a placement that waits for room, and a client that
// does not read.
func TestDrainWaitsForNobodyWhoStalls(t *testing.T) {
	big := strings.Repeat("x", 64<<10)
	stall := map[string]func(t *testing.T, g *rig){
		"body":                func(t *testing.T, g *rig) { g.raw(t, head("/v1/chat/completions", "Content-Length: 100")) },
		"body of a placement": func(t *testing.T, g *rig) { g.raw(t, head("/v1/route", "Content-Length: 100")) },
		"waiting placement": func(t *testing.T, g *rig) {
			if _, status := g.place(t, `{}`); status != 200 {
				t.Fatal(status)
			}
			g.raw(t, head("/v1/route", "Content-Length: 2")+"{}")
		},
		"client that does not read": func(t *testing.T, g *rig) {
			conn := g.raw(t, head("/v1/chat/completions", "Content-Length: 17")+`{"stream": true }`)
			_, _ = bufio.NewReaderSize(conn, 16).ReadByte()
		},
	}
	for name, open := range stall {
		t.Run(name, func(t *testing.T) {
			sent := make(chan struct{}, 1)
			g := newRig(t, rigOptions{workers: 1, ranks: 1, cap: 1, handler: func(w http.ResponseWriter, r *http.Request, _ string, _ []byte) {
				for r.Context().Err() == nil {
					if _, err := io.WriteString(w, big); err != nil {
						return
					}
					select {
					case sent <- struct{}{}:
					default:
					}
				}
			}})
			open(t, g)
			until(t, "it is open", func() bool { n, _ := g.Open(); return n == 1 })
			if name == "client that does not read" {
				<-sent
				time.Sleep(300 * time.Millisecond) // until no buffer takes more
			}
			began := time.Now()
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			g.Drain(ctx)
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestTheLastMomentIsNotTheNextRequests wants the short deadline of a request
// whose time was up not to be that of the connection's next request.
func TestTheLastMomentIsNotTheNextRequests(t *testing.T) {
	g := newRig(t, rigOptions{spec: model.GatewaySpec{RequestTimeoutSecs: 0.05}})
	for range 3 {
		if resp, body := g.post(t, "/v1/chat/completions", `{"behave":"slow"}`); resp.StatusCode != 504 {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
		if resp, body := g.post(t, "/v1/chat/completions", `{"stream":true}`); resp.StatusCode != 200 || !strings.Contains(body, "[DONE]") {
			t.Fatalf("%d %s", resp.StatusCode, body)
		}
	}
}
