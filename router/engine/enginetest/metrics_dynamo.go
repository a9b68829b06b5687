package enginetest

import (
	"net/http"
	"strconv"
)

// thresholds are Dynamo's busy thresholds of a model; nil: none.
type thresholds struct {
	DecodeBlocks  *float64 `json:"active_decode_blocks_threshold"`
	PrefillTokens *int     `json:"active_prefill_tokens_threshold"`
	PrefillFrac   *float64 `json:"active_prefill_tokens_threshold_frac"`
}

// busyThreshold lists the thresholds, or changes those of a model: a value that
// is null or left out is read only, so none can be taken back.
func (e *Engine) busyThreshold(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		list := []object{}
		e.mu.Lock()
		for _, m := range e.cfg.Models {
			if t, ok := e.dyn.busy[m]; ok {
				list = append(list, t.of(m))
			}
		}
		e.mu.Unlock()
		writeJSON(w, http.StatusOK, object{"thresholds": list})
		return
	}
	var b struct {
		Model string `json:"model"`
		thresholds
	}
	if r.Method != http.MethodPost {
		e.fail(w, &apiError{status: http.StatusMethodNotAllowed, msg: "want GET or POST"})
		return
	}
	if bad := decodeBody(w, r, &b); bad != nil {
		e.fail(w, bad)
		return
	}
	if bad := e.knows(&job{model: b.Model}); bad != nil {
		e.fail(w, bad)
		return
	}
	e.mu.Lock()
	t := e.dyn.busy[b.Model]
	if b.DecodeBlocks != nil {
		t.DecodeBlocks = b.DecodeBlocks
	}
	if b.PrefillTokens != nil {
		t.PrefillTokens = b.PrefillTokens
	}
	if b.PrefillFrac != nil {
		t.PrefillFrac = b.PrefillFrac
	}
	e.dyn.busy[b.Model] = t
	e.mu.Unlock()
	writeJSON(w, http.StatusOK, t.of(b.Model))
}

func (t thresholds) of(model string) object {
	return object{
		"model": model, "active_decode_blocks_threshold": t.DecodeBlocks,
		"active_prefill_tokens_threshold": t.PrefillTokens, "active_prefill_tokens_threshold_frac": t.PrefillFrac,
	}
}

// over reports whether a rank is beyond a threshold that is set. The engine's
// lock is held.
func (t thresholds) over(k *rank) bool {
	_, pending := k.tokens()
	return t.DecodeBlocks != nil && k.usage() > *t.DecodeBlocks ||
		t.PrefillTokens != nil && pending > *t.PrefillTokens ||
		t.PrefillFrac != nil && float64(pending) > *t.PrefillFrac*float64(k.e.cfg.Timing.ChunkTokens)
}

// rejected refuses a request while every rank is beyond its model's thresholds.
func (e *Engine) rejected(model string) *apiError {
	if e.dyn == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	t, ok := e.dyn.busy[model]
	if !ok {
		return nil
	}
	for _, k := range e.ranks {
		if !t.over(k) {
			return nil
		}
	}
	return &apiError{status: http.StatusServiceUnavailable, msg: "Service temporarily unavailable: All workers are busy, please retry later"}
}

// dynamoMetrics is the frontend's page. DuplicateSeries adds each worker's total
// beside its ranks.
func (e *Engine) dynamoMetrics(p *promPage, ranks []*rank, h *Habits) {
	m := labels("model", e.cfg.Models[0])
	inflight, queued, done := 0, 0, 0
	for _, k := range e.ranks {
		inflight += k.open()
		queued += len(k.waiting)
		done += k.count.stopped + k.count.length
	}
	p.family("dynamo_frontend_requests_total", "counter", "Total number of LLM requests processed")
	p.series("dynamo_frontend_requests_total", append(m, labels("endpoint", "chat_completions", "request_type", "stream", "status", "success")...), float64(done))
	p.family("dynamo_frontend_inflight_requests", "gauge", "Number of inflight requests")
	p.gauge("dynamo_frontend_inflight_requests", m, float64(inflight))
	p.family("dynamo_frontend_queued_requests", "gauge", "Number of requests in HTTP processing queue")
	p.gauge("dynamo_frontend_queued_requests", m, float64(queued))
	of := func(k *rank) []label {
		return labels("worker_id", strconv.FormatUint(e.instance(k.worker), 10), "dp_rank", strconv.Itoa(k.number()), "worker_type", "decode")
	}
	for _, f := range []figure{
		{"dynamo_frontend_worker_active_decode_blocks", "gauge", "Active KV cache decode blocks per worker", func(k *rank) float64 { return float64(k.cache.used()) }},
		{"dynamo_frontend_worker_active_prefill_tokens", "gauge", "Active prefill tokens queued per worker", func(k *rank) float64 { _, n := k.tokens(); return float64(n) }},
	} {
		f.write(p, ranks, func(k *rank) [][]label { return [][]label{of(k)} }, "")
		for w := 0; h.DuplicateSeries && w < e.cfg.Workers; w++ {
			total := 0.0
			for _, k := range e.ranks[w*e.cfg.Ranks : (w+1)*e.cfg.Ranks] {
				total += f.of(k)
			}
			p.gauge(f.name, labels("worker_id", strconv.FormatUint(e.instance(w), 10), "worker_type", "decode"), total)
		}
	}
	p.family("dynamo_component_router_worker_registered", "gauge", "Workers that the router knows")
	for _, k := range ranks {
		p.series("dynamo_component_router_worker_registered",
			labels("router_worker_id", strconv.FormatUint(e.instance(k.worker), 10), "dp_rank", strconv.Itoa(k.number()), "worker_type", "decode"), 1)
	}
	p.family("dynamo_frontend_router_queue_pending_requests", "gauge", "Requests pending in the router's queue")
	p.gauge("dynamo_frontend_router_queue_pending_requests", append(m, labels("worker_type", "decode", "policy_class", "default")...), 0)
	for _, t := range []struct {
		name string
		of   func(k *rank) *histogram
	}{
		{"dynamo_frontend_time_to_first_token_seconds", func(k *rank) *histogram { return &k.count.ttft }},
		{"dynamo_frontend_inter_token_latency_seconds", func(k *rank) *histogram { return &k.count.itl }},
		{"dynamo_frontend_request_duration_seconds", func(k *rank) *histogram { return &k.count.e2e }},
	} {
		sum := newCounters().ttft
		for _, k := range e.ranks {
			sum.add(t.of(k))
		}
		p.family(t.name, "histogram", t.name)
		p.histogram(t.name, m, &sum)
	}
}

// add adds all that o counted.
func (h *histogram) add(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.sum += o.sum
	h.n += o.n
}
