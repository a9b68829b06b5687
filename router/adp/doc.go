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
package adp
