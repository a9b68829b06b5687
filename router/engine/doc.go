// Package engine speaks to the engines behind a router: vLLM, SGLang,
// trtllm-serve and Dynamo frontends.
//
// A Fleet watches the workers of a configuration (Check says what is wrong with
// one) and tells a Sink, the router, what they are and do. For requests it says
// where they go and what they must carry (Upstream), and reads from the answers
// where they ran (Ran).
//
//	question    asked how                          every     told by
//	alive?      GET /health of each address        0.5 s     Live
//	busy?       the kind's loads (package scrape)  1 s       Observe, Unobserved
//	            or as published (events, loads)    as sent   LoadsFrom, Observe
//	what?       models, server info, metrics       10 s      Join
//	cached?     KV events: ZMQ, HTTP or NATS       as sent   EventsOn, EventsJSON, RouterEvents
//	lost?       the publisher's replay             on a gap  Replayed, ReplayDone
//	the same?   when its process began             1 s       Restarted
//
// # What it promises
//
// Liveness is apart from load: an idle engine is alive, and one whose metrics
// cannot be read is. A dead engine is told of within three seconds, and one that
// answers again within five: two failures in a row decide, and two answers. A
// rank that takes requests and never answers them is found out by the requests
// themselves (Failed, Answered), and tried with one token of the fleet's own
// until it answers.
//
// What an engine says of itself fills in what the settings leave open: its ranks,
// which grow and shrink with it, its models, its capacity, SGLang's event
// endpoints. Where the two differ the settings count, and a Finding with the code
// FindingDisagrees names both values.
//
// The time of a load is when it was asked for. A rank that an answer does not
// name is not in it: unknown, not idle.
//
// Everything is bounded: the length and the time of every answer, the number of
// goroutines (a handful for each worker, two for each publisher), the batches
// that wait for the sink (what is too much is dropped, and shows as a gap). A slow
// or hostile engine delays nobody else. Run returns when all of it has ended.
//
// # What it does not do
//
// It does not carry requests, and retries nothing. It trusts an engine's word for
// its own ranks. Keys come from the environment and go to their own engine only.
package engine
