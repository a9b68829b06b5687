// Package router is the live router: the thread-safe owner of workers, ranks,
// settings, bindings, operator pins, bookings and the last 4,096 decisions.
//
// Two tiers decide. The cluster tier picks a worker (Submit), the engine tier
// of that worker, TensorRT-LLM's rank router, picks a rank (Step, a batch; or
// Route, a batch of one on the router's own bookings). Before both stand, in
// this order: an operator's pin, an existing binding, a rank that the client
// asked for. Commands (Apply) change state, one version each; screens follow
// by Snapshot and Subscribe.
//
// Promises:
//
//   - One lock guards everything. No call waits for anything outside: no
//     network, no channel, no callback; the clock is read before the lock is
//     taken. A subscriber that stalls costs nothing and holds nothing up.
//   - Open requests are conserved: each is released exactly once, and the
//     requests booked on ranks plus those without a rank are the open ones.
//   - What has been published (State, Change, Decision, Conv) is never written
//     again.
//   - Everything is bounded: conversations, bindings, pins, decisions,
//     revisions, events, undo records, remembered answers, open requests.
//   - It has no clock but the one it is given and starts no goroutine. Equal
//     calls at equal times give equal decisions.
//
// It does not talk to engines, keeps nothing on disk, and measures no time of
// its own but the time that routing took, and that only when given a wall
// clock.
package router
