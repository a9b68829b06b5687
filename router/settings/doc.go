// Package settings reads and writes the settings file: YAML with
// TensorRT-LLM's enable_attention_dp and attention_dp_config under their own
// names, Dynamo's parameters of the cluster tier as cluster_config, and adpdeck's
// router_mode, min_generation_requests, low_occupancy_timeout_iters and weights
// beside them.
//
//	enable_attention_dp: true
//	attention_dp_config:
//	  enable_kv_cache_aware_routing: true
//	  kv_cache_routing_load_balance_weight: 2.0
//	router_mode: kv
//	cluster_config:
//	  router_prefill_load_scale: 16.0
//	  router_queue_threshold: null
//	weights:
//	  w0/3: 0.8
//
// Reading is strict, with upstream's rules: an unknown key, an unknown
// placement, a value of the wrong type and (with enable_balance on) a negative
// iteration count are errors that name file, line, column and what is allowed.
// Upstream's lax conversions are taken too: "50" and 50.0 are whole numbers,
// "yes", "on" and 1 are true. Numbers of
// attention_dp_config have no bounds, as upstream; those of cluster_config have
// the bounds of package model, and null or none unsets an optional one. Anchors, aliases, tags, merge keys and
// several documents in one file are not taken.
//
// Beside these a file for adpdeck serve has workers (the engines), gateway and
// feed; Document.Serve returns them. ParseEngineArgs reads TensorRT-LLM's own
// file and passes over what does not concern a router.
//
//	workers:
//	  - id: w0
//	    kind: vllm
//	    url: http://10.0.0.1:8000
//	    ranks: 8
//	    events: {endpoint: tcp://10.0.0.1:5557, replay: tcp://10.0.0.1:5657}
//	gateway: {listen: 0.0.0.0:8800, derive_conversation: true}
//	feed: {listen: 127.0.0.1:8801}
//
// ParseList reads a list of settings, each with a name, for comparisons, as
// strictly.
//
// A Document keeps its text. What was read is written back byte for byte, and
// a changed value replaces its own scalar: comments, order and spacing stay.
package settings
