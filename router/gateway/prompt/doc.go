// Package prompt turns a request's prompt into what the router matches against
// caches: the local hashes of its blocks.
//
// Tokens that the client sends are taken as they are. Text is tokenised by the
// engine, within a bound of time, of calls at once and of the time that a request
// waits for it. Where that is not possible the text itself is hashed, four bytes
// for a token: good enough to recognise what was routed before, and marked as
// Guessed, since no engine's event will ever say the same. A request of
// /v1/responses that is text alone is tokenised as the chat that it is rendered as.
//
// A conversation's last turn is remembered. What the new turn has in common with
// it is not hashed again, and where it has grown at its end only the new tail is
// tokenised. A tail is cut off where tokenisers begin anew: after a letter and
// before a line's end, or between two messages. Not every tokeniser or template
// does, so that is believed only after tails and wholes were compared several
// times for a model, a route and the settings of the template, is compared again
// now and then, and given up at the first difference. While a tokeniser is slow, the part that the engine has seen already
// stands for the whole: a cache can hold little more.
//
// The memory is bounded in bytes and conversations, the least recently used goes
// first; texts are not kept, only sums of them. Calls to tokenisers that outlast
// their request end within Options.Limit; Close ends them at once.
package prompt
