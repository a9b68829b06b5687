package scrape

import (
	"math"
	"time"

	"adpdeck/router/model"
)

// The families of vLLM's page, new names before old ones.
const (
	vllmRunning = "vllm:num_requests_running"
	vllmWaiting = "vllm:num_requests_waiting"
	vllmConfig  = "vllm:cache_config_info"
	vllmHealthy = "vllm:engine_healthy"
)

var (
	vllmUsage   = [...]string{"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"}
	vllmQueries = [...]string{"vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"}
	vllmHits    = [...]string{"vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"}
)

const vllmHitRate = "vllm:gpu_prefix_cache_hit_rate" // before there were counters

// VLLM reads vLLM's metrics page by the label engine, the index of the DP rank
// (a global number, see Page.Inside).
//
// A rank's blocks in use are its usage times its capacity. The capacity is
// vllm:cache_config_info's: kv_cache_size_tokens is one rank's and is taken
// where it is there. num_gpu_blocks is, on a page of several engines, the sum
// over them (the front end adds up what its engines tell it, and writes the
// sum into the row of each), so it is divided among the rows that have it;
// rows that differ are each rank's own.
//
// Pages of several API processes have a series for each process; where those
// disagree the larger figure counts, and the disagreement is among Refused.
func VLLM(a Answer) (Page, error) {
	var p Page
	v := vocabulary{
		prefix: "vllm:",
		families: []string{
			vllmRunning, vllmWaiting, vllmConfig, vllmHealthy, vllmHitRate, processStart,
			vllmUsage[0], vllmUsage[1], vllmQueries[0], vllmQueries[1], vllmHits[0], vllmHits[1],
		},
		labels: []string{"engine", "block_size", "num_gpu_blocks", "kv_cache_size_tokens"},
	}
	found, err := v.read(a, &p.Refused)
	if err != nil {
		return p, err
	}
	t, k := newTable(&p), picker{rank: "engine"}
	start(&p, found)
	ranked := k.ranked(found)
	each := func(family string, put func(r *Rank, v float64)) {
		for rank, v := range rising(k.figures(t, family, found[family], ranked)) {
			put(t.rank(rank), v)
		}
	}
	each(vllmRunning, func(r *Rank, v float64) { r.Running = model.Maybe(v) })
	each(vllmWaiting, func(r *Rank, v float64) { r.Waiting = model.Maybe(v) })
	each(vllmHealthy, func(r *Rank, v float64) {
		r.Condition = Healthy
		if v == 0 {
			r.Condition = Unhealthy
		}
	})
	vllmHit(t, k, found, ranked)
	vllmBlocks(t, k, found, ranked)
	t.finish()
	return p, t.usable()
}

// vllmHit sets the share of prompt tokens that were found in the cache since
// the engine began.
func vllmHit(t *table, k picker, found samples, ranked bool) {
	for i := len(vllmQueries) - 1; i >= 0; i-- { // old names first, new ones over them
		hits := k.figures(t, vllmHits[i], found[vllmHits[i]], ranked)
		for rank, queries := range rising(k.figures(t, vllmQueries[i], found[vllmQueries[i]], ranked)) {
			h, ok := hits[rank]
			if !ok || queries == 0 {
				continue
			}
			if s, ok := share(h.value/queries, &t.page.Refused, func() string { return "hits over queries, " + what(vllmHits[i], k.rank, rank) + "," }); ok {
				t.rank(rank).CacheHit = model.Maybe(s)
			}
		}
	}
	for rank, v := range rising(k.figures(t, vllmHitRate, found[vllmHitRate], ranked)) {
		s, ok := share(v, &t.page.Refused, func() string { return what(vllmHitRate, k.rank, rank) })
		if r := t.rank(rank); ok && !r.CacheHit.Known() {
			r.CacheHit = model.Maybe(s)
		}
	}
}

// vllmBlocks sets capacity and use of the cache.
func vllmBlocks(t *table, k picker, found samples, ranked bool) {
	total, all := vllmCapacity(t, k, found[vllmConfig], ranked)
	for rank, n := range total {
		t.rank(rank).KVTotalBlocks = model.Maybe(n)
	}
	for i := len(vllmUsage) - 1; i >= 0; i-- {
		for rank, v := range rising(k.figures(t, vllmUsage[i], found[vllmUsage[i]], ranked)) {
			s, ok := share(v, &t.page.Refused, func() string { return what(vllmUsage[i], k.rank, rank) })
			n := total[rank]
			if n == 0 {
				n = all
			}
			if r := t.rank(rank); ok && n > 0 {
				r.KVTotalBlocks, r.KVUsedBlocks = model.Maybe(n), model.Maybe(math.Round(s*float64(n)))
			}
		}
	}
}

// config is what the rows of cache_config_info say of one rank.
type config struct{ block, blocks, tokens int }

// vllmCapacity gives each rank's capacity in blocks, and that of every rank
// where the page says it without naming one; it fills in the page's.
func vllmCapacity(t *table, k picker, list []series, ranked bool) (total map[int]int, all int) {
	rows := map[int]config{}
	var whole config
	for i := range list {
		s := &list[i]
		c := config{size(s.get("block_size")), size(s.get("num_gpu_blocks")), size(s.get("kv_cache_size_tokens"))}
		if s.get(k.rank) == "" {
			whole = whole.with(c)
			continue
		}
		if rank, ok := k.rankOf(t, vllmConfig, s, ranked); ok {
			// Several API processes may each have a row, some from before the
			// engines had told their size.
			rows[rank] = rows[rank].with(c)
		}
	}
	share := 1
	if first, same := sameBlocks(rows); same && first > 0 {
		share = len(rows)
	}
	total = make(map[int]int, len(rows))
	for rank, c := range rows {
		if n := c.capacity(share); n > 0 {
			total[rank] = n
			t.page.KVBlocks = least(t.page.KVBlocks, n)
		}
		t.page.BlockTokens = least(t.page.BlockTokens, c.block)
	}
	all = whole.capacity(1)
	t.page.KVBlocks, t.page.BlockTokens = least(t.page.KVBlocks, all), least(t.page.BlockTokens, whole.block)
	return total, all
}

func (c config) with(o config) config {
	return config{max(c.block, o.block), max(c.blocks, o.blocks), max(c.tokens, o.tokens)}
}

// capacity is the rank's number of blocks, where share ranks share the sum.
func (c config) capacity(share int) int {
	if c.tokens > 0 && c.block > 0 {
		return c.tokens / c.block
	}
	return c.blocks / share
}

// sameBlocks reports whether all rows have the same number of blocks.
func sameBlocks(rows map[int]config) (blocks int, same bool) {
	first := true
	for _, c := range rows {
		if !first && c.blocks != blocks {
			return 0, false
		}
		blocks, first = c.blocks, false
	}
	return blocks, true
}

// start sets when the process began: the latest, of several.
func start(p *Page, found samples) {
	for _, s := range found[processStart] {
		v, ok := number(s.value, &p.Refused, func() string { return processStart })
		if !ok || v == 0 || v > 1e11 {
			continue
		}
		sec, frac := math.Modf(v)
		if began := time.Unix(int64(sec), int64(frac*1e9)).UTC(); began.After(p.Started) {
			p.Started = began
		}
	}
}

// usable is the error of a page that named no rank at all.
func (t *table) usable() error {
	if len(t.page.Ranks) > 0 {
		return nil
	}
	if t.page.Refused.Count > 0 {
		first := t.page.Refused.List[0]
		return &first
	}
	return refuse(NoFigures, "a metrics page without a figure for any rank")
}
