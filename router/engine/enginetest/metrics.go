package enginetest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"adpdeck/router/model"
)

// promPage is a page in Prometheus' text format. Series of one family stand
// together, as client libraries write them.
type promPage struct {
	bytes.Buffer
	value string // in place of every gauge
}

// label is one label of a series.
type label struct{ name, value string }

// labels makes labels of names and values in turn.
func labels(pairs ...string) []label {
	var out []label
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, label{pairs[i], pairs[i+1]})
	}
	return out
}

func (p *promPage) family(name, kind, help string) {
	fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func (p *promPage) series(name string, l []label, v float64) {
	p.WriteString(name)
	p.labels(l, "")
	fmt.Fprintf(p, " %s\n", strconv.FormatFloat(v, 'g', -1, 64))
}

// gauge is a series that Habits.MetricValue can spoil.
func (p *promPage) gauge(name string, l []label, v float64) {
	if p.value == "" {
		p.series(name, l, v)
		return
	}
	p.WriteString(name)
	p.labels(l, "")
	fmt.Fprintf(p, " %s\n", p.value)
}

func (p *promPage) labels(l []label, le string) {
	if len(l) == 0 && le == "" {
		return
	}
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	p.WriteByte('{')
	for i, x := range l {
		if i > 0 {
			p.WriteByte(',')
		}
		fmt.Fprintf(p, `%s="%s"`, x.name, escape.Replace(x.value))
	}
	if le != "" {
		if len(l) > 0 {
			p.WriteByte(',')
		}
		fmt.Fprintf(p, `le="%s"`, le)
	}
	p.WriteByte('}')
}

func (p *promPage) histogram(name string, l []label, h *histogram) {
	n := 0
	for i, c := range h.counts {
		le := "+Inf"
		if i < len(h.upTo) {
			le = strconv.FormatFloat(h.upTo[i], 'g', -1, 64)
		}
		n += c
		p.WriteString(name + "_bucket")
		p.labels(l, le)
		fmt.Fprintf(p, " %d\n", n)
	}
	p.series(name+"_sum", l, h.sum)
	p.series(name+"_count", l, float64(h.n))
}

// visible are the ranks that metrics show: of the address's own rank, or of all,
// less what the habits hide. The engine's lock is held.
func (e *Engine) visible(bound int) []*rank {
	h := e.habits.Load()
	return slices.DeleteFunc(slices.Clone(e.ranks), func(k *rank) bool {
		return bound != model.NoRank && k.at != bound || h.MetricsRank0Only && k.local > 0 || slices.Contains(h.MissingRanks, k.at)
	})
}

// page serves a Prometheus page that fill writes under the engine's lock, as the
// habits will have it.
func (e *Engine) page(key string, bound int, fill func(p *promPage, ranks []*rank, h *Habits)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		e.show(w, "text/plain; version=0.0.4; charset=utf-8", "# "+strings.Repeat("x", 117)+"\n", key+strconv.Itoa(bound), func(h *Habits) []byte {
			p := &promPage{value: h.MetricValue}
			fill(p, e.visible(bound), h)
			return p.Bytes()
		})
	}
}

// showJSON serves figures as JSON.
func (e *Engine) showJSON(w http.ResponseWriter, key string, figures func(h *Habits) any) {
	e.show(w, "application/json", strings.Repeat(" ", 120), key, func(h *Habits) []byte {
		b, err := json.Marshal(figures(h))
		if err != nil {
			panic(err) // of values that the package made itself
		}
		for text, python := range notNumbers() {
			b = bytes.ReplaceAll(b, []byte("\"\ufffd"+text+"\""), []byte(python))
		}
		return b
	})
}

// show serves figures that are made under the engine's lock, padded or frozen as
// the habits will have it.
func (e *Engine) show(w http.ResponseWriter, contentType, padding, key string, figures func(h *Habits) []byte) {
	h := e.habits.Load()
	e.mu.Lock()
	text := e.frozen[key]
	if text == nil || !h.MetricsFrozen {
		text = figures(h)
		if h.MetricsFrozen {
			if e.frozen == nil {
				e.frozen = map[string][]byte{}
			}
			e.frozen[key] = text
		}
	}
	e.mu.Unlock()
	if missing := h.MetricBytes - len(text); missing > 0 {
		text = slices.Concat(text, bytes.Repeat([]byte(padding), missing/len(padding)+1))
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(text)
}

// copies is how often a row is shown.
func (h *MetricHabits) copies() int {
	if h.DuplicateSeries {
		return 2
	}
	return 1
}

// notNumbers are the values that JSON cannot hold, as Python writes them there.
func notNumbers() map[string]string {
	return map[string]string{"NaN": "NaN", "+Inf": "Infinity", "-Inf": "-Infinity"}
}

// spoil is a JSON figure, or what MetricValue puts in its place; showJSON writes
// it.
func (h *MetricHabits) spoil(v any) any {
	switch h.MetricValue {
	case "":
		return v
	case "-1":
		return -1
	}
	return "\ufffd" + h.MetricValue
}

// figure is one gauge or counter of every rank.
type figure struct {
	name, kind, help string
	of               func(k *rank) float64
}

// write writes a figure for every rank, whose labels by says; old is another
// name under which it appears too.
func (f *figure) write(p *promPage, ranks []*rank, by func(*rank) [][]label, old string) {
	for _, name := range slices.Compact([]string{f.name, cmp.Or(old, f.name)}) {
		p.family(name, f.kind, f.help)
		for _, k := range ranks {
			for _, l := range by(k) {
				if f.kind == "gauge" {
					p.gauge(name, l, f.of(k))
				} else {
					p.series(name, l, f.of(k))
				}
			}
		}
	}
}

func (k *rank) usage() float64 { return float64(k.cache.used()) / float64(len(k.cache.blocks)) }

// round3 is v with three digits behind the point, as some engines show shares.
func round3(v float64) float64 { return math.Round(v*1000) / 1000 }

// vllmMetrics is vLLM's page: one series for each engine, the DP rank as text.
func (e *Engine) vllmMetrics(p *promPage, ranks []*rank, h *Habits) {
	name := e.cfg.Models[0]
	of := func(k *rank) []label { return labels("engine", strconv.Itoa(k.number()), "model_name", name) }
	by := func(k *rank) [][]label { return [][]label{of(k)} }
	waiting := func(k *rank) float64 { return float64(len(k.waiting)) }
	for _, f := range []struct {
		figure
		old string
	}{
		{figure{"vllm:num_requests_running", "gauge", "Number of requests in model execution batches.", func(k *rank) float64 { return float64(len(k.running)) }}, ""},
		{figure{"vllm:num_requests_waiting", "gauge", "Number of requests waiting to be processed.", waiting}, ""},
		{figure{"vllm:kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage.", (*rank).usage}, "vllm:gpu_cache_usage_perc"},
		{figure{"vllm:prefix_cache_queries_total", "counter", "Prefix cache queries, in terms of number of queried tokens.", func(k *rank) float64 { return float64(k.count.queries) }}, "vllm:gpu_prefix_cache_queries_total"},
		{figure{"vllm:prefix_cache_hits_total", "counter", "Prefix cache hits, in terms of number of cached tokens.", func(k *rank) float64 { return float64(k.count.hits) }}, "vllm:gpu_prefix_cache_hits_total"},
		{figure{"vllm:num_preemptions_total", "counter", "Cumulative number of preemptions.", func(k *rank) float64 { return float64(k.count.preemptions) }}, ""},
		{figure{"vllm:prompt_tokens_total", "counter", "Number of prefill tokens processed.", func(k *rank) float64 { return float64(k.count.promptTokens) }}, ""},
		{figure{"vllm:generation_tokens_total", "counter", "Number of generation tokens processed.", func(k *rank) float64 { return float64(k.count.generationTokens) }}, ""},
	} {
		if !h.DuplicateSeries {
			f.old = ""
		}
		f.write(p, ranks, by, f.old)
	}
	reasons := figure{"vllm:num_requests_waiting_by_reason", "gauge", "Waiting requests by reason.", waiting}
	reasons.write(p, ranks, func(k *rank) [][]label { return [][]label{append(of(k), label{"reason", "capacity"})} }, "")
	p.family("vllm:request_success_total", "counter", "Count of successfully processed requests.")
	for _, k := range ranks {
		for _, r := range []struct {
			name string
			n    int
		}{{"stop", k.count.stopped}, {"length", k.count.length}, {"abort", k.count.aborted}} {
			p.series("vllm:request_success_total", append(of(k), label{"finished_reason", r.name}), float64(r.n))
		}
	}
	for _, f := range histograms("vllm:", "inter_token_latency_seconds") {
		p.family(f.name, "histogram", f.help)
		for _, k := range ranks {
			p.histogram(f.name, of(k), f.of(k))
		}
	}
	p.family("vllm:cache_config_info", "gauge", "Information of the LLMEngine CacheConfig")
	for _, k := range ranks { // the blocks are the sum over the engines, the tokens each one's own
		p.series("vllm:cache_config_info", labels("block_size", strconv.Itoa(e.cfg.BlockTokens), "engine", strconv.Itoa(k.number()),
			"kv_cache_size_tokens", strconv.Itoa(e.cfg.Blocks*e.cfg.BlockTokens), "num_gpu_blocks", strconv.Itoa(e.cfg.Blocks*len(ranks))), 1)
	}
}

// timed is one histogram of every rank.
type timed struct {
	name, help string
	of         func(k *rank) *histogram
}

func histograms(prefix, itl string) []timed {
	return []timed{
		{prefix + "time_to_first_token_seconds", "Histogram of time to first token in seconds.", func(k *rank) *histogram { return &k.count.ttft }},
		{prefix + itl, "Histogram of inter-token latency in seconds.", func(k *rank) *histogram { return &k.count.itl }},
		{prefix + "e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", func(k *rank) *histogram { return &k.count.e2e }},
		{prefix + "request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", func(k *rank) *histogram { return &k.count.queued }},
	}
}
