// Package adp is the engine tier: TensorRT-LLM's attention-DP request router,
// decision for decision. It holds the three rank routers (default, KV-aware,
// conversation), the admission queue and the context-balance gate of
// tensorrt_llm/_torch/pyexecutor (scheduler/adp_router.py, request_utils.py,
// py_executor.py).
//
// Everything here is pure: states and requests in, assignments and, when
// asked for, a record of each decision out. No clock, no log, no lock, no
// goroutine. A Router, a Queue and a Gate belong to one goroutine at a time.
//
// With weights unset and no rank closed, every placement is upstream's, bit
// for bit, floating point included. In parity mode upstream's exceptions are
// reported as *ParityError exactly where upstream raises them, and leave the
// same state behind. In normal mode nothing raises: an explicit rank that does
// not exist counts as none, and a request that finds no room is returned in
// Result.Unassigned.
//
// A rank of weight w is seen with its tokens and its count divided by w in
// every comparison, and may take w times the soft cap. So that the weighted
// soft caps add up to what has to be placed, the fair share divides by the sum
// of the weights, where upstream divides by the number of ranks. A closed rank
// (draining, or of weight 0) takes no new placement and enters no average and
// no threshold; only a conversation that is bound to it still goes there.
// Beside such ranks nothing exceeds the hard cap, which upstream's conversation
// router does when a batch holds more than there is room for.
//
// # Speed
//
// Nothing is allocated per request once the buffers have grown: not for a
// sticky conversation, and not for a new one either while the map is at its
// limit, since the key that is dropped leaves its memory; before that, a new
// conversation allocates its stored key. Recording decisions allocates.
//
// Nanoseconds per request at batch 1,024 and 8 / 64 / 256 ranks (go test
// -bench Route; processor time on a busy two-core machine), beside the floor
// that BenchmarkFloor measures at 64 ranks:
//
//	default                    19 /  37 /  54   a sort 7, a count 1
//	kv_aware                  106 / 256 / 690   one pass over matches and loads 33
//	conversation, bound        27 /  27 /  27   a look-up in a small map 8
//	conversation, round_robin  60 /  55 /  56   the same, and a key stored and one dropped
//	conversation, least_queued 59 / 104 / 261   the same, and a pass over the counts
//	conversation, least_tokens 99 / 208 / 461   the same, and a pass over the loads
//
// What is above the floor: the heap of the default router (its height grows
// with the ranks); in kv_aware a division for each rank, which upstream's
// rounding demands, the numbering of 64-token fingerprints (about 50 ns), and
// 3 µs of seeding whenever a tie needs the shuffle, rare once ranks differ.
package adp
