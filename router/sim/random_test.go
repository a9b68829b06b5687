package sim

import (
	"bytes"
	"context"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"adpdeck/router/model"
	"adpdeck/router/trace"
)

// randomRows makes traffic that shares prefixes and crowds a small cluster.
func randomRows(seed uint64, n int) []trace.Row {
	rng := rand.New(rand.NewPCG(seed, 7))
	var rows []trace.Row
	at := time.Duration(0)
	for range n {
		if rng.IntN(3) > 0 {
			at += time.Duration(rng.IntN(60)) * time.Millisecond
		}
		conv := ""
		group := rng.IntN(6)
		if rng.IntN(4) > 0 {
			conv = string(rune('a' + group))
		}
		rows = append(rows, row(at, conv, 1+rng.IntN(9000), 1+rng.IntN(40), uint64(group*1000)))
	}
	return rows
}

// TestEveryRequestEndsOnce runs random traffic over random clusters and
// policies: every request is submitted once, placed once, ends once, and the
// caches stay sound.
func TestEveryRequestEndsOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := small(rapid.IntRange(1, 5).Draw(rt, "ranks"), rapid.IntRange(1, 6).Draw(rt, "cap"))
		cfg.Workers = rapid.IntRange(1, 3).Draw(rt, "workers")
		cfg.Blocks = rapid.IntRange(4, 60).Draw(rt, "blocks")
		cfg.Speed = rapid.SampledFrom([]float64{.5, 1, 4}).Draw(rt, "speed")
		rows := randomRows(rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(1, 60).Draw(rt, "rows"))
		set := settingsFor(rapid.SampledFrom([]model.Policy{model.PolicyDefault, model.PolicyKVAware, model.PolicyConversation}).Draw(rt, "policy"),
			rapid.SampledFrom([]string{model.PlaceRoundRobin, model.PlaceLeastQueued, model.PlaceLeastTokens}).Draw(rt, "placement"))
		c := &set.AttentionDpConfig
		c.EnableBalance = rapid.Bool().Draw(rt, "balance")
		c.KVCacheRoutingColdStartWarmup = rapid.Bool().Draw(rt, "warm-up")
		c.KVCacheRoutingFairShareMultiplier = rapid.SampledFrom([]float64{.5, 1, 2}).Draw(rt, "multiplier")
		c.TimeoutIters, c.BatchingWaitIters = rapid.IntRange(0, 5).Draw(rt, "timeout"), rapid.IntRange(0, 5).Draw(rt, "batching")
		set.MinGenerationRequests = rapid.IntRange(0, 3).Draw(rt, "min generation")
		e, err := NewEngine(cfg.Specs(), set)
		if err != nil {
			rt.Fatal(err)
		}
		sc := script(t, e)
		s := play(t, cfg, rows, sc)
		if err := s.Run(context.Background(), nil); err != nil {
			rt.Fatal(err)
		}
		r := s.Report(0)
		if r.Unserved != 0 || len(sc.open) != 0 || s.ended+s.failed != int64(len(rows)) || !s.Done() {
			rt.Fatalf("%d of %d ended, %d failed, %d unserved, %d open at the router", s.ended, len(rows), s.failed, r.Unserved, len(sc.open))
		}
		for _, w := range s.workers {
			for i, k := range w.ranks {
				k.cache.check(rt)
				if k.active() != 0 || k.tokens != 0 || k.cached != 0 || k.pending != 0 || k.context != 0 || k.cache.inUse() != 0 {
					rt.Fatalf("rank %d is not empty at the end: %+v", i, *k)
				}
			}
		}
		if share := float64(r.StepWaitShare); len(rows) > int(s.failed) && (share < 0 || share >= 1) {
			rt.Fatalf("wait share %f", share)
		}
		if t.Failed() {
			rt.Fatal("the router was called wrongly")
		}
	})
}

// TestSlicesDoNotMatter runs the same traffic at once and in slices of 20 ms,
// of a prime, and event by event, feeding the screen between: all that the
// router is asked, and the report, must be equal.
func TestSlicesDoNotMatter(t *testing.T) {
	cfg := small(4, 3)
	cfg.Workers, cfg.Blocks = 2, 60
	rows := randomRows(3, 300)
	one := func(slice time.Duration, limit int) ([]string, Report) {
		set := settingsFor(model.PolicyKVAware, "")
		set.AttentionDpConfig.EnableBalance = true
		e, err := NewEngine(cfg.Specs(), set)
		if err != nil {
			t.Fatal(err)
		}
		sc := script(t, e)
		s := play(t, cfg, rows, sc)
		sc.now = s.Now
		for until := slice; !s.Done(); {
			if slice == 0 {
				return sc.log, run(t, s)
			}
			reached, err := s.Advance(until, limit)
			if err != nil {
				t.Fatal(err)
			}
			if reached {
				until += slice
			}
			s.Feed()
		}
		r := s.Report(0)
		r.VirtualSeconds = 0
		return sc.log, r
	}
	log, report := one(0, 0)
	report.VirtualSeconds = 0
	if len(log) < 3*len(rows) {
		t.Fatalf("only %d calls were noted", len(log))
	}
	for _, c := range []struct {
		slice time.Duration
		limit int
	}{{20 * time.Millisecond, 0}, {7919 * time.Microsecond, 0}, {time.Second, 1}} {
		otherLog, other := one(c.slice, c.limit)
		if !reflect.DeepEqual(log, otherLog) {
			t.Errorf("slices of %s give another run", c.slice)
		}
		if !bytes.Equal(reportJSON(t, report), reportJSON(t, other)) {
			t.Errorf("slices of %s give another report:\n%s\n%s", c.slice, reportJSON(t, report), reportJSON(t, other))
		}
	}
}

func reportJSON(t *testing.T, r Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestSeedsMatter gives another seed another run: ids break ties.
func TestSeedsMatter(t *testing.T) {
	one := func(seed uint64) []byte {
		cfg := small(4, 8)
		cfg.Seed = seed
		e, err := NewEngine(cfg.Specs(), settingsFor(model.PolicyKVAware, ""))
		if err != nil {
			t.Fatal(err)
		}
		s := play(t, cfg, randomRows(1, 200), e)
		r := run(t, s)
		r.Seed = 0
		return reportJSON(t, r)
	}
	if !bytes.Equal(one(5), one(5)) {
		t.Error("the same seed gave two runs")
	}
	if bytes.Equal(one(5), one(6)) {
		t.Error("another seed gave the same run")
	}
}

// TestStepsDoNotAllocate counts allocations while requests decode.
func TestStepsDoNotAllocate(t *testing.T) {
	cfg := small(4, 8)
	var rows []trace.Row
	for i := range 16 {
		rows = append(rows, row(0, "", 600, 100_000, uint64(i*1000)))
	}
	e, err := NewEngine(cfg.Specs(), settingsFor(model.PolicyKVAware, ""))
	if err != nil {
		t.Fatal(err)
	}
	s := play(t, cfg, rows, e)
	at := time.Second
	if _, err := s.Advance(at, 0); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		at += 100 * time.Millisecond
		if _, err := s.Advance(at, 0); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("100 ms of steps allocate %.1f times", n)
	}
}
