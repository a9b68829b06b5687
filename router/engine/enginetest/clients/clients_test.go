package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seen is what a server was sent, by conversation: how many messages each turn.
type seen struct {
	mu    sync.Mutex
	turns map[string][]int
	bad   []string
}

func (s *seen) serve(w http.ResponseWriter, r *http.Request) {
	var q request
	err := json.NewDecoder(r.Body).Decode(&q)
	s.mu.Lock()
	id := r.Header.Get("X-Session-ID")
	s.turns[id] = append(s.turns[id], len(q.Messages))
	n := len(s.turns[id])
	if err != nil || q.Model != "m" || !q.Stream || q.Messages[0].Role != "system" || id == "" {
		s.bad = append(s.bad, fmt.Sprint(err, q.Model, id))
	}
	s.mu.Unlock()
	if n == 2 && strings.HasPrefix(id, "run-0/") {
		http.Error(w, `{"error":{"message":"busy"}}`, http.StatusTooManyRequests)
		return
	}
	for _, word := range []string{"one", " two"} {
		fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", word)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func TestConversationsGrowTurnByTurn(t *testing.T) {
	s := &seen{turns: map[string][]int{}}
	srv := httptest.NewServer(http.HandlerFunc(s.serve))
	defer srv.Close()
	client := srv.Client()
	defer client.CloseIdleConnections()
	c, err := New(Options{URL: srv.URL, Model: "m", Clients: 6, Think: time.Microsecond, Seed: 7, HTTP: client})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	for f := c.Figures(); f.OK < 200 || f.Failed == 0; f = c.Figures() {
		select {
		case <-done:
			t.Fatal("the clients went home")
		default:
		}
	}
	cancel()
	<-done
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.bad) > 0 {
		t.Errorf("bad requests: %v", s.bad)
	}
	for id, lens := range s.turns {
		for i, n := range lens {
			failed := i >= 2 && strings.HasPrefix(id, "run-0/") // the second turn was refused and is said again
			want := 2 + 2*i
			if failed {
				want -= 2
			}
			if n != want {
				t.Errorf("%s: turn %d had %d messages, want %d", id, i+1, n, want)
			}
		}
	}
	if f := c.Figures(); !strings.Contains(f.LastError, "busy") {
		t.Errorf("the last error was %q", f.LastError)
	}
}

func TestBrokenAnswersAreFailures(t *testing.T) {
	for _, body := range []string{"", "data: {\"choices\":[]}\n\n", "data: {oops\n\n"} {
		if _, err := read(strings.NewReader(body)); err == nil {
			t.Errorf("%q was taken for an answer", body)
		}
	}
	if _, err := New(Options{}); err == nil {
		t.Error("clients without a gateway")
	}
}
