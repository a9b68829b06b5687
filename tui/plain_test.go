package tui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"adpdeck/feed"
	"adpdeck/router/model"
	"adpdeck/tui/fixture"
)

// heard collects what the console says.
type heard struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.Write(b)
}

// take returns what was said since it was called last, and checks that it can be
// read aloud.
func (h *heard) take(t *testing.T) string {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	text := h.b.String()
	h.b.Reset()
	for _, r := range text {
		if r < 0x20 && r != '\n' || r == 0x7f || r >= 0x2500 && r <= 0x28ff {
			t.Errorf("%q in %q", r, text)
			break
		}
	}
	return text
}

// plainly runs the console of sentences over a client in a bubble.
func plainly(t *testing.T, c Client, now func() time.Time, in io.Reader, po PlainOptions) (*heard, chan error) {
	h, done := &heard{}, make(chan error, 1)
	opt := Options{Client: c, Views: Views(), Theme: loadTheme("mono"), Now: now, Actor: "ann", Address: "here:7700", ExportDir: t.TempDir()}
	go func() { done <- RunPlain(t.Context(), in, h, opt, po) }()
	return h, done
}

// A piped script: every command waits for what the one before did.
func TestPlainScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeRouter()
		script := strings.Join([]string{
			"status", "help weight", "weight w0/3 0.8", "apply", "yes trying it", "undo",
			"drain w0/3", "no", "drain w0/3", "yes", "view convs", "down", "down", "evict", "y spring clean",
			"sort idle", "sort", "theme day", "frobnicate", "weight w0/3 9", "export xml", "freeze", "drain w0/4", "freeze", "", "list workers", "quit",
		}, "\n")
		h, done := plainly(t, r, r.clock, strings.NewReader(script), PlainOptions{})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		golden.RequireEqual(t, h.take(t))
		var verbs []string
		for _, c := range r.commands() {
			verbs = append(verbs, string(c.Verb)+" "+c.Reason)
		}
		if got := strings.Join(verbs, ", "); got != "set trying it, undo , drain , evict spring clean" {
			t.Errorf("commands %s", got)
		}
	})
}

// Figures are told when they have moved by more than their step, not more often
// than asked; changes by others, alerts and a lost feed at once.
func TestPlainTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &fakeClient{view: &feed.View{Rev: 1, State: testState(), Link: feed.Link{Phase: feed.PhaseLive, Role: "operator", Period: time.Hour, LastFrame: time.Now()}}}
		in, write := io.Pipe()
		h, done := plainly(t, c, time.Now, in, PlainOptions{Every: 5 * time.Second, Prompt: true})
		hear := func(d time.Duration) string { time.Sleep(d); synctest.Wait(); return h.take(t) }
		if got := hear(time.Second); !strings.Contains(got, "live. Version 1412, 16 ranks, 412 requests per second") || !strings.HasSuffix(got, "> ") {
			t.Errorf("at first %q", got)
		}
		c.set(func(_ *feed.View, s *model.State) { s.Totals.RequestsPerSec, s.Totals.Hit = 430, 0.88 })
		if got := hear(time.Minute); got != "" {
			t.Errorf("a step too small: %q", got)
		}
		c.set(func(_ *feed.View, s *model.State) { s.Totals.RequestsPerSec, s.Totals.Hit = 480, 0.91 })
		if got := hear(time.Second); got != "14:02:31 480 requests per second, was 412. hit 91 percent, was 87 percent.\n> " {
			t.Errorf("moved: %q", got)
		}
		c.set(func(_ *feed.View, s *model.State) { s.Totals.RequestsPerSec = 900 })
		if got := hear(2 * time.Second); got != "" {
			t.Errorf("too early: %q", got)
		}
		if got := hear(4 * time.Second); !strings.Contains(got, "900 requests per second, was 480.") {
			t.Errorf("in time: %q", got)
		}
		c.set(func(_ *feed.View, s *model.State) {
			s.Version++
			s.Revisions = append([]model.Revision{{Version: s.Version, At: s.At, Actor: "bob\x1b[2J", Verb: model.VerbDrain, What: "drain w0/1"}}, s.Revisions...)
			s.Findings = []model.Finding{{Code: "silent", Message: "no events from w0/1", Next: "look at its engine"}}
		})
		if got := hear(time.Second); got != "alert: no events from w0/1. look at its engine.\n14:02:31 version 1413 by bob\\x1b[2J: drain w0/1.\n> " {
			t.Errorf("others: %q", got)
		}
		c.set(func(v *feed.View, _ *model.State) { v.Link.Phase, v.Link.Err = feed.PhaseLost, "connection refused" })
		if got := hear(time.Second); got != "14:02:31 stale: the feed is lost, these figures are old, actions are off. connection refused.\n> " {
			t.Errorf("lost: %q", got)
		}
		if _, err := io.WriteString(write, "drain w0/3\n"); err != nil {
			t.Fatal(err)
		}
		if got := hear(time.Second); got != "not done: off: feed is stale: these figures are old.\n> " {
			t.Errorf("lost, then drain: %q", got)
		}
		c.set(func(v *feed.View, _ *model.State) { v.Link.Phase, v.Link.Err = feed.PhaseLive, "" })
		if got := hear(time.Second); !strings.HasPrefix(got, "14:02:31 live. Version 1413") {
			t.Errorf("back: %q", got)
		}
		write.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A pipe is not kept waiting for a feed that never comes; foreign text of every
// kind is harmless.
func TestPlainWithoutFeedAndHostile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none := &fakeClient{view: &feed.View{Link: feed.Link{Phase: feed.PhaseConnecting, Err: "connection refused"}}}
		_, done := plainly(t, none, time.Now, strings.NewReader("status\n"), PlainOptions{})
		began := time.Now()
		if err := <-done; !errors.Is(err, ErrNoFeed) || time.Since(began) > 11*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := RunPlain(ctx, strings.NewReader(""), io.Discard, Options{Client: none, Views: Views(), Theme: loadTheme("mono")}, PlainOptions{}); err != nil {
			t.Errorf("ended from outside: %v", err)
		}
		hostile := &fakeClient{view: &feed.View{Rev: 1, State: fixture.Hostile(), Link: feed.Link{Phase: feed.PhaseLive, Role: "operator"}}}
		h, done := plainly(t, hostile, time.Now, strings.NewReader("list ranks\nlist convs\nlist decisions\nlist index\nlist tuning\nlist events\nlist workers\nquit\n"), PlainOptions{})
		if err := <-done; err != nil {
			t.Error(err)
		}
		if h.take(t) == "" {
			t.Error("nothing was said")
		}
	})
}
