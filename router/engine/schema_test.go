package engine

import (
	"testing"
	"time"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/engine/steer"
	"adpdeck/router/model"
)

// TestAConversationIsToldAsTheEngineTakesIt: trtllm-serve forbids fields that it
// does not know (openai_protocol.py), and conversation_params is one of them
// before TensorRT-LLM#15452. Its FastAPI shows the fields at /openapi.json.
func TestAConversationIsToldAsTheEngineTakesIt(t *testing.T) {
	t.Parallel()
	const knows = `{"components":{"schemas":{"ChatCompletionRequest":{"properties":{"conversation_params":{},"model":{}}}}}}`
	const old = `{"components":{"schemas":{"ChatCompletionRequest":{"properties":{"model":{}}}}}}`
	var h *host
	spec := model.EngineSpec{ID: "w", Kind: model.EngineTRTLLM, URL: "http://a:80", Ranks: 2}
	bubble(t, []model.EngineSpec{spec}, func(n *network) {
		h = n.host("a:80")
		h.page("/v1/models", `{"data":[{"id":"m"}]}`, 200)
	}, func(t *testing.T, r *rig) {
		told := func(conv string) (header, body string) {
			up, err := r.fleet.Upstream(model.Target{Worker: "w", Rank: model.NoRank}, model.RouteChat, conv)
			if err != nil {
				t.Fatal(err)
			}
			b, err := steer.Edit([]byte(`{"conversation_params":{"conversation_id":"the client's"},"model":"m"}`), up.Body)
			if err != nil {
				t.Fatal(err)
			}
			return up.Header.Get("X-Session-Id"), string(b)
		}
		expect := func(when, conv, header, body string) {
			t.Helper()
			if h, b := told(conv); h != header || b != body {
				t.Errorf("%s: header %q, body %s", when, h, b)
			}
		}
		expect("not asked yet", "c-1", "c-1", `{"model":"m"}`)
		time.Sleep(5 * time.Second)
		expect("no schema", "c-1", "c-1", `{"model":"m"}`)
		h.page("/openapi.json", knows, 200)
		time.Sleep(2 * time.Minute)
		expect("new", "c-1", "c-1", `{"model":"m","conversation_params":{"conversation_id":"c-1"}}`)
		h.page("/openapi.json", "", 503)
		time.Sleep(2 * time.Minute)
		expect("no answer", "c-1", "c-1", `{"model":"m","conversation_params":{"conversation_id":"c-1"}}`)
		h.page("/openapi.json", old, 200)
		time.Sleep(2 * time.Minute)
		expect("old", "c-1", "c-1", `{"model":"m"}`)
		expect("old, no header can carry it", "c\n", "adpdeck-a3a5e715f0cc574a73c3f9bebb6bc24f", `{"model":"m"}`)
		if n := h.times("/openapi.json"); n > 80 {
			t.Errorf("the schema was made %d times", n)
		}
	})
}

// TestAnOldTensorRTTakesRequests sends a conversation to fakes of both ages.
func TestAnOldTensorRTTakesRequests(t *testing.T) {
	t.Parallel()
	for _, old := range []bool{false, true} {
		e, err := enginetest.New(enginetest.Config{
			Kind: model.EngineTRTLLM, Ranks: 2, Timing: enginetest.Timing{Instant: true}, Habits: enginetest.Habits{OldSchema: old},
		})
		if err != nil {
			t.Fatal(err)
		}
		spec := model.EngineSpec{ID: "w", Kind: model.EngineTRTLLM, Ranks: 2}
		s, f := serve(t, e, []string{"127.0.0.1:0"}, spec, func(s *model.EngineSpec) { s.URL = e.URL(model.NoRank) })
		s.await(t, "it joins", 10*time.Second, func() bool { return s.live["w/1"] })
		w, err := f.worker("w")
		if err != nil {
			t.Fatal(err)
		}
		for !old && !w.knowsConversations.Load() {
			if !pause(t.Context(), 10*time.Millisecond, nil) {
				t.Fatal("its schema was not read")
			}
		}
		send(t, f, model.Target{Worker: "w", Rank: model.NoRank}, "hello")
		served := e.Served()
		if want := map[bool]string{false: "conv-1"}[old]; len(served) != 1 || served[0].Conversation != want {
			t.Errorf("old %v: %+v", old, served)
		}
	}
}
