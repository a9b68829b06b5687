package model

// EngineKind is what serves the requests of a worker.
type EngineKind string

// The engines that adpdeck speaks to.
const (
	EngineVLLM   EngineKind = "vllm"
	EngineSGLang EngineKind = "sglang"
	EngineTRTLLM EngineKind = "trtllm" // trtllm-serve
	EngineDynamo EngineKind = "dynamo" // a Dynamo frontend
)

// Steering is how a worker is told which of its ranks to use.
type Steering string

// The ways to steer. SteerAuto is found from the engine's kind and addresses.
const (
	SteerAuto         Steering = ""
	SteerHeader       Steering = "header"       // X-data-parallel-rank, or Dynamo's own
	SteerBody         Steering = "body"         // a field of the request's body
	SteerHeaderBody   Steering = "header_body"  // both, where that does no harm
	SteerPort         Steering = "port"         // one address for each rank
	SteerConversation Steering = "conversation" // a stable id; the engine picks the rank
	SteerNone         Steering = "none"         // the engine picks the rank
)

// EnginePicks reports that the engine, not the router, picks the rank.
func (s Steering) EnginePicks() bool { return s == SteerConversation || s == SteerNone }

// RankNumbers is the numbering that a worker expects in a request.
type RankNumbers string

// The numberings: over all workers of its group, or from 0 inside the worker.
const (
	NumbersAuto   RankNumbers = "" // found from the engine's kind
	NumbersGlobal RankNumbers = "global"
	NumbersLocal  RankNumbers = "local"
)

// EngineSpec is one worker before real engines, as the settings file declares it.
type EngineSpec struct {
	// ID is the worker's name, never its position: pins name it.
	ID   string
	Kind EngineKind
	// Group names the workers that share one space of global ranks (the nodes of
	// one deployment); empty: the worker is alone. The ranges of a group begin
	// at 0 and have neither holes nor overlaps.
	Group string
	// URL is the base address for all ranks, RankURLs one for each by rank. One of
	// the two is set.
	URL      string
	RankURLs []string
	// StartRank is the global number of the worker's first rank. Ranks is their
	// number, 0 to ask the engine.
	StartRank, Ranks int
	Steering         Steering
	RankNumbers      RankNumbers
	// InstanceID is the id of a worker behind a Dynamo frontend, 0 for none. Its
	// range is above what a float holds.
	InstanceID uint64
	Events     EventSource
	// MetricsURL replaces the engine's own address for loads; empty: found.
	MetricsURL string
	// Models are the model names that the worker serves; empty: ask it.
	Models []string
	// APIKeyEnv names the environment variable that holds the engine's key.
	APIKeyEnv string
	// Capacity of one rank; 0: what the engine says, or not known.
	MaxNumActiveRequests, MaxBatchedTokens, KVBlocks, BlockTokens int
}

// EventSource is where a worker's KV events come from.
type EventSource struct {
	// Transport is zmq, http (trtllm's /kv_cache_events), nats or none; empty:
	// zmq where there is an endpoint, otherwise by the engine's kind.
	Transport string
	// Endpoint is the address of rank 0 of the group (tcp://host:port), further
	// ranks count the port up; RankEndpoints names one for each rank instead.
	Endpoint      string
	RankEndpoints []string
	// Bind is where this router listens for publishers that connect, as vLLM's do
	// where their endpoint has no wildcard: tcp://ADDRESS:PORT for rank 0 of the
	// group, * for all addresses; further ranks count the port up.
	Bind string
	// Loads are where a Dynamo event plane publishes loads: addresses over zmq,
	// subjects over nats. For vllm, the addresses of its forward pass metrics.
	Loads []string
	// Replay and RankReplays are the same for lost batches; empty: none.
	Replay      string
	RankReplays []string
	// Topic is the subscription, a NATS subject where the transport is nats.
	Topic string
}

// ServeSpec is what adpdeck serve needs beside the router's Settings.
type ServeSpec struct {
	Workers []EngineSpec
	Gateway GatewaySpec
	// FeedListen is the address of the feed for consoles.
	FeedListen string
}

// GatewaySpec is the HTTP front. Times are in seconds.
type GatewaySpec struct {
	Listen string
	// RequestTimeoutSecs is the longest a request may take, QueueTimeoutSecs the
	// longest it may wait for a rank; DrainSecs how long streams may go on after
	// SIGTERM.
	RequestTimeoutSecs, QueueTimeoutSecs, DrainSecs float64
	// TenantHeader names the header that holds the tenant; empty: the hash of the
	// API key is the tenant where TenantFromKey is set.
	TenantHeader  string
	TenantFromKey bool
	// DeriveConversation makes a conversation id where the client sends none.
	DeriveConversation bool
	// DecisionHeaders sends X-Adpdeck-Worker, -Rank and -Decision.
	DecisionHeaders bool
	// Retry sends a request once more, elsewhere, when its engine fails before
	// the first byte.
	Retry bool
	// Tokenize is engine (ask the engine's /tokenize), text (blocks of text, for
	// the approximate index only) or none.
	Tokenize string
}

// Route is what a client calls, for the table of what steering works where.
type Route string

// The routes that are carried.
const (
	RouteChat        Route = "chat"        // /v1/chat/completions
	RouteCompletions Route = "completions" // /v1/completions
	RouteResponses   Route = "responses"   // /v1/responses
	RouteEmbeddings  Route = "embeddings"  // /v1/embeddings
	RouteExternal    Route = "route"       // /v1/route: another gateway carries it
)

// RankReport is what an engine says of one rank; what it does not say is
// unknown, never 0.
type RankReport struct {
	Rank             int // inside the worker
	Running, Waiting Maybe
	// Tokens are held by its requests, PendingTokens of them still to be prefilled.
	Tokens, PendingTokens       Maybe
	KVUsedBlocks, KVTotalBlocks Maybe
	CacheHit                    Maybe // share, as the engine counts it
}

// Gap is a rank's wish for the event batches that it has missed.
type Gap struct {
	Target Target
	From   uint64 // number of the first
}
