// Package scrape reads what inference engines say of themselves over HTTP:
// loads, health, models, and which ranks there are. Bytes in, figures out.
//
//	engine        answer                              read by
//	vLLM          /metrics                            VLLM
//	SGLang        /v1/loads, older /get_load          SGLangLoads
//	              /metrics                            SGLangMetrics
//	              /server_info, older /get_server_info  SGLangInfo
//	TensorRT-LLM  /metrics (JSON, drained on read)    TRTRows
//	Dynamo        /metrics                            Dynamo
//	any           /v1/models, /health                 Models, Health
//	              a batch of KV events                Batch
//
// Promises: what an engine does not say is unknown, never 0. A series that is
// there more than once (one for each tensor-parallel rank or priority, a total
// beside its parts, several API processes) is recognised and never added up.
// NaN, infinite and negative numbers, pages that are cut short, too large, or
// no metrics at all are refused with a Reason and words for an operator; what
// else the page holds is used where its format allows that. No input panics;
// memory is bounded by the limits named here. Worker ids of 64 bits never pass
// through a float.
//
// The package opens no socket, starts no goroutine, has no clock and no lock.
// Times in its results are the engine's own.
package scrape
