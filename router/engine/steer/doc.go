// Package steer knows how an engine is told which of its ranks to use, and what
// it says of the rank that it used.
//
// Four kinds of engine listen in four ways, and none of them on every route: the
// answer is 200 also where the rank was ignored. Table is what is known of each
// (kind, route, channel); For turns a choice of the router into headers and body
// fields; Edit puts the fields into a request's body; Ran reads the answer.
//
// Two rules hold throughout:
//
//   - the router's choice is the only one that leaves: what a client says of ranks
//     in its own headers or body is taken out, whatever its spelling;
//   - a rank and a conversation id are never sent together: engines that keep
//     conversations on a rank of their own would read them against each other.
//
// The package is pure: no clock, no socket, no state. Sources: the engines'
// request readers as described by vllm#32314, #42330, sglang#19762, #19832,
// #38729, TensorRT-LLM#15452, #15572 and Dynamo's nvext page.
package steer
