package engine

import (
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"
)

func portSpec() []model.EngineSpec {
	return []model.EngineSpec{{ID: "w", Kind: model.EngineSGLang, RankURLs: []string{"http://a:80", "http://b:80", "http://c:80"}}}
}

// TestAllAddressesOfAWorkerAreAsked: a port for each rank means a server for each,
// with a list of models and a size of its own.
func TestAllAddressesOfAWorkerAreAsked(t *testing.T) {
	t.Parallel()
	var a, b *host
	bubble(t, portSpec(), func(n *network) {
		a, b = n.host("a:80"), n.host("b:80") // there is no c
		a.page("/v1/models", `{"data":[{"id":"base"},{"id":"one","parent":"base"}]}`, 200)
		a.page("/server_info", `{"page_size":64,"max_running_requests":128}`, 200)
	}, func(t *testing.T, r *rig) {
		models := func() string {
			return get(r.sink, func() string { return strings.Join(r.joined["w"].Models, " ") })
		}
		until(t, 5*time.Second, func() bool { return models() == "base one" })
		if words := r.finding(FindingDisagrees, "w"); words != "" {
			t.Errorf("a rank that has said nothing disagrees: %s", words)
		}
		a.page("/v1/models", "", 500) // it keeps its word, and hides none of the others
		b.page("/v1/models", `{"data":[{"id":"base"},{"id":"two","parent":"base"}]}`, 200)
		b.page("/server_info", `{"page_size":32,"max_running_requests":128}`, 200)
		until(t, 5*time.Second, func() bool { return models() == "base" })
		until(t, 5*time.Second, func() bool {
			words := r.finding(FindingDisagrees, "w")
			return strings.Contains(words, "rank 0 lists one, rank 1 lists two") && strings.Contains(words, "32 at rank 1, 64 at others")
		})
		b.page("/v1/models", `{"data":[{"id":"base"},{"id":"one","parent":"base"}]}`, 200)
		b.page("/server_info", `{"page_size":64,"max_running_requests":128}`, 200)
		until(t, 5*time.Second, func() bool { return models() == "base one" && r.finding(FindingDisagrees, "w") == "" })
		b.page("/v1/models", `{"data":[{"id":"else"}]}`, 200)
		until(t, 15*time.Second, func() bool { return models() == "base one else" })
	})
}

// TestAdaptersBelongToTheirBaseModel: settings that name models mean their adapters
// too, and nobody else's.
func TestAdaptersBelongToTheirBaseModel(t *testing.T) {
	t.Parallel()
	spec := vllmSpec("w", "http://a:80")
	spec.Models = []string{"base"}
	bubble(t, []model.EngineSpec{spec}, func(n *network) {
		n.host("a:80").page("/v1/models", `{"data":[{"id":"base","parent":null},{"id":"mine","parent":"base"},{"id":"theirs","parent":"other"},{"id":"base2","parent":"base2"}]}`, 200)
	}, func(t *testing.T, r *rig) {
		until(t, 5*time.Second, func() bool {
			return get(r.sink, func() bool { return strings.Join(r.joined["w"].Models, " ") == "base mine" })
		})
		all := r.fleet.Adapters()
		if len(all) != 1 || all[0] != (Adapter{Worker: "w", Kind: model.EngineVLLM, Name: "mine", Parent: "base"}) {
			t.Errorf("%+v", all)
		}
		if w := r.fleet.Workers(); strings.Join(w[0].Models, " ") != "base mine" {
			t.Errorf("%+v", w)
		}
	})
}

// TestHealthForAnybodyNamesNoAddress: the sink is told all of it.
func TestHealthForAnybodyNamesNoAddress(t *testing.T) {
	t.Parallel()
	bubble(t, []model.EngineSpec{vllmSpec("w", "http://a:80"), vllmSpec("v", "http://b:80")}, func(n *network) {
		n.host("a:80").page("/health", "10.1.2.3:5555 is gone", 503)
	}, func(t *testing.T, r *rig) {
		until(t, 5*time.Second, func() bool { return get(r.sink, func() bool { return r.why["w/0"] != "" && r.why["v/0"] != "" }) })
		h := r.fleet.Health()
		if h[0].Why != "it is not well: the console and adpdeck ctl get workers say why" || h[1].Why != "connection refused" {
			t.Errorf("%+v; the sink %v", h, r.why)
		}
	})
	for why, want := range map[string]string{
		"host engine-7.corp is not known":                  "it is not well: the console and adpdeck ctl get workers say why",
		`dial tcp 10.0.0.1:80: connect: no route to host`:  "it is not well: the console and adpdeck ctl get workers say why",
		"3" + wordsDoubt + ": read tcp 10.0.0.1:80: reset": "3 requests in a row got no answer, though the engine answers",
		"no answer within 1s":                              "no answer within 1s",
	} {
		if got := public(why); got != want {
			t.Errorf("%q: %q", why, got)
		}
	}
}
