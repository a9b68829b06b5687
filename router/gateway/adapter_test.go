package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"adpdeck/router/engine"
	"adpdeck/router/engine/enginetest"
	"adpdeck/router/gateway/body"
	"adpdeck/router/model"
)

func TestAdapterOfARequest(t *testing.T) {
	specs := map[model.EngineKind]model.EngineSpec{
		model.EngineVLLM:   {ID: "v", Kind: model.EngineVLLM, Models: []string{"m", "tuned"}},
		model.EngineSGLang: {ID: "s", Kind: model.EngineSGLang, Models: []string{"m", "tuned"}},
		model.EngineTRTLLM: {ID: "t", Kind: model.EngineTRTLLM, Models: []string{"m"}},
		model.EngineDynamo: {ID: "d", Kind: model.EngineDynamo, Models: []string{"m", "tuned"}},
	}
	for _, tt := range []struct {
		kind                  model.EngineKind
		body, name, was, lora string
	}{
		{model.EngineVLLM, `{}`, "tuned", "tuned", "tuned"},
		{model.EngineVLLM, `{"lora_path":"x","lora_request":{"lora_int_id":3}}`, "m", "m", ""}, // not its fields
		{model.EngineVLLM, `{}`, "m:tuned", "m:tuned", ""},
		{model.EngineVLLM, `{}`, "", "", ""},
		{model.EngineSGLang, `{}`, "tuned", "tuned", "tuned"},
		{model.EngineSGLang, `{}`, "m:tuned", "tuned", "tuned"},
		{model.EngineSGLang, `{"lora_path":"other"}`, "m:tuned", "tuned", "tuned"},
		{model.EngineSGLang, `{"lora_path":"tuned"}`, "m", "tuned", "tuned"},
		{model.EngineSGLang, `{"lora_path":["tuned","other"]}`, "m", "tuned", "tuned"},
		{model.EngineSGLang, `{"lora_path":[null]}`, "m", "m", ""},
		{model.EngineSGLang, `{"lora_path":"unlisted"}`, "m", "m", "unlisted"},
		{model.EngineSGLang, `{}`, "m:unlisted", "m", "unlisted"},
		{model.EngineSGLang, `{}`, "x:y", "x:y", ""},
		{model.EngineTRTLLM, `{"lora_request":{"lora_name":"a","lora_int_id":7}}`, "m", "m", "#7"},
		{model.EngineTRTLLM, `{"lora_request":{"lora_name":"a"}}`, "m", "m", "a"},
		{model.EngineTRTLLM, `{"lora_request":"a"}`, "m", "m", ""},
		{model.EngineDynamo, `{}`, "tuned", "tuned", ""}, // its list does not say so
	} {
		g := newRig(t, rigOptions{workers: 1, ranks: 1})
		g.engines.specs = []model.EngineSpec{specs[tt.kind]}
		if tt.kind == model.EngineVLLM || tt.kind == model.EngineSGLang {
			g.engines.loras = []engine.Adapter{{Worker: "v", Kind: tt.kind, Name: "tuned", Parent: "m"}}
		}
		d, err := body.Parse([]byte(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		if was, lora := g.adapter(d, tt.name); was != tt.was || lora != tt.lora {
			t.Errorf("%s, %q with %s: %q, %q", tt.kind, tt.name, tt.body, was, lora)
		}
		g.shut()
	}
}

// TestAdaptersAreMatchedAsTheirEventsSay: an adapter's requests go to the worker that
// has it, find there what the adapter has cached, and nothing of the base model's.
func TestAdaptersAreMatchedAsTheirEventsSay(t *testing.T) {
	var specs []model.EngineSpec
	for i, adapters := range [][]string{nil, {"tuned"}} {
		e, err := enginetest.New(enginetest.Config{
			Kind: model.EngineVLLM, Ranks: 1, Adapters: adapters, Events: enginetest.EventsConfig{Endpoint: "tcp://127.0.0.1:0"},
			Timing: enginetest.Timing{PrefillTokensPerSecond: 1e6, DecodeBase: time.Millisecond, DecodePerRequest: time.Microsecond},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Start(t.Context(), "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		specs = append(specs, model.EngineSpec{
			ID: fmt.Sprintf("w%d", i), Kind: model.EngineVLLM, URL: e.URL(model.NoRank), Ranks: 1, Models: []string{"fake-model"},
			Events: model.EventSource{RankEndpoints: []string{e.EventEndpoint(0)}},
		})
	}
	b := standBefore(t, model.GatewaySpec{Tokenize: "engine", DecisionHeaders: true}, specs...)
	until(t, "the adapter is known", func() bool {
		s := b.router.Snapshot()
		return len(s.Workers) == 2 && s.Workers[0].Liveness == model.LiveUp && s.Workers[1].Liveness == model.LiveUp && len(s.Workers[1].Models) == 2 &&
			b.router.BlockTokens() > 0 && len(b.view.list()[1].Models) == 2
	})
	text := strings.Repeat("word after word ", 20)
	ask := func(name string) (worker string, matched int) {
		raw, _ := json.Marshal(map[string]any{"model": name, "prompt": text, "max_tokens": 2})
		resp, all := b.post(t, "/v1/completions", string(raw), "")
		if resp.StatusCode != 200 {
			t.Fatalf("%s: %d %s", name, resp.StatusCode, all)
		}
		d := b.router.Decisions(0, 1000)
		return resp.Header.Get("X-Adpdeck-Worker"), d[len(d)-1].Placement.MatchTokens
	}
	for range 4 {
		if worker, _ := ask("tuned"); worker != "w1" {
			t.Fatalf("the adapter's request went to %s, which has none", worker)
		}
	}
	held := func(lora string) int {
		resp, all := b.post(t, "/query", fmt.Sprintf(`{"model_name":"fake-model","lora_name":%q,"token_ids":%s}`, lora, b.tokens(t, text)), "")
		var a queryAnswer
		if err := json.Unmarshal([]byte(all), &a); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%d %s", resp.StatusCode, all)
		}
		if in := a.Instances["w1"]; in != nil {
			return in.GPU
		}
		return 0
	}
	tries := 0
	until(t, "its blocks are known", func() bool {
		if held("tuned") > 0 {
			return true
		}
		// What was published before the events were subscribed to is lost.
		tries++
		text = strings.Repeat(fmt.Sprint("word after word ", tries, " "), 20)
		ask("tuned")
		return false
	})
	if n := held(""); n != 0 {
		t.Errorf("%d tokens of the adapter's count as the base model's", n)
	}
	if _, matched := ask("tuned"); matched == 0 {
		t.Error("the adapter's own blocks are not found")
	}
	if _, matched := ask("fake-model"); matched != 0 {
		t.Errorf("the base model is taken to have %d of the adapter's tokens", matched)
	}
}

// tokens are a text's, as the engines' tokenizer says.
func (b *before) tokens(t *testing.T, text string) string {
	t.Helper()
	raw, _ := json.Marshal(map[string]any{"model": "fake-model", "prompt": text})
	list, err := b.engines.Tokenize(t.Context(), "w0", model.RouteCompletions, raw)
	if err != nil {
		t.Fatal(err)
	}
	ids, _ := json.Marshal(list.Tokens)
	return string(ids)
}
