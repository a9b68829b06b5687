package cluster

import (
	"time"

	"adpdeck/router/model"
)

// Config is the cluster tier's part of the settings.
type Config = model.ClusterConfig

// Worker is one worker of a Router.
type Worker struct {
	ID    string
	Ranks int
	// MaxRequests is the hard cap of one rank, 0 for none.
	MaxRequests int
	// MaxBatchedTokens is max_num_batched_tokens, 0 when it is not known: no
	// share of it is then ever exceeded.
	MaxBatchedTokens int
	// KVBlocks is a rank's KV capacity, 0 when it is not known.
	KVBlocks int
	// Picks says that the engine picks the rank: requests that Choose sends there
	// are booked without one, and hard caps count together.
	Picks bool
	// DecodePool says that the worker only decodes (conditional disaggregation).
	DecodePool bool
	// Taints are the worker's marks; a request may require or prefer some.
	Taints []string
}

// Matches is how many of a prompt's leading blocks each slot holds: Device the
// prefix on the device, Host and Disk how far the lower tiers extend it. A
// slice shorter than the slots means 0 for the rest.
type Matches struct {
	Device, Host, Disk []int32
	// Shared are the block positions found in the cache that all share, as
	// ascending ranges that do not overlap.
	Shared []Span
}

// Span is the half-open range of block positions [From, To).
type Span struct{ From, To int }

// Overrides are what one request may change; nil leaves the setting.
type Overrides = model.Overrides

// Preference is a soft taint: a positive weight draws the request to workers
// that carry the taint, a negative one pushes it away.
type Preference struct {
	Taint  string
	Weight float64
}

// Bound is where the conversation of a request is tied to.
type Bound struct {
	Target model.Target
	// Hard keeps the tie under load; a soft one gives way to overload and caps.
	Hard bool
}

// Request is what the cluster tier needs to know of one request.
type Request struct {
	ID           int64
	PromptTokens int
	// Blocks are the chain hashes of the prompt's full blocks, for the load and
	// for ties; nil when they are not known. They are copied where kept.
	Blocks  []uint64
	Matches Matches
	// ExpectedOutput is the output length that the client gave, 0 for none.
	ExpectedOutput int
	// ExpectedPrefill is how long the prefill should take, used with
	// router_prefill_load_model aic; 0 when there is no estimate.
	ExpectedPrefill time.Duration

	// Explicit is the worker, or the worker and rank, that the request demands.
	Explicit *model.Target
	// Bound is the binding or pin of its conversation. It stands above Explicit
	// and takes draining targets.
	Bound *Bound
	// Allowed are the only workers that may be chosen; empty for all.
	Allowed []string
	// Only are the workers that may be chosen, by number (Router.Number); nil for
	// all. It is Allowed for callers that ask often.
	Only []bool
	// Exclude are targets that were tried in vain and must not be chosen again;
	// one with NoRank stands for its worker. A binding to one is passed over.
	Exclude []model.Target
	// Required taints must all be on the worker.
	Required []string
	Prefer   []Preference

	Overrides *Overrides
}

// Choice is the answer to a Request.
type Choice struct {
	// Target has NoRank in the modes that choose a worker only: the engine
	// picks the rank, and unset must never become 0.
	Target model.Target
	// Slot is the chosen rank's number, or NoRankSlot of the worker.
	Slot int32
	By   string // model.By…
	Tie  model.Tie
	Tied int // candidates of equal cost, the chosen one included
	// Cost is the chosen one's; RunnerUp the next best slot, -1 for none, and
	// Margin what it costs more. Modes kv and lockstep only.
	Cost     float64
	RunnerUp int32
	Margin   float64
	// CachedTokens are expected in the target's caches, Reachable is the most
	// that any living target holds. LostTo says why less was taken.
	CachedTokens int
	Reachable    int
	LostTo       string // Lost…, empty when nothing was lost
	// Eligible counts ranks that could be chosen.
	Eligible int
	// BoundGone says that the binding's target is not there any more: forget
	// it. The choice was made afresh.
	BoundGone bool
	// Conflict says that Explicit asked for another target than the binding.
	Conflict bool

	config Config
	worker int32
}

// What a longer match was given up for.
const (
	LostLoad        = "load"        // another target was cheaper
	LostTie         = "tie"         // equal cost
	LostTemperature = "temperature" // drawn by probability
	LostMode        = "mode"        // the mode does not look at caches
	LostCap         = "cap"         // it is at its hard cap or overloaded
	LostPin         = "pin"         // the binding or the request named the target
	LostFilter      = "filter"      // it is draining, blocked or not allowed
)
