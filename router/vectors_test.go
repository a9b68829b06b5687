package router

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"adpdeck/router/model"

	"github.com/google/go-cmp/cmp"
)

type vectorParams struct {
	Rank     *int   `json:"attention_dp_rank"`
	Relax    *bool  `json:"attention_dp_relax"`
	Affinity string `json:"subagent_affinity_id"`
}

type vectorRequest struct {
	ID      int64         `json:"id"`
	Tokens  [][2]int64    `json:"tokens"`
	Null    bool          `json:"null_request"`
	Params  *vectorParams `json:"scheduling_params"`
	Conv    string        `json:"conversation_id"`
	Matches [][2]int      `json:"match_lens"`
}

type vectorStep struct {
	States   [][3]int        `json:"rank_states"`
	HardCap  int             `json:"max_num_active_requests"`
	Requests []vectorRequest `json:"requests"`
	Expect   struct {
		Assignments [][]int64 `json:"assignments"`
		Expected    int       `json:"expected_num_active_requests"`
		Pending     []int     `json:"pending_warmup"`
		Pins        [][2]any  `json:"pins"`
		Cursor      int       `json:"cursor"`
		Error       string    `json:"error"`
	} `json:"expect"`
}

type vectorLine struct {
	N      int    `json:"n"`
	Router string `json:"router"`
	Ranks  int    `json:"tp_size"`
	Config struct {
		Beta       *float64 `json:"load_balance_weight"`
		Threshold  *float64 `json:"match_rate_threshold"`
		Multiplier *float64 `json:"fair_share_multiplier"`
		Warmup     bool     `json:"cold_start_warmup"`
		Sessions   *int     `json:"max_sessions"`
		Placement  string   `json:"new_conv_placement"`
	} `json:"config"`
	Steps []vectorStep `json:"steps"`
}

func (l *vectorLine) settings() (s model.Settings) {
	c := model.DefaultAttentionDpConfig().WithPolicy(model.Policy(l.Router))
	or := func(dst *float64, v *float64) {
		if v != nil {
			*dst = *v
		}
	}
	or(&c.KVCacheRoutingLoadBalanceWeight, l.Config.Beta)
	or(&c.KVCacheRoutingMatchRateThreshold, l.Config.Threshold)
	or(&c.KVCacheRoutingFairShareMultiplier, l.Config.Multiplier)
	c.KVCacheRoutingColdStartWarmup = l.Config.Warmup
	if l.Config.Sessions != nil {
		c.KVCacheRoutingMaxSessions = *l.Config.Sessions
	}
	c.KVCacheRoutingNewConvPlacement = l.Config.Placement
	s.AttentionDpConfig = c
	return s
}

// request writes a vector's request as the live router takes it; ok is false
// for what a client of it cannot say: no request object, a relax flag that is
// unset or false without a rank in the conversation router, a bad rank.
func (l *vectorLine) request(v *vectorRequest) (q model.Request, matches []int32, ok bool) {
	if v.Null {
		return q, nil, false
	}
	q = model.Request{ID: v.ID, Conv: model.ConvKey{ID: v.Conv}}
	for _, seg := range v.Tokens {
		for i := int64(0); i < seg[1] && len(q.Lead) < 64; i++ {
			q.Lead = append(q.Lead, int32((seg[0]*1000003+i*7919)%50000))
		}
		q.PromptTokens += int(seg[1])
	}
	matches = make([]int32, l.Ranks)
	for _, m := range v.Matches {
		matches[m[0]] = int32(m[1])
	}
	p := v.Params
	if p == nil {
		return q, matches, true
	}
	if p.Affinity != "" {
		q.Conv.ID = p.Affinity
	}
	if l.Router == "conversation" && (p.Relax == nil || p.Rank == nil && !*p.Relax) {
		return q, nil, false
	}
	if p.Rank != nil {
		if *p.Rank < 0 || *p.Rank >= l.Ranks {
			return q, nil, false
		}
		q.Explicit = &model.Target{Worker: "w0", Rank: *p.Rank}
		q.Relax = p.Relax == nil || *p.Relax
	}
	return q, matches, true
}

func eachVector(t *testing.T, f func(*vectorLine)) {
	t.Helper()
	file, err := os.Open("adp/testdata/adp_routers.jsonl.gz")
	if err != nil {
		t.Skipf("vectors are not there: %v", err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(z)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		l := &vectorLine{}
		if err := json.Unmarshal(in.Bytes(), l); err != nil {
			t.Fatal(err)
		}
		f(l)
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
}

// TestVectors runs the engine tier's vectors through Submit, Step and Done of
// a router of one worker: with nothing pinned, both tiers together must answer
// as TensorRT-LLM's router alone, with and without records.
func TestVectors(t *testing.T) {
	lines, steps := map[string]int{}, 0
	eachVector(t, func(l *vectorLine) {
		if l.Ranks == 0 || !l.expressible() {
			return
		}
		if n, err := l.run(l.N%2 == 0); err != nil {
			t.Fatalf("line %d (%s): %v", l.N, l.Router, err)
		} else {
			steps += n
		}
		lines[l.Router]++
	})
	t.Logf("%v lines, %d steps", lines, steps)
	for _, router := range []string{"default", "kv_aware", "conversation"} {
		if lines[router] < 200 {
			t.Errorf("only %d lines of %s were fit to run", lines[router], router)
		}
	}
}

func (l *vectorLine) expressible() bool {
	for i := range l.Steps {
		s := &l.Steps[i]
		seen := map[int64]bool{}
		if s.Expect.Error != "" {
			return false
		}
		for k, st := range s.States {
			if st[0] != k {
				return false
			}
		}
		for j := range s.Requests {
			if _, _, ok := l.request(&s.Requests[j]); !ok || seen[s.Requests[j].ID] {
				return false
			}
			seen[s.Requests[j].ID] = true
		}
	}
	return true
}

func (l *vectorLine) run(record bool) (steps int, err error) {
	r, err := New(Config{
		Clock: &fakeClock{}, Record: record, Settings: l.settings(),
		Workers: []model.WorkerSpec{{ID: "w0", Ranks: l.Ranks, MaxNumActiveRequests: 1}},
	})
	if err != nil {
		return 0, err
	}
	var out model.StepOutput
	for i := range l.Steps {
		s := &l.Steps[i]
		in := model.StepInput{HardCap: s.HardCap}
		for _, st := range s.States {
			in.States = append(in.States, model.RankState{Rank: st[0], NumActiveRequests: st[1], NumActiveTokens: st[2]})
		}
		for j := range s.Requests {
			q, matches, _ := l.request(&s.Requests[j])
			if _, err := r.Submit(&q); err != nil {
				return i, err
			}
			in.Requests = append(in.Requests, model.StepRequest{ID: q.ID, Matches: matches})
		}
		if err := r.Step("w0", &in, &out); err != nil {
			return i, err
		}
		if err := l.compare(r, s, &out); err != nil {
			return i, fmt.Errorf("step %d: %w", i, err)
		}
		for _, q := range in.Requests {
			r.Done(q.ID, model.OutcomeOK)
		}
	}
	return len(l.Steps), nil
}

func (l *vectorLine) compare(r *Router, s *vectorStep, out *model.StepOutput) error {
	got := make([][]int64, l.Ranks)
	for k, list := range out.Order {
		got[k] = []int64{}
		for _, j := range list {
			got[k] = append(got[k], s.Requests[j].ID)
			if int(out.Ranks[j]) != k {
				return fmt.Errorf("request %d is listed at %d and placed at %d", s.Requests[j].ID, k, out.Ranks[j])
			}
		}
	}
	if diff := cmp.Diff(s.Expect.Assignments, got); diff != "" {
		return fmt.Errorf("assignments: %s", diff)
	}
	if out.Expected != s.Expect.Expected {
		return fmt.Errorf("expected %d, want %d", out.Expected, s.Expect.Expected)
	}
	engine := r.workers[0].engine
	switch l.Router {
	case "kv_aware":
		if diff := cmp.Diff(s.Expect.Pending, engine.PendingWarmup()); diff != "" && len(s.Expect.Pending) > 0 {
			return fmt.Errorf("pending: %s", diff)
		}
	case "conversation":
		var want, got []string
		for _, p := range s.Expect.Pins {
			want = append(want, fmt.Sprintf("%v→%v", p[0], p[1]))
		}
		for _, e := range r.binds.Entries() {
			got = append(got, fmt.Sprintf("%s→%d", e.Key.ID, e.Binding.Target.Rank))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("pins: %s", diff)
		}
		if engine.Cursor() != s.Expect.Cursor {
			return fmt.Errorf("cursor %d, want %d", engine.Cursor(), s.Expect.Cursor)
		}
	}
	return nil
}
