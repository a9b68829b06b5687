package adp

import (
	"reflect"
	"slices"
	"testing"

	"adpdeck/router/model"
)

func loaded(pairs ...[2]int) []model.RankState {
	var s []model.RankState
	for k, p := range pairs {
		s = append(s, model.RankState{Rank: k, NumActiveRequests: p[0], NumActiveTokens: p[1]})
	}
	return s
}

// TestWorkedExample is adp.md's: three requests that share a prefix, one tie
// broken by tokens and then by the shuffle.
func TestWorkedExample(t *testing.T) {
	lead := make([]int32, 64)
	b := &Batch{
		HardCap: 8, States: loaded([2]int{1, 400}, [2]int{0, 0}, [2]int{2, 100}, [2]int{0, 0}),
		Requests: []Request{
			{ID: 1 << 40, Tokens: 320, Lead: lead, Matches: []int32{256}},
			{ID: 1<<40 + 1, Tokens: 320, Lead: lead},
			{ID: 1<<40 + 2, Tokens: 64, Lead: lead, Matches: []int32{0, 0, 32}},
		},
	}
	r := New(4, model.DefaultAttentionDpConfig().WithPolicy(model.PolicyKVAware), nil, Options{Parity: true, Record: true})
	var out Result
	if err := r.Route(b, &out); err != nil {
		t.Fatal(err)
	}
	if want := [][]int32{{}, {1}, {2}, {0}}; !reflect.DeepEqual(out.Assignments, want) || out.Expected != 4 {
		t.Fatalf("got %v, expected %d; want %v, 4", out.Assignments, out.Expected, want)
	}
	a := out.Placements[0]
	if a.Phase != model.PhaseScored || a.Tie != model.TieShuffle || !slices.Equal(a.Tied, []int{1, 3}) {
		t.Errorf("tie %q of %v, want the shuffle between 1 and 3", a.Tie, a.Tied)
	}
	if !a.GateOpen || a.HitRate != 0.8 || a.Denom != 500 || a.AddedTokens != 320 || a.MatchTokens != 0 || a.Expected != 4 || a.HardCap != 8 {
		t.Errorf("got %+v", a)
	}
	want := model.Candidate{Rank: 0, Count: 1, Tokens: 400, MatchTokens: 256, PrefillTokens: 64, LoadTerm: 256, Score: 320}
	if a.Candidates[0] != want {
		t.Errorf("got %+v, want %+v", a.Candidates[0], want)
	}
	if c := out.Placements[2]; c.Rank != 2 || c.MatchTokens != 32 || c.AddedTokens != 32 || !c.GateOpen {
		t.Errorf("got %+v", c)
	}
}

func TestEachPhaseIsRecorded(t *testing.T) {
	kv := model.DefaultAttentionDpConfig().WithPolicy(model.PolicyKVAware)
	warm := kv
	warm.KVCacheRoutingColdStartWarmup = true
	conv := model.DefaultAttentionDpConfig().WithPolicy(model.PolicyConversation)
	queued, tokens := conv, conv
	queued.KVCacheRoutingNewConvPlacement = model.PlaceLeastQueued
	tokens.KVCacheRoutingNewConvPlacement = model.PlaceLeastTokens
	plain := model.DefaultAttentionDpConfig()
	ask := &Params{Rank: ptr(1)}
	cases := map[string]struct {
		cfg    model.AttentionDpConfig
		batch  Batch
		phases []model.Phase
		rank   int
		tie    model.Tie
		tied   []int
		added  float64
		excl   []string
	}{
		"explicit, default": {
			cfg: plain, batch: Batch{States: idle(2), HardCap: 1, Requests: []Request{{Tokens: 7, Params: ask}}},
			phases: []model.Phase{model.PhaseExplicit}, rank: 1, excl: []string{"", ""},
		},
		"explicit, kv-aware": {
			cfg: kv, batch: Batch{States: loaded([2]int{2, 5}, [2]int{0, 0}), HardCap: 2, Requests: []Request{{Tokens: 7, Params: ask, Matches: []int32{0, 3}}}},
			phases: []model.Phase{model.PhaseExplicit}, rank: 1, added: 4, excl: []string{"hard cap", ""},
		},
		"warm-up": {
			cfg: warm, batch: Batch{States: idle(2), HardCap: 4, Requests: convs("")},
			phases: []model.Phase{model.PhaseWarmup}, added: 10, excl: []string{"", ""},
		},
		"balanced by count": {
			cfg: plain, batch: Batch{States: loaded([2]int{2, 5}, [2]int{1, 5}, [2]int{3, 9}), HardCap: 4, Requests: convs("")},
			phases: []model.Phase{model.PhaseBalanced}, rank: 1, tie: model.TieCount, tied: []int{0, 1}, added: 10, excl: []string{"", "", "soft cap"},
		},
		"balanced by index": {
			cfg: plain, batch: Batch{States: idle(3), HardCap: 4, Closed: []bool{true}, Requests: convs("")},
			phases: []model.Phase{model.PhaseBalanced}, rank: 1, tie: model.TieIndex, tied: []int{1, 2}, added: 10, excl: []string{"draining", "", ""},
		},
		"tie by tokens": {
			cfg: kv, batch: Batch{States: loaded([2]int{0, 10}, [2]int{0, 0}), HardCap: 4, Requests: []Request{{Tokens: 100, Matches: []int32{10, 0}}}},
			phases: []model.Phase{model.PhaseScored}, rank: 1, added: 100, excl: []string{"", ""},
		},
		"unplaced": {
			cfg: plain, batch: Batch{States: idle(2), HardCap: 1, Weights: []float64{1, 0}, Requests: convs("", "")},
			phases: []model.Phase{model.PhaseBalanced, model.PhaseUnplaced}, added: 10, excl: []string{"", "weight 0"},
		},
		"placed in turn": {
			cfg: conv, batch: Batch{States: idle(2), HardCap: 4, Requests: convs("a", "a")},
			phases: []model.Phase{model.PhasePlaced, model.PhasePinned}, excl: []string{"", ""},
		},
		"overflow": {
			cfg: conv, batch: Batch{States: idle(2), HardCap: 1, Requests: convs("a", "a")},
			phases: []model.Phase{model.PhasePlaced, model.PhaseOverflow}, excl: []string{"", ""},
		},
		"least queued": {
			cfg: queued, batch: Batch{States: loaded([2]int{2, 0}, [2]int{1, 9}, [2]int{1, 3}), HardCap: 4, Requests: convs("a")},
			phases: []model.Phase{model.PhasePlaced}, rank: 1, tie: model.TieIndex, tied: []int{1, 2}, excl: []string{"", "", ""},
		},
		"least tokens": {
			cfg: tokens, batch: Batch{States: loaded([2]int{1, 4}, [2]int{1, 4}, [2]int{1, 8}), HardCap: 4, Requests: convs("a")},
			phases: []model.Phase{model.PhasePlaced}, tie: model.TieCursor, tied: []int{0, 1}, added: 10, excl: []string{"", "", ""},
		},
		"all full": {
			cfg: queued, batch: Batch{States: loaded([2]int{3, 0}, [2]int{2, 0}), HardCap: 1, Requests: convs("a")},
			phases: []model.Phase{model.PhasePlaced}, rank: 1, excl: []string{"", ""},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out Result
			if err := New(len(c.batch.States), c.cfg, nil, Options{Record: true}).Route(&c.batch, &out); err != nil {
				t.Fatal(err)
			}
			for i, p := range out.Placements {
				if p.Phase != c.phases[i] || p.Rank != int(out.Ranks[i]) || p.Expected != out.Expected || len(p.Candidates) != len(c.batch.States) {
					t.Errorf("request %d: %+v, want phase %s", i, p, c.phases[i])
				}
			}
			p := out.Placements[0]
			if p.Rank != c.rank || p.Tie != c.tie || !slices.Equal(p.Tied, c.tied) || p.AddedTokens != c.added {
				t.Errorf("rank %d, tie %q %v, added %v; want %d, %q %v, %v", p.Rank, p.Tie, p.Tied, p.AddedTokens, c.rank, c.tie, c.tied, c.added)
			}
			for k, x := range p.Candidates {
				if x.Excluded != c.excl[k] {
					t.Errorf("rank %d is excluded by %q, want %q", k, x.Excluded, c.excl[k])
				}
				if x.Score.Known() != (p.Phase == model.PhaseScored && x.Excluded == "") {
					t.Errorf("rank %d: score known: %v", k, x.Score.Known())
				}
			}
		})
	}
}

func TestTieByTokensNamesTheEqualScores(t *testing.T) {
	// Rank 0: 64 to prefill and load 64 of 128; rank 1: 96 to prefill and load
	// 32 of 128. Both score 128.
	b := &Batch{
		HardCap: 9, States: loaded([2]int{1, 64}, [2]int{1, 32}, [2]int{1, 32}),
		Requests: []Request{{ID: 3, Tokens: 128, Matches: []int32{64, 32}}},
	}
	var out Result
	_ = New(3, model.DefaultAttentionDpConfig().WithPolicy(model.PolicyKVAware), nil, Options{Record: true}).Route(b, &out)
	if p := out.Placements[0]; p.Rank != 1 || p.Tie != model.TieTokens || !slices.Equal(p.Tied, []int{0, 1}) {
		t.Errorf("rank %d, tie %q %v; want 1 by tokens among 0 and 1", p.Rank, p.Tie, p.Tied)
	}
}

func TestWeightsShowInTheRecord(t *testing.T) {
	b := &Batch{HardCap: 9, States: loaded([2]int{2, 100}, [2]int{2, 100}), Weights: []float64{2, 1}, Requests: convs("")}
	var out Result
	_ = New(2, model.DefaultAttentionDpConfig().WithPolicy(model.PolicyKVAware), nil, Options{Record: true}).Route(b, &out)
	if c := out.Placements[0].Candidates[0]; c.Count != 1 || c.Tokens != 50 || out.Ranks[0] != 0 {
		t.Errorf("got %+v on rank %d", c, out.Ranks[0])
	}
}

func TestLargeFleetsLeaveCandidatesOut(t *testing.T) {
	b := &Batch{HardCap: 9, States: idle(100), Requests: []Request{{Tokens: 10, Matches: make([]int32, 100)}}}
	for k := range b.States {
		b.States[k].NumActiveTokens = 1000 - k
	}
	for _, cfg := range everyConfig() {
		var out Result
		_ = New(100, cfg, nil, Options{Record: true, MaxCandidates: 8}).Route(b, &out)
		p := out.Placements[0]
		if len(p.Candidates) != 8 || p.LeftOut != 92 {
			t.Fatalf("%d candidates, %d left out; want 8 and 92", len(p.Candidates), p.LeftOut)
		}
		has := slices.ContainsFunc(p.Candidates, func(c model.Candidate) bool { return c.Rank == p.Rank })
		if !has || !slices.IsSortedFunc(p.Candidates, func(a, b model.Candidate) int { return a.Rank - b.Rank }) {
			t.Error("the chosen rank is missing, or the order is not by rank")
		}
	}
}
