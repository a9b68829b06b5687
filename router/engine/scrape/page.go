package scrape

import (
	"slices"
	"time"

	"adpdeck/router/model"
)

// Limits of one answer beside its length. Real engines stay far below.
const (
	// MaxRanks is how many ranks one answer may name, and MaxRank the highest
	// number of one.
	MaxRanks = 4096
	MaxRank  = 1<<16 - 1
)

// Condition is what an engine says of a rank's health.
type Condition uint8

// The conditions.
const (
	Unsaid Condition = iota
	Healthy
	Unhealthy
)

// Rank is what an answer says of one rank.
type Rank struct {
	// RankReport has the figures. Its Rank is the engine's own number until
	// Page.Inside turned it into the one inside the worker.
	model.RankReport
	// Condition is what the engine says of its health (vllm:engine_healthy).
	Condition Condition
	// Taken is when the engine took the figures by its own clock, whose zone may
	// be unknown: good for "did it change", not for an age. Zero: not said.
	Taken time.Time
}

// Advert is what an engine says of its own size. Numbers are 0 where it does
// not say.
type Advert struct {
	// Advertised are the ranks it names, rising, in its own numbering until
	// Page.Inside was called.
	Advertised []int
	// BlockTokens is the size of a KV block in tokens, KVBlocks the capacity of
	// one rank in blocks (of the smallest, if they differ).
	BlockTokens, KVBlocks int
	// MaxActive is how many requests one rank runs at a time, MaxBatchedTokens
	// how many tokens one step of it takes.
	MaxActive, MaxBatchedTokens int
}

// Page is one answer, read.
type Page struct {
	Advert
	// Ranks holds one entry for each rank named, by rising number.
	Ranks []Rank
	// Unranked says that the answer names no rank at all: Ranks is then one
	// entry, rank 0, that speaks for the worker. With more than one rank it is
	// of no use; see Inside.
	Unranked bool
	// Started is when the process that answered began, by its own clock; another
	// value means another process. Zero: not said.
	Started time.Time
	// Duplicates counts the series or rows that repeat another of the same rank
	// and were left out.
	Duplicates int
	Refused    Refusals
}

// Reports are the figures alone, for model and router.
func (p *Page) Reports() []model.RankReport {
	reports := make([]model.RankReport, len(p.Ranks))
	for i := range p.Ranks {
		reports[i] = p.Ranks[i].RankReport
	}
	return reports
}

// Inside turns the engine's rank numbers into those inside the worker, whose
// first rank has the global number start and which has count ranks (0: not
// known). numbers says how the answer counts, which need not be how requests
// do: vLLM labels metrics with global numbers and takes local ones in headers.
// NumbersAuto finds out:
//
//	all within [start, start+count)     global
//	all within [0, count)               local
//	count is 1 and one rank is named    that one, whatever its number
//
// Where the first two overlap and the page names only part of the ranks, both
// may hold; it is then global. Ranks outside are refused but stay advertised
// (above count: the engine grew). Figures that name no rank are refused where
// the worker has several.
func (p *Page) Inside(start, count int, numbers model.RankNumbers) {
	if p.Unranked {
		if count > 1 {
			p.Refused.add(NoRank, "the figures name no rank, and the worker has %d: is the engine told to report each of them?", count)
			p.Ranks, p.Advertised = nil, nil
		}
		return
	}
	if numbers == model.NumbersAuto && count == 1 && len(p.Ranks) == 1 && len(p.Advertised) <= 1 {
		p.Ranks[0].Rank, p.Advertised = 0, []int{0}
		return
	}
	if numbers == model.NumbersLocal || numbers == model.NumbersAuto && p.local(start, count) {
		start = 0
	}
	p.shift(start, count)
}

// local reports whether the numbers are certainly not global ones.
func (p *Page) local(start, count int) bool {
	if count == 0 {
		return len(p.Advertised) > 0 && p.Advertised[0] < start
	}
	inside := func(first int) bool {
		for _, n := range p.Advertised {
			if n < first || n >= first+count {
				return false
			}
		}
		return true
	}
	return !inside(start) && inside(0)
}

func (p *Page) shift(start, count int) {
	outside := func(n int) bool { return n < 0 || count > 0 && n >= count }
	for i := range p.Ranks {
		r := &p.Ranks[i]
		r.Rank -= start
		if outside(r.Rank) {
			p.Refused.add(UnknownRank, "rank %d of the engine is none of this worker's %d from %d on: does the settings file say how many it has?", r.Rank+start, count, start)
		}
	}
	p.Ranks = slices.DeleteFunc(p.Ranks, func(r Rank) bool { return outside(r.Rank) })
	for i := range p.Advertised {
		p.Advertised[i] -= start
	}
	p.Advertised = slices.DeleteFunc(p.Advertised, func(n int) bool { return n < 0 })
}

// table collects the ranks of a page.
type table struct {
	page *Page
	at   map[int]int // rank → index in page.Ranks
}

func newTable(p *Page) *table { return &table{page: p, at: make(map[int]int)} }

// rank gives the entry of rank n, a new one with everything unknown if there
// was none; nil over the limit, which is noted.
func (t *table) rank(n int) *Rank {
	if i, ok := t.at[n]; ok {
		return &t.page.Ranks[i]
	}
	if len(t.at) == MaxRanks {
		t.page.Refused.add(TooMany, "more than %d ranks: rank %d and further ones are left out", MaxRanks, n)
		return nil
	}
	t.at[n] = len(t.page.Ranks)
	t.page.Ranks = append(t.page.Ranks, Rank{RankReport: unknown(n)})
	return &t.page.Ranks[len(t.page.Ranks)-1]
}

// finish sorts the ranks and advertises them.
func (t *table) finish() {
	p := t.page
	slices.SortFunc(p.Ranks, func(a, b Rank) int { return a.Rank - b.Rank })
	p.Advertised = make([]int, len(p.Ranks))
	for i := range p.Ranks {
		p.Advertised[i] = p.Ranks[i].Rank
	}
	t.at = nil
}

func unknown(rank int) model.RankReport {
	u := model.Unknown()
	return model.RankReport{
		Rank: rank, Running: u, Waiting: u, Tokens: u, PendingTokens: u,
		KVUsedBlocks: u, KVTotalBlocks: u, CacheHit: u,
	}
}

// least is the smaller of two sizes, 0 standing for not said.
func least(a, b int) int {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
