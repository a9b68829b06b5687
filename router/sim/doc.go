// Package sim is a cluster of engines that costs no GPU: workers whose ranks
// run under attention data parallelism, each rank with a KV cache of its own,
// on a virtual clock.
//
// A worker works in steps, as TensorRT-LLM's executor loop does. At the start
// of a step it collects what its ranks hold, admits waiting requests up to the
// hard cap, probes how long a prefix each rank holds (when the policy asks for
// that), and has the Router place the batch; requests that found no room go
// back to the head of its queue. Then the balance gate says whether prefill may
// run, every rank takes up to ChunkTokens of prefill and one token for each
// request that decodes, and the step lasts as long as its slowest rank: that is
// the attention-DP barrier, and the time that the others wait is accounted.
//
// With Config.KVEvents the ranks publish what their caches hold, as engines do:
// after each step a msgpack batch for every rank in which something changed,
// with token ids invented from the blocks, and requests bring the hashes of
// their blocks. Without it the same run comes out, only faster.
//
// What is simplified, on purpose:
//
//   - A rank reserves the blocks of prompt and answer when prefill begins and
//     never preempts; a request that does not fit waits at the head of its rank.
//   - Full blocks of a prompt can be reused once its prefill is complete. Blocks
//     of generated tokens occupy space until the request ends and are then
//     dropped: what a next turn repeats of an answer it must prefill once.
//   - The reused part of a prompt is settled when its prefill begins, not when
//     it is placed; until then a request counts with its whole prompt (the
//     pending tokens of a RankLoad leave out what was found when it was placed,
//     where events are published).
//   - Prefill and decode of a rank add up within a step. A step is taken only
//     when a request is active; dummy passes are not simulated.
//
// The same traffic, configuration, seed and commands give the same run, byte for
// byte, however it is cut into slices. A Sim belongs to one goroutine; only Now
// may be called by others. Runner owns a Sim and drives it against a wall clock.
package sim
