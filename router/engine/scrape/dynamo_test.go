package scrape

import (
	"strings"
	"testing"

	"adpdeck/router/model"
)

func TestDynamo(t *testing.T) {
	d, err := Dynamo(page(t, "dynamo.prom"))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Workers) != 2 || d.Refused.Count != 0 {
		t.Fatalf("%+v", d)
	}
	// Ids that a float would have turned into others.
	decode, prefill := d.Worker(7587889683284143912), d.Worker(18446744073709551613)
	if decode == nil || prefill == nil || d.Worker(18446744073709551615) != nil || d.Worker(0) != nil {
		t.Fatalf("workers %v", d.Workers)
	}
	load := func(rank int, blocks, prefill model.Maybe) model.RankReport {
		return report(rank, func(r *model.RankReport) { r.KVUsedBlocks, r.PendingTokens = blocks, prefill })
	}
	same(t, "decode", decode.Reports(), []model.RankReport{load(0, 42, 100), load(1, 0, 0)})
	same(t, "prefill", prefill.Reports(), []model.RankReport{load(0, 7, 4096), load(1, 3, unk)})
	sizes := Advert{Advertised: []int{0, 1}, BlockTokens: 64, KVBlocks: 24064, MaxActive: 256, MaxBatchedTokens: 8192}
	same(t, "decode's advert", decode.Advert, sizes)
	// Its rank 1 is gone, and only its series is left.
	sizes.Advertised = []int{0}
	same(t, "prefill's advert", prefill.Advert, sizes)
	same(t, "kinds", []string{decode.Kind, prefill.Kind}, []string{"decode", "prefill"})
}

func TestDynamoOddities(t *testing.T) {
	d, err := Dynamo(body("dynamo_frontend_worker_active_decode_blocks{worker_id=\"w1\",dp_rank=\"0\"} 1\n" +
		"dynamo_frontend_worker_active_decode_blocks{worker_id=\"18446744073709551616\",dp_rank=\"0\"} 1\n" +
		"dynamo_frontend_worker_active_decode_blocks{worker_id=\"5\"} 2\n" +
		"dynamo_frontend_worker_active_prefill_tokens{worker_id=\"5\",dp_rank=\"x\"} 2\n" +
		"dynamo_frontend_worker_waiting_requests{worker_id=\"5\"} -1\n"))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "refused", reasons(&d.Refused), []Reason{BadWorker, BadWorker, BadRank, BadNumber})
	w := d.Worker(5)
	same(t, "reports", w.Reports(), []model.RankReport{report(0, func(r *model.RankReport) { r.KVUsedBlocks = 2 })})
	if !w.Unranked {
		t.Error("a worker without dp_rank is not marked")
	}
}

func TestModels(t *testing.T) {
	models, refused, err := Models(page(t, "models.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(models) != 2 || models[0].ID != "qwen3" || models[0].MaxTokens != 40960 || models[1].Parent != "qwen3" || models[1].MaxTokens != 0 {
		t.Errorf("%+v", models)
	}
	if !strings.Contains(string(models[0].Raw), `"owned_by":"vllm"`) {
		t.Errorf("raw %s", models[0].Raw)
	}
	same(t, "refused", reasons(&refused), []Reason{BadLine, BadLine})
	_, _, err = Models(body(`{"object":"list"}`))
	refusedAs(t, err, NoFigures)
	_, _, err = Models(body(`{"data":7}`))
	refusedAs(t, err, NotJSON)
	_, _, err = Models(Answer{Status: 401, Body: []byte(`{"error":"Unauthorized"}`)})
	refusedAs(t, err, BadStatus, "api_key_env", "Unauthorized")
}

func TestHealth(t *testing.T) {
	html := page(t, "error.html")
	for name, c := range map[string]struct {
		kind model.EngineKind
		a    Answer
		live bool
		why  string
	}{
		"vllm":               {model.EngineVLLM, Answer{Status: 200}, true, ""},
		"sglang":             {model.EngineSGLang, Answer{Status: 200, Body: []byte("\n")}, true, ""},
		"a word":             {model.EngineTRTLLM, Answer{Status: 200, ContentType: "text/plain", Body: []byte("OK")}, true, ""},
		"trtllm, 503":        {model.EngineTRTLLM, Answer{Status: 503, Body: []byte("LLM is not ready.")}, false, `HTTP 503, saying "LLM is not ready."`},
		"503, empty":         {model.EngineVLLM, Answer{Status: 503}, false, "HTTP 503"},
		"key wanted":         {model.EngineVLLM, Answer{Status: 401}, false, "api_key_env"},
		"elsewhere":          {model.EngineVLLM, Answer{Status: 302}, false, "a redirect"},
		"200, ill":           {model.EngineVLLM, body(`{"status":"unhealthy"}`), false, `it is "unhealthy"`},
		"200, well":          {model.EngineVLLM, body(`{"status":"ok"}`), true, ""},
		"200, a proxy":       {model.EngineVLLM, Answer{Status: 200, ContentType: "text/html", Body: html.Body}, false, "proxy"},
		"10 MiB of error":    {model.EngineVLLM, Answer{Status: 500, Body: make([]byte, MaxPageBytes)}, false, "HTTP 500"},
		"more":               {model.EngineVLLM, Answer{Status: 200, Body: make([]byte, MaxPageBytes+1)}, false, "over the limit"},
		"dynamo, none":       {model.EngineDynamo, page(t, "dynamo_unhealthy.json"), false, "no worker is registered"},
		"dynamo, well":       {model.EngineDynamo, page(t, "dynamo_healthy.json"), true, ""},
		"dynamo, no list":    {model.EngineDynamo, body(`{"status":"live","uptime":1}`), true, ""},
		"dynamo, empty list": {model.EngineDynamo, body(`{"status":"healthy","instances":[]}`), false, "no worker"},
		"dynamo, silent":     {model.EngineDynamo, Answer{Status: 200}, false, "empty"},
		"dynamo, half":       {model.EngineDynamo, body(`{"status":"healthy"`), false, "middle"},
		"dynamo, no status":  {model.EngineDynamo, body(`{}`), false, "does not say"},
	} {
		s := Health(c.kind, c.a)
		if s.Live != c.live || !strings.Contains(s.Why, c.why) || s.Live != (s.Why == "") {
			t.Errorf("%s: %+v, want live %t, why %q", name, s, c.live, c.why)
		}
	}
	s := Health(model.EngineDynamo, page(t, "dynamo_healthy.json"))
	same(t, "instances", s.Instances, []uint64{7587889683284143912, 18446744073709551613})
}
