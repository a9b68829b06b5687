package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"
)

// TestNoSecretIsShown wants what an address or the environment holds of secrets
// in no finding, in no refusal and with no other host.
func TestNoSecretIsShown(t *testing.T) {
	t.Parallel()
	spec := model.EngineSpec{
		ID: "w", Kind: model.EngineDynamo, URL: "http://a:80", Ranks: 1, APIKeyEnv: "KEY", MetricsURL: "http://m:9/metrics",
		Events: model.EventSource{Endpoint: "nats://user:hunter2@n:4222", Topic: "x"},
	}
	var own, other *host
	bubble(t, []model.EngineSpec{spec}, func(n *network) {
		own, other = n.host("a:80"), n.host("m:9")
		own.page("/v1/models", `{"data":[]}`, 200)
	}, func(t *testing.T, r *rig) {
		w, _ := r.fleet.worker("w")
		l := &natsListener{w: w, server: spec.Events.Endpoint}
		down := time.Now().Add(-time.Hour)
		l.down.Store(&down)
		w.subs[feed{n: model.NoRank}] = &subscription{place: place{endpoint: spec.Events.Endpoint}, trouble: l.trouble}
		w.hear()
		delete(w.subs, feed{n: model.NoRank})
		if words := get(r.sink, func() string { return r.findings[FindingEvents+" w/-"].Message }); !strings.Contains(words, "nats://n:4222") || strings.Contains(words, "hunter2") || strings.Contains(words, "user") {
			t.Errorf("found %q", words)
		}
		until(t, 3*time.Second, func() bool { return own.times("/v1/models") > 0 && other.times("/metrics") > 0 })
		own.mu.Lock()
		defer own.mu.Unlock()
		other.mu.Lock()
		defer other.mu.Unlock()
		if got := own.headers["/v1/models"].Get("Authorization"); got != "Bearer key" {
			t.Errorf("the engine was sent %q", got)
		}
		if got := other.headers["/metrics"].Get("Authorization"); got != "" {
			t.Errorf("another host was sent %q", got)
		}
	})
	for _, endpoint := range []string{"http://user:hunter2@n:4222", "nats://user:hunter2@", "tls://hunter2@:4222", "nats://user:hunter2@n:x"} {
		spec.Events = model.EventSource{Transport: transportNATS, Endpoint: endpoint, Topic: "x"}
		err := Check([]model.EngineSpec{spec})
		var refused *SpecError
		if !errors.As(err, &refused) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}
