package adp

import (
	"fmt"

	"adpdeck/router/model"
)

// Params are a request's scheduling parameters. A nil *Params says that none
// were attached, which upstream treats apart from parameters that are unset.
type Params struct {
	// Rank is attention_dp_rank, nil when unset.
	Rank *int
	// Relax is attention_dp_relax: nil when unset, false holds the request for
	// its rank.
	Relax *bool
	// SubagentAffinityID takes the place of the conversation key when it is
	// not empty.
	SubagentAffinityID string
}

// Request is one request of a batch.
type Request struct {
	// ID seeds the tie shuffle of the KV-aware router.
	ID int64
	// Null says that the item carries no request object: no tokens, no
	// parameters, no conversation.
	Null bool
	// Tokens is the length of the prompt; a negative length counts as 0.
	Tokens int
	// Lead is the first 64 token ids, all of them when there are fewer. More
	// than 64 are not looked at.
	Lead []int32
	// Params are the scheduling parameters, nil when none are attached.
	Params *Params
	// Conv is the conversation key, opaque; empty for none.
	Conv string
	// Matches is the prefix held by each rank, in tokens, by rank; shorter or
	// nil means 0 for the rest.
	Matches []int32
	// Children counts return sequences beside the first; admission alone
	// counts them.
	Children int
}

// Batch is one routing call.
type Batch struct {
	// States are the gathered rank states. Counts and tokens are taken by
	// position, as upstream does; missing ones count as idle.
	States   []model.RankState
	Requests []Request
	// HardCap is max_num_active_requests of one rank.
	HardCap int
	// Weights by rank; nil is 1 everywhere, which is upstream exactly. A rank
	// beyond the end has weight 1, a weight that is not above 0 closes it.
	Weights []float64
	// Closed by rank: true takes no new placement (draining). Nil for none.
	Closed []bool
}

// Result is the answer to a Batch. The caller keeps it and hands it in again;
// Route resets and refills it, so it is valid until the next call.
type Result struct {
	// Assignments holds by rank the indexes into Batch.Requests, in upstream's
	// order.
	Assignments [][]int32
	// Ranks holds by request the rank, model.NoRank for none.
	Ranks []int32
	// Expected is upstream's second return value, the soft cap of the call.
	Expected int
	// Unassigned are the requests that found no room, in the batch's order.
	Unassigned []int32
	// Placements by request, filled only when recording is on.
	Placements []model.Placement

	flat []int32 // backs Assignments
	used []int32 // ranks whose list is not empty
}

// Options are fixed for the life of a Router, recording apart.
type Options struct {
	// Parity reports upstream's exceptions as *ParityError instead of avoiding
	// them.
	Parity bool
	// Record fills Result.Placements.
	Record bool
	// MaxCandidates bounds the candidates of one record; 0 keeps all.
	MaxCandidates int
}

// Pins is the conversation map: which rank a conversation is bound to.
type Pins interface {
	// Get returns the rank of conv. It must not touch recency.
	Get(conv string) (rank int, ok bool)
	// Record binds conv to rank as the newest entry and drops the oldest ones
	// over the limit.
	Record(conv string, rank int)
}

// ParityError is upstream's exception, by its Python name and message. Route
// returns it in parity mode only.
type ParityError struct {
	Name    string // IndexError, KeyError, TypeError, ZeroDivisionError, OverflowError, ValueError
	Message string
}

// Error writes name and message as Python prints them.
func (e *ParityError) Error() string { return e.Name + ": " + e.Message }

// RankError says that a request asks for a rank that does not exist.
type RankError struct {
	Request int64
	Rank    int
	Ranks   int // ranks that exist, counted from 0
}

// Error names the request, its wish and what is allowed.
func (e *RankError) Error() string {
	if e.Ranks <= 0 {
		return fmt.Sprintf("route request %d: attention_dp_rank %d asked for, but there are no ranks", e.Request, e.Rank)
	}
	return fmt.Sprintf("route request %d: attention_dp_rank %d does not exist; ask for 0 to %d, or for none", e.Request, e.Rank, e.Ranks-1)
}

// Check reports, as a *RankError, an explicit rank that a worker of tp ranks
// does not have. Callers refuse such a request at the edge; upstream would
// take every rank's executor loop down with it.
func Check(q *Request, tp int) error {
	if q.Null || q.Params == nil || q.Params.Rank == nil {
		return nil
	}
	if k := *q.Params.Rank; k < 0 || k >= tp {
		return &RankError{Request: q.ID, Rank: k, Ranks: tp}
	}
	return nil
}

// tokens is the prompt length as the routers count it.
func (q *Request) tokens() int {
	if q.Null || q.Tokens < 0 {
		return 0
	}
	return q.Tokens
}

// match is the raw prefix length on rank k.
func (q *Request) match(k int) int {
	if uint(k) < uint(len(q.Matches)) {
		return int(q.Matches[k])
	}
	return 0
}

// key is what the conversation router binds by, empty for none.
func (q *Request) key() string {
	if q.Null {
		return ""
	}
	if q.Params != nil && q.Params.SubagentAffinityID != "" {
		return q.Params.SubagentAffinityID
	}
	return q.Conv
}

// strict reports the sort key 0 of the default and KV-aware routers: a rank
// is set and relax is false.
func (q *Request) strict() bool {
	p := q.Params
	return !q.Null && p != nil && p.Rank != nil && p.Relax != nil && !*p.Relax
}

// raw reports the conversation router's sort key: the relax flag itself,
// whether or not a rank is set.
func (q *Request) raw() (relax, unset bool) {
	if q.Null || q.Params == nil {
		return true, false
	}
	if q.Params.Relax == nil {
		return true, true
	}
	return *q.Params.Relax, false
}
