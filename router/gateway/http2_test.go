package gateway

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"
)

// TestOverHTTP2 serves clients of HTTP/2, who share a connection: what becomes of
// one request is no matter of the others.
func TestOverHTTP2(t *testing.T) {
	g := newRig(t, rigOptions{spec: model.GatewaySpec{RequestTimeoutSecs: 0.3}})
	s := httptest.NewUnstartedServer(g.Gateway)
	s.Config = g.Server("")
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	client := s.Client()
	post := func(ctx context.Context, body io.Reader) (*http.Response, error) {
		r, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/chat/completions", body)
		return client.Do(r)
	}
	whole := func(text string) (int, string) {
		resp, err := post(t.Context(), strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.ProtoMajor != 2 {
			t.Fatalf("spoke %s", resp.Proto)
		}
		all, err := io.ReadAll(resp.Body)
		if err != nil {
			return resp.StatusCode, err.Error()
		}
		return resp.StatusCode, string(all)
	}
	if status, body := whole(`{"stream":true}`); status != 200 || !strings.Contains(body, "[DONE]") {
		t.Errorf("a stream: %d %s", status, body)
	}
	if status, body := whole(`{"behave":"slow"}`); status != 504 || !strings.Contains(body, "timeout") {
		t.Errorf("out of time: %d %s", status, body)
	}
	if status, body := whole(`{"stream":true,"behave":"mid-stream"}`); status != 200 || !strings.Contains(body, "stream error") {
		t.Errorf("broken off: %d %s", status, body)
	}
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := post(ctx, strings.NewReader(`{"stream":true,"behave":"stuck"}`))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	resp.Body.Close()
	until(t, "the client is gone", func() bool { return g.inFlight() == 0 })
	g.patience = 50 * time.Millisecond
	never, end := io.Pipe()
	defer end.Close()
	if resp, err = post(t.Context(), never); err != nil || resp.StatusCode != 408 {
		t.Errorf("a body that does not come: %+v %v", resp, err)
	}
	resp.Body.Close()
	if status, _ := whole(`{"stream":true}`); status != 200 {
		t.Errorf("the next one: %d", status)
	}
	until(t, "all are off the books", func() bool { open, _ := g.Open(); return open == 0 && g.inFlight() == 0 })
	if g.router.Strays() != 0 {
		t.Error("ends too many")
	}
}
