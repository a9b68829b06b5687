package enginetest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"adpdeck/router/model"
)

// sglangMetrics is SGLang's page as with --enable-metrics-for-all-schedulers.
// DuplicateSeries shows each rank's second tensor-parallel member and its
// requests by priority beside the whole.
func (e *Engine) sglangMetrics(p *promPage, ranks []*rank, h *Habits) {
	of := func(k *rank, tp string) []label {
		return labels("engine_type", "unified", "model_name", e.cfg.Models[0], "tp_rank", tp, "pp_rank", "0", "dp_rank", strconv.Itoa(k.number()), "moe_ep_rank", strconv.Itoa(k.number()))
	}
	by := func(k *rank) [][]label {
		tp := strconv.Itoa(k.number())
		if !h.DuplicateSeries {
			return [][]label{of(k, tp)}
		}
		return [][]label{
			append(of(k, tp), label{"priority", ""}), append(of(k, tp), label{"priority", "0"}),
			append(of(k, strconv.Itoa(k.number()+e.cfg.Ranks)), label{"priority", ""}),
		}
	}
	size := float64(e.cfg.BlockTokens)
	for _, f := range []figure{
		{"sglang:num_running_reqs", "gauge", "The number of running requests.", func(k *rank) float64 { return float64(len(k.running)) }},
		{"sglang:num_queue_reqs", "gauge", "The number of requests in the waiting queue.", func(k *rank) float64 { return float64(len(k.waiting)) }},
		{"sglang:num_used_tokens", "gauge", "The number of used tokens.", func(k *rank) float64 { return float64(k.cache.used()) * size }},
		{"sglang:max_total_num_tokens", "gauge", "Maximum total number of tokens in the KV cache pool.", func(k *rank) float64 { return float64(e.cfg.Blocks) * size }},
		{"sglang:token_usage", "gauge", "The token usage.", func(k *rank) float64 { return round3(k.usage()) }},
		{"sglang:cache_hit_rate", "gauge", "The prefix cache hit rate.", func(k *rank) float64 { return round3(k.count.hitRate()) }},
		{"sglang:gen_throughput", "gauge", "The generation throughput (token/s).", func(k *rank) float64 { return 0 }},
		{"sglang:num_retracted_reqs", "gauge", "The number of retracted requests.", func(k *rank) float64 { return float64(k.count.preemptions) }},
		{"sglang:prompt_tokens_total", "counter", "Number of prefill tokens processed.", func(k *rank) float64 { return float64(k.count.promptTokens) }},
		{"sglang:generation_tokens_total", "counter", "Number of generation tokens processed.", func(k *rank) float64 { return float64(k.count.generationTokens) }},
	} {
		f.write(p, ranks, by, "")
	}
	p.family("sglang:cache_config_info", "gauge", "Information of the cache config")
	p.series("sglang:cache_config_info", labels("page_size", strconv.Itoa(e.cfg.BlockTokens), "num_pages", strconv.Itoa(e.cfg.Blocks)), 1)
}

// sections are what /v1/loads may be asked to include.
func sections() []string {
	return []string{"core", "memory", "spec", "lora", "disagg", "queues", "all"}
}

// loads is /v1/loads, as JSON or, with format=prometheus, as text.
func (e *Engine) loads(bound int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		queues := false
		for s := range strings.SplitSeq(r.URL.Query().Get("include"), ",") {
			s = strings.TrimSpace(s)
			if s != "" && !slices.Contains(sections(), s) {
				e.fail(w, badRequest("include", "Invalid include section: %.64q. Valid sections: %v", s, sections()))
				return
			}
			queues = queues || s == "queues" || s == "all"
		}
		only := model.NoRank
		if text := r.URL.Query().Get("dp_rank"); text != "" {
			n, ok := intQuery(r, "dp_rank")
			if !ok || n < 0 || n >= e.cfg.Ranks {
				e.fail(w, badRequest("dp_rank", "dp_rank %.32q is not one of %d", text, e.cfg.Ranks))
				return
			}
			only = n
		}
		if r.URL.Query().Get("format") == "prometheus" {
			e.page("loads"+strconv.Itoa(only), bound, func(p *promPage, ranks []*rank, h *Habits) {
				e.sglangMetrics(p, slices.DeleteFunc(ranks, func(k *rank) bool { return only != model.NoRank && k.local != only }), h)
			})(w, r)
			return
		}
		e.showJSON(w, fmt.Sprint("loads", bound, only, queues), func(h *Habits) any {
			at, rows := e.clock.Now().UTC().Format(time.RFC3339Nano), []object{}
			for _, k := range e.visible(bound) {
				if only != model.NoRank && k.local != only {
					continue
				}
				row := e.load(k, at, h)
				if queues {
					row["queues"] = object{"waiting": len(k.waiting), "grammar": 0, "paused": 0, "retracted": 0}
				}
				for range h.copies() {
					rows = append(rows, row)
				}
			}
			return object{"timestamp": at, "version": e.version(), "accelerator": "fake", "num_accelerators": e.cfg.Ranks, "dp_rank_count": e.cfg.Ranks, "loads": rows}
		})
	}
}

// load is one rank's row of /v1/loads. The engine's lock is held.
func (e *Engine) load(k *rank, at string, h *Habits) object {
	size := e.cfg.BlockTokens
	_, pending := k.tokens()
	used := k.cache.used() * size
	return object{
		"dp_rank": k.number(), "timestamp": at,
		"num_running_reqs": h.spoil(len(k.running)), "num_waiting_reqs": h.spoil(len(k.waiting)), "num_waiting_uncached_tokens": h.spoil(pending),
		"num_used_tokens": h.spoil(used), "num_total_tokens": h.spoil(used + pending), "max_total_num_tokens": e.cfg.Blocks * size,
		"token_usage": h.spoil(round3(k.usage())), "gen_throughput": h.spoil(0), "cache_hit_rate": h.spoil(round3(k.count.hitRate())),
		"utilization": h.spoil(round3(k.usage())), "max_running_requests": e.cfg.MaxActive,
	}
}

// oldLoads is /get_load of older releases.
func (e *Engine) oldLoads(bound int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		e.showJSON(w, fmt.Sprint("get_load", bound), func(h *Habits) any {
			rows := []object{}
			for _, k := range e.visible(bound) {
				_, pending := k.tokens()
				rows = append(rows, object{
					"dp_rank": k.number(), "num_reqs": h.spoil(k.open()), "num_waiting_reqs": h.spoil(len(k.waiting)),
					"num_tokens": h.spoil(k.cache.used()*e.cfg.BlockTokens + pending),
				})
			}
			return rows
		})
	}
}
