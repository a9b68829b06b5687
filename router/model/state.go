package model

import "time"

// Availability is what a rank is willing to take.
type Availability string

// The availabilities an operator can give a rank.
const (
	Ready    Availability = "ready"
	Draining Availability = "drain" // no new conversations; bound ones stay
)

// Rank is one target as a screen shows it.
type Rank struct {
	Target       Target       `json:"target"`
	Availability Availability `json:"availability"`
	Weight       float64      `json:"weight"`
	// Down says that its engine does not answer: nothing goes there.
	Down bool `json:"down,omitempty"`
	// ReportedAt is when the engine last reported this rank; zero: never, and
	// then Active, Tokens, Queued and KV are not known.
	ReportedAt time.Time `json:"reported_at"`
	// Active requests of MaxActive (the hard cap), Tokens of their prompts as
	// the router counts them, PendingTokens still to be prefilled.
	Active    int `json:"active"`
	MaxActive int `json:"max_active"`
	Queued    int `json:"queued"`
	// QueuedUnknown says that the engine does not report what is queued.
	QueuedUnknown bool `json:"queued_unknown,omitempty"`
	Tokens        int  `json:"tokens"`
	PendingTokens int  `json:"pending_tokens"`
	KVUsedBlocks  int  `json:"kv_used_blocks"`
	KVTotalBlocks int  `json:"kv_total_blocks"`
	// InFlight is the router's own count of open requests booked here.
	InFlight int `json:"in_flight"`
	// Hit is the share of prompt tokens found in cache over the last minute of
	// router time, Reachable what the best rank would have found; unknown
	// before the first request.
	Hit       Maybe `json:"hit"`
	Reachable Maybe `json:"reachable"`
	// Pins are conversations bound here, OperatorPins those by hand.
	Pins         int    `json:"pins"`
	OperatorPins int    `json:"operator_pins"`
	Requests     uint64 `json:"requests"` // routed here since start
}

// Worker is one worker as a screen shows it.
type Worker struct {
	ID     string `json:"id"`
	Engine string `json:"engine"`
	Ranks  int    `json:"ranks"`
	// Waiting requests are at the worker without a rank yet.
	Waiting int `json:"waiting"`
	// SoftCap is the expected value of the last routed batch, 0 before one.
	SoftCap int `json:"soft_cap"`
	// Held counts steps in a row that the balance gate held prefill back.
	Held int `json:"held"`

	// Address is where the engine is, Steering how a rank is asked for, GlobalRank
	// the engine's number of rank 0; empty for a simulated one.
	Address    string   `json:"address,omitempty"`
	Steering   Steering `json:"steering,omitempty"`
	GlobalRank int      `json:"global_rank,omitempty"`
	Models     []string `json:"models,omitempty"`
	// JoinedAt is when the router first knew the worker, Restarts how often its
	// engine has begun anew since.
	JoinedAt time.Time `json:"joined_at,omitzero"`
	Restarts uint64    `json:"restarts,omitempty"`
	// Open are the requests that were sent to the worker and have not ended, those
	// included whose rank its engine picked and does not tell.
	Open int `json:"open,omitempty"`
	// Bound are the conversations that are held to the worker and to none of its
	// ranks: its engine picks those.
	Bound int `json:"bound,omitempty"`
	// Liveness says whether the engine answers, LivenessAt since when, LivenessWhy
	// why it does not.
	Liveness    Liveness  `json:"liveness,omitempty"`
	LivenessAt  time.Time `json:"liveness_at,omitzero"`
	LivenessWhy string    `json:"liveness_why,omitempty"`
	// Feeds are what comes from the engine: requests, metrics, kv events.
	Feeds []WorkerFeed `json:"feeds,omitempty"`
	// Capacity of one rank; 0 is not known.
	MaxActive   int `json:"max_active,omitempty"`
	KVBlocks    int `json:"kv_blocks,omitempty"`
	BlockTokens int `json:"block_tokens,omitempty"`
	// TTFTMsP50 and TTFTMsP99 are over the last ten seconds of router time.
	TTFTMsP50 Maybe `json:"ttft_ms_p50"`
	TTFTMsP99 Maybe `json:"ttft_ms_p99"`
	// Proofs say by route whether the engine used the rank that was asked for.
	Proofs []SteeringProof `json:"proofs,omitempty"`
}

// Liveness says whether an engine answers; it is apart from load: an idle
// engine is alive.
type Liveness string

// The states of an engine.
const (
	LiveUnknown Liveness = ""      // simulated, or not yet asked
	LiveUp      Liveness = "up"    // it answers
	LiveDown    Liveness = "down"  // it does not: out of rotation
	LiveParts   Liveness = "parts" // some of its ranks do not
)

// Names of a worker's feeds.
const (
	FeedRequests = "requests"
	FeedMetrics  = "metrics"
	FeedKVEvents = "kv events"
)

// WorkerFeed is one thing that an engine tells, and how fresh it is.
type WorkerFeed struct {
	Name string `json:"name"`
	// State is live, gap, silent, none, approximate, or stale for figures that
	// have not come for a while.
	State IndexFeed `json:"state"`
	// At is when it last told something, zero: never.
	At time.Time `json:"at,omitzero"`
	// Why is what went wrong last; it may hold foreign text.
	Why string `json:"why,omitempty"`
}

// FeedStale is a feed whose newest figures are too old to be shown as live.
const FeedStale IndexFeed = "stale"

// SteeringProof counts, for one route and channel of a worker, whether the
// engine used the rank that it was asked for.
type SteeringProof struct {
	Route   Route  `json:"route"`
	Channel string `json:"channel"` // what was sent: "header", "header+body", "port", …
	Asked   uint64 `json:"asked"`
	// Honoured and Ignored are proven; the rest of Asked is not known.
	Honoured uint64 `json:"honoured"`
	Ignored  uint64 `json:"ignored"`
	// Evidence is what the newest proof was: header, usage, events or loads.
	Evidence string    `json:"evidence,omitempty"`
	At       time.Time `json:"at,omitzero"` // of the newest proof
}

// PinKind is what holds a conversation to a rank.
type PinKind string

// The kinds of pin, weakest first.
const (
	PinNone     PinKind = ""         // nothing: the policy decides each turn
	PinAuto     PinKind = "auto"     // bound by the conversation policy
	PinMigrated PinKind = "migrated" // bound by an operator's migration
	PinOperator PinKind = "op"       // an operator's pin
)

// Conv is one conversation as a screen shows it.
type Conv struct {
	Key ConvKey `json:"key"`
	Pin PinKind `json:"pin,omitempty"`
	// Bound is where the pin or binding holds it, meaningful unless PinNone.
	Bound Target `json:"bound"`
	// By, PinnedAt, PinnedVersion and Reason describe an operator's pin or
	// migration.
	By            string    `json:"by,omitempty"`
	PinnedAt      time.Time `json:"pinned_at"`
	PinnedVersion uint64    `json:"pinned_version,omitempty"`
	Reason        string    `json:"reason,omitempty"`

	// Last is where the last turn ran, Moves how often that changed.
	Last    Target    `json:"last"`
	FirstAt time.Time `json:"first_at"`
	LastAt  time.Time `json:"last_at"` // arrival of the last turn
	Turns   int       `json:"turns"`
	Moves   int       `json:"moves"`
	Open    int       `json:"open"` // turns in flight
	// IdleSince is when the last open turn ended: a binding that a turn made runs
	// out router_session_affinity_ttl_secs later, in the modes that choose a rank.
	// Meaningful while Open is 0; zero before the first end.
	IdleSince time.Time `json:"idle_since,omitzero"`
	// PromptTokens and CachedTokens are of the last turn whose first token came.
	PromptTokens int `json:"prompt_tokens"`
	CachedTokens int `json:"cached_tokens"`
	// CachedUnknown says that its engine did not report CachedTokens.
	CachedUnknown bool `json:"cached_unknown,omitempty"`
	// Honoured counts turns that ran where the router said, Lost those that
	// did not.
	Honoured int `json:"honoured"`
	Lost     int `json:"lost"`
}

// Totals are the cluster's figures over the last ten seconds of router time
// where a window applies.
type Totals struct {
	RequestsPerSec Maybe `json:"requests_per_sec"`
	TTFTMsP50      Maybe `json:"ttft_ms_p50"`
	TTFTMsP99      Maybe `json:"ttft_ms_p99"`
	Hit            Maybe `json:"hit"`
	// Skew is busiest ÷ mean tokens over eligible ranks, the worst worker's.
	Skew         Maybe  `json:"skew"`
	SkewAt       Target `json:"skew_at"` // the busiest rank of that worker
	Queued       int    `json:"queued"`  // waiting at workers or for prefill
	Open         int    `json:"open"`    // requests in flight
	Convs        int    `json:"convs"`   // conversations known to the router, all of them
	Pins         int    `json:"pins"`
	OperatorPins int    `json:"operator_pins"`
	Decisions    uint64 `json:"decisions"`
	Keyless      uint64 `json:"keyless"`
	Conflicts    uint64 `json:"conflicts"`
	Unplaced     uint64 `json:"unplaced"` // times a request had to wait for room
	// InQueue is how many of the Queued wait in the cluster tier's queue; Refused
	// counts those that it turned away since the start.
	InQueue int     `json:"in_queue"`
	Refused Refused `json:"refused"`
}

// Refused counts requests that the cluster tier turned away, by reason.
type Refused struct {
	NoEligible uint64 `json:"no_eligible"` // every rank it could go to is closed or not allowed
	Overloaded uint64 `json:"overloaded"`  // every rank left is above an overload threshold
	QueueFull  uint64 `json:"queue_full"`
	NoRoom     uint64 `json:"no_room"`    // every rank is at its cap, and its caller did not wait
	LeftQueue  uint64 `json:"left_queue"` // its caller gave up waiting
	Other      uint64 `json:"other"`      // it named a worker or rank that cannot be
}

// Sum is all of them.
func (r Refused) Sum() uint64 {
	return r.NoEligible + r.Overloaded + r.QueueFull + r.NoRoom + r.LeftQueue + r.Other
}

// Source says where the traffic comes from.
type Source struct {
	Kind   string  `json:"kind"` // simulated, trace or live
	Name   string  `json:"name"`
	Speed  float64 `json:"speed"` // virtual seconds per second, 0 paused
	Done   bool    `json:"done"`  // the trace has ended
	Rows   int     `json:"rows"`  // requests sent so far
	Total  int     `json:"total"` // rows in all, 0 when endless
	BadRow int     `json:"bad_rows"`
}

// Revision is one accepted change of state.
type Revision struct {
	Version uint64    `json:"version"`
	At      time.Time `json:"at"`
	Actor   string    `json:"actor"`
	Verb    Verb      `json:"verb"`
	What    string    `json:"what"`
	Reason  string    `json:"reason,omitempty"`
	// Undoes is the version that this one took back, UndoneBy the one that took
	// this back; 0 for none.
	Undoes   uint64 `json:"undoes,omitempty"`
	UndoneBy uint64 `json:"undone_by,omitempty"`
}

// Event is something worth telling an operator.
type Event struct {
	ID      uint64    `json:"id"` // counts from 1 without holes
	At      time.Time `json:"at"`
	Level   string    `json:"level"` // info, warn or error
	Who     string    `json:"who"`
	What    string    `json:"what"`
	Version uint64    `json:"version,omitempty"`
	// Kind sorts events: operator, engine, index, router.
	Kind string `json:"kind,omitempty"`
	// Before, After and Reason describe an act, Command is its id.
	Before  string `json:"before,omitempty"`
	After   string `json:"after,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Command string `json:"command,omitempty"`
	// Target is the rank or worker that it concerns, nil for none.
	Target *Target `json:"target,omitempty"`
}

// Kinds of Event.
const (
	EventOperator = "operator" // an accepted or refused command
	EventEngine   = "engine"   // an engine came, went, restarted, ignored a rank
	EventIndex    = "index"    // KV events
	EventRouter   = "router"   // the router itself: refusals, bounds
)

// State is everything a screen needs, at one moment. Ranks are ordered by
// target, Convs by last activity, newest first, Revisions newest first.
// Once published a State and all it points to are never written again.
type State struct {
	At        time.Time  `json:"at"`
	Version   uint64     `json:"version"`
	Settings  Settings   `json:"settings"`
	Initial   Settings   `json:"initial"` // as the router started
	Totals    Totals     `json:"totals"`
	Source    Source     `json:"source"`
	Workers   []Worker   `json:"workers"`
	Ranks     []Rank     `json:"ranks"`
	Convs     []*Conv    `json:"convs"`
	Revisions []Revision `json:"revisions"`
	Events    []Event    `json:"events"`
	// Index is what is known of each rank's cache, ordered by target, empty where
	// no index is kept; IndexTotals is nil then. Findings are oldest first.
	Index       []IndexRank  `json:"index,omitempty"`
	IndexTotals *IndexTotals `json:"index_totals,omitempty"`
	Findings    []Finding    `json:"findings,omitempty"`
}

// Change is what differs from an earlier State, coalesced to the newest value
// of each object. Nil and empty mean unchanged.
type Change struct {
	At       time.Time `json:"at"`
	Version  uint64    `json:"version"`
	Settings *Settings `json:"settings,omitempty"`
	Totals   *Totals   `json:"totals,omitempty"`
	Source   *Source   `json:"source,omitempty"`
	Workers  []Worker  `json:"workers,omitempty"`
	Ranks    []Rank    `json:"ranks,omitempty"`
	Convs    []*Conv   `json:"convs,omitempty"`
	Gone     []ConvKey `json:"gone,omitempty"` // conversations no longer known
	// WorkersGone have left with their ranks, RanksGone are ranks that a worker
	// lost. They go before Workers and Ranks are put in.
	WorkersGone []string   `json:"workers_gone,omitempty"`
	RanksGone   []Target   `json:"ranks_gone,omitempty"`
	Revisions   []Revision `json:"revisions,omitempty"`
	Events      []Event    `json:"events,omitempty"`
	// Index holds the ranks whose figures changed; Findings replaces all of them
	// when FindingsChanged.
	Index           []IndexRank  `json:"index,omitempty"`
	IndexTotals     *IndexTotals `json:"index_totals,omitempty"`
	Findings        []Finding    `json:"findings,omitempty"`
	FindingsChanged bool         `json:"findings_changed,omitempty"`
	// Decisions are the newest; DecisionsLeftOut counts those between that were
	// not sent.
	Decisions        []*Decision `json:"decisions,omitempty"`
	DecisionsLeftOut uint64      `json:"decisions_left_out,omitempty"`
	Settled          []Settled   `json:"settled,omitempty"`
}

// Bounds of what a State carries.
const (
	MaxConvs     = 65536 // conversations that the router tracks
	MaxFeedConvs = 10000 // newest conversations that a State carries
	MaxRevisions = 256
	MaxEvents    = 256
	MaxDecisions = 4096
)
