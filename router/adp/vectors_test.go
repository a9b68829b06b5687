package adp

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"adpdeck/router/model"
)

type vecParams struct {
	Rank  *int   `json:"attention_dp_rank"`
	Relax *bool  `json:"attention_dp_relax"`
	Sub   string `json:"subagent_affinity_id"`
}

type vecRequest struct {
	ID      int64      `json:"id"`
	Tokens  [][2]int64 `json:"tokens"`
	Null    bool       `json:"null_request"`
	Params  *vecParams `json:"scheduling_params"`
	Conv    string     `json:"conversation_id"`
	Matches [][2]int   `json:"match_lens"`
	Child   []int64    `json:"child_req_ids"`
}

type vecStep struct {
	States   [][]int      `json:"rank_states"`
	HardCap  int          `json:"max_num_active_requests"`
	Requests []vecRequest `json:"requests"`
	Expect   struct {
		Assignments [][]int64 `json:"assignments"`
		Expected    int       `json:"expected_num_active_requests"`
		Unassigned  []int64   `json:"unassigned"`
		Pending     *[]int    `json:"pending_warmup"`
		Pins        *[][2]any `json:"pins"`
		Cursor      *int      `json:"cursor"`
		Error       string    `json:"error"`
		Message     string    `json:"error_message"`
	} `json:"expect"`
}

type vecLine struct {
	N      int    `json:"n"`
	Router string `json:"router"`
	Case   string `json:"case"`
	TP     int    `json:"tp_size"`
	Config struct {
		Beta      float64  `json:"load_balance_weight"`
		Threshold float64  `json:"match_rate_threshold"`
		Share     *float64 `json:"fair_share_multiplier"`
		Warmup    bool     `json:"cold_start_warmup"`
		Sessions  int      `json:"max_sessions"`
		Placement string   `json:"new_conv_placement"`
	} `json:"config"`
	Steps []vecStep `json:"steps"`
}

func (v *vecLine) config() model.AttentionDpConfig {
	c := model.DefaultAttentionDpConfig()
	switch v.Router {
	case "kv_aware":
		c = c.WithPolicy(model.PolicyKVAware)
	case "conversation":
		c = c.WithPolicy(model.PolicyConversation)
	}
	c.KVCacheRoutingLoadBalanceWeight = v.Config.Beta
	c.KVCacheRoutingMatchRateThreshold = v.Config.Threshold
	if v.Config.Share != nil {
		c.KVCacheRoutingFairShareMultiplier = *v.Config.Share
	}
	c.KVCacheRoutingColdStartWarmup = v.Config.Warmup
	c.KVCacheRoutingMaxSessions = v.Config.Sessions
	c.KVCacheRoutingNewConvPlacement = v.Config.Placement
	return c
}

func (p *vecParams) params() *Params {
	if p == nil {
		return nil
	}
	return &Params{Rank: p.Rank, Relax: p.Relax, SubagentAffinityID: p.Sub}
}

func (s *vecStep) batch(tp int) *Batch {
	b := &Batch{HardCap: s.HardCap}
	for _, st := range s.States {
		b.States = append(b.States, model.RankState{Rank: st[0], NumActiveRequests: st[1], NumActiveTokens: st[2]})
	}
	for _, v := range s.Requests {
		q := Request{ID: v.ID, Null: v.Null, Params: v.Params.params(), Conv: v.Conv}
		for _, seg := range v.Tokens {
			for i := int64(0); i < seg[1]; i++ {
				if len(q.Lead) < leadTokens {
					q.Lead = append(q.Lead, int32((seg[0]*1000003+i*7919)%50000))
				}
			}
			q.Tokens += int(seg[1])
		}
		if len(v.Matches) > 0 {
			q.Matches = make([]int32, tp)
			for _, m := range v.Matches {
				q.Matches[m[0]] = int32(m[1])
			}
		}
		b.Requests = append(b.Requests, q)
	}
	return b
}

// eachLine decodes a vector file line by line.
func eachLine[T any](tb testing.TB, name string, do func(*T)) {
	tb.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	d := json.NewDecoder(bufio.NewReaderSize(z, 1<<20))
	for d.More() {
		var v T
		if err := d.Decode(&v); err != nil {
			tb.Fatal(err)
		}
		do(&v)
	}
}

// idsOf maps request indexes to ids.
func idsOf(b *Batch, idx []int32) []int64 {
	ids := []int64{}
	for _, i := range idx {
		ids = append(ids, b.Requests[i].ID)
	}
	return ids
}

func pinList(l *LRU) [][2]any {
	out := [][2]any{}
	for k, rank := range l.All() {
		out = append(out, [2]any{k, float64(rank)})
	}
	return out
}

// checkStep compares one step with what upstream did.
func checkStep(t *testing.T, v *vecLine, at int, r *Router, b *Batch, out *Result, err error) {
	t.Helper()
	e := &v.Steps[at].Expect
	fail := func(what string, got, want any) {
		t.Errorf("line %d (%s, %s) step %d: %s is %v, upstream has %v", v.N, v.Router, v.Case, at, what, got, want)
	}
	if e.Error != "" {
		pe, ok := err.(*ParityError)
		if !ok || pe.Name != e.Error || pe.Message != e.Message {
			fail("error", err, e.Error+": "+e.Message)
		}
	} else if err != nil {
		fail("error", err, nil)
	} else {
		got := [][]int64{}
		for _, a := range out.Assignments {
			got = append(got, idsOf(b, a))
		}
		if !reflect.DeepEqual(got, e.Assignments) {
			fail("assignment", got, e.Assignments)
		}
		if out.Expected != e.Expected {
			fail("expected", out.Expected, e.Expected)
		}
		if left := idsOf(b, out.Unassigned); len(left)+len(e.Unassigned) > 0 && !reflect.DeepEqual(left, e.Unassigned) {
			fail("unassigned", left, e.Unassigned)
		}
	}
	if e.Pending != nil && !reflect.DeepEqual(r.PendingWarmup(), *e.Pending) {
		fail("pending", r.PendingWarmup(), *e.Pending)
	}
	if e.Pins != nil && !reflect.DeepEqual(pinList(r.Pins()), *e.Pins) {
		fail("pins", pinList(r.Pins()), *e.Pins)
	}
	if e.Cursor != nil && r.Cursor() != *e.Cursor {
		fail("cursor", r.Cursor(), *e.Cursor)
	}
}

func TestRouterVectors(t *testing.T) {
	if testing.Short() {
		t.Skip("all 3,000 lines take a while under the race detector")
	}
	lines, steps := 0, 0
	eachLine(t, "adp_routers.jsonl.gz", func(v *vecLine) {
		lines++
		r := New(v.TP, v.config(), nil, Options{Parity: true})
		var out Result
		for i := range v.Steps {
			steps++
			b := v.Steps[i].batch(v.TP)
			err := r.Route(b, &out)
			checkStep(t, v, i, r, b, &out, err)
		}
	})
	if lines != 3000 || steps != 10392 {
		t.Errorf("saw %d lines and %d steps, the file has 3000 and 10392", lines, steps)
	}
}

func TestAdmissionVectors(t *testing.T) {
	type line struct {
		N       int `json:"n"`
		HardCap int `json:"max_num_active_requests"`
		Steps   []struct {
			Enqueue []vecRequest `json:"enqueue"`
			Counts  []int        `json:"num_active_requests"`
			Limit   int          `json:"max_req_count"`
			Expect  struct {
				Popped []int64 `json:"popped"`
				Queue  []int64 `json:"queue"`
			} `json:"expect"`
		} `json:"steps"`
	}
	lines := 0
	eachLine(t, "adp_admission.jsonl.gz", func(v *line) {
		lines++
		var q Queue[struct{}]
		for i, s := range v.Steps {
			for _, x := range s.Enqueue {
				q.Push(Item[struct{}]{ID: x.ID, Children: len(x.Child), Params: x.Params.params()})
			}
			popped, left := []int64{}, []int64{}
			for _, it := range q.Admit(s.Limit, s.Counts, v.HardCap) {
				popped = append(popped, it.ID)
			}
			for _, it := range q.Items() {
				left = append(left, it.ID)
			}
			if !reflect.DeepEqual(popped, s.Expect.Popped) || !reflect.DeepEqual(left, s.Expect.Queue) {
				t.Errorf("line %d step %d: popped %v, left %v; upstream %v, %v", v.N, i, popped, left, s.Expect.Popped, s.Expect.Queue)
			}
		}
	})
	if lines != 600 {
		t.Errorf("saw %d lines, the file has 600", lines)
	}
}

func TestBalanceVectors(t *testing.T) {
	type line struct {
		N      int `json:"n"`
		Config struct {
			MaxBatch int `json:"max_batch_size"`
			Timeout  int `json:"timeout_iters"`
			Batching int `json:"batching_wait_iters"`
			MinGen   int `json:"min_generation_requests"`
			LowOcc   int `json:"low_occupancy_timeout_iters"`
		} `json:"config"`
		Steps []struct {
			Ranks  [][3]int `json:"ranks"`
			Expect struct {
				Release  bool `json:"release"`
				Waiting  int  `json:"waiting"`
				Batching int  `json:"batching"`
			} `json:"expect"`
		} `json:"steps"`
	}
	lines := 0
	eachLine(t, "adp_balance.jsonl.gz", func(v *line) {
		lines++
		var g Gate
		c := v.Config
		g.Configure(GateConfig{c.Timeout, c.Batching, c.MaxBatch, c.MinGen, c.LowOcc})
		for i, s := range v.Steps {
			var ranks []GateRank
			for _, k := range s.Ranks {
				ranks = append(ranks, GateRank{k[0], k[1], k[2]})
			}
			e := s.Expect
			if got := g.Step(ranks); got != e.Release || g.Waiting() != e.Waiting || g.Batching() != e.Batching {
				t.Errorf("line %d step %d: %v %d %d, upstream %v", v.N, i, got, g.Waiting(), g.Batching(), e)
			}
		}
	})
	if lines != 600 {
		t.Errorf("saw %d lines, the file has 600", lines)
	}
}
