package adp

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"adpdeck/router/model"
)

func idle(tp int) []model.RankState {
	s := make([]model.RankState, tp)
	for k := range s {
		s[k].Rank = k
	}
	return s
}

func convs(keys ...string) []Request {
	var out []Request
	for i, k := range keys {
		out = append(out, Request{ID: int64(i), Tokens: 10, Conv: k})
	}
	return out
}

func TestConfigureKeepsWhatTheRouterHolds(t *testing.T) {
	cfg := model.DefaultAttentionDpConfig().WithPolicy(model.PolicyKVAware)
	cfg.KVCacheRoutingColdStartWarmup = true
	r := New(4, cfg, nil, Options{})
	var out Result
	_ = r.Route(&Batch{States: idle(4), HardCap: 8, Requests: convs("", "")}, &out)
	if got := r.PendingWarmup(); !slices.Equal(got, []int{2, 3}) {
		t.Fatalf("pending %v, want 2 and 3", got)
	}
	r.Configure(cfg.WithPolicy(model.PolicyConversation))
	_ = r.Route(&Batch{States: idle(4), HardCap: 8, Requests: convs("a", "b", "c")}, &out)
	kept := state(r)

	off := cfg.WithPolicy(model.PolicyDefault)
	off.KVCacheRoutingColdStartWarmup = false
	off.KVCacheRoutingLoadBalanceWeight = 9
	r.Configure(off)
	_ = r.Route(&Batch{States: idle(4), HardCap: 8, Requests: convs("a", "z")}, &out)
	if len(r.PendingWarmup()) != 0 {
		t.Error("ranks wait for a warm-up that is off")
	}
	r.Configure(cfg)
	if got := state(r); got != kept {
		t.Errorf("after other settings %s, before %s", got, kept)
	}

	small := cfg
	small.KVCacheRoutingMaxSessions = 2
	r.Configure(small)
	if got := fmt.Sprint(pinList(r.Pins())); got != "[[b 1] [c 2]]" {
		t.Errorf("a limit of 2 keeps %s, want the newest two", got)
	}
	small.KVCacheRoutingMaxSessions = -5
	if r.Configure(small); r.Pins().Len() != 1 {
		t.Error("a limit below 1 counts as 1")
	}
}

// TestEveryFieldActsBetweenBatches changes one field at a time and sees the
// next batch obey.
func TestEveryFieldActsBetweenBatches(t *testing.T) {
	states := idle(2)
	states[0].NumActiveTokens, states[0].NumActiveRequests = 1000, 1
	one := []Request{{ID: 1, Tokens: 100, Matches: []int32{64}}}
	place := func(r *Router, reqs []Request) int32 {
		var out Result
		_ = r.Route(&Batch{States: states, HardCap: 8, Requests: reqs}, &out)
		return out.Ranks[0]
	}
	cfg := model.DefaultAttentionDpConfig().WithPolicy(model.PolicyKVAware)
	r := New(2, cfg, nil, Options{})
	steps := []struct {
		what   string
		change func(*model.AttentionDpConfig)
		want   int32
	}{
		{"β 1 prefers the idle rank", func(*model.AttentionDpConfig) {}, 1},
		{"β 0 prefers the cached rank", func(c *model.AttentionDpConfig) { c.KVCacheRoutingLoadBalanceWeight = 0 }, 0},
		{"a threshold above the hit rate shuts the gate", func(c *model.AttentionDpConfig) { c.KVCacheRoutingMatchRateThreshold = 0.7 }, 1},
		{"and below opens it", func(c *model.AttentionDpConfig) { c.KVCacheRoutingMatchRateThreshold = 0.1 }, 0},
		{"share 1 leaves rank 0 no room", func(c *model.AttentionDpConfig) { c.KVCacheRoutingFairShareMultiplier = 1 }, 1},
		{"warm-up takes the lowest", func(c *model.AttentionDpConfig) { c.KVCacheRoutingColdStartWarmup = true }, 0},
		{"the default router looks at tokens", func(c *model.AttentionDpConfig) { c.EnableKVCacheAwareRouting = false }, 1},
		{"affinity goes round", func(c *model.AttentionDpConfig) {
			c.KVCacheRoutingConversationAffinity, c.KVCacheRoutingFairShareMultiplier = true, 8
		}, 0},
		{"least tokens", func(c *model.AttentionDpConfig) { c.KVCacheRoutingNewConvPlacement = model.PlaceLeastTokens }, 1},
	}
	for _, s := range steps {
		s.change(&cfg)
		r.Configure(cfg)
		if got := place(r, one); got != s.want {
			t.Errorf("%s: got rank %d, want %d", s.what, got, s.want)
		}
	}
}

func TestNormalModeNeverFails(t *testing.T) {
	beyond := func(k int) Request { return Request{ID: 5, Tokens: 10, Params: &Params{Rank: &k}} }
	cases := map[string]struct {
		policy     model.Policy
		batch      Batch
		ranks      []int32
		unassigned []int32
	}{
		"default overflows":        {model.PolicyDefault, Batch{States: idle(2), HardCap: 1, Requests: convs("", "", "")}, []int32{0, 1, -1}, []int32{2}},
		"kv overflows":             {model.PolicyKVAware, Batch{States: idle(2), HardCap: 0, Requests: convs("", "")}, []int32{-1, -1}, []int32{0, 1}},
		"conversation overfills":   {model.PolicyConversation, Batch{States: idle(1), HardCap: 1, Requests: convs("a", "b")}, []int32{0, 0}, nil},
		"no such rank":             {model.PolicyDefault, Batch{States: idle(2), HardCap: 4, Requests: []Request{beyond(2)}}, []int32{0}, nil},
		"negative rank":            {model.PolicyConversation, Batch{States: idle(2), HardCap: 4, Requests: []Request{beyond(-1)}}, []int32{0}, nil},
		"no tokens, no load":       {model.PolicyKVAware, Batch{States: idle(1), HardCap: 4, Requests: []Request{{ID: 1}}}, []int32{0}, nil},
		"all closed":               {model.PolicyConversation, Batch{States: idle(2), HardCap: 4, Closed: []bool{true, true}, Requests: convs("a")}, []int32{-1}, []int32{0}},
		"states missing":           {model.PolicyKVAware, Batch{HardCap: 4, Requests: []Request{{ID: 1, Tokens: 5, Matches: []int32{0, 5}}}}, []int32{1}, nil},
		"explicit to a closed one": {model.PolicyDefault, Batch{States: idle(2), HardCap: 4, Closed: []bool{true}, Requests: []Request{beyond(0)}}, []int32{1}, nil},
		"relax unset is true":      {model.PolicyConversation, Batch{States: idle(2), HardCap: 4, Requests: []Request{{Params: &Params{}}, {Params: &Params{}}}}, []int32{0, 1}, nil},
		"weights not numbers":      {model.PolicyDefault, Batch{States: idle(2), HardCap: 4, Weights: []float64{math.NaN(), math.Inf(1)}, Requests: convs("")}, []int32{1}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out Result
			tp := len(c.batch.States)
			if tp == 0 {
				tp = 2
			}
			r := New(tp, model.DefaultAttentionDpConfig().WithPolicy(c.policy), nil, Options{})
			if err := r.Route(&c.batch, &out); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(out.Ranks, c.ranks) || !slices.Equal(out.Unassigned, c.unassigned) {
				t.Errorf("ranks %v, unassigned %v; want %v, %v", out.Ranks, out.Unassigned, c.ranks, c.unassigned)
			}
		})
	}
}

func TestDrainedRankKeepsItsConversations(t *testing.T) {
	r := New(2, model.DefaultAttentionDpConfig().WithPolicy(model.PolicyConversation), nil, Options{})
	var out Result
	_ = r.Route(&Batch{States: idle(2), HardCap: 4, Requests: convs("a", "b")}, &out)
	_ = r.Route(&Batch{States: idle(2), HardCap: 4, Closed: []bool{true, false}, Requests: convs("a", "b", "c", "d")}, &out)
	if !slices.Equal(out.Ranks, []int32{0, 1, 1, 1}) {
		t.Errorf("got %v, want a on 0 and all others on 1", out.Ranks)
	}
}

func TestParityErrors(t *testing.T) {
	params := func(relax ...string) (out []Request) {
		for _, x := range relax {
			q := Request{}
			switch x {
			case "unset":
				q.Params = &Params{}
			case "false":
				q.Params = &Params{Relax: ptr(false)}
			}
			out = append(out, q)
		}
		return out
	}
	at64 := func(at int, n int) []Request {
		reqs := make([]Request, n)
		reqs[at].Params = &Params{}
		return reqs
	}
	cases := map[string]struct {
		policy model.Policy
		share  float64
		reqs   []Request
		want   string
	}{
		"unset first":         {model.PolicyConversation, 2, params("unset", "true"), "TypeError: '<' not supported between instances of 'bool' and 'NoneType'"},
		"unset later":         {model.PolicyConversation, 2, params("true", "false", "false", "unset"), "TypeError: '<' not supported between instances of 'NoneType' and 'bool'"},
		"both unset":          {model.PolicyConversation, 2, params("unset", "unset"), "TypeError: '<' not supported between instances of 'NoneType' and 'NoneType'"},
		"unset begins a run":  {model.PolicyConversation, 2, append(at64(0, 1), at64(0, 1)...), "TypeError: '<' not supported between instances of 'NoneType' and 'NoneType'"},
		"unset in a long one": {model.PolicyConversation, 2, at64(70, 100), "TypeError: '<' not supported between instances of 'NoneType' and 'bool'"},
		"alone":               {model.PolicyConversation, 2, params("unset"), ""},
		"infinite share":      {model.PolicyKVAware, math.Inf(1), params("true"), "OverflowError: cannot convert float infinity to integer"},
		"share not a number":  {model.PolicyKVAware, math.NaN(), params("true"), "ValueError: cannot convert float NaN to integer"},
		"conversation's":      {model.PolicyConversation, math.NaN(), params("true"), ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := model.DefaultAttentionDpConfig().WithPolicy(c.policy)
			cfg.KVCacheRoutingFairShareMultiplier = c.share
			var out Result
			err := New(2, cfg, nil, Options{Parity: true}).Route(&Batch{States: idle(2), HardCap: 500, Requests: c.reqs}, &out)
			if got := fmt.Sprint(err); err != nil && got != c.want || err == nil && c.want != "" {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if err := New(2, cfg, nil, Options{}).Route(&Batch{States: idle(2), HardCap: 500, Requests: c.reqs}, &out); err != nil || len(out.Unassigned) > 0 {
				t.Errorf("normal mode: %v, %d left", err, len(out.Unassigned))
			}
		})
	}
}

func TestRunStart(t *testing.T) {
	// 128 flags work in runs of 32; the flag at 64 begins the third when the
	// two before it were extended to full length.
	reqs := make([]Request, 128)
	for i := range reqs {
		reqs[i].Params = &Params{Relax: ptr(i%2 == 0)}
	}
	for at, want := range map[int]int{0: 0, 31: 0, 32: 32, 64: 64, 65: 64, 100: 96} {
		if got := runStart(reqs, at); got != want {
			t.Errorf("the run of %d begins at %d, want %d", at, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	for rank, ok := range map[int]bool{0: true, 3: true, 4: false, -1: false} {
		err := Check(&Request{ID: 9, Params: &Params{Rank: &rank}}, 4)
		var re *RankError
		if ok != (err == nil) || !ok && (!errors.As(err, &re) || !strings.Contains(err.Error(), "ask for 0 to 3")) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
	if err := Check(&Request{}, 0); err != nil {
		t.Error(err)
	}
}

func TestRoutingAllocatesNothing(t *testing.T) {
	for _, s := range benchShapes {
		for _, n := range []int{1, 64, 1024} {
			cfg := model.DefaultAttentionDpConfig().WithPolicy(s.policy)
			if s.placement != "" {
				cfg.KVCacheRoutingNewConvPlacement = s.placement
			}
			r := New(16, cfg, nil, Options{})
			batches := benchBatches(16, n, 8)
			var out Result
			warmConversations(r, batches, &out, s.fresh)
			i := 0
			if got := testing.AllocsPerRun(50, func() {
				_ = r.Route(batches[i%len(batches)], &out)
				i++
			}); got != 0 {
				t.Errorf("%s, batch %d: %v allocations a call", s.name, n, got)
			}
		}
	}
}

func TestQueuePutsBackInOrder(t *testing.T) {
	var q Queue[string]
	for i := range 300 {
		q.Push(Item[string]{ID: int64(i), Payload: fmt.Sprint(i)})
		if got := q.Admit(1, []int{0}, 1); len(got) != 1 || got[0].Payload != fmt.Sprint(i) {
			t.Fatalf("got %v, want item %d", got, i)
		}
	}
	q.Push(Item[string]{ID: 9})
	q.PushFront([]Item[string]{{ID: 7}, {ID: 8}})
	q.PushFront([]Item[string]{{ID: 6}})
	strict := Item[string]{ID: 5, Params: &Params{Rank: ptr(0)}}
	q.PushFront([]Item[string]{strict, {ID: 55, Children: 3}})
	var ids []int64
	for _, it := range q.Admit(6, []int{4, 0}, 4) {
		ids = append(ids, it.ID)
	}
	for _, it := range q.Items() {
		ids = append(ids, -it.ID)
	}
	if want := []int64{55, 6, 7, -5, -8, -9}; !reflect.DeepEqual(ids, want) {
		t.Errorf("got %v, want %v: the strict item is held at the front", ids, want)
	}
	var lost Queue[string]
	lost.Push(Item[string]{Params: &Params{Rank: ptr(2)}})
	if _, err := lost.AdmitParity(4, []int{0, 0}, 4); fmt.Sprint(err) != "IndexError: list index out of range" {
		t.Errorf("got %v", err)
	}
	lost.Push(Item[string]{ID: 3, Params: &Params{Rank: ptr(2)}})
	if got := lost.Admit(4, []int{0, 0}, 4); len(got) != 1 {
		t.Errorf("a rank that does not exist counts as none: got %v", got)
	}
}

func FuzzRouteNormalMode(f *testing.F) {
	f.Add([]byte{8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18})
	f.Fuzz(func(t *testing.T, in []byte) {
		at := 0
		next := func() int {
			if at >= len(in) {
				return 0
			}
			at++
			return int(int8(in[at-1]))
		}
		odd := []float64{0, 1, -1, 0.5, 2, math.NaN(), math.Inf(1), math.Inf(-1), 1e308, 5e-324}
		pick := func() float64 { return odd[uint8(next())%uint8(len(odd))] }
		tp := int(uint8(next()) % 9)
		var r *Router
		for at < len(in) {
			cfg := model.DefaultAttentionDpConfig()
			cfg.KVCacheRoutingConversationAffinity, cfg.EnableKVCacheAwareRouting = next()&1 == 0, next()&1 == 0
			cfg.KVCacheRoutingLoadBalanceWeight, cfg.KVCacheRoutingMatchRateThreshold, cfg.KVCacheRoutingFairShareMultiplier = pick(), pick(), pick()
			cfg.KVCacheRoutingColdStartWarmup = next()&1 == 0
			cfg.KVCacheRoutingMaxSessions = next()
			cfg.KVCacheRoutingNewConvPlacement = []string{"", model.PlaceLeastQueued, model.PlaceLeastTokens}[uint8(next())%3]
			if r == nil {
				r = New(tp, cfg, nil, Options{Record: next()&1 == 0, MaxCandidates: next()})
			}
			r.Configure(cfg)
			fuzzBatch(t, r, tp, next, pick)
		}
	})
}

func fuzzBatch(t *testing.T, r *Router, tp int, next func() int, pick func() float64) {
	b := &Batch{HardCap: next()}
	for range uint8(next()) % 12 {
		b.States = append(b.States, model.RankState{Rank: next(), NumActiveRequests: next(), NumActiveTokens: next() << 30})
		if next()&3 == 0 {
			b.Weights = append(b.Weights, pick())
		}
		if next()&3 == 0 {
			b.Closed = append(b.Closed, true)
		}
	}
	for range uint8(next()) % 12 {
		q := Request{ID: int64(next()) << 40, Tokens: next() << 20, Null: next() == 0, Conv: strings.Repeat("k", int(uint8(next())%3))}
		q.Lead = make([]int32, uint8(next())%80)
		q.Matches = make([]int32, uint8(next())%12)
		for i := range q.Matches {
			q.Matches[i] = int32(next()) << 10
		}
		if next()&1 == 0 {
			q.Params = &Params{SubagentAffinityID: q.Conv}
			if next()&1 == 0 {
				q.Params.Rank = ptr(next())
			}
			if next()&1 == 0 {
				q.Params.Relax = ptr(next()&1 == 0)
			}
		}
		b.Requests = append(b.Requests, q)
	}
	var out Result
	if err := r.Route(b, &out); err != nil {
		t.Fatalf("normal mode: %v", err)
	}
	placed := 0
	for k, list := range out.Assignments {
		for _, i := range list {
			if out.Ranks[i] != int32(k) {
				t.Fatal("assignments and ranks differ")
			}
			placed++
		}
	}
	if len(out.Assignments) != tp || placed+len(out.Unassigned) != len(b.Requests) {
		t.Fatalf("%d placed and %d left of %d", placed, len(out.Unassigned), len(b.Requests))
	}
}
