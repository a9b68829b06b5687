package model

import "time"

// Phase is the step of the rank router that placed a request.
type Phase string

// The phases, in the order of precedence. Operator and bound placements are
// the live router's; the rest are TensorRT-LLM's own steps.
const (
	PhaseOperator Phase = "operator" // an operator's pin
	PhaseBound    Phase = "bound"    // a binding made by a migration, outside the conversation policy
	PhaseSteered  Phase = "steered"  // the cluster tier chose the rank
	PhasePinned   Phase = "pinned"   // conversation router: the key is in the map and its rank has room
	PhaseExplicit Phase = "explicit" // the client asked for this rank
	PhaseWarmup   Phase = "warmup"   // KV-aware: first request of a cold rank
	PhaseScored   Phase = "scored"   // KV-aware: lowest score
	PhaseBalanced Phase = "balanced" // default router: lightest rank by tokens
	PhasePlaced   Phase = "placed"   // conversation router: a new conversation, placed by policy
	PhaseOverflow Phase = "overflow" // conversation router: the pinned rank is at the hard cap
	PhaseEngine   Phase = "engine"   // the worker's engine picks the rank itself
	PhaseUnplaced Phase = "unplaced" // no eligible rank had room: the request waits
)

// Tie says how a choice among equal candidates was made.
type Tie string

// How ties are broken. TieNone means that one candidate was best.
const (
	TieNone    Tie = ""
	TieTokens  Tie = "tokens"  // equal score, fewer tokens
	TieShuffle Tie = "shuffle" // equal score and tokens: the shuffle seeded by the request id
	TieCount   Tie = "count"   // equal tokens, fewer requests
	TieCursor  Tie = "cursor"  // equal load and count: next after the cursor
	TieIndex   Tie = "index"   // equal in all: the lowest rank
)

// Candidate is one rank as the engine tier saw it for one request.
type Candidate struct {
	Rank int `json:"rank"`
	// Count and Tokens are the load that was compared, after weights.
	Count  float64 `json:"count"`
	Tokens float64 `json:"tokens"`
	// MatchTokens is the prefix that the rank holds, raw.
	MatchTokens int `json:"match"`
	// PrefillTokens is what the score charges for prefill: prompt minus match
	// when the gate is open, the whole prompt when it is shut.
	PrefillTokens int `json:"prefill"`
	// LoadTerm is β·((tokens ÷ denom)·n), Score the sum; both unknown where
	// the phase compares no score.
	LoadTerm Maybe `json:"load_term"`
	Score    Maybe `json:"score"`
	// Excluded says in a word or two why the rank could not be chosen: "soft
	// cap", "hard cap", "draining", "weight 0". Empty: it was eligible.
	Excluded string `json:"excluded,omitempty"`
}

// Placement is the engine tier's record of one request: everything a screen
// needs to explain the choice. It is made only when recording is on.
type Placement struct {
	Request      int64   `json:"request"`
	Rank         int     `json:"rank"`
	Phase        Phase   `json:"phase"`
	PromptTokens int     `json:"prompt"`
	MatchTokens  int     `json:"match"`
	AddedTokens  float64 `json:"added"` // what the placement added to the rank's load
	// Expected is the soft cap of the call, HardCap max_num_active_requests.
	Expected int `json:"expected"`
	HardCap  int `json:"hard_cap"`
	// GateOpen says that the best match exceeded the threshold (KV-aware only);
	// HitRate is that best match over the prompt, unknown elsewhere.
	GateOpen bool  `json:"gate_open"`
	HitRate  Maybe `json:"hit_rate"`
	// Denom normalised the load term, unknown where none was computed.
	Denom Maybe `json:"denom"`
	Tie   Tie   `json:"tie,omitempty"`
	Tied  []int `json:"tied,omitempty"`
	// Candidates are ordered by rank. LeftOut counts those cut off for size.
	Candidates []Candidate `json:"candidates,omitempty"`
	LeftOut    int         `json:"left_out,omitempty"`
}

// Decision is one routed request as the live router records it.
type Decision struct {
	// ID counts decisions from 1 without holes.
	ID     uint64     `json:"id"`
	At     time.Time  `json:"at"`
	Conv   ConvKey    `json:"conv"`
	Target Target     `json:"target"`
	Policy Policy     `json:"policy"`
	Mode   RouterMode `json:"mode"`
	// Version is the settings version that the decision used.
	Version uint64 `json:"version"`
	// WorkerWhy is the cluster tier's reason for the worker, in a few words.
	WorkerWhy string `json:"worker_why"`
	// Why is the engine tier's reason, in a few words: "longest prefix",
	// "lightest", "operator pin (bob)".
	Why string `json:"why"`
	// RunnerUp is the next best rank, NoRank where there was no contest, and
	// Margin its score over the winner's.
	RunnerUp int   `json:"runner_up"`
	Margin   Maybe `json:"margin"`
	// Reachable is the best match that any rank of the worker held, in tokens.
	Reachable int `json:"reachable"`
	// Conflict names a wish that a stronger one overruled, empty when none was.
	Conflict string `json:"conflict,omitempty"`
	// TookNs is the time that routing took, in nanoseconds of the wall clock;
	// 0 when it was not timed.
	TookNs    int64     `json:"took_ns,omitempty"`
	Placement Placement `json:"placement"`
	// Selection is the cluster tier's record, nil where it compared no costs.
	Selection *Selection `json:"selection,omitempty"`
	// LostTo says why a longer match elsewhere was not taken (Lost…), empty when
	// nothing was lost.
	LostTo string `json:"lost_to,omitempty"`
}

// Settled is what became of a decision, sent when it is known.
type Settled struct {
	Decision     uint64 `json:"decision"`
	Ran          Target `json:"ran"`
	CachedTokens int    `json:"cached"`
	// CachedUnknown says that the engine did not report CachedTokens.
	CachedUnknown bool    `json:"cached_unknown,omitempty"`
	TTFTMs        Maybe   `json:"ttft_ms"`
	Outcome       Outcome `json:"outcome,omitempty"` // empty: first token came, still running
}
