package model

// Words of the cluster tier's choices.
const (
	SharedCacheNone    = "none"
	SharedCacheHiCache = "hicache"

	QueueFCFS = "fcfs" // first come, first served
	QueueWSPT = "wspt" // weighted shortest prefill first

	PrefillModelNone = "none" // booked prefill stays until the first token
	PrefillModelAIC  = "aic"  // the oldest booked prefill decays over its expected duration

	ApproxTTL = "ttl"
	ApproxLRU = "lru"

	AffinityHard = "hard"
	AffinitySoft = "soft"
)

// ClusterConfig is everything that the cluster tier can be told, Dynamo's
// parameters under Dynamo's names (dashes written as underscores) and our own
// after them. ClusterFields lists default, bounds and meaning of each.
type ClusterConfig struct {
	KVOverlapScoreCredit      float64  `json:"router_kv_overlap_score_credit" yaml:"router_kv_overlap_score_credit"`
	KVOverlapScoreCreditDecay float64  `json:"router_kv_overlap_score_credit_decay" yaml:"router_kv_overlap_score_credit_decay"`
	PrefillLoadScale          float64  `json:"router_prefill_load_scale" yaml:"router_prefill_load_scale"`
	DecodeActiveRequestWeight float64  `json:"router_decode_active_request_weight" yaml:"router_decode_active_request_weight"`
	HostCacheHitWeight        float64  `json:"router_host_cache_hit_weight" yaml:"router_host_cache_hit_weight"`
	DiskCacheHitWeight        float64  `json:"router_disk_cache_hit_weight" yaml:"router_disk_cache_hit_weight"`
	SharedCacheMultiplier     float64  `json:"shared_cache_multiplier" yaml:"shared_cache_multiplier"`
	SharedCacheType           string   `json:"shared_cache_type" yaml:"shared_cache_type"`
	Temperature               float64  `json:"router_temperature" yaml:"router_temperature"`
	KVEvents                  bool     `json:"router_kv_events" yaml:"router_kv_events"`
	PredictedTTLSecs          *float64 `json:"router_predicted_ttl_secs" yaml:"router_predicted_ttl_secs"`
	TTLSecs                   float64  `json:"router_ttl_secs" yaml:"router_ttl_secs"`
	ApproximateCachePolicy    string   `json:"router_approximate_cache_policy" yaml:"router_approximate_cache_policy"`
	TrackActiveBlocks         bool     `json:"router_track_active_blocks" yaml:"router_track_active_blocks"`
	TrackOutputBlocks         bool     `json:"router_track_output_blocks" yaml:"router_track_output_blocks"`
	AssumeKVReuse             bool     `json:"router_assume_kv_reuse" yaml:"router_assume_kv_reuse"`
	TrackPrefillTokens        bool     `json:"router_track_prefill_tokens" yaml:"router_track_prefill_tokens"`
	PrefillLoadModel          string   `json:"router_prefill_load_model" yaml:"router_prefill_load_model"`

	// The thresholds are nil when unset: off.
	QueueThreshold                   *float64 `json:"router_queue_threshold" yaml:"router_queue_threshold"`
	QueueThresholdTokens             *int     `json:"router_queue_threshold_tokens" yaml:"router_queue_threshold_tokens"`
	BusyWorkerRatio                  float64  `json:"busy_worker_ratio" yaml:"busy_worker_ratio"`
	QueuePolicy                      string   `json:"router_queue_policy" yaml:"router_queue_policy"`
	QueueMaxRequests                 int      `json:"router_queue_max_requests" yaml:"router_queue_max_requests"`
	QueueMaxTokens                   int      `json:"router_queue_max_tokens" yaml:"router_queue_max_tokens"`
	OverlapRefreshAfterSecs          float64  `json:"router_overlap_refresh_after_secs" yaml:"router_overlap_refresh_after_secs"`
	ActiveDecodeBlocksThreshold      *float64 `json:"active_decode_blocks_threshold" yaml:"active_decode_blocks_threshold"`
	ActivePrefillTokensThreshold     *int     `json:"active_prefill_tokens_threshold" yaml:"active_prefill_tokens_threshold"`
	ActivePrefillTokensThresholdFrac *float64 `json:"active_prefill_tokens_threshold_frac" yaml:"active_prefill_tokens_threshold_frac"`

	SessionAffinityTTLSecs *float64 `json:"router_session_affinity_ttl_secs" yaml:"router_session_affinity_ttl_secs"`
	SessionAffinityMode    string   `json:"router_session_affinity_mode" yaml:"router_session_affinity_mode"`

	// Our own: the lockstep cost in tokens, and when a booking counts as lost.
	LockstepWeight       float64 `json:"lockstep_weight" yaml:"lockstep_weight"`
	WorkLoadTokens       float64 `json:"work_load_tokens" yaml:"work_load_tokens"`
	WaitWeight           float64 `json:"wait_weight" yaml:"wait_weight"`
	PendingWeight        float64 `json:"pending_weight" yaml:"pending_weight"`
	RecentWeight         float64 `json:"recent_weight" yaml:"recent_weight"`
	RecentSecs           float64 `json:"recent_secs" yaml:"recent_secs"`
	LockstepDecodeWeight float64 `json:"lockstep_decode_weight" yaml:"lockstep_decode_weight"`
	PhantomAfterSecs     float64 `json:"phantom_after_secs" yaml:"phantom_after_secs"`
	BookingExpirySecs    float64 `json:"booking_expiry_secs" yaml:"booking_expiry_secs"`
}

// DefaultClusterConfig returns Dynamo's defaults, except that session affinity
// is on with 30 minutes (Dynamo leaves it off); our own terms have the values
// that ClusterFields documents.
func DefaultClusterConfig() ClusterConfig {
	ttl := 1800.0
	return ClusterConfig{
		KVOverlapScoreCredit: 1, PrefillLoadScale: 1,
		HostCacheHitWeight: 0.75, DiskCacheHitWeight: 0.25,
		SharedCacheMultiplier: 0.5, SharedCacheType: SharedCacheNone,
		KVEvents: true, TTLSecs: 120, ApproximateCachePolicy: ApproxTTL,
		TrackActiveBlocks: true, AssumeKVReuse: true, TrackPrefillTokens: true,
		PrefillLoadModel: PrefillModelNone,
		BusyWorkerRatio:  1, QueuePolicy: QueueFCFS, QueueMaxRequests: 1024, QueueMaxTokens: 1 << 26,
		OverlapRefreshAfterSecs: 10,
		SessionAffinityTTLSecs:  &ttl, SessionAffinityMode: AffinityHard,
		LockstepWeight: 0.3, RecentSecs: 3600, WorkLoadTokens: 3600, WaitWeight: 1, PendingWeight: 0, LockstepDecodeWeight: 0.02,
		PhantomAfterSecs: 300, BookingExpirySecs: 3600,
	}
}
