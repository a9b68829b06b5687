// Package jsonl answers what TensorRT-LLM's attention-DP router would have
// done: JSON lines in, placements out. It is the logic of "adpdeck route".
//
// One input line is one object with all its steps: a router with its batches,
// a waiting queue with its admissions, or a balance gate with its iterations.
// Which one it is shows in its fields: "router" makes a router line,
// "max_num_active_requests" at the top an admission line, "config" alone a
// balance line. An "expect" field is ignored, so a file of vectors can be fed
// as it is. The output is one line per input line, in order:
//
//	{"n":0,"steps":[{"assignments":[[7],[]],"expected_num_active_requests":1}, …]}
//	{"n":1,"steps":[{"popped":[4,5],"queue":[6]}, …]}
//	{"n":2,"steps":[{"release":true,"waiting":0,"batching":1}, …]}
//	{"line":4,"error":"malformed","error_message":"…"}
//
// Lines are worked on by several goroutines, which Run starts and ends, with a
// bounded number of lines in flight; blank lines are skipped.
package jsonl
