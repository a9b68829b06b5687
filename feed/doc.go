// Package feed carries a router's state to consoles over a websocket, and their
// commands back.
package feed
