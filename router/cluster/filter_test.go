package cluster

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"adpdeck/router/model"
)

func target(worker string, rank int) model.Target { return model.Target{Worker: worker, Rank: rank} }

func ptr[T any](v T) *T { return &v }

func TestFiltersWorkRankByRank(t *testing.T) {
	cases := map[string]struct {
		edit func(*Router)
		req  Request
		want string // excluded word of w0/1
	}{
		"draining":        {edit: func(r *Router) { r.SetDraining(target("w0", 1), true) }, want: "draining"},
		"blocked":         {edit: func(r *Router) { r.SetBlocked(target("w0", 1), true) }, want: "blocked"},
		"weight 0":        {edit: func(r *Router) { r.SetWeight(target("w0", 1), 0) }, want: "weight 0"},
		"hard cap":        {edit: func(r *Router) { r.SetCapacity(target("w0", 1), Capacity{MaxRequests: 1}) }, want: "hard cap"},
		"required worker": {req: Request{Explicit: &model.Target{Worker: "w1", Rank: model.NoRank}}, want: "other worker"},
		"required rank":   {req: Request{Explicit: &model.Target{Worker: "w0", Rank: 0}}, want: "other rank"},
		"allowed":         {req: Request{Allowed: []string{"w1", "w9"}}, want: "not allowed"},
		"taint":           {req: Request{Required: []string{"topology/zone=b"}}, want: "taint missing"},
		"absolute tokens": {edit: func(r *Router) { r.cfg.ActivePrefillTokensThreshold = ptr(99); apply(r) }, want: "overloaded: prefill tokens"},
		"share of tokens": {edit: func(r *Router) { r.cfg.ActivePrefillTokensThresholdFrac = ptr(0.01); apply(r) }, want: "overloaded: prefill tokens"},
		"our blocks":      {edit: func(r *Router) { r.cfg.ActiveDecodeBlocksThreshold = ptr(0.0002); apply(r) }, want: "overloaded: KV blocks"},
		"engine's blocks": {edit: func(r *Router) {
			r.cfg.ActiveDecodeBlocksThreshold = ptr(0.5)
			apply(r)
			r.ReportKV(target("w0", 1), 10001)
		}, want: "overloaded: KV blocks"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := fleet(t, model.ModeKV, model.DefaultClusterConfig(), 2, 2)
			r.workers[1].Taints = []string{"topology/zone=b"}
			b := Booking{ID: 99, Slot: 1, PromptTokens: 100, PrefillTokens: 100, Unshared: 6}
			if err := r.load.Book(0, &b); err != nil {
				t.Fatal(err)
			}
			if c.edit != nil {
				c.edit(r)
			}
			c.req.PromptTokens = 64
			for range 40 {
				got, rec := choose(t, r, c.req)
				if got.Slot == 1 {
					t.Fatal("an excluded rank was chosen")
				}
				if len(rec.Candidates) == 4 && rec.Candidates[1].Excluded != c.want {
					t.Fatalf("excluded as %q, want %q", rec.Candidates[1].Excluded, c.want)
				}
				if c.req.Explicit == nil && c.req.Allowed == nil && c.req.Required == nil && got.Eligible != 3 {
					t.Fatalf("%d eligible: one hot rank took its worker with it", got.Eligible)
				}
			}
		})
	}
}

func apply(r *Router) {
	if err := r.Configure(r.mode, r.cfg); err != nil {
		panic(err)
	}
}

func TestThresholdsCanBeUnset(t *testing.T) {
	r := fleet(t, model.ModeKV, model.DefaultClusterConfig(), 1, 1)
	set := func(field, value string) {
		t.Helper()
		cfg := r.Config()
		if _, err := model.SetClusterFields(&cfg, []model.FieldValue{{Field: field, Value: value}}); err != nil {
			t.Fatal(err)
		}
		if err := r.Configure(r.Mode(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	overloaded := func(want bool) {
		t.Helper()
		var c Choice
		err := r.Choose(0, &Request{ID: 1, PromptTokens: 10}, &c, nil)
		if errors.Is(err, ErrOverloaded) != want {
			t.Errorf("overloaded is %v, want %v: %v", err, want, err)
		}
	}
	set("active_decode_blocks_threshold", "0.5")
	r.ReportKV(target("w0", 0), 10001)
	overloaded(true)
	r.ReportKV(target("w0", 0), 10000) // at the threshold: neither above nor below
	overloaded(true)
	r.ReportKV(target("w0", 0), 9999)
	overloaded(false)
	r.ReportKV(target("w0", 0), 20000)
	overloaded(true)
	r.ClearOverload(target("w0", 0))
	overloaded(false)
	r.ReportKV(target("w0", 0), 20000)
	overloaded(true)
	set("active_decode_blocks_threshold", "none")
	overloaded(false)
	if err := r.load.Book(0, &Booking{ID: 9, PrefillTokens: 500}); err != nil {
		t.Fatal(err)
	}
	set("active_prefill_tokens_threshold", "499")
	overloaded(true)
	set("active_prefill_tokens_threshold", "500") // strictly above
	overloaded(false)
	set("active_prefill_tokens_threshold_frac", "0.05")
	overloaded(true)
	set("active_prefill_tokens_threshold_frac", "none")
	overloaded(false)
}

func TestRefusals(t *testing.T) {
	cases := map[string]struct {
		edit   func(*Router)
		req    Request
		want   error
		status int
		says   string
	}{
		"unknown worker": {req: Request{Explicit: &model.Target{Worker: "w7"}}, want: ErrNoWorker, status: 400, says: "w7"},
		"unknown rank":   {req: Request{Explicit: &model.Target{Worker: "w0", Rank: 2}}, want: ErrNoRank, status: 400, says: "w0/2"},
		"disallowed":     {req: Request{Explicit: &model.Target{Worker: "w0"}, Allowed: []string{"w1"}}, want: ErrNotAllowed, status: 400, says: "w0"},
		"all draining": {edit: func(r *Router) {
			for _, t := range []model.Target{target("w0", 0), target("w0", 1), target("w1", 0), target("w1", 1)} {
				r.SetDraining(t, true)
			}
		}, want: ErrFiltered, status: 503, says: "4 draining"},
		"pin to an overloaded rank": {edit: func(r *Router) {
			r.cfg.ActivePrefillTokensThreshold = ptr(0)
			apply(r)
			_ = r.load.Book(0, &Booking{ID: 9, PrefillTokens: 1})
		}, req: Request{Explicit: &model.Target{Worker: "w0"}}, want: ErrOverloaded, status: 529, says: "overloaded"},
		"all at their cap": {edit: func(r *Router) {
			for s := range r.slots {
				r.slots[s].cap = 1
				_ = r.load.Book(0, &Booking{ID: int64(9 + s), Slot: int32(s)})
			}
		}, want: ErrFull, status: 529, says: "4 hard cap"},
		"no workers": {edit: func(r *Router) {
			r.RemoveWorker(0, "w0")
			r.RemoveWorker(0, "w1")
		}, want: ErrNoTargets, status: 503, says: "add a worker"},
		"hard binding to a full rank": {edit: func(r *Router) {
			r.slots[1].cap = 1
			_ = r.load.Book(0, &Booking{ID: 9, Slot: 1})
		}, req: Request{Bound: &Bound{Target: target("w0", 1), Hard: true}}, want: ErrFull, status: 529, says: "w0/1"},
		"negative prompt": {req: Request{PromptTokens: -1}, want: ErrRequest, status: 400, says: "prompt"},
		"too many blocks": {req: Request{PromptTokens: 20, Blocks: chain(1, 2)}, want: ErrRequest, status: 400, says: "blocks"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := fleet(t, model.ModeKV, model.DefaultClusterConfig(), 2, 2)
			if c.edit != nil {
				c.edit(r)
			}
			var got Choice
			var rec model.Selection
			err := r.Choose(0, &c.req, &got, &rec)
			var ref *Refusal
			if !errors.Is(err, c.want) || !errors.As(err, &ref) || ref.Status != c.status || !strings.Contains(err.Error(), c.says) || ref.Next == "" {
				t.Errorf("got %v", err)
			}
			if got.Target.Rank != model.NoRank || rec.Chosen.Rank != model.NoRank {
				t.Errorf("a target stands in the answer: %+v", got)
			}
		})
	}
}

func TestBindings(t *testing.T) {
	bound := func(hard bool) Request {
		return Request{ID: 1, PromptTokens: 64, Bound: &Bound{Target: target("w1", 1), Hard: hard}, Explicit: &model.Target{Worker: "w0", Rank: 0}}
	}
	r := fleet(t, model.ModeKV, model.DefaultClusterConfig(), 2, 2)
	c, rec := choose(t, r, bound(true))
	if c.Target != target("w1", 1) || c.By != model.ByBinding || !c.Conflict || len(rec.Candidates) != 1 || rec.Candidates[0].Cost != 8 {
		t.Errorf("choice %+v, record %+v", c, rec)
	}
	r.SetDraining(target("w1", 1), true)
	if c, _ := choose(t, r, bound(true)); c.Target != target("w1", 1) {
		t.Error("a draining rank keeps its conversations")
	}
	r.SetCapacity(target("w1", 1), Capacity{MaxRequests: 1})
	if err := r.load.Book(0, &Booking{ID: 9, Slot: 3}); err != nil {
		t.Fatal(err)
	}
	if c, _ := choose(t, r, bound(false)); c.Target != target("w0", 0) || c.BoundGone || c.By != model.ByRequired {
		t.Errorf("a soft binding gives way to the cap: %+v", c)
	}
	r.SetBlocked(target("w1", 1), true)
	if c, _ := choose(t, r, bound(true)); !c.BoundGone || c.Target != target("w0", 0) {
		t.Errorf("a binding to a blocked rank is gone: %+v", c)
	}
	r.RemoveWorker(0, "w1")
	if c, _ := choose(t, r, bound(true)); !c.BoundGone || c.Conflict {
		t.Errorf("a binding to a removed worker is gone: %+v", c)
	}
}

func TestBindingsToAWorker(t *testing.T) {
	for _, mode := range []model.RouterMode{model.ModeKV, model.ModeLockstep, model.ModeRoundRobin} {
		r := fleet(t, mode, model.DefaultClusterConfig(), 2, 2)
		req := Request{ID: 1, PromptTokens: 64, Bound: &Bound{Target: target("w1", model.NoRank), Hard: true}}
		r.SetDraining(target("w1", 0), true)
		r.SetWeight(target("w1", 1), 0)
		c, rec := choose(t, r, req)
		if c.Target.Worker != "w1" || c.By != model.ByBinding || c.Eligible != 2 || len(rec.Candidates) != 4 || rec.Candidates[0].Excluded != "other worker" {
			t.Errorf("%s: %+v", mode, c)
		}
		for k := range 2 {
			r.SetCapacity(target("w1", k), Capacity{MaxRequests: 1})
			if err := r.load.Book(0, &Booking{ID: int64(8 + k), Slot: int32(2 + k)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Choose(0, &req, &c, &rec); !errors.Is(err, ErrFull) || !r.MustWait(0, &req, false) {
			t.Errorf("%s: full: %v", mode, err)
		}
		req.Bound.Hard = false
		if c, _ := choose(t, r, req); c.Target.Worker != "w0" || c.BoundGone {
			t.Errorf("%s: soft: %+v", mode, c)
		}
		r.SetBlocked(target("w1", 0), true)
		r.SetBlocked(target("w1", 1), true)
		if c, _ := choose(t, r, req); c.Target.Worker != "w0" || !c.BoundGone {
			t.Errorf("%s: gone: %+v", mode, c)
		}
	}
}

func TestWhatALongerMatchWasLostTo(t *testing.T) {
	best := func(r *Router) Matches { return Matches{Device: []int32{0, 10, 0, 0}} }
	cases := map[string]struct {
		edit func(*Router)
		req  Request
		want string
	}{
		"nothing": {},
		"load":    {edit: func(r *Router) { _ = r.load.Book(0, &Booking{ID: 9, Slot: 1, PrefillTokens: 9999}) }, want: LostLoad},
		"filter":  {edit: func(r *Router) { r.SetDraining(target("w0", 1), true) }, want: LostFilter},
		"cap": {edit: func(r *Router) {
			r.slots[1].cap = 1
			_ = r.load.Book(0, &Booking{ID: 9, Slot: 1})
		}, want: LostCap},
		"pin":  {req: Request{Explicit: &model.Target{Worker: "w1"}}, want: LostPin},
		"mode": {edit: func(r *Router) { r.mode = model.ModeRoundRobin }, want: LostMode},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := fleet(t, model.ModeKV, model.DefaultClusterConfig(), 2, 2)
			if c.edit != nil {
				c.edit(r)
			}
			c.req.PromptTokens, c.req.Matches = 160, best(r)
			for i := range r.slots {
				r.slots[i].known = true
			}
			if got, _ := choose(t, r, c.req); got.LostTo != c.want || got.Reachable != 160 {
				t.Errorf("lost to %q of %d, want %q", got.LostTo, got.Reachable, c.want)
			}
		})
	}
}

func TestSlotsOfWorkers(t *testing.T) {
	r := fleet(t, model.ModeKV, model.DefaultClusterConfig(), 3, 4)
	if _, err := r.AddWorker(Worker{ID: "w1", Ranks: 1}); !errors.Is(err, ErrWorker) {
		t.Errorf("taken id: %v", err)
	}
	if _, err := r.AddWorker(Worker{ID: "w9"}); !errors.Is(err, ErrWorker) {
		t.Errorf("no ranks: %v", err)
	}
	if _, err := r.AddWorker(Worker{ID: "w9", Ranks: MaxSlots}); !errors.Is(err, ErrWorker) {
		t.Errorf("too many: %v", err)
	}
	req := Request{ID: 5, PromptTokens: 64, Explicit: &model.Target{Worker: "w1", Rank: 2}}
	c, _ := choose(t, r, req)
	if err := r.Book(0, &req, &c); err != nil {
		t.Fatal(err)
	}
	if !r.RemoveWorker(0, "w1") || r.RemoveWorker(0, "w1") {
		t.Error("a worker is removed once")
	}
	if err := r.Book(0, &Request{ID: 6}, &c); !errors.Is(err, ErrNoWorker) {
		t.Errorf("booking on a removed worker: %v", err)
	}
	if r.Free(0, 5) || r.load.Counters().Strays != 1 {
		t.Error("the end of a request on a removed worker counts as a stray")
	}
	if slots, err := r.AddWorker(Worker{ID: "n", Ranks: 3}); err != nil || !slices.Equal(slots, []int32{4, 5, 6}) {
		t.Errorf("slots %v, want those that are free: %v", slots, err)
	}
	if slots, err := r.AddWorker(Worker{ID: "more", Ranks: 2}); err != nil || !slices.Equal(slots, []int32{7, 12}) {
		t.Errorf("slots %v, want the one that is free and the next: %v", slots, err)
	}
	if f, ok := r.Figures(target("n", 2), 0); !ok || f.Requests != 0 {
		t.Errorf("a new worker inherits load: %+v", f)
	}
	if _, ok := r.Slot(target("n", 3)); ok {
		t.Error("a rank beyond the worker's has a slot")
	}
}
