package cluster

import (
	"math"
	"testing"
	"time"

	"adpdeck/router/model"
)

func TestLatelyFades(t *testing.T) {
	var l lately
	l.add(0, 100, 1000)
	l.add(100*time.Second, 100, 500)
	if got, want := l.value(200*time.Second, 100), 1000/math.E/math.E+500/math.E; math.Abs(got-want) > 1e-9 {
		t.Errorf("%v is left, want %v", got, want)
	}
	l.add(50*time.Second, 100, 10) // a clock that stands back adds and fades nothing
	if l.at != 100*time.Second {
		t.Errorf("the time went back to %v", l.at)
	}
}

// Hand-computed: mean 131,072, so the share of a rank with three times the mean
// is 1, and with twice the mean a half.
func TestRecentCost(t *testing.T) {
	cfg := model.DefaultClusterConfig()
	cfg.RecentWeight, cfg.PrefillLoadScale = 3, 4
	for name, c := range map[string]struct {
		mode         model.RouterMode
		tokens, cost float64
	}{
		"below the mean":              {model.ModeLockstep, 100_000, 0},
		"twice the mean":              {model.ModeLockstep, 2 * recentFloor, 3 * recentFloor / 16},
		"three times":                 {model.ModeLockstep, 3 * recentFloor, 3 * 2 * recentFloor},
		"in blocks, by the scale, kv": {model.ModeKV, 3 * recentFloor, 4 * 3 * 2 * recentFloor / 16},
	} {
		p := newPrompt(c.mode, &cfg, 160, 16)
		p.recent = recentFloor
		if got := p.recentCost(c.tokens); got != c.cost {
			t.Errorf("%s: %v, want %v", name, got, c.cost)
		}
	}
	cfg.RecentWeight = 0
	if p := newPrompt(model.ModeKV, &cfg, 160, 16); p.recentCost(1e9) != 0 {
		t.Error("without a weight it costs")
	}
}

// TestRecentWorkIsSharedOut sends a lone conversation through a fleet that is
// idle before each turn. By default it stays where its blocks are; with a price
// on recent work it moves on now and then.
func TestRecentWorkIsSharedOut(t *testing.T) {
	for _, mode := range []model.RouterMode{model.ModeKV, model.ModeLockstep} {
		used := func(weight float64) int {
			cfg := model.DefaultClusterConfig()
			cfg.RecentWeight = weight
			r := fleet(t, mode, cfg, 8, 1)
			held, ranks := caches{}, map[int32]bool{}
			for i := range 200 {
				blocks := chain(5, 100+i)
				req := Request{ID: int64(i), PromptTokens: 16 * len(blocks), Blocks: blocks, Matches: held.match(blocks, r.Slots())}
				var c Choice
				now := time.Duration(i) * time.Second
				if err := r.Choose(now, &req, &c, nil); err != nil {
					t.Fatal(err)
				}
				if err := r.Book(now, &req, &c); err != nil {
					t.Fatal(err)
				}
				held.ran(blocks, c.Slot)
				r.FirstToken(now, int64(i))
				r.Free(now, int64(i))
				ranks[c.Slot] = true
			}
			return len(ranks)
		}
		if a, b := used(0), used(3); a != 1 || b < 3 {
			t.Errorf("%s: %d ranks without a price, %d with one", mode, a, b)
		}
	}
}

// TestWorkIsDearerUnderLoad works the price of work out by hand.
func TestWorkIsDearerUnderLoad(t *testing.T) {
	cfg := model.DefaultClusterConfig()
	cfg.WorkLoadTokens = 1000
	p := newPrompt(model.ModeLockstep, &cfg, 160, 16)
	if p.load = 500; p.workPrice() != 1.5 {
		t.Errorf("half the load: %v", p.workPrice())
	}
	if cfg.WorkLoadTokens = 0; p.workPrice() != 1 {
		t.Errorf("without a scale: %v", p.workPrice())
	}
}
