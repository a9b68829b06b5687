package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"adpdeck/router/settings"
	"adpdeck/router/sim"
	"adpdeck/router/sim/compare"
)

// TestModeFilesAreRead reads the mode files and the study's list as a command
// would.
func TestModeFilesAreRead(t *testing.T) {
	for name, want := range map[string]string{"kv.yaml": "kv", "lockstep.yaml": "lockstep"} {
		c := &clusterFlags{workers: 1, ranks: 8, file: filepath.Join("..", "..", "docs", name)}
		s, err := c.settings(sim.DefaultSettings())
		if err != nil || string(s.RouterMode) != want || s.ClusterConfig.SessionAffinityTTLSecs != nil {
			t.Errorf("%s: mode %s, %v", name, s.RouterMode, err)
		}
	}
	path := filepath.Join("..", "..", "docs", "lockstep-compare.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := compare.Parse(path, text, compare.Entry{Workers: 1, Ranks: 8, Speed: 1, Settings: sim.DefaultSettings()})
	if err != nil || len(entries) != 13 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	if len(text) > settings.MaxBytes {
		t.Error("the list is too long")
	}
}

// replayed plays a public trace headless and skips where it is not at hand.
func replayed(t *testing.T, c *clusterFlags, name string) sim.Report {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "traces", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the public trace %s is not beside this tree", name)
	}
	if c.speed == 0 {
		c.speed = 1
	}
	c.seed = 1
	traffic, cfg, _, err := c.traffic(path)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := c.build(traffic, cfg, cfg.Start, c.speed, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := cl.sim.Run(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	return cl.sim.Report(0)
}

// TestModesKeepWhatTheyPromise holds docs/kv.yaml and docs/lockstep.yaml to the
// figures that docs/lockstep.md gives them.
func TestModesKeepWhatTheyPromise(t *testing.T) {
	if testing.Short() {
		t.Skip("plays whole traces")
	}
	const mooncake, agents = "mooncake_conversation_trace.jsonl", "agent_sessions_hashed.jsonl"
	kv := filepath.Join("..", "..", "docs", "kv.yaml")
	for name, c := range map[string]struct {
		trace          string
		workers, ranks int
		hit, busiest   float64
	}{
		"two workers":    {mooncake, 2, 4, .97, 1.30},
		"four workers":   {mooncake, 4, 8, .97, 1.30},
		"agent sessions": {agents, 4, 8, .94, 2},
	} {
		t.Run("kv/"+name, func(t *testing.T) {
			r := replayed(t, &clusterFlags{workers: c.workers, ranks: c.ranks, file: kv}, c.trace)
			if float64(r.ShareOfIdeal) < c.hit || float64(r.MaxOverMeanTokens) > c.busiest {
				t.Errorf("%.4f of ideal, busiest %.3f; want %.2f and %.2f", r.ShareOfIdeal, r.MaxOverMeanTokens, c.hit, c.busiest)
			}
		})
	}
	t.Run("lockstep", func(t *testing.T) {
		near := &clusterFlags{workers: 1, ranks: 8, speed: 12, file: filepath.Join("..", "..", "docs", "lockstep.yaml")}
		ours := replayed(t, near, mooncake)
		engine := replayed(t, &clusterFlags{workers: 1, ranks: 8, speed: 12, policy: "kv_aware"}, mooncake)
		if ours.TTFTMs.Mean > engine.TTFTMs.Mean/2 || ours.PrefixHitRate < .98*engine.PrefixHitRate {
			t.Errorf("mean TTFT %.0f ms and hit rate %.4f, the engine's KV-aware router has %.0f and %.4f",
				ours.TTFTMs.Mean, ours.PrefixHitRate, engine.TTFTMs.Mean, engine.PrefixHitRate)
		}
	})
}
