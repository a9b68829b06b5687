package enginetest

import (
	"net/http"
	"slices"
	"time"

	"adpdeck/router/prefix/event"
)

// maxRows is how many iteration rows TensorRT-LLM keeps for /metrics (its
// iter_stats_max_iterations, for every rank), maxWait how long a read waits for
// the first.
const (
	maxRows = 1000
	maxWait = 2 * time.Second
)

// iterations are what TensorRT-LLM keeps until it is read: rows of statistics and
// KV events. They belong to the engine's lock.
type iterations struct {
	e      *Engine
	rows   []object
	events [][]byte
	more   chan struct{} // closed and made anew with each row
}

func newIterations(e *Engine) *iterations { return &iterations{e: e, more: make(chan struct{})} }

// created begins a rank's events: its cache came to be.
func (t *iterations) created(k *rank) {
	t.keep(k, []event.Event{{Kind: event.Created, Levels: []uint64{uint64(t.e.cfg.Blocks), 0}, Group: event.NoGroup}})
}

// keep puts events aside for /kv_cache_events; the oldest are lost when there are
// too many.
func (t *iterations) keep(k *rank, events []event.Event) {
	for i := range events {
		ev := events[i]
		ev.ID, ev.Rank, ev.Window = k.eventID, int32(k.number()), int32(t.e.cfg.MaxModelLen)
		k.eventID++
		t.events = append(t.events, event.AppendTRT(nil, &ev))
	}
	if over := len(t.events) - t.e.cfg.Events.JSONEvents; over > 0 {
		clear(t.events[:over])
		t.events = t.events[over:]
	}
}

// record adds an iteration, a row for each rank. Only the counts of context and
// generation are the rank's own; all else is rank 0's, and what belongs to the
// one queue is 0 on the others.
func (t *iterations) record(g *group, now time.Time, took time.Duration) {
	h := t.e.habits.Load()
	zero := g.ranks[0]
	for _, k := range g.ranks {
		if h.MetricsRank0Only && k.local > 0 || slices.Contains(h.MissingRanks, k.at) {
			continue
		}
		row := t.row(g, zero, k, now, took)
		for range h.copies() {
			t.rows = append(t.rows, row)
		}
	}
	if over := len(t.rows) - maxRows*len(g.ranks); over > 0 {
		clear(t.rows[:over])
		t.rows = t.rows[over:]
	}
	close(t.more)
	t.more = make(chan struct{})
}

func (t *iterations) row(g *group, zero, k *rank, now time.Time, took time.Duration) object {
	s, blocks, h := &k.step, len(zero.cache.blocks), t.e.habits.Load()
	queued := 0
	if k == zero {
		queued = len(t.e.adp.queue)
	}
	completed := 0
	if k == zero {
		completed = zero.count.stopped + zero.count.length
	}
	return object{
		"timestamp": now.Format("01-02-2006 15:04:05.000000"), "iter": g.iter, "iterLatencyMS": float64(took) / 1e6,
		"newActiveRequestsQueueLatencyMS": 0, "numNewActiveRequests": 0, "numActiveRequests": zero.open(), "numQueuedRequests": queued,
		"numCompletedRequests": completed, "maxNumActiveRequests": t.e.cfg.MaxActive, "gpuMemUsage": 0, "cpuMemUsage": 0, "pinnedMemUsage": 0,
		"kvCacheStats": object{
			"maxNumBlocks": blocks, "freeNumBlocks": zero.cache.free, "usedNumBlocks": zero.cache.used(), "tokensPerBlock": t.e.cfg.BlockTokens,
			"allocTotalBlocks": 0, "allocNewBlocks": 0, "reusedBlocks": zero.count.hits / t.e.cfg.BlockTokens,
			"missedBlocks": (zero.count.queries - zero.count.hits) / t.e.cfg.BlockTokens, "cacheHitRate": zero.count.hitRate(),
		},
		"inflightBatchingStats": object{
			"numScheduledRequests": h.spoil(s.context + s.generation), "numContextRequests": h.spoil(s.context), "numGenRequests": h.spoil(s.generation), "numPausedRequests": 0,
			"numCtxTokens": h.spoil(s.contextTokens), "microBatchId": 0, "avgNumDecodedTokensPerIter": 1, "numCtxKvTokens": h.spoil(s.contextKV), "numGenKvTokens": h.spoil(s.generationKV),
			"numQueuedContextRequests": queued, "numQueuedCtxTokens": 0, "numQueuedGenRequests": 0, "numQueuedGenKvTokens": 0, "numPausedKvTokens": 0,
		},
		"specDecodingStats": nil, "schedulerMode": "overlap", "attentionDpRank": k.number(),
	}
}

// iterationStats is GET /metrics: what accumulated since it was last read, for
// which it waits up to two seconds.
func (e *Engine) iterationStats(w http.ResponseWriter, r *http.Request) {
	late := make(chan struct{})
	timer := e.clock.AfterFunc(maxWait, func() { close(late) })
	defer timer.Stop()
wait:
	for {
		e.mu.Lock()
		any, more := len(e.trt.rows) > 0 || e.frozen["iterations"] != nil, e.trt.more
		e.mu.Unlock()
		if any {
			break
		}
		select {
		case <-more:
		case <-late:
			break wait
		case <-r.Context().Done():
			return
		}
	}
	e.showJSON(w, "iterations", func(*Habits) any {
		rows := append([]object{}, e.trt.rows...)
		e.trt.rows = nil
		return rows
	})
}

// cacheEvents is POST /kv_cache_events: the events since it was last read. What
// one reader takes no other gets.
func (e *Engine) cacheEvents(w http.ResponseWriter, _ *http.Request) {
	e.mu.Lock()
	events := e.trt.events
	e.trt.events = nil
	e.mu.Unlock()
	body := []byte{'['}
	for i, ev := range events {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, ev...)
	}
	writeText(w, http.StatusOK, "application/json", string(append(body, ']')))
}

// trtMetrics is /prometheus/metrics, which knows no ranks.
func (e *Engine) trtMetrics(p *promPage, ranks []*rank, h *Habits) {
	l := labels("engine_type", "undefined", "model_name", e.cfg.Models[0])
	sum := func(of func(*rank) int) (n float64) {
		for _, k := range ranks {
			n += float64(of(k))
		}
		return n
	}
	total, used := float64(e.cfg.Blocks*len(ranks)), sum(func(k *rank) int { return k.cache.used() })
	queries, hits := sum(func(k *rank) int { return k.count.queries }), sum(func(k *rank) int { return k.count.hits })
	rate := 0.0
	if queries > 0 {
		rate = hits / queries
	}
	for _, f := range []struct {
		name, kind string
		v          float64
	}{
		{"trtllm_num_requests_running", "gauge", sum(func(k *rank) int { return len(k.running) })},
		{"trtllm_num_requests_waiting", "gauge", sum(func(k *rank) int { return len(k.waiting) }) + float64(len(e.adp.queue))},
		{"trtllm_kv_cache_utilization", "gauge", used / max(total, 1)},
		{"trtllm_kv_cache_hit_rate", "gauge", rate},
		{"trtllm_kv_cache_reused_blocks_total", "counter", hits / float64(e.cfg.BlockTokens)},
		{"trtllm_kv_cache_missed_blocks_total", "counter", (queries - hits) / float64(e.cfg.BlockTokens)},
		{"trtllm_kv_cache_max_blocks", "gauge", total},
		{"trtllm_kv_cache_free_blocks", "gauge", total - used},
		{"trtllm_kv_cache_used_blocks", "gauge", used},
		{"trtllm_kv_cache_tokens_per_block", "gauge", float64(e.cfg.BlockTokens)},
		{"trtllm_max_num_active_requests", "gauge", float64(e.cfg.MaxActive)},
	} {
		p.family(f.name, f.kind, f.name)
		for range h.copies() {
			if f.kind == "gauge" {
				p.gauge(f.name, l, f.v)
			} else {
				p.series(f.name, l, f.v)
			}
		}
	}
	p.family("trtllm_request_success_total", "counter", "Requests by how they ended.")
	p.series("trtllm_request_success_total", append(l, label{"finished_reason", "stop"}), sum(func(k *rank) int { return k.count.stopped }))
	p.series("trtllm_request_success_total", append(l, label{"finished_reason", "length"}), sum(func(k *rank) int { return k.count.length }))
}
