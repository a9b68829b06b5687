// Package model holds the plain data that every room of adpdeck may read:
// targets, requests, settings, decisions, commands, and the state a screen
// draws. It has no behaviour beyond naming, parsing and checking, imports only
// the standard library, owns no goroutine and takes no lock. Values are copied
// freely; a pointer that has been published is never written again.
//
// Units are in the names: Tokens are model tokens, Blocks are KV-cache blocks,
// Ms are milliseconds as float64, and times are time.Time on the router's own
// clock (virtual in a simulation).
package model
