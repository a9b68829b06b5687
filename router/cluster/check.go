package cluster

import "math"

// check refuses a request that makes no sense.
func (r *Router) check(req *Request) error {
	var detail, next string
	switch {
	case req.PromptTokens < 0 || req.PromptTokens > MaxPrompt:
		detail, next = "prompt length out of bounds", "give 0 to 268435456 tokens"
	case len(req.Blocks) > req.PromptTokens/r.opt.BlockTokens:
		detail, next = "more blocks than the prompt has", "give its full blocks only"
	case !valid(req.Overrides):
		detail, next = "router_config_override is negative or not a number", "give finite numbers from 0"
	default:
		return nil
	}
	return &Refusal{Err: ErrRequest, Request: req.ID, Detail: detail, Next: next, Status: 400}
}

// valid reports whether all numbers are finite and 0 or more.
func valid(o *Overrides) bool {
	if o == nil {
		return true
	}
	for _, v := range [...]*float64{o.KVOverlapScoreCredit, o.PrefillLoadScale, o.Temperature, o.SharedCacheMultiplier} {
		if v != nil && !(*v >= 0 && *v <= math.MaxFloat32) {
			return false
		}
	}
	return true
}
