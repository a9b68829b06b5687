// Package zmq is the publishing side of an engine's KV events, for fakes of
// engines and for tests: a PUB socket that numbers its batches, and a ROUTER
// socket beside it that gives again those that it still holds.
//
// It keeps to what libzmq and the engines do, bad habits included: a slow
// subscriber loses what is beyond its high-water mark, a replay begins where the
// buffer begins, a restart counts from 0 again. [Faults] adds what a bad network
// or a bad build does. All randomness comes from a seed.
//
// A [Publisher] is safe for concurrent use; its goroutines end with Close.
package zmq
