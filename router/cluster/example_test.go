package cluster_test

import (
	"fmt"
	"time"

	"adpdeck/router/cluster"
	"adpdeck/router/model"
)

// Two workers of two ranks. Rank w1/0 holds most of the prompt, w0/0 a little.
func Example() {
	r, err := cluster.New(model.ModeKV, model.DefaultClusterConfig(), cluster.Options{BlockTokens: 16, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, id := range []string{"w0", "w1"} {
		if _, err := r.AddWorker(cluster.Worker{ID: id, Ranks: 2}); err != nil {
			fmt.Println(err)
			return
		}
	}
	req := cluster.Request{ID: 7, PromptTokens: 160, Matches: cluster.Matches{Device: []int32{2, 0, 8, 0}}}
	var c cluster.Choice
	var rec model.Selection
	now := 5 * time.Second
	if err := r.Choose(now, &req, &c, &rec); err != nil {
		fmt.Println(err)
		return
	}
	if err := r.Book(now, &req, &c); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v costs %v, %v less than %v\n", c.Target, c.Cost, c.Margin, rec.RunnerUp)
	for _, k := range rec.Candidates {
		fmt.Printf("%v  prefill %v  decode %v  cost %v\n", k.Target, k.Prefill, k.DecodeBlocks, k.Cost)
	}
	f, _ := r.Figures(c.Target, now)
	fmt.Println(f.ActiveTokens, "tokens to prefill,", f.ActiveBlocks, "blocks")
	r.FirstToken(now, 7)
	fmt.Println(r.Free(now, 7), r.Free(now, 7))
	// Output:
	// w1/0 costs 12, 6 less than w0/0
	// w0/0  prefill 8  decode 10  cost 18
	// w0/1  prefill 10  decode 10  cost 20
	// w1/0  prefill 2  decode 10  cost 12
	// w1/1  prefill 10  decode 10  cost 20
	// 32 tokens to prefill, 10 blocks
	// true false
}
