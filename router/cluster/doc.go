// Package cluster is the cluster tier: it chooses a (worker, rank) for each
// request as NVIDIA Dynamo's router does, and by a cost of our own for engines
// whose steps end with the slowest rank.
//
// A Router knows workers and their ranks, each rank a slot; the caller hands it
// a Request with what the prefix index found, by slot. Choose answers, Book
// books, FirstToken, Output and Free follow the request's life, ReportPending
// and ReportKV bring in what engines say. Load is the booking behind it, Queue
// holds requests while every rank is busy. What ties conversations to targets is
// the live router's: a Request carries it as Bound.
//
//	c.Choose(now, &req, &choice, nil)  → choice.Target, or *Refusal
//	c.Book(now, &req, &choice)
//	c.FirstToken(now, id) … c.Free(now, id)
//
// Everything is pure: times are given in as monotonic durations, chance comes
// from a seeded generator, there is no log, no lock and no goroutine; each
// type belongs to one goroutine at a time. All of it is bounded (MaxSlots,
// MaxBookings, MaxTrackedBlocks, the queue's settings).
//
// Filters work rank by rank, not worker by worker, and what they exclude enters
// no average, no threshold, no minimum and no draw: adding targets that cannot
// be chosen changes no choice.
//
// # Lockstep
//
// Mode lockstep compares tokens: those to prefill here, dearer the more all are
// behind, ω times the steps until the first token, λ times what they would add
// to the longest prefill backlog of the worker, once for each request that waits
// there, μ times the backlog of the rank, δ times what the worker's fullest rank
// would hold. In mode kv none of this exists and the cost is Dynamo's exactly.
// The step that runs is known from ReportPending, which an engine should call
// as each step begins. The inputs are explicit, for studies: Figures
// returns the pending tokens of a rank and the highest of its worker, a record
// carries both for every candidate, and Rescore computes a record's costs under
// other weights.
//
// # Speed
//
// Neither a choice nor a booking nor a release allocates in the steady state;
// recording reuses its slice. Microseconds on a two-core machine (go test
// -bench .), at 8 / 64 / 512 targets with four open requests on each, prompts
// of 256 blocks (8,192 blocks change nothing, the load's tree is walked by
// node):
//
//	choose, kv                                   0.2 / 1.5 / 12
//	choose, lockstep                             0.2 / 1.5 / 12
//	choose, book, first token and free, kv       0.4 / 1.6 / 12
//	the same, lockstep                           0.4 / 1.6 / 12
//	the same, round_robin                        0.3 / 0.8 / 5.6
//	choose and record, kv, 64 targets            4.9
//	rescore a record of 64 candidates            2.4
package cluster
