package sim

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/trace"
)

// openShared opens one of the public traces, which are not part of this tree.
func openShared(t testing.TB, name string) *trace.Trace {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "traces", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the public trace %s is not beside this tree", name)
	}
	tr, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// settingsFor returns upstream's defaults under a policy.
func settingsFor(p model.Policy, placement string) model.Settings {
	s := DefaultSettings()
	s.AttentionDpConfig = model.DefaultAttentionDpConfig().WithPolicy(p)
	if placement != "" {
		s.AttentionDpConfig.KVCacheRoutingNewConvPlacement = placement
	}
	return s
}

func TestMooncakeTargets(t *testing.T) {
	if testing.Short() {
		t.Skip("eight replays of a whole trace")
	}
	tr := openShared(t, "mooncake_conversation_trace.jsonl")
	type target struct {
		policy         model.Policy // empty: Rotate
		workers, ranks int
		atLeast        float64 // share of the ideal hit rate
		atMost         float64
	}
	targets := []target{
		{model.PolicyKVAware, 1, 8, .93, 1},
		{model.PolicyKVAware, 1, 32, .93, 1},
		{model.PolicyConversation, 1, 8, .93, 1},
		{model.PolicyConversation, 1, 32, .93, 1},
		{model.PolicyConversation, 2, 4, .93, 1},
		{model.PolicyConversation, 4, 8, .93, 1},
		{"", 1, 8, 0, .45},
		{"", 1, 32, 0, .30},
	}
	for _, c := range targets {
		cfg := ReplayConfig()
		cfg.Workers, cfg.Ranks, cfg.BlockTokens = c.workers, c.ranks, tr.BlockTokens
		s, err := New(cfg, tr.Play())
		if err != nil {
			t.Fatal(err)
		}
		if c.policy == "" {
			s.Use(NewRotate(cfg.Specs()))
		} else {
			e, err := NewEngine(cfg.Specs(), settingsFor(c.policy, ""))
			if err != nil {
				t.Fatal(err)
			}
			s.Use(e)
		}
		began := time.Now()
		if err := s.Run(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		r := s.Report(time.Since(began))
		t.Logf("%-12s %d×%-2d hit %.4f of %.4f = %.1f %%, max/mean %.2f %.2f, ttft %.0f/%.0f, wait %.2f, moves %.3f, %d steps, %.2f s",
			r.Policy, c.workers, c.ranks, r.PrefixHitRate, r.IdealHitRate, r.ShareOfIdeal*100, r.MaxOverMeanRequests,
			r.MaxOverMeanTokens, r.TTFTMs.Mean, r.TTFTMs.P99, r.StepWaitShare, r.MovesPerConversation, r.Steps, r.WallSeconds)
		if float64(r.ShareOfIdeal) < c.atLeast || float64(r.ShareOfIdeal) > c.atMost {
			t.Errorf("%s at %d×%d finds %.3f of the ideal, must be %.2f to %.2f", r.Policy, c.workers, c.ranks, r.ShareOfIdeal, c.atLeast, c.atMost)
		}
		if r.WallSeconds > 20 {
			t.Errorf("%d×%d took %.1f s", c.workers, c.ranks, r.WallSeconds)
		}
		if r.Requests != 12031 || r.Unserved != 0 || r.Refused != 0 || r.Failed != 0 {
			t.Errorf("not all served: %+v", r)
		}
	}
}

// TestOtherTracesReplay plays the two other formats to their end.
func TestOtherTracesReplay(t *testing.T) {
	if testing.Short() {
		t.Skip("four replays of whole traces")
	}
	for name, atLeast := range map[string]float64{"agent_sessions_hashed.jsonl": .85, "AzureLLMInferenceTrace_conv.csv": 0} {
		t.Run(name, func(t *testing.T) {
			tr := openShared(t, name)
			for _, ranks := range []int{8, 32} {
				cfg := ReplayConfig()
				cfg.Ranks, cfg.BlockTokens = ranks, tr.BlockTokens
				e, err := NewEngine(cfg.Specs(), settingsFor(model.PolicyKVAware, ""))
				if err != nil {
					t.Fatal(err)
				}
				s, err := New(cfg, tr.Play())
				if err != nil {
					t.Fatal(err)
				}
				s.Use(e)
				r := run(t, s)
				t.Logf("%d ranks: hit %.3f of %.3f, max/mean %.2f, ttft %.0f/%.0f, wait %.2f", ranks, r.PrefixHitRate, r.IdealHitRate,
					r.MaxOverMeanRequests, r.TTFTMs.Mean, r.TTFTMs.P99, r.StepWaitShare)
				if r.Unserved != 0 || r.Failed != 0 || r.Requests != int64(len(tr.Rows)) || float64(r.PrefixHitRate) < atLeast {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

// BenchmarkReplay plays the Mooncake conversation trace over four workers of
// eight ranks.
func BenchmarkReplay(b *testing.B) {
	tr := openShared(b, "mooncake_conversation_trace.jsonl")
	for b.Loop() {
		cfg := ReplayConfig()
		cfg.Workers = 4
		e, err := NewEngine(cfg.Specs(), settingsFor(model.PolicyKVAware, ""))
		if err != nil {
			b.Fatal(err)
		}
		s, err := New(cfg, tr.Play())
		if err != nil {
			b.Fatal(err)
		}
		s.Use(e)
		if err := s.Run(context.Background(), nil); err != nil {
			b.Fatal(err)
		}
	}
}
