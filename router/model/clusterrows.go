package model

// clusterRows is the table behind ClusterFields.
func clusterRows() []clusterField {
	return append(append(costRows(), trackRows()...), limitRows()...)
}

func num(name, label, def string, lo, hi float64, modes []RouterMode, help string, at func(*ClusterConfig) any) clusterField {
	return clusterField{Field{Name: name, Label: label, Kind: KindFloat, Min: lo, Max: hi, Default: def, Modes: modes, Help: help}, at}
}

func whole(name, label, def string, lo, hi float64, modes []RouterMode, help string, at func(*ClusterConfig) any) clusterField {
	r := num(name, label, def, lo, hi, modes, help, at)
	r.Kind, r.StepSmall, r.StepLarge = KindInt, 1, 64
	return r
}

func toggle(name, label, def string, modes []RouterMode, help string, at func(*ClusterConfig) any) clusterField {
	return clusterField{Field{Name: name, Label: label, Kind: KindBool, Default: def, Modes: modes, Help: help}, at}
}

func choice(name, label string, options []string, modes []RouterMode, help string, at func(*ClusterConfig) any) clusterField {
	return clusterField{Field{Name: name, Label: label, Kind: KindChoice, Default: options[0], Options: options, Modes: modes, Help: help}, at}
}

// optional makes r one that can be unset, and is by default.
func optional(r clusterField) clusterField {
	r.Optional = true
	return r
}

func scoredModes() []RouterMode { return []RouterMode{ModeKV, ModeLockstep} }

func costRows() []clusterField {
	kv, lock, scored := []RouterMode{ModeKV}, []RouterMode{ModeLockstep}, scoredModes()
	return []clusterField{
		num("router_prefill_load_scale", "prefill scale P", "1", 0, 1024, kv, "weight of prefill work against decode blocks in the cost", func(c *ClusterConfig) any { return &c.PrefillLoadScale }),
		num("router_kv_overlap_score_credit", "overlap credit", "1", 0, 16, kv, "how much a block found in a cache takes off the prefill work; 0 ignores caches", func(c *ClusterConfig) any { return &c.KVOverlapScoreCredit }),
		num("router_kv_overlap_score_credit_decay", "credit decay", "0", 0, 64, kv, "how fast the credit fades on a target with more prefill work than the idlest", func(c *ClusterConfig) any { return &c.KVOverlapScoreCreditDecay }),
		num("router_decode_active_request_weight", "request weight", "0", 0, 1024, kv, "blocks that each active request adds to the cost", func(c *ClusterConfig) any { return &c.DecodeActiveRequestWeight }),
		num("lockstep_weight", "lockstep λ", "0.3", 0, 64, lock, "price of a token by which the worker's longest prefill backlog would rise, for each request that waits there", func(c *ClusterConfig) any { return &c.LockstepWeight }),
		num("work_load_tokens", "work load χ", "3600", 0, 1<<40, lock, "mean prefill backlog of a rank at which a token of new work costs twice; 0: always the same", func(c *ClusterConfig) any { return &c.WorkLoadTokens }),
		num("wait_weight", "wait ω", "1", 0, 64, lock, "price of a token of the steps that the worker takes until the first token", func(c *ClusterConfig) any { return &c.WaitWeight }),
		num("pending_weight", "pending μ", "0", 0, 16, lock, "price of a token still to be prefilled on the rank", func(c *ClusterConfig) any { return &c.PendingWeight }),
		num("lockstep_decode_weight", "decode δ", "0.02", 0, 16, lock, "price of a token that the worker's fullest rank would hold, for every request whole", func(c *ClusterConfig) any { return &c.LockstepDecodeWeight }),
		num("recent_weight", "recent ρ", "0", 0, 64, scored, "price of prompt tokens sent to the rank lately above the mean of all; shares work out among ranks that are idle between requests", func(c *ClusterConfig) any { return &c.RecentWeight }),
		num("recent_secs", "recent time", "3600", 1, 86400, scored, "seconds in which what was sent counts e times less", func(c *ClusterConfig) any { return &c.RecentSecs }),
		num("router_temperature", "temperature", "0", 0, 100, scored, "0 takes the cheapest; above, cheaper targets are only likelier", func(c *ClusterConfig) any { return &c.Temperature }),
		num("router_host_cache_hit_weight", "host hit weight", "0.75", 0, 1, scored, "worth of a block in host memory, as a share of one on the device", func(c *ClusterConfig) any { return &c.HostCacheHitWeight }),
		num("router_disk_cache_hit_weight", "disk hit weight", "0.25", 0, 1, scored, "worth of a block on disk or in an external store", func(c *ClusterConfig) any { return &c.DiskCacheHitWeight }),
		num("shared_cache_multiplier", "shared hit weight", "0.5", 0, 1, kv, "worth of a block in a cache that all share; needs shared_cache_type", func(c *ClusterConfig) any { return &c.SharedCacheMultiplier }),
		choice("shared_cache_type", "shared cache", []string{SharedCacheNone, SharedCacheHiCache}, kv, "the cache that all targets share", func(c *ClusterConfig) any { return &c.SharedCacheType }),
	}
}

func trackRows() []clusterField {
	scored := scoredModes()
	return []clusterField{
		toggle("router_track_active_blocks", "track blocks", "true", scored, "book the blocks of active requests", func(c *ClusterConfig) any { return &c.TrackActiveBlocks }),
		toggle("router_track_output_blocks", "track output", "false", scored, "book blocks as output grows; needs router_track_active_blocks", func(c *ClusterConfig) any { return &c.TrackOutputBlocks }),
		toggle("router_assume_kv_reuse", "assume reuse", "true", scored, "count blocks that active requests share once", func(c *ClusterConfig) any { return &c.AssumeKVReuse }),
		toggle("router_track_prefill_tokens", "track prefill", "true", scored, "book prompt tokens until the first token comes", func(c *ClusterConfig) any { return &c.TrackPrefillTokens }),
		choice("router_prefill_load_model", "prefill model", []string{PrefillModelNone, PrefillModelAIC}, scored, "let the oldest booked prefill shrink over its expected duration", func(c *ClusterConfig) any { return &c.PrefillLoadModel }),
		toggle("router_kv_events", "kv events", "true", scored, "believe the engines' events; off remembers what was routed", func(c *ClusterConfig) any { return &c.KVEvents }),
		optional(num("router_predicted_ttl_secs", "predicted ttl", unsetText, 0.001, 86400, scored, "seconds that a routed prompt counts as cached before an event says so", func(c *ClusterConfig) any { return &c.PredictedTTLSecs })),
		num("router_ttl_secs", "approximate ttl", "120", 0.001, 86400, scored, "seconds that a routed block is believed cached without events", func(c *ClusterConfig) any { return &c.TTLSecs }),
		choice("router_approximate_cache_policy", "approximate", []string{ApproxTTL, ApproxLRU}, scored, "how blocks of an engine without events are forgotten", func(c *ClusterConfig) any { return &c.ApproximateCachePolicy }),
	}
}

func limitRows() []clusterField {
	scored := scoredModes()
	filtered := append(scoredModes(), ModeRandom, ModePowerOfTwo)
	return []clusterField{
		optional(num("router_queue_threshold", "queue threshold", unsetText, 0, 1024, scored, "a rank is busy above this multiple of max_num_batched_tokens; all busy: queue", func(c *ClusterConfig) any { return &c.QueueThreshold })),
		optional(whole("router_queue_threshold_tokens", "queue tokens", unsetText, 0, 1<<40, scored, "a rank is busy above this many booked prefill tokens; all busy: queue", func(c *ClusterConfig) any { return &c.QueueThresholdTokens })),
		num("busy_worker_ratio", "busy ratio", "1", 0.01, 1, scored, "share of ranks that must be busy before requests queue", func(c *ClusterConfig) any { return &c.BusyWorkerRatio }),
		choice("router_queue_policy", "queue policy", []string{QueueFCFS, QueueWSPT}, scored, "order of the queue: arrival, or the shortest uncached prompt first", func(c *ClusterConfig) any { return &c.QueuePolicy }),
		whole("router_queue_max_requests", "queue length", "1024", 1, 1<<20, scored, "requests that may wait for each worker before one more is refused", func(c *ClusterConfig) any { return &c.QueueMaxRequests }),
		whole("router_queue_max_tokens", "queue max tokens", "67108864", 1, 1<<40, scored, "prompt tokens that may wait for each worker before one more request is refused", func(c *ClusterConfig) any { return &c.QueueMaxTokens }),
		num("router_overlap_refresh_after_secs", "overlap refresh", "10", 0, 3600, scored, "seconds in the queue after which the match is looked up again; 0 never", func(c *ClusterConfig) any { return &c.OverlapRefreshAfterSecs }),
		optional(num("active_decode_blocks_threshold", "overload blocks", unsetText, 0, 1, filtered, "a rank is overloaded above this share of its KV blocks", func(c *ClusterConfig) any { return &c.ActiveDecodeBlocksThreshold })),
		optional(whole("active_prefill_tokens_threshold", "overload tokens", unsetText, 0, 1<<40, filtered, "a rank is overloaded above this many booked prefill tokens", func(c *ClusterConfig) any { return &c.ActivePrefillTokensThreshold })),
		optional(num("active_prefill_tokens_threshold_frac", "overload share", unsetText, 0, 1024, filtered, "a rank is overloaded above this multiple of max_num_batched_tokens", func(c *ClusterConfig) any { return &c.ActivePrefillTokensThresholdFrac })),
		optional(num("router_session_affinity_ttl_secs", "affinity ttl", "1800", 1, 31536000, scored, "seconds that an idle conversation stays bound; none turns affinity off", func(c *ClusterConfig) any { return &c.SessionAffinityTTLSecs })),
		choice("router_session_affinity_mode", "affinity mode", []string{AffinityHard, AffinitySoft}, scored, "hard keeps the binding under load, soft lets load override it", func(c *ClusterConfig) any { return &c.SessionAffinityMode }),
		num("phantom_after_secs", "phantom after", "300", 1, 86400, scored, "seconds without a sign of life after which booked load is shown as phantom", func(c *ClusterConfig) any { return &c.PhantomAfterSecs }),
		num("booking_expiry_secs", "booking expiry", "3600", 1, 604800, scored, "seconds without a sign of life after which booked load is dropped", func(c *ClusterConfig) any { return &c.BookingExpirySecs }),
	}
}
