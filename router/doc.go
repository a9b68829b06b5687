// Package router is the live router: the thread-safe owner of workers, ranks,
// settings, bindings, operator pins, bookings and the last 4,096 decisions.
//
// Two tiers decide. The cluster tier picks a worker (Submit), and in the modes
// kv and lockstep its rank too: by what engines' events (Events) say of their
// caches, and by load. Where it left the rank open the engine tier of that
// worker, TensorRT-LLM's rank router, picks it (Step, a batch; or Route and
// RouteWait, a batch of one on the router's own bookings). Before both stand,
// in this order: an operator's pin, an existing binding, a rank that the client
// asked for. Commands (Apply) change state, one version each; screens follow by
// Snapshot and Subscribe.
//
// Workers come and go (Join, Leave), and their engines live and die (Live,
// Restarted), apart from their load (Observe). What an operator said of a rank
// that has left, its weight, drain and pins, is kept and acts again when it is
// back. What the router found of it is not: bindings, blocks, figures go with it.
// A request that a pin holds to a rank which does not answer is refused with the
// reason (ErrDown): not sent elsewhere, which would break the promise of a pin in
// silence, and not kept waiting, since nobody knows for how long.
//
// Promises:
//
//   - One lock guards everything but what is known of caches: events are decoded
//     and indexed, prompts hashed and looked up without it. No call waits for
//     anything outside: no network, no callback; RouteWait alone waits, for its
//     turn in a bounded queue. The clock is read before the lock is taken. A
//     subscriber that stalls costs nothing and holds nothing up.
//   - Open requests are conserved: each is released exactly once, and the
//     requests booked on ranks plus those without a rank are the open ones. Those
//     whose worker or rank has left are counted apart until their ends come.
//   - Never more than MaxNumActiveRequests of Route and RouteWait are on a rank
//     at a time, in every mode; who waits for room waits in a bounded queue.
//   - What has been published (State, Change, Decision, Conv) is never written
//     again.
//   - Everything is bounded: conversations, bindings, pins, decisions,
//     revisions, events, undo records, remembered answers, open requests, the
//     queue, the index.
//   - It has no clock but the one it is given and starts no goroutine. Equal
//     calls at equal times give equal decisions; chance comes from Config.Seed.
//
// One binding holds a conversation for both tiers. The conversation policy of
// the engine tier makes it and looks at no time; in the modes kv and lockstep
// the first turn that was dispatched makes it, and it runs out when the
// conversation has been idle for router_session_affinity_ttl_secs.
//
// It does not talk to engines, keeps nothing on disk, and measures no time of
// its own but the time that routing took, and that only when given a wall
// clock.
package router
