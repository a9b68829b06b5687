package cluster

import (
	"errors"
	"math"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"
)

func ready() func(int32) bool { return func(int32) bool { return true } }

func TestQueueOrder(t *testing.T) {
	type w = Waiting[string]
	cases := map[string]struct {
		policy string
		in     []w
		want   []int64
	}{
		"first come, first served": {model.QueueFCFS, []w{{ID: 1}, {ID: 2}, {ID: 3}}, []int64{1, 2, 3}},
		"a jump is worth seconds":  {model.QueueFCFS, []w{{ID: 1}, {ID: 2}, {ID: 3, Jump: 1.5}, {ID: 4, Jump: -9}}, []int64{1, 3, 2, 4}},
		"strict goes before all":   {model.QueueFCFS, []w{{ID: 1, Jump: 99}, {ID: 2, Strict: 1}, {ID: 3, Strict: 2}}, []int64{3, 2, 1}},
		"shortest uncached prompt first": {model.QueueWSPT, []w{
			{ID: 1, PromptTokens: 1000}, {ID: 2, PromptTokens: 1000, BestCached: 900}, {ID: 3, PromptTokens: 500}, {ID: 4, PromptTokens: 50, BestCached: 50},
		}, []int64{4, 2, 3, 1}},
		"weight under wspt":       {model.QueueWSPT, []w{{ID: 1, PromptTokens: 300}, {ID: 2, PromptTokens: 500, Jump: 1}}, []int64{2, 1}},
		"equal: earlier arrival":  {model.QueueWSPT, []w{{ID: 7, PromptTokens: 9}, {ID: 5, PromptTokens: 9}, {ID: 6, PromptTokens: 9}}, []int64{7, 5, 6}},
		"not a number is no jump": {model.QueueFCFS, []w{{ID: 1, Jump: math.NaN()}, {ID: 2, Jump: math.Inf(1)}}, []int64{2, 1}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := model.DefaultClusterConfig()
			cfg.QueuePolicy = c.policy
			q := NewQueue[string]()
			for i, k := range c.in {
				k.Slot = -1
				if err := q.Push(time.Duration(i)*time.Second, &cfg, 1, k); err != nil {
					t.Fatal(err)
				}
			}
			for _, want := range c.want {
				if got, _, ok := q.Pop(0, &cfg, ready()); !ok || got.ID != want {
					t.Fatalf("popped %d, want %d", got.ID, want)
				}
			}
			if _, _, ok := q.Pop(0, &cfg, ready()); ok || q.Len() != 0 || q.Tokens() != 0 || q.Cached() != 0 {
				t.Error("something is left")
			}
		})
	}
}

func TestQueueLanes(t *testing.T) {
	cfg := model.DefaultClusterConfig()
	q := NewQueue[int]()
	for i, slot := range []int32{3, 3, -1, 5} {
		if err := q.Push(time.Duration(i)*time.Second, &cfg, 1, Waiting[int]{ID: int64(i), Slot: slot, Payload: i}); err != nil {
			t.Fatal(err)
		}
	}
	busy := func(slots ...int32) func(int32) bool {
		return func(s int32) bool {
			for _, b := range slots {
				if b == s {
					return false
				}
			}
			return true
		}
	}
	if _, _, ok := q.Pop(0, &cfg, busy(-1, 3, 5)); ok {
		t.Error("popped while all is busy")
	}
	if w, _, ok := q.Pop(0, &cfg, busy(3)); !ok || w.ID != 2 {
		t.Errorf("popped %d, want 2: a busy rank holds nobody else back", w.ID)
	}
	if w, stale, _ := q.Pop(14*time.Second, &cfg, busy()); w.ID != 0 || !stale {
		t.Errorf("popped %d, stale %v", w.ID, stale)
	}
	if q.Backlog(3) != 1 || q.Backlog(-1) != 0 || q.Backlog(9) != 0 {
		t.Error("backlog")
	}
	if w, ok := q.Remove(1); !ok || w.Slot != 3 {
		t.Errorf("removed %+v", w)
	}
	if w, stale, ok := q.Pop(5*time.Second, &cfg, busy()); !ok || w.ID != 3 || stale || q.Len() != 0 {
		t.Errorf("popped %+v", w)
	}
}

func TestQueueIsBounded(t *testing.T) {
	cfg := model.DefaultClusterConfig()
	cfg.QueueMaxRequests, cfg.QueueMaxTokens = 2, 1000
	q := NewQueue[int]()
	push := func(id int64, tokens int) error {
		return q.Push(0, &cfg, 2, Waiting[int]{ID: id, Slot: -1, PromptTokens: tokens})
	}
	for i := range int64(4) {
		if err := push(i, 499); err != nil {
			t.Fatal(err)
		}
	}
	var full *QueueFull
	err := push(4, 1)
	if !errors.Is(err, ErrQueueFull) || !errors.As(err, &full) || full.Have != 4 || full.Most != 4 || !strings.Contains(err.Error(), "router_queue_max_requests") {
		t.Errorf("full: %v", err)
	}
	if err := push(1, 1); !errors.Is(err, ErrDuplicate) {
		t.Errorf("duplicate: %v", err)
	}
	q.Remove(0)
	q.Remove(1)
	if err := push(5, 5000); err != nil { // the crossing one is taken
		t.Errorf("crossing: %v", err)
	}
	if err := push(6, 1); !errors.As(err, &full) || full.Limit != "router_queue_max_tokens" || full.Have != 5998 {
		t.Errorf("after it: %v", err)
	}
}

func TestQueueEqualsASort(t *testing.T) {
	cfg := model.DefaultClusterConfig()
	rng := rand.New(rand.NewPCG(4, 4))
	for range 30 {
		q := NewQueue[int]()
		var all []Waiting[int]
		for i := range 200 {
			w := Waiting[int]{ID: int64(i), Slot: rng.Int32N(5) - 1, Strict: rng.Uint32N(3), Jump: float64(rng.IntN(4)), PromptTokens: rng.IntN(900), Payload: i}
			if err := q.Push(time.Duration(rng.IntN(5))*time.Second, &cfg, 9, w); err != nil {
				t.Fatal(err)
			}
			all = append(all, *q.byID[w.ID])
		}
		for i := range 20 {
			q.Remove(int64(i * 10))
		}
		policy := cfg
		policy.QueuePolicy = model.QueueWSPT
		if rng.IntN(2) == 0 {
			q.Reorder(&policy)
			for i := range all {
				all[i].score = score(all[i].At, model.QueueWSPT, all[i].Jump, all[i].PromptTokens, all[i].BestCached)
			}
		}
		sort.Slice(all, func(i, j int) bool { return all[i].before(&all[j]) })
		for _, w := range all {
			if w.ID%10 == 0 {
				continue
			}
			if got, _, _ := q.Pop(0, &cfg, ready()); got.ID != w.ID {
				t.Fatalf("popped %d, want %d", got.ID, w.ID)
			}
		}
	}
}

func TestMustWait(t *testing.T) {
	any := Request{ID: 1, PromptTokens: 10}
	first := Request{ID: 1, PromptTokens: 10, Explicit: &model.Target{Worker: "w0", Rank: 0}}
	hard := Request{ID: 1, PromptTokens: 10, Bound: &Bound{Target: target("w0", 0), Hard: true}}
	soft := Request{ID: 1, PromptTokens: 10, Bound: &Bound{Target: target("w0", 0)}}
	cases := map[string]struct {
		threshold *int
		ratio     float64
		tokens    [2]int
		backlog   bool
		cap       int
		req       Request
		want      bool
	}{
		"off":                               {ratio: 1, tokens: [2]int{9, 9}, backlog: true, req: any},
		"one of two is free":                {threshold: ptr(5), ratio: 1, tokens: [2]int{9, 5}, req: any},
		"both are busy":                     {threshold: ptr(5), ratio: 1, tokens: [2]int{9, 6}, req: any, want: true},
		"half is enough":                    {threshold: ptr(5), ratio: 0.5, tokens: [2]int{9, 0}, req: any, want: true},
		"threshold 0: any token queues":     {threshold: ptr(0), ratio: 1, tokens: [2]int{1, 1}, req: any, want: true},
		"threshold 0 and idle":              {threshold: ptr(0), ratio: 1, req: any},
		"others wait already":               {threshold: ptr(5), ratio: 1, backlog: true, req: any, want: true},
		"a pin looks at its own rank":       {threshold: ptr(5), ratio: 1, tokens: [2]int{9, 0}, req: first, want: true},
		"and not at others":                 {threshold: ptr(5), ratio: 1, tokens: [2]int{0, 9}, req: first},
		"a hard binding too":                {threshold: ptr(5), ratio: 1, tokens: [2]int{9, 0}, req: hard, want: true},
		"a soft one goes elsewhere":         {threshold: ptr(5), ratio: 1, tokens: [2]int{9, 0}, req: soft},
		"at the hard cap, thresholds unset": {ratio: 1, cap: 1, tokens: [2]int{1, 1}, req: any, want: true},
		"bound at the hard cap":             {ratio: 1, cap: 1, tokens: [2]int{1, 0}, req: hard, want: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := model.DefaultClusterConfig()
			cfg.QueueThresholdTokens, cfg.BusyWorkerRatio = c.threshold, c.ratio
			r := fleet(t, model.ModeKV, cfg, 1, 2)
			for s, n := range c.tokens {
				r.slots[s].cap = c.cap
				if n > 0 {
					if err := r.load.Book(0, &Booking{ID: int64(9 + s), Slot: int32(s), PrefillTokens: n}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if got := r.MustWait(0, &c.req, c.backlog); got != c.want {
				t.Errorf("must wait: %v, want %v", got, c.want)
			}
		})
	}
	r := fleet(t, model.ModeKV, model.DefaultClusterConfig(), 1, 2)
	if r.Lane(&any) != -1 || r.Lane(&first) != 0 || r.Lane(&hard) != 0 || r.Lane(&soft) != -1 {
		t.Error("lanes")
	}
	worker := Request{Explicit: &model.Target{Worker: "w0", Rank: model.NoRank}}
	if lane := r.Lane(&worker); lane != WorkerLane(0) || !r.Takes(0, lane) || r.LaneOf(model.Target{Worker: "no", Rank: 1}) != SharedLane {
		t.Error("lane of a worker")
	}
	for s := range r.slots {
		r.slots[s].cap = 1
		if err := r.load.Book(0, &Booking{ID: int64(s), Slot: int32(s)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, lane := range []int32{WorkerLane(0), SharedLane, 0, 1} {
		if r.Takes(0, lane) {
			t.Errorf("lane %d takes while all is full", lane)
		}
	}
}
