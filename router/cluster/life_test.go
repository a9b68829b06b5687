package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"
)

func TestLostEndsAreSeenClearedAndDropped(t *testing.T) {
	r := fleet(t, model.ModeKV, model.DefaultClusterConfig(), 1, 2)
	half := 0.0005 // 10 of 20,000 blocks
	cfg := r.Config()
	cfg.ActiveDecodeBlocksThreshold = &half
	if err := r.Configure(r.Mode(), cfg); err != nil {
		t.Fatal(err)
	}
	for i := range int64(4) {
		req := Request{ID: i, PromptTokens: 160, Blocks: chain(uint64(i), 10), Explicit: &model.Target{Worker: "w0", Rank: int(i % 2)}}
		c, _ := choose(t, r, Request{ID: i, PromptTokens: 160, Explicit: nil})
		c.Slot, c.Target = int32(i%2), *req.Explicit
		if err := r.Book(0, &req, &c); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			continue
		}
		if i == 3 {
			break
		}
		r.Free(0, i)
	}
	if got := r.Phantoms(10*time.Minute, nil); len(got) != 1 || got[0].Slot != 1 || got[0].Requests != 2 {
		t.Errorf("phantoms %+v", got)
	}
	if f, ok := r.Figures(target("w0", 1), 0); !ok || f.Overloaded != "overloaded: KV blocks" || f.ActiveBlocks != 20 {
		t.Errorf("%+v", f)
	}
	if n := r.ClearPhantoms(10*time.Minute, target("w0", 1)); n != 2 {
		t.Errorf("cleared %d", n)
	}
	if f, _ := r.Figures(target("w0", 1), 0); f.Overloaded != "" || f.ActiveBlocks != 0 {
		t.Errorf("clearing opens the latch: %+v", f)
	}
	if r.ClearPhantoms(0, target("w0", 7)) != 0 || r.ClearPhantoms(0, target("w0", model.NoRank)) != 0 {
		t.Error("cleared where nothing is")
	}
	c, _ := choose(t, r, Request{ID: 50, PromptTokens: 16})
	if err := r.Book(0, &Request{ID: 50, PromptTokens: 16}, &c); err != nil {
		t.Fatal(err)
	}
	if err := r.Book(0, &Request{ID: 50, PromptTokens: 16}, &c); !errors.Is(err, ErrDuplicate) {
		t.Errorf("booked twice: %v", err)
	}
	if n := r.Sweep(59 * time.Minute); n != 0 {
		t.Errorf("dropped %d too early", n)
	}
	if n := r.Sweep(61 * time.Minute); n != 1 {
		t.Errorf("dropped %d, want 1", n)
	}
}

func TestOutputCountsWhenTracked(t *testing.T) {
	r := fleet(t, model.ModeKV, model.DefaultClusterConfig(), 1, 1)
	req := Request{ID: 1, PromptTokens: 16}
	c, _ := choose(t, r, req)
	if err := r.Book(0, &req, &c); err != nil {
		t.Fatal(err)
	}
	blocks := func() int { f, _ := r.Figures(target("w0", 0), 0); return f.ActiveBlocks }
	if r.Output(0, 1, 100); blocks() != 1 {
		t.Errorf("%d blocks while output is not tracked", blocks())
	}
	cfg := r.Config()
	cfg.TrackOutputBlocks = true
	if err := r.Configure(r.Mode(), cfg); err != nil {
		t.Fatal(err)
	}
	if r.Output(0, 1, 100); blocks() != 8 {
		t.Errorf("%d blocks, want 116 tokens in 8", blocks())
	}
	if r.Output(0, 2, 1) {
		t.Error("output of a request that is not booked")
	}
}

func TestSettingsOfTheLoad(t *testing.T) {
	cases := map[string]struct {
		edit           func(*Config)
		blocks, tokens int
	}{
		"default":       {func(*Config) {}, 10, 320},
		"no reuse":      {func(c *Config) { c.AssumeKVReuse = false }, 20, 320},
		"no blocks":     {func(c *Config) { c.TrackActiveBlocks = false }, 0, 320},
		"no prefill":    {func(c *Config) { c.TrackPrefillTokens = false }, 10, 0},
		"prefill model": {func(c *Config) { c.PrefillLoadModel = model.PrefillModelAIC }, 10, 240},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := model.DefaultClusterConfig()
			c.edit(&cfg)
			r := fleet(t, model.ModeKV, cfg, 1, 1)
			for i := range int64(2) {
				req := Request{ID: i, PromptTokens: 160, Blocks: chain(1, 10), ExpectedPrefill: 2 * time.Second}
				got, _ := choose(t, r, req)
				if err := r.Book(0, &req, &got); err != nil {
					t.Fatal(err)
				}
			}
			if f, _ := r.Figures(target("w0", 0), time.Second); f.ActiveBlocks != c.blocks || f.ActiveTokens != c.tokens {
				t.Errorf("%d blocks, %d tokens; want %d, %d", f.ActiveBlocks, f.ActiveTokens, c.blocks, c.tokens)
			}
		})
	}
}

func TestRecordsAreBounded(t *testing.T) {
	r, err := New(model.ModeKV, model.DefaultClusterConfig(), Options{BlockTokens: 16, MaxCandidates: 4})
	if err != nil {
		t.Fatal(err)
	}
	for w := range 5 {
		if _, err := r.AddWorker(Worker{ID: fmt.Sprint("w", w), Ranks: 2}); err != nil {
			t.Fatal(err)
		}
	}
	r.SetDraining(target("w0", 0), true)
	m := Matches{Device: []int32{9, 1, 2, 3, 4, 5, 6, 7, 8, 9}, Disk: []int32{0, 0, 0, 0, 0, 0, 4}}
	c, rec := choose(t, r, Request{ID: 1, PromptTokens: 160, Matches: m})
	if c.Target != target("w4", 1) || len(rec.Candidates) != 4 || rec.LeftOut != 6 || rec.Candidates[0].Target != target("w3", 0) || rec.Candidates[3].Target != c.Target {
		t.Errorf("%+v\n%+v", c, rec.Candidates)
	}
	if c.Reachable != 144 || c.LostTo != "" {
		t.Errorf("reachable %d, lost to %q", c.Reachable, c.LostTo)
	}
}

func TestPreviewLeavesNoTrace(t *testing.T) {
	cfg := model.DefaultClusterConfig()
	cfg.Temperature = 1
	k := random(t, model.ModeKV, cfg, 5)
	for range 50 {
		k.turn(t, nil)
		req := Request{ID: -1, PromptTokens: 320, Matches: Matches{Device: []int32{1, 2, 3, 4, 5, 6}}}
		var a, b, c Choice
		if err := errors.Join(k.r.Preview(k.now, &req, &a, nil), k.r.Preview(k.now, &req, &b, nil), k.r.Choose(k.now, &req, &c, nil)); err != nil {
			t.Fatal(err)
		}
		if a != b || a != c {
			t.Fatalf("%+v\n%+v\n%+v", a, b, c)
		}
	}
}

func TestNewRefusesBadSettings(t *testing.T) {
	if _, err := New(model.ModeKV, model.DefaultClusterConfig(), Options{}); !errors.Is(err, ErrConfig) {
		t.Errorf("no block size: %v", err)
	}
	cfg := model.DefaultClusterConfig()
	cfg.QueuePolicy = "lifo"
	if _, err := New(model.ModeKV, cfg, Options{BlockTokens: 16}); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "fcfs") {
		t.Errorf("unknown policy: %v", err)
	}
}
