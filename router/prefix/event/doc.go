// Package event reads what inference engines say about their KV caches, and
// keeps account of what they failed to say.
//
// Three encodings are read into one form, [Event]:
//
//   - msgpack batches of vLLM, SGLang and TensorRT-LLM's streaming publisher
//     ([Decoder.Batch]), each event a tagged array or a tagged map, every
//     field count that was ever released, mixed within one batch;
//   - TensorRT-LLM's JSON events, drained from /kv_cache_events ([Drain]);
//   - Dynamo's RouterEvent JSON ([Decoder.RouterEvents]).
//
// Encoders write the first two again, so that a simulated engine publishes
// what a real one would.
//
// A [Feed] is one publisher: it numbers its batches, and the feed follows the
// numbers. It drops duplicates, notices gaps and restarts, holds live batches
// back while a replay fills a gap, filters what is no part of the prefix cache
// (other attention groups, partial blocks, remote tiers), and hands the rest on
// in order. [Feed.Findings] says in words what is wrong.
//
// Promises: a bad event costs that event and nothing else, and is counted by
// reason; no input panics; memory is bounded by the input's length and by the
// limits named in the package; decoding into a used [Batch] allocates nothing
// in the steady state. The package has no goroutine, no lock and no clock: the
// caller serialises calls on one value and says what time it is. It opens no
// socket; its input is bytes.
package event
