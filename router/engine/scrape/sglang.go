package scrape

import (
	"math"

	"adpdeck/router/model"
)

// The families of SGLang's page.
const (
	sglangRunning = "sglang:num_running_reqs"
	sglangQueued  = "sglang:num_queue_reqs"
	sglangUsage   = "sglang:token_usage"
	sglangHit     = "sglang:cache_hit_rate"
	sglangTotal   = "sglang:max_total_num_tokens"
	sglangConfig  = "sglang:cache_config_info"
)

var sglangUsed = [...]string{"sglang:num_used_tokens", "sglang:kv_used_tokens"}

// SGLangMetrics reads SGLang's metrics page by the label dp_rank. Each of the
// tensor-, pipeline- and expert-parallel ranks of a DP rank writes the same
// figures: the one with the lowest numbers speaks for it. A figure split by
// priority is taken from its total, the row with an empty priority.
//
// pageTokens is the engine's page size, for pages that do not say it (see
// SGLangInfo); 0: not known, then use of the cache in blocks is unknown as
// well. A page without any dp_rank is Unranked: SGLang says it only with
// --enable-metrics-for-all-schedulers.
func SGLangMetrics(a Answer, pageTokens int) (Page, error) {
	var p Page
	v := vocabulary{
		prefix: "sglang:",
		families: []string{
			sglangRunning, sglangQueued, sglangUsage, sglangHit, sglangTotal,
			sglangConfig, sglangUsed[0], sglangUsed[1], processStart,
		},
		labels: []string{"dp_rank", "tp_rank", "pp_rank", "moe_ep_rank", "priority", "page_size", "num_pages"},
	}
	found, err := v.read(a, &p.Refused)
	if err != nil {
		return p, err
	}
	t := newTable(&p)
	k := picker{rank: "dp_rank", lead: []string{"pp_rank", "tp_rank", "moe_ep_rank"}, part: "priority"}
	start(&p, found)
	ranked := k.ranked(found)
	each := func(family string, put func(r *Rank, v float64)) {
		for rank, v := range rising(k.figures(t, family, found[family], ranked)) {
			put(t.rank(rank), v)
		}
	}
	each(sglangRunning, func(r *Rank, v float64) { r.Running = model.Maybe(v) })
	each(sglangQueued, func(r *Rank, v float64) { r.Waiting = model.Maybe(v) })
	each(sglangHit, func(r *Rank, v float64) {
		if s, ok := share(v, &p.Refused, func() string { return what(sglangHit, k.rank, r.Rank) }); ok {
			r.CacheHit = model.Maybe(s)
		}
	})
	sglangPages(t, k, found, ranked, pageTokens)
	for i := len(sglangUsed) - 1; i >= 0; i-- {
		each(sglangUsed[i], func(r *Rank, v float64) { r.Tokens = model.Maybe(v) })
	}
	each(sglangTotal, func(r *Rank, v float64) { sglangCapacity(&p, r, v) })
	each(sglangUsage, func(r *Rank, v float64) {
		s, ok := share(v, &p.Refused, func() string { return what(sglangUsage, k.rank, r.Rank) })
		if ok && !r.Tokens.Known() && r.KVTotalBlocks.Known() {
			r.KVUsedBlocks = model.Maybe(math.Round(s * float64(r.KVTotalBlocks)))
		}
	})
	for i := range p.Ranks {
		sglangBlocks(&p, &p.Ranks[i])
	}
	t.finish()
	return p, t.usable()
}

// sglangPages sets the page size and each rank's number of pages.
func sglangPages(t *table, k picker, found samples, ranked bool, pageTokens int) {
	t.page.BlockTokens = max(pageTokens, 0)
	for i := range found[sglangConfig] {
		s := &found[sglangConfig][i]
		if n := size(s.get("page_size")); n > 0 {
			t.page.BlockTokens = n
		}
		pages := size(s.get("num_pages"))
		if ranked && s.get(k.rank) == "" {
			t.page.KVBlocks = least(t.page.KVBlocks, pages) // the same for all
			continue
		}
		if rank, ok := k.rankOf(t, sglangConfig, s, ranked); ok && pages > 0 {
			t.rank(rank).KVTotalBlocks = model.Maybe(pages)
			t.page.KVBlocks = least(t.page.KVBlocks, pages)
		}
	}
}

// sglangCapacity sets a rank's capacity from one in tokens.
func sglangCapacity(p *Page, r *Rank, tokens float64) {
	if p.BlockTokens == 0 || r.KVTotalBlocks.Known() {
		return
	}
	if n := int(tokens) / p.BlockTokens; n > 0 {
		r.KVTotalBlocks = model.Maybe(n)
		p.KVBlocks = least(p.KVBlocks, n)
	}
}

// sglangBlocks sets the blocks that a rank's tokens fill.
func sglangBlocks(p *Page, r *Rank) {
	if p.BlockTokens > 0 && r.Tokens.Known() {
		r.KVUsedBlocks = model.Maybe(math.Ceil(float64(r.Tokens) / float64(p.BlockTokens)))
	}
}
