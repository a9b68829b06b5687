// Package prefix knows which target holds which prompt prefix in its KV cache.
//
// It has two halves. Hashing turns a prompt into a chain of block hashes,
// bit for bit as NVIDIA Dynamo's router does: a Local hash covers the tokens of
// one block, a Chain hash covers a block and everything before it. The Index
// is fed with the events that engines publish and answers, for a chain of
// hashes, how long a contiguous prefix every target holds, per storage tier.
//
// Two spaces of hashes meet here and are different types, so that they cannot
// be mixed up: an External hash is the engine's own opaque name of a block, by
// which it later removes it; Local and Chain are computed by us from tokens.
//
// What the index promises:
//
//   - Exact. A block counts for a target only together with its whole chain
//     before it. A removed middle block shortens the match until it is stored
//     again. A block stored twice needs two removals. A look-up that runs
//     while events are applied may miss what is being changed at that moment,
//     it never counts more than the target held.
//   - What is told once is known. A block that an engine told with its tokens
//     is found by the engine's name from then on, while the target holds it
//     anywhere: it may come to another tier, or move there, by name alone.
//     A name that says nothing is counted and credits nothing.
//   - In doubt is said so. After a loss of events the caller says Doubt, and
//     later Settle: what was told anew in between stays, or has a block behind
//     it that was, and the rest goes. Until then it counts.
//   - Bounded. Blocks and bytes are capped per target and in all; what was
//     matched longest ago goes first, and every eviction is counted. Blocks
//     whose parent is unknown wait aside, in a bounded room, oldest dropped.
//   - Look-ups take no lock and never wait for events. Events are applied by
//     one writer at a time, under a lock that only writers take.
//   - No allocation per event and per look-up in the steady state, and no
//     pointers in the tables, so that the collector does not scan them.
//
// An index serves one model and one block size: what is hashed otherwise never
// matches. Adapters and salts share it, since their seeds keep them apart.
//
// A block's record is 48 bytes and names up to two holders in place; more
// holders, or one below the device, take a bitset beside it. Two tables of
// linked buckets find records, by chain hash for look-ups and by the engine's
// name for events. Since a chain hash proves everything before it, a look-up
// reads who holds a few positions of the chain and halves the stretches where
// the holders differ; only holes need care (see hole.go). Freed records and
// bitsets are used again when no look-up can see them any more.
//
// The index owns no goroutine, reads no clock and logs nothing.
package prefix
