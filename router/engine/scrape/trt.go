package scrape

import (
	"encoding/json"
	"fmt"
	"time"

	"adpdeck/router/model"
)

// trtRow is one iteration of one rank, as far as it is read.
type trtRow struct {
	Timestamp string     `json:"timestamp"`
	Iter      jsonNumber `json:"iter"`
	ADPRank   jsonNumber `json:"attentionDpRank"`
	Rank      jsonNumber `json:"rank"`
	Active    jsonNumber `json:"numActiveRequests"`
	Queued    jsonNumber `json:"numQueuedRequests"`
	MaxActive jsonNumber `json:"maxNumActiveRequests"`
	KV        struct {
		Max   jsonNumber `json:"maxNumBlocks"`
		Used  jsonNumber `json:"usedNumBlocks"`
		Block jsonNumber `json:"tokensPerBlock"`
		Hit   jsonNumber `json:"cacheHitRate"`
	} `json:"kvCacheStats"`
	Flight struct {
		Context   jsonNumber `json:"numContextRequests"`
		Gen       jsonNumber `json:"numGenRequests"`
		Paused    jsonNumber `json:"numPausedRequests"`
		CtxTokens jsonNumber `json:"numCtxTokens"`
		CtxKV     jsonNumber `json:"numCtxKvTokens"`
		GenKV     jsonNumber `json:"numGenKvTokens"`
		PausedKV  jsonNumber `json:"numPausedKvTokens"`
	} `json:"inflightBatchingStats"`
}

// TRTRows reads TensorRT-LLM's /metrics, a list of iterations that each read
// empties: the newest row of each attentionDpRank counts (without it, rank 0).
// ranks is the worker's number of ranks, 0: not known.
//
// With attention DP, only the figures of inflightBatchingStats are a rank's
// own; the others in the row of a rank other than 0 are copies of rank 0's, and
// the queue is the engine's as a whole. So Running is what is scheduled or
// paused on the rank, Tokens what these hold, PendingTokens what of them was
// being prefilled in that iteration, and Waiting and the use of the cache are
// unknown. A worker of one rank (ranks is 1) gets those as well.
//
// An empty list is no fault: no iteration ran since the last reading.
func TRTRows(a Answer, ranks int) (Page, error) {
	var p Page
	body, bad := a.open(formJSON)
	if bad != nil {
		return p, bad
	}
	body = plain(body, &p.Refused)
	n := newest{table: newTable(&p), ranks: ranks}
	if err := rows(body, MaxRows, &p.Refused, n.take); err != nil {
		return p, err
	}
	for rank := range n.list {
		n.report(&n.list[rank])
	}
	n.finish()
	if n.read == 0 && p.Refused.Count > 0 {
		return p, n.usable()
	}
	return p, nil
}

// newest keeps the newest row of each rank.
type newest struct {
	*table
	ranks int
	read  int
	list  []ranked
	of    map[int]int // rank → index in list
}

type ranked struct {
	rank int
	at   time.Time
	row  trtRow
}

func (n *newest) take(i int, raw json.RawMessage) {
	p := n.page
	var row trtRow
	if err := decode(raw, &row); err != nil {
		p.Refused.add(BadLine, "row %d is no iteration of the engine", i)
		return
	}
	rank, ok := n.rankOf(&row)
	if !ok {
		p.Refused.add(BadRank, "row %d has an attentionDpRank that is no whole number from 0 to %d", i, MaxRank)
		return
	}
	if rank < 0 {
		p.Duplicates++
		return
	}
	if !row.Iter.given && !row.Active.given && !row.Flight.Context.given {
		p.Refused.add(NoFigures, "row %d has none of iter, numActiveRequests and inflightBatchingStats: is enable_iter_perf_stats on, and the kind of the engine right?", i)
		return
	}
	n.read++
	next := ranked{rank, trtTime(row.Timestamp), row}
	if n.of == nil {
		n.of = map[int]int{}
	}
	at, there := n.of[rank]
	switch {
	case !there && n.rank(rank) != nil:
		n.of[rank] = len(n.list)
		n.list = append(n.list, next)
	case there && next.newer(&n.list[at]):
		n.list[at] = next
	}
}

// rankOf gives the row's rank; below 0 for a row that repeats another rank's.
// Versions between had no attentionDpRank but a row, numbered by rank, of each
// process: with attention DP that is the DP rank, without it all rows say the
// same.
func (n *newest) rankOf(row *trtRow) (int, bool) {
	if rank, ok := row.ADPRank.rank(); ok {
		return rank, true
	}
	if row.ADPRank.given || row.ADPRank.spoilt {
		return 0, false
	}
	if process, ok := row.Rank.rank(); ok && process > 0 {
		if n.ranks > 1 && process < n.ranks {
			return process, true
		}
		return -1, true
	}
	return 0, true
}

// newer reports whether a row is newer than one that came before it in the
// list. Iterations rise, unless the engine began anew; times are the engine's
// local ones, which go back once a year.
func (r *ranked) newer(before *ranked) bool {
	if r.row.Iter.given && before.row.Iter.given && r.row.Iter.value < before.row.Iter.value {
		return r.at.After(before.at)
	}
	return true
}

// trtTime reads "MM-DD-YYYY HH:MM:SS.µs"; the zone is not said, UTC is assumed.
func trtTime(s string) time.Time {
	at, err := time.Parse("01-02-2006 15:04:05.999999", s)
	if err != nil {
		return time.Time{}
	}
	return at
}

func (n *newest) report(of *ranked) {
	p, row, r := n.page, &of.row, n.rank(of.rank)
	r.Taken = of.at
	get := func(f jsonNumber, field string) model.Maybe {
		if v, ok := f.get(&p.Refused, func() string { return fmt.Sprintf("%s of attentionDpRank %d", field, of.rank) }); ok {
			return model.Maybe(v)
		}
		return model.Unknown()
	}
	f := &row.Flight
	paused, pausedKV := get(f.Paused, "numPausedRequests"), get(f.PausedKV, "numPausedKvTokens")
	if !f.Paused.given {
		paused = 0 // it is a part of numbers that are known without it
	}
	if paused == 0 {
		pausedKV = 0
	}
	r.Running = get(f.Context, "numContextRequests") + get(f.Gen, "numGenRequests") + paused
	r.PendingTokens = get(f.CtxTokens, "numCtxTokens")
	r.Tokens = r.PendingTokens + get(f.CtxKV, "numCtxKvTokens") + get(f.GenKV, "numGenKvTokens") + pausedKV
	if n.ranks == 1 {
		r.Running = either(get(row.Active, "numActiveRequests"), r.Running)
		r.Waiting = get(row.Queued, "numQueuedRequests")
		r.KVUsedBlocks = get(row.KV.Used, "usedNumBlocks")
		if total := row.KV.Max.whole(); total > 0 {
			r.KVTotalBlocks = model.Maybe(total)
		}
		if hit := get(row.KV.Hit, "cacheHitRate"); hit.Known() {
			if s, ok := share(float64(hit), &p.Refused, func() string { return "cacheHitRate" }); ok {
				r.CacheHit = model.Maybe(s)
			}
		}
	}
	// Sizes are the same for all ranks, so that a copy of rank 0's is right.
	p.BlockTokens = least(p.BlockTokens, row.KV.Block.whole())
	p.KVBlocks = least(p.KVBlocks, row.KV.Max.whole())
	p.MaxActive = least(p.MaxActive, row.MaxActive.whole())
}
