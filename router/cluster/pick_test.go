package cluster

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"adpdeck/router/model"
)

// choose answers one request, booking nothing.
func choose(t *testing.T, r *Router, req Request) (Choice, model.Selection) {
	t.Helper()
	var c Choice
	var rec model.Selection
	if err := r.Choose(0, &req, &c, &rec); err != nil {
		t.Fatal(err)
	}
	return c, rec
}

// docs is the worked example of Dynamo's documentation: 10 blocks of prompt,
// overlaps 2, 5 and 8, decode loads 10, 5 and 9.
func docs(t *testing.T, edit func(*Config)) (*Router, Request) {
	cfg := model.DefaultClusterConfig()
	if edit != nil {
		edit(&cfg)
	}
	r := fleet(t, model.ModeKV, cfg, 3, 1)
	for s, decode := range []int{10, 5, 9} {
		b := Booking{ID: int64(1000 + s), Slot: int32(s), PromptTokens: 16 * decode, Unshared: decode}
		if err := r.load.Book(0, &b); err != nil {
			t.Fatal(err)
		}
		r.load.FirstToken(0, b.ID)
	}
	// A prompt of which all 10 blocks are new would add 10 everywhere; blocks
	// are left out of the load to keep the example's figures.
	return r, Request{ID: 1, PromptTokens: 160, Blocks: []uint64{}, Matches: Matches{Device: []int32{2, 5, 8}}}
}

func TestDocsExample(t *testing.T) {
	r, req := docs(t, nil)
	c, rec := choose(t, r, req)
	for i, want := range []float64{18, 10, 11} {
		if got := rec.Candidates[i].Cost; got != want {
			t.Errorf("candidate %d costs %v, want %v", i, got, want)
		}
	}
	if c.Target != (model.Target{Worker: "w1"}) || c.Cost != 10 || c.Margin != 1 || c.RunnerUp != 2 || c.Tie != model.TieNone ||
		c.CachedTokens != 80 || c.Reachable != 128 || c.LostTo != LostLoad {
		t.Errorf("choice %+v", c)
	}
	if rec.Chosen != c.Target || rec.RunnerUp.Worker != "w2" || rec.Candidates[1].Probability != 1 || rec.Candidates[0].Probability != 0 {
		t.Errorf("record %+v", rec)
	}
}

// Costs 18, 10, 11 at T 0.5: weights e^-2, 1, e^-0.25.
func TestTemperatureIsRangeNormalised(t *testing.T) {
	r, req := docs(t, func(c *Config) { c.Temperature = 0.5 })
	e2, e14 := math.Exp(-2), math.Exp(-0.25)
	sum := 1 + e2 + e14
	want := []float64{e2 / sum, 1 / sum, e14 / sum}
	const n = 30000
	var seen [3]float64
	for range n {
		c, rec := choose(t, r, req)
		seen[c.Slot]++
		for i := range want {
			if math.Abs(rec.Candidates[i].Probability-want[i]) > 1e-15 {
				t.Fatalf("probability %d is %v, want %v", i, rec.Candidates[i].Probability, want[i])
			}
		}
		if c.By != model.ByTemperature || !rec.Draw.Known() {
			t.Fatalf("made by %q, draw %v", c.By, rec.Draw)
		}
	}
	for i := range want {
		if got := seen[i] / n; math.Abs(got-want[i]) > 0.015 {
			t.Errorf("slot %d drawn %.3f of the time, want %.3f", i, got, want[i])
		}
	}
}

func TestTiesAreUniformAndSeeded(t *testing.T) {
	var runs [2][]int32
	for k := range runs {
		r := fleet(t, model.ModeKV, model.DefaultClusterConfig(), 1, 4)
		var seen [4]int
		for range 8000 {
			c, rec := choose(t, r, Request{ID: 1, PromptTokens: 64})
			if c.Tie != model.TieReservoir || c.Tied != 4 || rec.Candidates[2].Probability != 0.25 {
				t.Fatalf("choice %+v", c)
			}
			seen[c.Slot]++
			runs[k] = append(runs[k], c.Slot)
		}
		for s, n := range seen {
			if n < 1850 || n > 2150 {
				t.Errorf("slot %d chosen %d of 8000 times, want about 2000", s, n)
			}
		}
	}
	if fmt.Sprint(runs[0]) != fmt.Sprint(runs[1]) {
		t.Error("two routers of one seed differ")
	}
}

func TestEqualCostsUnderTemperatureAreUniform(t *testing.T) {
	cfg := model.DefaultClusterConfig()
	cfg.Temperature = 1
	r := fleet(t, model.ModeKV, cfg, 1, 5)
	_, rec := choose(t, r, Request{ID: 1, PromptTokens: 64})
	for i, c := range rec.Candidates {
		if c.Probability != 0.2 {
			t.Errorf("candidate %d has %v, want 0.2", i, c.Probability)
		}
	}
}

func TestOverridesOfOneRequest(t *testing.T) {
	r, req := docs(t, nil)
	zero, four, off := 0.0, 4.0, false
	req.Overrides = &Overrides{KVOverlapScoreCredit: &zero}
	if c, rec := choose(t, r, req); c.Cost != 15 || rec.Config.KVOverlapScoreCredit != 0 {
		t.Errorf("without credit: cost %v, want 10 + 5", c.Cost)
	}
	req.Overrides = &Overrides{PrefillLoadScale: &four}
	if c, _ := choose(t, r, req); c.Cost != 17 || c.Slot != 2 {
		t.Errorf("scale 4: slot %d at %v, want slot 2 at 4·2 + 9", c.Slot, c.Cost)
	}
	req.Overrides = &Overrides{TrackPrefillTokens: &off}
	if c, _ := choose(t, r, req); c.Cost != 5 {
		t.Errorf("prefill not tracked: cost %v, want 5", c.Cost)
	}
	nan := math.NaN()
	req.Overrides = &Overrides{Temperature: &nan}
	var c Choice
	if err := r.Choose(0, &req, &c, nil); !errors.Is(err, ErrRequest) {
		t.Errorf("not a number: %v", err)
	}
	if r.Config().KVOverlapScoreCredit != 1 {
		t.Error("an override changed the settings")
	}
}

func TestSettingsChangeBetweenTwoRequests(t *testing.T) {
	r, req := docs(t, nil)
	if c, _ := choose(t, r, req); c.Slot != 1 {
		t.Fatalf("slot %d", c.Slot)
	}
	cfg := model.DefaultClusterConfig()
	if _, err := model.SetClusterFields(&cfg, []model.FieldValue{{Field: "router_prefill_load_scale", Value: "4"}}); err != nil {
		t.Fatal(err)
	}
	if err := r.Configure(model.ModeKV, cfg); err != nil {
		t.Fatal(err)
	}
	if c, _ := choose(t, r, req); c.Slot != 2 {
		t.Errorf("slot %d, want 2", c.Slot)
	}
	cfg.PrefillLoadScale = -1
	if err := r.Configure(model.ModeKV, cfg); !errors.Is(err, ErrConfig) {
		t.Errorf("negative scale: %v", err)
	}
	if err := r.Configure("fastest", model.DefaultClusterConfig()); !errors.Is(err, ErrConfig) {
		t.Errorf("unknown mode: %v", err)
	}
}

func TestLockstepTies(t *testing.T) {
	r := fleet(t, model.ModeLockstep, model.DefaultClusterConfig(), 1, 4)
	turn := func(id int64, blocks []uint64) Choice {
		t.Helper()
		req := Request{ID: id, PromptTokens: 16 * len(blocks), Blocks: blocks}
		c, _ := choose(t, r, req)
		if err := r.Book(0, &req, &c); err != nil {
			t.Fatal(err)
		}
		r.Free(0, id)
		return c
	}
	a, b := chain(1, 40), chain(2, 40)
	for i := range 4 { // all idle: the longest idle goes next
		if c := turn(int64(i), chain(uint64(10+i), 4)); c.Slot != int32(i) || c.Tie != model.TieIdle || c.Tied != 4 {
			t.Fatalf("turn %d went to slot %d by %q", i, c.Slot, c.Tie)
		}
	}
	if c := turn(10, a[:20]); c.Slot != 0 {
		t.Fatalf("slot %d", c.Slot)
	}
	if c := turn(11, b[:20]); c.Slot != 1 {
		t.Fatalf("slot %d", c.Slot)
	}
	if c := turn(12, a); c.Slot != 0 || c.Tie != model.TiePrefix {
		t.Errorf("longer prompt of the same prefix went to slot %d by %q, want 0 by prefix", c.Slot, c.Tie)
	}
	if c := turn(13, b[:30]); c.Slot != 1 || c.Tie != model.TiePrefix {
		t.Errorf("slot %d by %q", c.Slot, c.Tie)
	}
}

func TestRecordChangesNothingAndRescoreAgrees(t *testing.T) {
	for _, mode := range []model.RouterMode{model.ModeKV, model.ModeLockstep} {
		cfg := model.DefaultClusterConfig()
		cfg.KVOverlapScoreCreditDecay, cfg.DecodeActiveRequestWeight = 0.5, 0.3
		cfg.SharedCacheType = model.SharedCacheHiCache
		with, without := random(t, mode, cfg, 3), random(t, mode, cfg, 3)
		var rec model.Selection
		terms := make([]model.ScoreTerms, 64)
		for i := range 400 {
			with.turn(t, &rec)
			without.turn(t, nil)
			if with.c != without.c {
				t.Fatalf("%s, turn %d: recording changed the choice\n%+v\n%+v", mode, i, with.c, without.c)
			}
			best, _ := Rescore(&rec, mode, &cfg, terms)
			if rec.Candidates[best].Target != rec.Chosen && rec.Candidates[best].Cost != with.c.Cost {
				t.Fatalf("%s, turn %d: rescoring chose %v, not %v", mode, i, rec.Candidates[best].Target, rec.Chosen)
			}
			for k := range rec.Candidates {
				if rec.Candidates[k].Excluded == "" && math.Abs(terms[k].Cost-rec.Candidates[k].Cost) > 1e-9 {
					t.Fatalf("%s: candidate %d costs %v, rescored %v", mode, k, rec.Candidates[k].Cost, terms[k].Cost)
				}
			}
		}
	}
}
