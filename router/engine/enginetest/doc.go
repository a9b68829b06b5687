// Package enginetest is a fake of each engine that adpdeck stands before: vLLM,
// SGLang, trtllm-serve, and a Dynamo frontend with its workers. A configuration
// that works before a fake should work before the engine; nobody needs a GPU to
// try it.
//
// An Engine answers in process through Handler, or over the network after Start,
// at one address for all ranks or at one for each. Ranks are simulated: requests
// wait, are prefilled in chunks and decode in steps of a real or a given Clock,
// and each rank has a KV cache with prefix reuse, growth by the answer's tokens,
// eviction and preemption. Cached tokens in answers, the figures of metrics and
// the published events all come from that one cache, so they agree.
//
// # Faithful
//
//   - Routes, bodies and errors of OpenAI's API as each kind has them: chat,
//     completions, responses and embeddings, streamed as SSE and whole;
//     stream_options.include_usage; prompt_tokens_details.cached_tokens; SGLang's
//     /generate and /v1/messages; vLLM's and Dynamo's 404 of an unknown model,
//     which the others do not have; trtllm-serve's refusal of unknown fields.
//   - What a rank is asked with on which route, what becomes of one that does not
//     exist, of text that is no number, and of local and global numbers (honours,
//     choose.go). TensorRT-LLM places requests with router/adp, conversation
//     affinity included; vLLM by waiting·4 + running; SGLang in turn; Dynamo's
//     workers in turn and their ranks as vLLM's.
//   - /health, /v1/models, /version, /tokenize, /v1/loads, /get_load, /server_info,
//     Prometheus pages with each kind's names and labels, TensorRT-LLM's drained
//     /metrics rows (whose figures are mostly rank 0's) and POST /kv_cache_events,
//     Dynamo's /health that is 200 and unhealthy, /busy_threshold, nvext and u64
//     worker ids above 2^53.
//   - KV events over ZMQ, ports counted up by global rank, sequences from 0 in
//     every process, replay in both framings; arrays (SGLang) and maps (vLLM,
//     TensorRT-LLM); unsigned, signed and 32-byte hashes; Dynamo's event plane
//     with its envelope. Publishers connect instead of binding where
//     EventsConfig.Connect says so. vLLM stores equal blocks twice and says so twice. Hashes
//     of blocks are the engine's own and change with a restart.
//   - Loads that are published (EventsConfig.Loads): kv_metrics and forward pass
//     metrics of Dynamo's workers with the envelope, vLLM's own forward passes in
//     three frames; a heartbeat a second without work.
//
// # Invented
//
//   - The tokenizer, the chat template and the answers: words without a meaning
//     that the prompt alone decides.
//   - Prompts are computed at a fixed speed and steps take a fixed time for each
//     request; one token is one step. Prefill and decode of a rank add up within
//     a step. A prompt gets all its blocks when it begins.
//   - One prompt and one choice for each request; sampling, logprobs, tools and
//     formats are accepted and change nothing. An image is one token and the
//     tokens of its JSON.
//   - A conversation id is read by trtllm-serve from body and headers on the chat
//     route and from the body alone on completions: the last is a guess.
//   - The status of errors of which only the text is known (vLLM's rank out of
//     range: 400; Dynamo's unknown instance: 500), and how Dynamo puts nvext into
//     every chunk of a stream.
//   - SGLang's /tokenize takes chats as vLLM's does, which was not verified.
//     Without Habits.OmitZeroCached vLLM reports 0 cached tokens too; the real one
//     leaves the figure out.
//   - There is neither /perf_metrics nor /steady_clock_offset of trtllm-serve.
//   - X-Fake-Rank, behind Habits.RankHeader, and the address /__fake.
//   - Everything about models beyond their names. There is no disaggregation, no
//     speculation, no second cache tier.
//
// # Bad habits
//
// Habits are what goes wrong in the field, each to be switched by itself at run
// time: with Engine.Set, or with POST /__fake, which no habit can silence:
//
//	curl localhost:8000/__fake -d '{"habits": {"ignore_rank": ["responses"]}}'
//	curl localhost:8000/__fake -d '{"do": "restart", "rank": 1}'
//	curl localhost:8000/__fake -d '{"do": "drop", "rank": 0, "count": 3}'
//	curl localhost:8000/__fake -d '{"do": "reset"}'
//	curl localhost:8000/__fake
//
// # Bounds
//
// Queues, bodies, replay buffers, drained lists and remembered requests are
// bounded by Config or by constants. A thousand open streams cost a thousand
// handlers that sleep: ranks step by a timer, and only the requests that got a
// token are woken. Close ends all goroutines.
package enginetest
