// Package pin holds what ties a conversation to a target: the bindings that
// policy and migrations make, in an LRU of bounded size, and the operator's
// pins, apart from it and never dropped by it.
//
// Neither type locks: the live router owns both and calls them under its own
// lock. A change callback runs inside the call that made the change, so it
// must not call back into the same value. No goroutines, no clock.
package pin
