// Package cluster is the cluster tier: it chooses a (worker, rank) for each
// request as NVIDIA Dynamo's router does, and by a cost of our own for engines
// whose steps end with the slowest rank.
//
// A Router knows workers and their ranks, each rank a slot; the caller hands it
// a Request with what the prefix index found, by slot. Choose answers, Book
// books, FirstToken, Output and Free follow the request's life, ReportPending
// and ReportKV bring in what engines say. Load is the booking behind it, Queue
// holds requests while every rank is busy, Affinity ties conversations to
// targets.
//
//	c.Choose(now, &req, &choice, nil)  → choice.Target, or *Refusal
//	c.Book(now, &req, &choice)
//	c.FirstToken(now, id) … c.Free(now, id)
//
// Everything is pure: times are given in as monotonic durations, chance comes
// from a seeded generator, there is no log, no lock and no goroutine; each
// type belongs to one goroutine at a time. All of it is bounded (MaxSlots,
// MaxBookings, MaxTrackedBlocks, MaxSessions, the queue's settings).
//
// Filters work rank by rank, not worker by worker, and what they exclude enters
// no average, no threshold, no minimum and no draw: adding targets that cannot
// be chosen changes no choice.
package cluster
