package scrape_test

import (
	"fmt"

	"adpdeck/router/engine/scrape"
	"adpdeck/router/model"
)

// The second node of a deployment: its ranks are 2 and 3 of all, and 0 and 1
// inside the worker. Rank 1 did not say how many requests wait.
func ExampleVLLM() {
	p, err := scrape.VLLM(scrape.Answer{Status: 200, Body: []byte(`
vllm:num_requests_running{engine="2",model_name="m"} 0.0
vllm:num_requests_running{engine="3",model_name="m"} 27.0
vllm:num_requests_waiting{engine="2",model_name="m"} 0.0
vllm:num_requests_waiting{engine="3",model_name="m"} NaN
`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	p.Inside(2, 2, model.NumbersAuto)
	for _, r := range p.Reports() {
		fmt.Println(r.Rank, r.Running, r.Waiting.Known())
	}
	fmt.Println(p.Refused.List[0].Reason, "–", p.Refused.List[0].Detail)
	// Output:
	// 0 0 true
	// 1 27 false
	// bad_number – vllm:num_requests_waiting of engine 3 is NaN; it counts as unknown
}

// A Dynamo frontend answers 200 before it has any worker.
func ExampleHealth() {
	fmt.Println(scrape.Health(model.EngineDynamo, scrape.Answer{Status: 200, Body: []byte(`{"status":"unhealthy","instances":[]}`)}).Why)
	// Output: the frontend says that it is "unhealthy"; no worker is registered with it
}
