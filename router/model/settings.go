package model

// Placement policies for new conversations, upstream's own words
// (kv_cache_routing_new_conv_placement).
const (
	PlaceRoundRobin  = "round_robin"
	PlaceLeastQueued = "least_queued"
	PlaceLeastTokens = "least_tokens"
)

// AttentionDpConfig is TensorRT-LLM's attention_dp_config under its own names
// (tensorrt_llm/llmapi/llm_args.py). No field has numeric bounds upstream; the
// clamps that its routers apply are applied where the field is used.
type AttentionDpConfig struct {
	EnableBalance     bool `json:"enable_balance" yaml:"enable_balance"`
	TimeoutIters      int  `json:"timeout_iters" yaml:"timeout_iters"`
	BatchingWaitIters int  `json:"batching_wait_iters" yaml:"batching_wait_iters"`

	EnableKVCacheAwareRouting          bool    `json:"enable_kv_cache_aware_routing" yaml:"enable_kv_cache_aware_routing"`
	KVCacheRoutingLoadBalanceWeight    float64 `json:"kv_cache_routing_load_balance_weight" yaml:"kv_cache_routing_load_balance_weight"`
	KVCacheRoutingMatchRateThreshold   float64 `json:"kv_cache_routing_match_rate_threshold" yaml:"kv_cache_routing_match_rate_threshold"`
	KVCacheRoutingFairShareMultiplier  float64 `json:"kv_cache_routing_fair_share_multiplier" yaml:"kv_cache_routing_fair_share_multiplier"`
	KVCacheRoutingColdStartWarmup      bool    `json:"kv_cache_routing_cold_start_warmup" yaml:"kv_cache_routing_cold_start_warmup"`
	KVCacheRoutingAccountForInTransfer bool    `json:"kv_cache_routing_account_for_in_transfer" yaml:"kv_cache_routing_account_for_in_transfer"`
	KVCacheRoutingConversationAffinity bool    `json:"kv_cache_routing_conversation_affinity" yaml:"kv_cache_routing_conversation_affinity"`
	KVCacheRoutingMaxSessions          int     `json:"kv_cache_routing_max_sessions" yaml:"kv_cache_routing_max_sessions"`
	KVCacheRoutingNewConvPlacement     string  `json:"kv_cache_routing_new_conv_placement" yaml:"kv_cache_routing_new_conv_placement"`
}

// DefaultAttentionDpConfig returns upstream's defaults.
func DefaultAttentionDpConfig() AttentionDpConfig {
	return AttentionDpConfig{
		TimeoutIters:                      50,
		BatchingWaitIters:                 10,
		KVCacheRoutingLoadBalanceWeight:   1,
		KVCacheRoutingMatchRateThreshold:  0.1,
		KVCacheRoutingFairShareMultiplier: 2,
		KVCacheRoutingMaxSessions:         65536,
		KVCacheRoutingNewConvPlacement:    PlaceRoundRobin,
	}
}

// Policy is which of TensorRT-LLM's three rank routers is in force.
type Policy string

// The engine tier's policies.
const (
	PolicyDefault      Policy = "default"
	PolicyKVAware      Policy = "kv_aware"
	PolicyConversation Policy = "conversation"
)

// Policy says which router upstream would build from c: conversation affinity
// wins over KV-aware routing, and the default router serves when both are off.
func (c AttentionDpConfig) Policy() Policy {
	switch {
	case c.KVCacheRoutingConversationAffinity:
		return PolicyConversation
	case c.EnableKVCacheAwareRouting:
		return PolicyKVAware
	default:
		return PolicyDefault
	}
}

// WithPolicy returns c with the two switches set so that Policy answers p.
func (c AttentionDpConfig) WithPolicy(p Policy) AttentionDpConfig {
	c.KVCacheRoutingConversationAffinity = p == PolicyConversation
	c.EnableKVCacheAwareRouting = p == PolicyKVAware
	return c
}

// RouterMode is how the cluster tier picks a worker.
type RouterMode string

// The cluster tier's modes. ModeKV and ModeLockstep choose a rank, the others
// a worker only.
const (
	ModeKV          RouterMode = "kv"       // Dynamo's cost
	ModeLockstep    RouterMode = "lockstep" // our cost: what a rank adds to the step of its worker
	ModeRoundRobin  RouterMode = "round_robin"
	ModeRandom      RouterMode = "random"
	ModeLeastLoaded RouterMode = "least_loaded"
	ModePowerOfTwo  RouterMode = "power_of_two"
	ModeDirect      RouterMode = "direct" // the request names its worker
)

// Rank weights: a rank of weight w is seen with its load divided by w; 0 takes
// no new work, 1 is upstream exactly.
const (
	MinWeight     = 0.0
	MaxWeight     = 2.0
	DefaultWeight = 1.0
)

// Weight is one rank's weight where it differs from DefaultWeight.
type Weight struct {
	Target Target  `json:"target"`
	Weight float64 `json:"weight"`
}

// Settings is everything an operator can set, as one document under one
// version number.
type Settings struct {
	RouterMode        RouterMode        `json:"router_mode"`
	AttentionDpConfig AttentionDpConfig `json:"attention_dp_config"`

	// MinGenerationRequests and LowOccupancyTimeoutIters are upstream's
	// environment knobs TLLM_ADP_BALANCE_MIN_GENERATION_REQUESTS and
	// TLLM_ADP_BALANCE_LOW_OCCUPANCY_TIMEOUT_ITERS; they act only when
	// enable_balance is on.
	MinGenerationRequests    int `json:"min_generation_requests"`
	LowOccupancyTimeoutIters int `json:"low_occupancy_timeout_iters"`

	// Weights holds the ranks whose weight is not 1, ordered by target.
	Weights []Weight `json:"weights,omitempty"`

	// ClusterConfig steers the modes kv and lockstep. A document that says nothing
	// of it (all zero) has the defaults: see Cluster. Its pointers are replaced,
	// never written through.
	ClusterConfig ClusterConfig `json:"cluster_config"`
}

// DefaultSettings returns upstream's defaults for both tiers.
func DefaultSettings() Settings {
	return Settings{
		RouterMode: ModeRoundRobin, AttentionDpConfig: DefaultAttentionDpConfig(), ClusterConfig: DefaultClusterConfig(),
	}
}

// WeightOf returns the weight of t, DefaultWeight where none is set.
func (s *Settings) WeightOf(t Target) float64 {
	for _, w := range s.Weights {
		if w.Target == t {
			return w.Weight
		}
	}
	return DefaultWeight
}

// Cluster is what the cluster tier works with: ClusterConfig, or the defaults
// where the document says nothing of it.
func (s *Settings) Cluster() ClusterConfig {
	if s.ClusterConfig == (ClusterConfig{}) {
		return DefaultClusterConfig()
	}
	return s.ClusterConfig
}
