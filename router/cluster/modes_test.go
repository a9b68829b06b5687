package cluster

import (
	"errors"
	"testing"

	"adpdeck/router/model"
)

// routed chooses and books n requests of one prompt and returns where they
// went, by worker and by slot.
func routed(t *testing.T, r *Router, n int, edit func(i int, req *Request)) (workers map[string]int, slots map[int32]int) {
	t.Helper()
	workers, slots = map[string]int{}, map[int32]int{}
	var c Choice
	for i := range n {
		req := Request{ID: int64(i + 1), PromptTokens: 64}
		if edit != nil {
			edit(i, &req)
		}
		if err := r.Choose(0, &req, &c, nil); err != nil {
			t.Fatal(err)
		}
		if err := r.Book(0, &req, &c); err != nil {
			t.Fatal(err)
		}
		workers[c.Target.Worker]++
		slots[c.Slot]++
	}
	return workers, slots
}

func TestModesThatChooseAWorker(t *testing.T) {
	cases := map[model.RouterMode]struct {
		lo, hi int
	}{
		model.ModeRoundRobin:  {100, 100},
		model.ModeLeastLoaded: {100, 100},
		model.ModeRandom:      {70, 130},
		model.ModePowerOfTwo:  {95, 105},
	}
	for mode, c := range cases {
		t.Run(string(mode), func(t *testing.T) {
			r := fleet(t, mode, model.DefaultClusterConfig(), 4, 2)
			got, slots := routed(t, r, 400, nil)
			for w, n := range got {
				if n < c.lo || n > c.hi {
					t.Errorf("%s got %d of 400", w, n)
				}
			}
			if len(got) != 4 || len(slots) != 4 || slots[0] != 0 {
				t.Errorf("workers %v, slots %v: the rank is the engine's to choose", got, slots)
			}
		})
	}
}

func TestRotationPassesOverWhatIsOut(t *testing.T) {
	r := fleet(t, model.ModeRoundRobin, model.DefaultClusterConfig(), 4, 2)
	r.SetDraining(target("w1", 0), true)
	r.SetDraining(target("w1", 1), true)
	r.SetDraining(target("w2", 1), true)
	var order []string
	for i := range 6 {
		req := Request{ID: int64(i), PromptTokens: 1}
		var c, peek Choice
		if err := r.Preview(0, &req, &peek, nil); err != nil {
			t.Fatal(err)
		}
		if err := r.Choose(0, &req, &c, nil); err != nil || c != peek {
			t.Fatalf("a look ahead moved the cursor: %+v %+v %v", peek, c, err)
		}
		if err := r.Book(0, &req, &c); err != nil {
			t.Fatal(err)
		}
		if c.Target.Rank != model.NoRank {
			t.Fatalf("rank %d: unset must not become a rank", c.Target.Rank)
		}
		order = append(order, c.Target.Worker)
	}
	want := [6]string{"w0", "w2", "w3", "w0", "w2", "w3"}
	if [6]string(order) != want {
		t.Errorf("order %v, want %v", order, want)
	}
}

func TestLeastLoadedWeighsEligibleRanks(t *testing.T) {
	r := fleet(t, model.ModeLeastLoaded, model.DefaultClusterConfig(), 2, 4)
	for k := range 3 {
		r.SetDraining(target("w0", k), true)
	}
	got, _ := routed(t, r, 100, nil)
	if got["w0"] != 20 || got["w1"] != 80 {
		t.Errorf("%v, want 20 and 80: one rank against four", got)
	}
}

func TestDirect(t *testing.T) {
	r := fleet(t, model.ModeDirect, model.DefaultClusterConfig(), 2, 4)
	var c Choice
	if err := r.Choose(0, &Request{ID: 1}, &c, nil); !errors.Is(err, ErrWorkerNeeded) {
		t.Errorf("no worker named: %v", err)
	}
	for _, rank := range []int{0, 1, 2, 3} {
		r.SetDraining(target("w0", rank), true)
		r.SetCapacity(target("w1", rank), Capacity{MaxRequests: 1})
		if err := r.Book(0, &Request{ID: int64(100 + rank)}, &Choice{Slot: int32(4 + rank), Target: target("w1", rank)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Choose(0, &Request{ID: 1}, &c, nil); !errors.Is(err, ErrWorkerNeeded) {
		t.Errorf("no worker named while all are full: %v", err)
	}
	for _, rank := range []int{0, 1, 2, 3} {
		r.SetCapacity(target("w1", rank), Capacity{})
	}
	if err := r.Choose(0, &Request{ID: 1, Explicit: &model.Target{Worker: "w1", Rank: model.NoRank}}, &c, nil); err != nil || c.Target != target("w1", model.NoRank) {
		t.Errorf("worker named: %+v %v", c, err)
	}
	if err := r.Choose(0, &Request{ID: 1, Explicit: &model.Target{Worker: "w1", Rank: 3}}, &c, nil); err != nil || c.Target != target("w1", 3) || c.Slot != 7 {
		t.Errorf("rank named: %+v %v", c, err)
	}
}

func TestEngineSaysTheRank(t *testing.T) {
	r := fleet(t, model.ModeRoundRobin, model.DefaultClusterConfig(), 2, 4)
	req := Request{ID: 1, PromptTokens: 160, Blocks: chain(1, 10)}
	var c Choice
	if err := r.Choose(0, &req, &c, nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Book(0, &req, &c); err != nil {
		t.Fatal(err)
	}
	if !r.Place(1, 1, target("w0", 2), 160, 48) || r.Place(1, 2, target("w0", 2), 0, 0) || r.Place(1, 1, target("w0", 9), 0, 0) {
		t.Error("place")
	}
	if f, _ := r.Figures(target("w0", 2), 1); f.Requests != 1 || f.ActiveTokens != 112 || f.ActiveBlocks != 10 {
		t.Errorf("%+v", f)
	}
	r.FirstToken(2, 1)
	if !r.Free(3, 1) || r.Free(3, 1) {
		t.Error("freed once")
	}
}

func TestRankWeights(t *testing.T) {
	r := fleet(t, model.ModeLockstep, model.DefaultClusterConfig(), 1, 2)
	r.SetWeight(target("w0", 1), 0.5)
	_, slots := routed(t, r, 300, func(i int, req *Request) { req.Blocks = chain(uint64(i), 4) })
	if slots[1] < 85 || slots[1] > 115 {
		t.Errorf("%v, want about 200 and 100", slots)
	}
}

func TestTaints(t *testing.T) {
	r := fleet(t, model.ModeKV, model.DefaultClusterConfig(), 2, 1)
	r.workers[1].Taints = []string{"spot"}
	away := []Preference{{"spot", -1}}
	if c, rec := choose(t, r, Request{PromptTokens: 160, Prefer: away}); c.Slot != 0 || rec.Candidates[1].Taint < 2 {
		t.Errorf("pushed away: %+v", c)
	}
	if c, _ := choose(t, r, Request{PromptTokens: 160, Prefer: []Preference{{"spot", 1}}}); c.Slot != 1 {
		t.Errorf("drawn: %+v", c)
	}
	if c, _ := choose(t, r, Request{PromptTokens: 160, Prefer: away, Explicit: &model.Target{Worker: "w1"}}); c.Slot != 1 {
		t.Errorf("a demand stands above a preference: %+v", c)
	}
}
