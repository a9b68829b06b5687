package enginetest

import (
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"adpdeck/router/model"
)

// version is what an engine says it is.
func (e *Engine) version() string {
	return map[model.EngineKind]string{model.EngineVLLM: "0.28.0", model.EngineSGLang: "0.5.19", model.EngineTRTLLM: "1.3.0rc20", model.EngineDynamo: "1.1.0"}[e.cfg.Kind]
}

// own adds the addresses that only one kind has.
func (e *Engine) own(mux *http.ServeMux, rank int) {
	mux.HandleFunc("GET /health", e.health)
	switch e.cfg.Kind {
	case model.EngineVLLM:
		mux.HandleFunc("GET /ping", e.health)
		mux.HandleFunc("GET /version", e.showVersion)
		mux.HandleFunc("GET /load", func(w http.ResponseWriter, _ *http.Request) {
			writeJSON(w, http.StatusOK, object{"server_load": e.Open()})
		})
		mux.HandleFunc("POST /tokenize", e.tokenize)
		mux.HandleFunc("POST /reset_prefix_cache", func(w http.ResponseWriter, _ *http.Request) { e.resetCache(); w.WriteHeader(http.StatusOK) })
		mux.HandleFunc("GET /metrics", e.page("vllm", rank, e.vllmMetrics))
	case model.EngineSGLang:
		mux.HandleFunc("GET /health_generate", e.health)
		mux.HandleFunc("POST /tokenize", e.tokenize)
		mux.HandleFunc("POST /v1/tokenize", e.tokenize)
		mux.HandleFunc("GET /server_info", e.sglangInfo)
		mux.HandleFunc("GET /get_server_info", e.sglangInfo)
		mux.HandleFunc("GET /v1/loads", e.loads(rank))
		mux.HandleFunc("GET /get_load", e.oldLoads(rank))
		mux.HandleFunc("POST /flush_cache", func(w http.ResponseWriter, _ *http.Request) {
			e.resetCache()
			writeText(w, http.StatusOK, "text/plain; charset=utf-8", "Cache flushed.\n")
		})
		mux.HandleFunc("GET /metrics", e.page("sglang", rank, e.sglangMetrics))
	case model.EngineTRTLLM:
		mux.HandleFunc("GET /health_generate", e.health)
		mux.HandleFunc("GET /version", e.showVersion)
		mux.HandleFunc("GET /openapi.json", e.schema)
		mux.HandleFunc("GET /metrics", e.iterationStats)
		mux.HandleFunc("POST /kv_cache_events", e.cacheEvents)
		mux.HandleFunc("GET /server_info", func(w http.ResponseWriter, _ *http.Request) {
			writeJSON(w, http.StatusOK, object{"disaggregated_params": nil})
		})
		mux.HandleFunc("GET /prometheus/metrics", e.page("trtllm", rank, e.trtMetrics))
	case model.EngineDynamo:
		mux.HandleFunc("GET /live", func(w http.ResponseWriter, _ *http.Request) {
			writeJSON(w, http.StatusOK, object{"status": "live", "message": "Service is live"})
		})
		mux.HandleFunc("/busy_threshold", e.busyThreshold)
		mux.HandleFunc("GET /metrics", e.page("dynamo", rank, e.dynamoMetrics))
	}
}

func (e *Engine) showVersion(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, object{"version": e.version()})
}

// sglangHealth is how long SGLang waits for the token that its health check has
// it generate, before it looks for the first time.
const sglangHealth = time.Second

// health: an empty 200, which SGLang gives after a second; a Dynamo frontend
// always answers 200 and says in its body whether it has workers.
func (e *Engine) health(w http.ResponseWriter, r *http.Request) {
	ready := !e.habits.Load().NotReady
	if e.dyn != nil {
		e.dynamoHealth(w, ready)
		return
	}
	switch {
	case ready && e.cfg.Kind == model.EngineSGLang && !sleep(r.Context(), e.clock, sglangHealth):
	case ready:
		w.WriteHeader(http.StatusOK)
	case e.cfg.Kind == model.EngineTRTLLM:
		writeText(w, http.StatusServiceUnavailable, "text/plain; charset=utf-8", "LLM is not ready")
	default:
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

func (e *Engine) dynamoHealth(w http.ResponseWriter, ready bool) {
	if !ready {
		writeJSON(w, http.StatusOK, object{"status": "unhealthy", "endpoints": []string{}, "instances": []object{}, "message": "No endpoints available"})
		return
	}
	instances := []object{}
	for i := range e.cfg.Workers {
		instances = append(instances, object{"namespace": "dynamo", "component": "backend", "endpoint": "generate", "instance_id": e.instance(i)})
	}
	writeJSON(w, http.StatusOK, object{"status": "healthy", "endpoints": []string{"dyn://dynamo.backend.generate"}, "instances": instances})
}

// models is /v1/models.
func (e *Engine) models(w http.ResponseWriter, _ *http.Request) {
	owner := map[model.EngineKind]string{model.EngineVLLM: "vllm", model.EngineSGLang: "sglang", model.EngineTRTLLM: "tensorrt_llm", model.EngineDynamo: "nvidia"}[e.cfg.Kind]
	data := []object{}
	add := func(id string, parent any) {
		m := object{"id": id, "object": "model", "created": 1_760_000_000, "owned_by": owner}
		if e.cfg.Kind == model.EngineVLLM || e.cfg.Kind == model.EngineSGLang {
			m["root"], m["parent"], m["max_model_len"] = id, parent, e.cfg.MaxModelLen
		}
		data = append(data, m)
	}
	if e.dyn == nil || !e.habits.Load().NotReady {
		for _, m := range e.cfg.Models {
			add(m, nil)
		}
		for _, m := range e.cfg.Adapters {
			add(m, e.cfg.Models[0])
		}
	}
	writeJSON(w, http.StatusOK, object{"object": "list", "data": data})
}

// tokenizeBody is the body of /tokenize: a prompt or a chat.
type tokenizeBody struct {
	body
	AddGenerationPrompt *bool `json:"add_generation_prompt"`
	ReturnTokenStrs     bool  `json:"return_token_strs"`
}

// tokenize is vLLM's and SGLang's /tokenize.
func (e *Engine) tokenize(w http.ResponseWriter, r *http.Request) {
	var b tokenizeBody
	if bad := decodeBody(w, r, &b); bad != nil {
		e.fail(w, bad)
		return
	}
	j := job{model: b.Model}
	if bad := e.knows(&j); bad != nil {
		e.fail(w, bad)
		return
	}
	t := &tokens{keep: b.ReturnTokenStrs}
	var err error
	if len(b.Messages) > 0 {
		if e.cfg.Kind == model.EngineVLLM {
			t.args = b.TemplateArgs // and nothing made of other fields
		}
		err = t.chat(b.Messages, b.Tools, b.AddGenerationPrompt == nil || *b.AddGenerationPrompt)
	} else {
		err = t.plain(b.Prompt, "prompt")
	}
	if err != nil {
		e.fail(w, badRequest("prompt", "%v", err))
		return
	}
	ids := t.ids
	if ids == nil {
		ids = []uint32{}
	}
	o := object{"count": len(ids), "max_model_len": e.cfg.MaxModelLen, "tokens": ids}
	if e.cfg.Kind == model.EngineVLLM {
		o["token_strs"] = t.strs
	} else { // SGLang tells its tokenizer's, of which most have no limit
		o["max_model_len"] = json.RawMessage("1000000000000000019884624838656")
	}
	writeJSON(w, http.StatusOK, o)
}

// resetCache empties the caches of ranks without a request, and lets them say so.
func (e *Engine) resetCache() {
	e.mu.Lock()
	for _, k := range e.ranks {
		if k.cache.clear() {
			k.publish(e.clock.Now())
		}
	}
	e.mu.Unlock()
	e.flush()
}

// sglangInfo is /server_info: the server's arguments, a secret among them, and
// where events are published. max_running_requests is that of all ranks together,
// which attention DP divides among them.
func (e *Engine) sglangInfo(w http.ResponseWriter, _ *http.Request) {
	o := object{
		"version": e.version(), "model_path": e.cfg.Models[0], "served_model_name": e.cfg.Models[0], "api_key": "not-for-screens",
		"dp_size": e.cfg.Ranks, "tp_size": e.cfg.Ranks, "enable_dp_attention": e.cfg.Ranks > 1, "page_size": e.cfg.BlockTokens,
		"max_running_requests": e.cfg.MaxActive * e.cfg.Ranks, "max_total_num_tokens": e.cfg.Blocks * e.cfg.BlockTokens, "internal_states": []object{},
	}
	if endpoint := e.EventEndpoint(0); endpoint != "" {
		host, port, _ := net.SplitHostPort(strings.TrimPrefix(endpoint, "tcp://"))
		base, _ := strconv.Atoi(port)
		publishers := []object{}
		for i := range e.ranks {
			publishers = append(publishers, object{"dp_rank": i, "endpoint": e.EventEndpoint(i), "replay_endpoint": e.ReplayEndpoint(i)})
		}
		o["kv_events"] = object{
			"publisher": "zmq", "endpoint_host": host, "endpoint_port_base": base,
			"topic": e.cfg.Events.Topic, "block_size": e.cfg.BlockTokens, "dp_size": e.cfg.Ranks, "publishers": publishers,
		}
	}
	writeJSON(w, http.StatusOK, o)
}
