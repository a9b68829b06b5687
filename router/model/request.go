package model

// Request is what both tiers know of one request when it arrives.
type Request struct {
	// ID is the engine's request id (0 … 2^63-1). TensorRT-LLM seeds the tie
	// shuffle with it, so it is part of the decision.
	ID int64
	// Conv names the conversation; keyless requests are routed by policy alone.
	Conv ConvKey
	// PromptTokens is the length of the whole prompt.
	PromptTokens int
	// Lead is the first 64 token ids, or all of them when there are fewer: the
	// KV-aware router orders a batch by it.
	Lead []int32
	// Explicit is the rank that the client asked for, nil when it asked for
	// none. An explicit worker with NoRank asks for a worker only.
	Explicit *Target
	// Relax is upstream's attention_dp_relax for an explicit rank: false holds
	// the request in the queue until its rank has room.
	Relax bool
	// Children counts further return sequences beside the first.
	Children int

	// Locals are the local hashes of the prompt's full blocks (prefix.Local), of
	// BlockTokens tokens each; nil when they are not known. The router chains
	// them and asks its index who holds how much; it needs no token ids then.
	// They are hashed with LoRA and Salt in their seed.
	Locals      []uint64
	BlockTokens int
	// LoRA is the adapter's name, Salt keeps caches of equal tokens apart; both
	// may be empty.
	LoRA, Salt string
	// Priority moves a request ahead in the cluster tier's queue: seconds under
	// fcfs, weight under wspt; below 0 counts as 0. StrictPriority goes before
	// all else there, the larger first.
	Priority       int
	StrictPriority uint32
	// Overrides change the cluster tier's settings for this request alone, nil
	// for none.
	Overrides *Overrides
	// ExpectedOutput is the output length in tokens that the client gave, 0 for
	// none.
	ExpectedOutput int

	// Route is what the client called, Channel how its engine will be told the
	// rank; both only name the proof of steering.
	Route   Route
	Channel string
	// Exclude are targets that must not be chosen: the one that has just failed.
	// One with NoRank stands for the whole worker.
	Exclude []Target
	// Guessed says that Locals come from text, not from the engine's token ids:
	// they may be compared with what was routed, not with engines' events.
	Guessed bool
}

// Overrides are the settings of the cluster tier that one request may change
// for itself (Dynamo's router_config_override); nil leaves the setting. Numbers
// must be finite and 0 or more.
type Overrides struct {
	KVOverlapScoreCredit  *float64
	PrefillLoadScale      *float64
	Temperature           *float64
	SharedCacheMultiplier *float64
	AssumeKVReuse         *bool
	TrackPrefillTokens    *bool
}

// Outcome says how a request ended.
type Outcome string

// Every way a request can end; each frees its booking exactly once.
const (
	OutcomeOK        Outcome = "ok"
	OutcomeError     Outcome = "error"
	OutcomeCancelled Outcome = "cancelled"
	OutcomePanic     Outcome = "panic"
)

// Usage is what the engine measured of a request when its first token came.
type Usage struct {
	// Ran is the rank that the engine used.
	Ran Target
	// CachedTokens of the prompt were found in that rank's cache.
	CachedTokens int
	// TTFTMs is the time from arrival to the first token, in milliseconds.
	TTFTMs float64
	// CachedUnknown says that the engine did not report CachedTokens.
	CachedUnknown bool
	// Evidence is how Ran is known: header or usage; empty: from the simulator.
	Evidence string
}

// RankState is what a rank contributes to the all-gather before a batch is
// routed (adp.md section 2). Counts and tokens are of active requests, prompt
// tokens only; what exactly they hold depends on the policy and is the
// engine's to compute.
type RankState struct {
	Rank              int
	NumActiveRequests int
	NumActiveTokens   int
}

// RankLoad is what an engine reports of one rank beside its RankState. The
// engine tier reads none of it; of the cluster tier lockstep reads what is
// pending and the threshold on KV blocks those in use.
type RankLoad struct {
	Rank int
	// Queued requests are assigned to the rank and have not begun prefill.
	Queued int
	// PendingTokens are prompt tokens still to be prefilled.
	PendingTokens int
	// KVUsedBlocks and KVTotalBlocks describe the KV cache; a total of 0 means
	// that the engine did not say.
	KVUsedBlocks, KVTotalBlocks int
}

// WorkerSpec is one worker as the settings or the simulator declare it.
type WorkerSpec struct {
	// ID is the worker's name, never its position: pins name it.
	ID string
	// Ranks is the number of DP ranks (attention_dp_size).
	Ranks int
	// MaxNumActiveRequests is the hard cap of one rank.
	MaxNumActiveRequests int
	// Engine is the kind of engine, for the screen: sim, trtllm, vllm, …
	Engine string
	// KVEvents says that the ranks publish KV-cache events. What a rank holds
	// that does not is guessed from what was routed to it.
	KVEvents bool
	// KVReplay says that event batches that were missed can be asked for.
	KVReplay bool
	// BlockTokens is the size of a KV block, 0 when it is not known; all workers
	// have the same one.
	BlockTokens int
	// StartRank is the engine's number of the worker's rank 0 in its events:
	// engines count ranks over all nodes, the router inside a worker.
	StartRank int
	// KVBlocks is one rank's KV capacity, MaxBatchedTokens what one step of it
	// takes (max_num_batched_tokens); 0 when not known.
	KVBlocks, MaxBatchedTokens int
	// Address and Steering are for the screen; where the engine picks the rank
	// (Steering.EnginePicks) requests are sent without one.
	Address  string
	Steering Steering
	// Models are the models that it serves; empty: all. A request goes only to
	// workers that serve its model.
	Models []string
}
