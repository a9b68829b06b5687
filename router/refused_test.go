package router

import (
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"
)

// TestRefusalsAreFound: while requests are turned away a finding says so, with
// the newest reason; it raises nothing for one client, and ends with its cause.
func TestRefusalsAreFound(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault, inMode(model.ModeDirect))
	refused := func() (f []model.Finding) {
		for _, x := range b.Snapshot().Findings {
			if x.Code == model.FindingRefusing {
				f = append(f, x)
			}
		}
		return f
	}
	ask := func() {
		b.ids++
		if _, err := b.Submit(&model.Request{ID: b.ids, PromptTokens: 10}); err == nil {
			t.Fatal("mode direct took a request that names no worker")
		}
	}
	ask()
	ask()
	if f := refused(); len(f) != 0 {
		t.Fatalf("two are none: %+v", f)
	}
	first := b.clock.Now()
	b.clock.advance(2 * time.Second)
	ask()
	f := refused()
	if len(f) != 1 || f[0].Target.Worker != "" || !f[0].Since.Equal(first) {
		t.Fatalf("%+v, want one since %v", f, first)
	}
	if want := "3 requests refused in the last 10 s, the newest: "; !strings.HasPrefix(f[0].Message, want) || !strings.Contains(f[0].Message, "mode direct needs a worker") {
		t.Errorf("it says %q", f[0].Message)
	}
	b.clock.advance(10 * time.Second)
	if f := refused(); len(f) != 0 {
		t.Errorf("nobody was refused for ten seconds: %+v", f)
	}
}
