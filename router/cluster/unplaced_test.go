package cluster

import (
	"errors"
	"testing"

	"adpdeck/router/model"
)

// TestUnplacedCounts: what a worker whose engine picks the rank has open counts
// for its ranks in the modes that choose by load, whether or not the engine ever
// tells which rank it was; its hard caps count together.
func TestUnplacedCounts(t *testing.T) {
	for _, mode := range []model.RouterMode{model.ModeKV, model.ModeLockstep} {
		t.Run(string(mode), func(t *testing.T) {
			r := fleet(t, mode, model.DefaultClusterConfig(), 2, 4)
			r.SetPicks("w0", true)
			for k := range 4 {
				r.SetCapacity(target("w0", k), Capacity{MaxRequests: 3})
			}
			send := func(id int64) Choice {
				req := Request{ID: id, PromptTokens: 1600}
				c, rec := choose(t, r, req)
				if rec.Chosen != c.Target {
					t.Fatalf("%+v", rec)
				}
				if c.Target.Worker == "w0" {
					c.Slot, c.Target.Rank = NoRankSlot(int(c.worker)), model.NoRank
				}
				if err := r.Book(0, &req, &c); err != nil {
					t.Fatal(err)
				}
				return c
			}
			n := map[string]int{}
			for id := range int64(16) {
				n[send(id).Target.Worker]++
			}
			if n["w0"] < 6 || n["w0"] > 10 {
				t.Fatalf("uneven: %v", n)
			}
			for id := int64(16); id < 200; id++ {
				n[send(id).Target.Worker]++
			}
			if n["w0"] != 12 {
				t.Fatalf("%v, want no more than 4 ranks × 3", n)
			}
			for k := range 4 {
				r.SetCapacity(target("w1", k), Capacity{MaxRequests: 1})
			}
			var c Choice
			req := Request{ID: 999, PromptTokens: 16}
			if err := r.Choose(0, &req, &c, nil); !errors.Is(err, ErrFull) || !r.MustWait(0, &req, false) {
				t.Fatalf("all are full: %v, %v", c.Target, err)
			}
		})
	}
}
