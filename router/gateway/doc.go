// Package gateway is the OpenAI-compatible HTTP front before real engines.
//
// A request's life: it is read (at most 32 MiB), its conversation, tenant and
// prompt are found out, the router chooses a rank and books it, the engine gets
// it steered to that rank, the answer is watched while it passes unbuffered, and
// the booking is freed exactly once, whatever happens: the client gone, an engine
// that breaks off, a panic. httputil.ReverseProxy does the carrying.
//
// What the front promises:
//
//   - Requests on the router's books are the requests that are open here, at every
//     step, plus those that /v1/route handed out and that have not ended or
//     expired.
//   - A request is sent again at most once, only while not a byte of an answer has
//     come, and never to the target that failed; a response that the engine may
//     keep (/v1/responses) only when it never left.
//   - Nothing waits longer than its deadline: no body, no answer, no client that
//     does not read. The engine is told within milliseconds when a client goes.
//   - A body reaches the engine as it came but for the fields that steer. Where a
//     client streams and did not ask for usage, the front asks for it and takes
//     that chunk out again; all else passes unchanged.
//   - Every refusal is an OpenAI error object that names cause and next step.
//   - Everything is bounded: bodies, their sum, headers, what is remembered of
//     conversations, calls to tokenizers, time.
//   - Metrics carry no conversation, tenant or model, and no rank that is gone.
//
// It reads no clock but the one it is given, apart from the deadlines that it sets
// on sockets and contexts and the time that a tokenizer takes, and starts no goroutine that outlives its request but
// bounded calls to tokenizers, which end within seconds.
package gateway
