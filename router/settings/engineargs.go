package settings

import (
	"math"

	"github.com/goccy/go-yaml/ast"

	"adpdeck/router/model"
)

// EngineArgs is what TensorRT-LLM's own file (--extra_llm_api_options) says of
// interest to a router; 0 where it does not say.
type EngineArgs struct {
	// Settings has the file's attention_dp_config; AttentionDP is its
	// enable_attention_dp, false by default as upstream's.
	Settings    model.Settings
	AttentionDP bool
	// TensorParallelSize is the number of ranks where AttentionDP is on.
	TensorParallelSize int
	// MaxBatchSize requests run on a rank, MaxNumTokens fit a step of it.
	MaxBatchSize, MaxNumTokens int
	// TokensPerBlock and EventBufferMaxSize are kv_cache_config's; the second one
	// is 0 where KV events are off.
	TokensPerBlock, EventBufferMaxSize int
}

// Ranks is attention_dp_size: 1 without attention DP, 0 where the file does not
// say.
func (a *EngineArgs) Ranks() int {
	if !a.AttentionDP {
		return 1
	}
	return a.TensorParallelSize
}

// ParseEngineArgs reads TensorRT-LLM's own file. Keys that do not concern a
// router are passed over; attention_dp_config is read as strictly as in a
// settings file. Errors are of type *Error.
func ParseEngineArgs(name string, file []byte) (EngineArgs, error) {
	var a EngineArgs
	r, body, err := newReader(name, file)
	if err != nil {
		return a, err
	}
	r.doc.enabled = false
	root, err := r.root(body)
	if err != nil {
		return a, err
	}
	if root != nil {
		entries, err := r.entries(root, "", "a mapping of TensorRT-LLM's settings")
		if err != nil {
			return a, err
		}
		for _, e := range entries {
			if err := r.engineArg(&a, e); err != nil {
				return a, err
			}
		}
	}
	if err := r.doc.check(); err != nil {
		return a, err
	}
	a.Settings, a.AttentionDP = r.doc.values, r.doc.enabled
	if a.AttentionDP && a.TensorParallelSize == 0 {
		a.TensorParallelSize = 1 // upstream's default
	}
	return a, nil
}

func (r *reader) engineArg(a *EngineArgs, e entry) error {
	switch e.key {
	case keyEnable, keyConfig:
		return r.key(e, topKeys())
	case "tensor_parallel_size":
		return count(&a.TensorParallelSize, MaxRanks)(r, e)
	case "max_batch_size":
		return count(&a.MaxBatchSize, math.MaxInt32)(r, e)
	case "max_num_tokens":
		return count(&a.MaxNumTokens, math.MaxInt32)(r, e)
	case "kv_cache_config":
		if _, null := e.value.(*ast.NullNode); null {
			return nil
		}
		entries, err := r.entries(e.value, e.key, "a mapping of kv_cache_config's fields")
		if err != nil {
			return err
		}
		for _, e := range entries {
			switch e.key {
			case "tokens_per_block":
				err = count(&a.TokensPerBlock, 1<<16)(r, e)
			case "event_buffer_max_size":
				err = count(&a.EventBufferMaxSize, math.MaxInt32)(r, e)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
