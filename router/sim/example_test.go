package sim_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"adpdeck/router/model"
	"adpdeck/router/sim"
	"adpdeck/router/trace"
)

// A trace is read, a cluster is made for it, a router is put in charge, and
// the run is summed up.
func Example() {
	file := `{"timestamp": 0, "input_length": 1600, "output_length": 2, "hash_ids": [0, 1, 2, 3]}
{"timestamp": 2000, "input_length": 2100, "output_length": 2, "hash_ids": [0, 1, 2, 4, 5]}
{"timestamp": 4000, "input_length": 700, "output_length": 1, "hash_ids": [0, 6]}
`
	tr, err := trace.Read(strings.NewReader(file), "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg := sim.ReplayConfig()
	cfg.Name, cfg.BlockTokens, cfg.Ranks = tr.Name, tr.BlockTokens, 2
	cluster, err := sim.New(cfg, tr.Play())
	if err != nil {
		fmt.Println(err)
		return
	}
	settings := sim.DefaultSettings()
	settings.AttentionDpConfig = settings.AttentionDpConfig.WithPolicy(model.PolicyKVAware)
	engine, err := sim.NewEngine(cfg.Specs(), settings)
	if err != nil {
		fmt.Println(err)
		return
	}
	cluster.Use(engine)
	if err := cluster.Run(context.Background(), nil); err != nil {
		fmt.Println(err)
		return
	}
	report := cluster.Report(0)
	if err := report.WriteTable(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// traffic          example, 1× speed, 1 workers × 2 ranks × 20000 blocks of 512 tokens, kv_aware
	// requests         3 in 2 conversations, 0 bad rows
	// prompt tokens    4400
	// prefix hit rate  46.5 % of ideal 46.5 % (100.0 %)
	// max over mean    requests 2.000, tokens 2.000
	// ttft ms          mean 28.8  p50 25.2  p90 41.9  p99 41.9
	// e2e ms           mean 32.6  p50 30.9  p90 47.6  p99 47.6
	// tpot ms          mean 5.7  p50 5.7  p90 5.8  p99 5.8
	// step wait share  50.0 %
	// moves per conv   0.000
	// decisions        – per second of wall time
	// time             4.0 s virtual, 0.00 s wall, 5 steps
}
