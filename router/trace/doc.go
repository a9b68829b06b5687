// Package trace turns recorded or invented traffic into rows that a simulated
// cluster can serve: when a request arrives, which conversation and turn it is,
// how long its prompt and its answer are, and which KV-cache blocks the prompt
// is made of.
//
// Open and Read recognise a file by its content, never by its name: Mooncake
// JSONL (rows are linked into conversations by their blocks), agent sessions
// JSONL, and the Azure LLM inference CSV. A row that cannot be used is counted
// and named in BadRows and the rest is used; a file of which nothing can be
// used is an error. Everything is held in memory, bounded by MaxRows and
// MaxBlocks.
//
// Generator invents an endless stream of conversations whose measures resemble
// the Mooncake conversation trace; Measure computes those measures of any rows.
//
// Blocks are chained: a block's value stands for its own content and for all
// the content before it, so that two prompts that share a value share
// everything up to there. Nothing here starts a goroutine, takes a lock or
// looks at a clock. A Trace may be read by many at once; a Generator belongs
// to one.
package trace
