// Package feedtest gives tests of a feed, and of what stands on one, the peers
// that a real network seldom shows on demand: a server that follows a script
// (frames, gaps, garbage, a new epoch, silence), a network that goes bad (latency and
// jitter, little bandwidth, slices of one byte, foreign bytes, resets, half-open
// links, lost packets, cuts), a relay that puts such a network before any address,
// and a router whose state a test sets.
//
// Network lives in memory and blocks only on channels, so all of it runs under
// testing/synctest with its virtual clock; Bad wraps real connections as well.
// Everything is safe for concurrent use, and every goroutine ends with Close.
package feedtest
