package scrape

import (
	"encoding/json"
	"fmt"
	"math"

	"adpdeck/router/model"
)

// sglangLoad is one rank in /v1/loads, or in the older /get_load.
type sglangLoad struct {
	DPRank    jsonNumber `json:"dp_rank"`
	Timestamp jsonTime   `json:"timestamp"`

	Running  jsonNumber `json:"num_running_reqs"`
	Waiting  jsonNumber `json:"num_waiting_reqs"`
	Uncached jsonNumber `json:"num_waiting_uncached_tokens"`
	Used     jsonNumber `json:"num_used_tokens"`
	Total    jsonNumber `json:"num_total_tokens"`
	Capacity jsonNumber `json:"max_total_num_tokens"`
	Hit      jsonNumber `json:"cache_hit_rate"`
	MaxReqs  jsonNumber `json:"max_running_requests"`

	Reqs    jsonNumber `json:"num_reqs"` // old: running and waiting
	Tokens  jsonNumber `json:"num_tokens"`
	Pending jsonNumber `json:"num_pending_tokens"`
}

// SGLangLoads reads the answer to /v1/loads, an object with a list of ranks, or
// to the older /get_load, the list alone. pageTokens as in SGLangMetrics.
//
// Tokens are num_total_tokens, which has the waiting prompts in it; of them
// num_waiting_uncached_tokens are still to be prefilled (from engines that do
// not say that: total less used, cached or not). Running of the older form is
// its num_reqs less those that wait.
func SGLangLoads(a Answer, pageTokens int) (Page, error) {
	var p Page
	body, bad := a.open(formJSON)
	if bad != nil {
		return p, bad
	}
	body = plain(body, &p.Refused)
	p.BlockTokens = max(pageTokens, 0)
	if body[0] == '{' {
		var whole struct {
			Loads json.RawMessage `json:"loads"`
		}
		if err := decode(body, &whole); err != nil {
			return p, err
		}
		if body = whole.Loads; len(body) == 0 {
			return p, refuse(NoFigures, "an answer without loads: is the kind of the engine right?")
		}
	}
	l := loads{table: newTable(&p)}
	if err := rows(body, MaxListed, &p.Refused, l.take); err != nil {
		return p, err
	}
	l.total()
	for i := range l.list {
		l.report(&l.list[i])
	}
	l.finish()
	return p, l.usable()
}

// loads gathers the rows of one answer.
type loads struct {
	*table
	list []sglangLoad
	of   map[int]int // rank → index in list
	// bare counts rows that name no rank, whole is the last of them.
	bare  int
	whole sglangLoad
}

// take reads a row and keeps the newest of each rank.
func (l *loads) take(i int, raw json.RawMessage) {
	p := l.page
	var row sglangLoad
	if err := json.Unmarshal(raw, &row); err != nil {
		p.Refused.add(BadLine, "row %d is no object of loads: %s", i, fault(err))
		return
	}
	rank, ok := row.DPRank.rank()
	if !ok && (row.DPRank.given || row.DPRank.spoilt) {
		p.Refused.add(BadRank, "row %d has a dp_rank that is no whole number from 0 to %d", i, MaxRank)
		return
	}
	if !ok {
		l.bare++
		l.whole = row
		return
	}
	l.add(rank, row)
}

// total deals with the rows that name no rank: one alone speaks for the
// worker, one beside rows with ranks is their total.
func (l *loads) total() {
	p := l.page
	switch {
	case l.bare == 0:
	case len(l.list) > 0:
		p.Duplicates += l.bare
	case l.bare == 1:
		p.Unranked = true
		l.add(0, l.whole)
	default:
		p.Refused.add(NoRank, "%d rows without a dp_rank: whose figures are they?", l.bare)
	}
}

func (l *loads) add(rank int, row sglangLoad) {
	p := l.page
	if l.of == nil {
		l.of = map[int]int{}
	}
	at, there := l.of[rank]
	switch {
	case !there && l.rank(rank) != nil:
		l.of[rank] = len(l.list)
		l.list = append(l.list, row)
	case there:
		p.Duplicates++
		if old := &l.list[at]; *old != row {
			p.Refused.add(Disagree, "dp_rank %d is there twice, with different figures; the newer row counts", rank)
			if !row.Timestamp.Before(old.Timestamp.Time) {
				*old = row
			}
		}
	}
}

// report turns a row into a rank's figures.
func (l *loads) report(row *sglangLoad) {
	p := l.page
	rank, _ := row.DPRank.rank()
	r := l.rank(rank)
	r.Taken = row.Timestamp.Time
	get := func(n jsonNumber, field string) model.Maybe {
		if v, ok := n.get(&p.Refused, func() string { return fmt.Sprintf("%s of dp_rank %d", field, rank) }); ok {
			return model.Maybe(v)
		}
		return model.Unknown()
	}
	r.Running, r.Waiting = get(row.Running, "num_running_reqs"), get(row.Waiting, "num_waiting_reqs")
	if reqs := get(row.Reqs, "num_reqs"); reqs.Known() && r.Waiting.Known() && !r.Running.Known() {
		if reqs < r.Waiting {
			p.Refused.add(Disagree, "dp_rank %d has %g requests of which %g wait; how many run is unknown", rank, float64(reqs), float64(r.Waiting))
		} else {
			r.Running = reqs - r.Waiting
		}
	}
	used := get(row.Used, "num_used_tokens")
	r.Tokens = either(get(row.Total, "num_total_tokens"), either(get(row.Tokens, "num_tokens"), used))
	r.PendingTokens = either(get(row.Uncached, "num_waiting_uncached_tokens"), get(row.Pending, "num_pending_tokens"))
	if !r.PendingTokens.Known() && row.Total.given && r.Tokens >= used {
		r.PendingTokens = r.Tokens - used
	}
	if hit := get(row.Hit, "cache_hit_rate"); hit.Known() {
		if s, ok := share(float64(hit), &p.Refused, func() string { return fmt.Sprintf("cache_hit_rate of dp_rank %d", rank) }); ok {
			r.CacheHit = model.Maybe(s)
		}
	}
	if c := get(row.Capacity, "max_total_num_tokens"); c.Known() {
		sglangCapacity(p, r, float64(c))
	}
	if p.BlockTokens > 0 && used.Known() {
		r.KVUsedBlocks = model.Maybe(math.Ceil(float64(used) / float64(p.BlockTokens)))
	}
	p.MaxActive = least(p.MaxActive, row.MaxReqs.whole())
}

// either is a, or b where a is unknown.
func either(a, b model.Maybe) model.Maybe {
	if a.Known() {
		return a
	}
	return b
}
