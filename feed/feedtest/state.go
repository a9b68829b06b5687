package feedtest

import (
	"fmt"
	"time"

	"adpdeck/router/model"
)

// Epoch0 is the moment of the states that State makes.
func Epoch0() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// State makes a plausible state: workers w0, w1, … of so many ranks each, and
// conversations c0 (the newest), c1, …, a second apart.
func State(workers, ranks, convs int) *model.State {
	s := &model.State{At: Epoch0(), Version: 1}
	s.Settings.AttentionDpConfig = model.DefaultAttentionDpConfig()
	s.Settings.RouterMode = model.ModeRoundRobin
	s.Initial = s.Settings
	s.Source = model.Source{Kind: "simulated", Name: "test", Speed: 1}
	for w := range workers {
		id := fmt.Sprintf("w%d", w)
		s.Workers = append(s.Workers, model.Worker{ID: id, Engine: "sim", Ranks: ranks})
		for r := range ranks {
			s.Ranks = append(s.Ranks, Rank(id, r, 0))
		}
	}
	for i := range convs {
		s.Convs = append(s.Convs, Conv(fmt.Sprintf("c%d", i), s.At.Add(-time.Duration(i)*time.Second)))
	}
	return s
}

// Rank is rank r of a worker after so many requests.
func Rank(worker string, r int, requests uint64) model.Rank {
	return model.Rank{
		Target: model.Target{Worker: worker, Rank: r}, Availability: model.Ready, Weight: 1, ReportedAt: Epoch0(),
		Active: 12, MaxActive: 16, Queued: 1, Tokens: 48_123 + int(requests%977), PendingTokens: 2_310,
		KVUsedBlocks: 12_345, KVTotalBlocks: 20_000, InFlight: 13, Hit: 0.91, Reachable: 0.93, Pins: 121, Requests: requests,
	}
}

// Conv is a conversation whose last turn came at a time.
func Conv(id string, at time.Time) *model.Conv {
	return &model.Conv{
		Key: model.ConvKey{Tenant: "tenant-a", Model: "m", ID: id}, Pin: model.PinAuto,
		Bound: model.Target{Worker: "w0", Rank: 1}, Last: model.Target{Worker: "w0", Rank: 1},
		FirstAt: at.Add(-time.Minute), LastAt: at, Turns: 7, PromptTokens: 6_144, CachedTokens: 5_120, Honoured: 7,
	}
}

// Decision is decision id with so many candidates.
func Decision(id uint64, candidates int) *model.Decision {
	d := &model.Decision{
		ID: id, At: Epoch0(), Conv: model.ConvKey{Tenant: "tenant-a", ID: fmt.Sprintf("c%d", id)},
		Target: model.Target{Worker: "w0"}, Policy: model.PolicyKVAware, Mode: model.ModeRoundRobin, Version: 1,
		WorkerWhy: "next in turn", Why: "longest prefix", RunnerUp: 3, Margin: 120, Reachable: 5_120, TookNs: 41_000,
		Placement: model.Placement{Request: int64(id), Phase: model.PhaseScored, PromptTokens: 6_144, MatchTokens: 5_120},
	}
	for r := range candidates {
		d.Placement.Candidates = append(d.Placement.Candidates, model.Candidate{
			Rank: r, Count: 12, Tokens: 48_000, MatchTokens: 64 * r, PrefillTokens: 1_024, LoadTerm: 0.5, Score: 1_571,
		})
	}
	return d
}
