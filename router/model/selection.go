package model

// How the cluster tier breaks ties, beside TieNone.
const (
	TieReservoir Tie = "reservoir"    // equal cost: one at random, each as likely
	TiePrefix    Tie = "prefix"       // equal cost: where the prefix was last sent to
	TieIdle      Tie = "longest_idle" // equal cost: longest without new work
)

// How a selection was made, beside the modes' own rule.
const (
	ByCost        = "cost"        // lowest cost
	ByTemperature = "temperature" // drawn by probability
	ByBinding     = "binding"     // the conversation is bound there
	ByRequired    = "required"    // the request named the rank
	ByRotation    = "rotation"
	ByChance      = "chance"
	ByLoad        = "load"        // fewest in flight for each eligible rank
	ByTwo         = "two_choices" // the less loaded of two drawn
)

// ScoreTerms is one candidate's cost, term by term. Blocks are KV blocks, all
// loads are after the rank's weight. In mode kv Cost is in blocks, in lockstep
// in tokens.
type ScoreTerms struct {
	// Device, Host, Disk are matched blocks (a prefix and its extensions),
	// Shared those beyond the device match in a shared cache.
	Device int `json:"device"`
	Host   int `json:"host,omitempty"`
	Disk   int `json:"disk,omitempty"`
	Shared int `json:"shared,omitempty"`
	// OnWay are leading blocks that open requests have or will bring there.
	OnWay int `json:"on_way,omitempty"`
	// Overlap is the effective overlap in blocks, CachedTokens that in tokens.
	Overlap      float64 `json:"overlap"`
	CachedTokens int     `json:"cached"`
	// ActiveTokens are booked prefill tokens (Dynamo's A), Requests the active
	// requests (Q), DecodeBlocks the potential decode blocks (D).
	ActiveTokens float64 `json:"active_tokens"`
	Requests     float64 `json:"requests"`
	DecodeBlocks float64 `json:"decode_blocks"`
	// RawPrefillBlocks are before the credit, Decay fades the device credit,
	// CreditBlocks is what caches take off, Prefill the term that remains,
	// Active q·Q. Taint multiplies the sum, 1 for none. Mode kv only.
	RawPrefillBlocks float64 `json:"raw_prefill_blocks"`
	Decay            float64 `json:"decay"`
	CreditBlocks     float64 `json:"credit_blocks"`
	Prefill          float64 `json:"prefill"`
	Active           float64 `json:"active"`
	Taint            float64 `json:"taint"`
	// Recent are prompt tokens sent there lately, where they have a price, and
	// RecentTerm is that price, in the cost's unit.
	Recent     float64 `json:"recent,omitempty"`
	RecentTerm float64 `json:"recent_term,omitempty"`
	// New are tokens to prefill here after the match and what is on its way,
	// WorkPrice the price of each. Pending are those still to be prefilled on
	// the rank, Rest what the step that runs leaves of them, HighestRest the
	// most that it leaves on a rank of the worker, Step the most that it does on
	// one. Chunk is what a rank prefills in one step at most, Wait the length of
	// the steps until the first token, Rise how far New would lift HighestRest,
	// Waiting the requests of the worker without a first token, at most 16. Held are the tokens of all its requests,
	// whole, HighestHeld those of the worker's fullest rank, FullestAfter what
	// the fullest would hold with this prompt, HeldTerm the price of that. New,
	// Rise, Wait, FullestAfter and HeldTerm are of mode lockstep only.
	New          float64 `json:"new"`
	WorkPrice    float64 `json:"work_price,omitempty"`
	Pending      float64 `json:"pending"`
	Rest         float64 `json:"rest"`
	HighestRest  float64 `json:"highest_rest"`
	Step         float64 `json:"step"`
	Chunk        float64 `json:"chunk"`
	Wait         float64 `json:"wait"`
	Rise         float64 `json:"rise"`
	Waiting      float64 `json:"waiting"`
	Held         float64 `json:"held"`
	HighestHeld  float64 `json:"highest_held"`
	FullestAfter float64 `json:"fullest_after"`
	HeldTerm     float64 `json:"held_term"`
	Cost         float64 `json:"cost"`
}

// ScoredTarget is one target as the cluster tier saw it for one request.
type ScoredTarget struct {
	Target Target `json:"target"`
	ScoreTerms
	// Probability is the chance that it had at this temperature.
	Probability float64 `json:"probability"`
	// Excluded says in a few words why it could not be chosen, empty when it
	// could; its terms are zero then, for nothing of it was looked at.
	Excluded string `json:"excluded,omitempty"`
}

// Selection is the cluster tier's record of one request, made only when
// recording is on.
type Selection struct {
	Request int64         `json:"request"`
	Mode    RouterMode    `json:"mode"`
	Config  ClusterConfig `json:"config"` // with the request's overrides
	// BlockTokens and PromptTokens are what the cost was computed with, Blocks
	// the prompt's blocks, the last one counted whole.
	BlockTokens  int `json:"block_tokens"`
	PromptTokens int `json:"prompt"`
	Blocks       int `json:"blocks"`
	// MinActiveTokens is the least booked prefill of any candidate.
	MinActiveTokens float64 `json:"min_active_tokens"`
	// MeanPending is what the candidates have to prefill, MeanRecent what was
	// sent to them lately, on average, in tokens.
	MeanPending float64 `json:"mean_pending"`
	MeanRecent  float64 `json:"mean_recent,omitempty"`
	Chosen      Target  `json:"chosen"`
	By          string  `json:"by"`
	Tie         Tie     `json:"tie,omitempty"`
	Tied        int     `json:"tied,omitempty"` // candidates of equal cost, the chosen one included
	Draw        Maybe   `json:"draw"`           // the random number that a temperature used
	RunnerUp    Target  `json:"runner_up"`      // the next best, NoRank for none
	Margin      Maybe   `json:"margin"`         // its cost over the chosen one's
	Eligible    int     `json:"eligible"`
	// Candidates are ordered by target slot; LeftOut counts those cut for size.
	Candidates []ScoredTarget `json:"candidates"`
	LeftOut    int            `json:"left_out,omitempty"`
}
