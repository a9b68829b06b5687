package adp_test

import (
	"fmt"

	"adpdeck/router/adp"
	"adpdeck/router/model"
)

// Two ranks, one of which holds most of the first prompt.
func ExampleRouter_Route() {
	cfg := model.DefaultAttentionDpConfig().WithPolicy(model.PolicyKVAware)
	r := adp.New(2, cfg, nil, adp.Options{Record: true})
	batch := &adp.Batch{
		HardCap: 8,
		States:  []model.RankState{{Rank: 0, NumActiveRequests: 1, NumActiveTokens: 100}, {Rank: 1}},
		Requests: []adp.Request{
			{ID: 1, Tokens: 320, Matches: []int32{256, 0}},
			{ID: 2, Tokens: 64},
		},
	}
	var out adp.Result
	if err := r.Route(batch, &out); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.Ranks, "expected", out.Expected)
	for _, c := range out.Placements[0].Candidates {
		fmt.Printf("rank %d: %d to prefill, load term %.0f, score %.0f\n", c.Rank, c.PrefillTokens, float64(c.LoadTerm), float64(c.Score))
	}
	// Output:
	// [0 1] expected 4
	// rank 0: 64 to prefill, load term 100, score 164
	// rank 1: 320 to prefill, load term 0, score 320
}
