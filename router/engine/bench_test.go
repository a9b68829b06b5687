package engine

import (
	"testing"

	"adpdeck/router/engine/steer"
	"adpdeck/router/model"
)

func BenchmarkUpstream(b *testing.B) {
	f, err := New([]model.EngineSpec{{ID: "s", Kind: model.EngineSGLang, URL: "http://s:80", Ranks: 8}}, newSink(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	body := []byte(`{"model":"m","stream":true,"messages":[{"role":"user","content":"` + long(1) + `"}]}`)
	b.ReportAllocs()
	for b.Loop() {
		up, err := f.Upstream(model.Target{Worker: "s", Rank: 3}, model.RouteChat, "conv")
		if err == nil {
			_, err = steer.Edit(body, up.Body)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
