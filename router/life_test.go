package router

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"

	"pgregory.net/rapid"
)

// TestInFlightIsConserved sends random requests down random paths, with every
// end there is, twice at times, over steps, batches of one, full ranks, pins,
// drains and reports: the requests on ranks plus those without one are always
// the open ones.
func TestInFlightIsConserved(t *testing.T) {
	outcomes := []model.Outcome{model.OutcomeOK, model.OutcomeError, model.OutcomeCancelled, model.OutcomePanic, ""}
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom([]model.Policy{model.PolicyDefault, model.PolicyKVAware, model.PolicyConversation}).Draw(t, "policy")
		mode := rapid.SampledFrom(allModes()).Draw(t, "mode")
		b := newBench(t, 2, 3, policy, func(c *Config) { c.MaxConvs = 3 }, inMode(mode), withBlocks)
		open, strays := map[int64]model.Target{}, uint64(0)
		for range rapid.IntRange(1, 80).Draw(t, "n") {
			conv := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e"}).Draw(t, "conv")
			id := rapid.Int64Range(1, max(1, b.ids)).Draw(t, "id")
			target := at(rapid.SampledFrom([]string{"w0", "w1"}).Draw(t, "worker"), rapid.IntRange(0, 2).Draw(t, "rank"))
			tokens := prompt(rapid.SliceOfN(rapid.Uint32Range(1, 3), 0, 4).Draw(t, "blocks")...)
			switch rapid.IntRange(0, 9).Draw(t, "op") {
			case 0:
				id, got := b.submit(t, conv, asksIn(b.Mode(), target), of(tokens))
				got.Rank = model.NoRank
				open[id] = got
			case 1:
				var ids []int64
				for id, at := range open {
					if at == (model.Target{Worker: target.Worker, Rank: model.NoRank}) {
						ids = append(ids, id)
					}
				}
				for i, rank := range b.step(t, target.Worker, []int{0, 8, 7}, ids...) {
					open[ids[i]] = at(target.Worker, int(rank))
				}
			case 2:
				b.ids++
				d, err := b.Route(&model.Request{ID: b.ids, Conv: conversation(conv), PromptTokens: len(tokens), Locals: localsOf(tokens)}, nil)
				if err != nil && !errors.Is(err, ErrFull) && !errors.Is(err, ErrWorkerNeeded) && !errors.Is(err, ErrNoEligible) {
					t.Fatalf("route: %v", err)
				}
				if err == nil {
					open[b.ids] = d.Target
				}
			case 3:
				b.FirstToken(id, model.Usage{Ran: target, CachedTokens: rapid.IntRange(-5, 200).Draw(t, "cached"), TTFTMs: 3})
			case 4, 5:
				if _, ok := open[id]; !ok {
					strays++
				}
				b.Done(id, rapid.SampledFrom(outcomes).Draw(t, "outcome"))
				delete(open, id)
			case 6:
				b.do(onConvs(rapid.SampledFrom([]model.Verb{model.VerbPin, model.VerbEvict, model.VerbMigrate}).Draw(t, "verb"), &target, "a", "b"))
			case 7:
				b.do(onRank(rapid.SampledFrom([]model.Verb{model.VerbDrain, model.VerbReady}).Draw(t, "verb"), target))
				b.Report(target.Worker, 5, 1, []model.RankState{{Rank: target.Rank, NumActiveRequests: 77}},
					[]model.RankLoad{{Rank: target.Rank, PendingTokens: rapid.IntRange(0, 99).Draw(t, "pending"), KVTotalBlocks: 64}})
			case 8:
				b.do(set(model.FieldRouterMode, string(rapid.SampledFrom(allModes()).Draw(t, "next mode"))))
				b.clock.advance(time.Duration(rapid.IntRange(0, 1000).Draw(t, "seconds")) * time.Second)
			case 9:
				// A rank of each worker stays open, so that no request is refused.
				if target.Rank == 2 && b.rank(at(target.Worker, 0)).eligible() {
					_ = b.Block(target, rapid.Bool().Draw(t, "blocked"))
				}
			}
			checkConserved(t, b, len(open), strays)
		}
		for id := range open {
			b.Done(id, model.OutcomeCancelled)
		}
		checkConserved(t, b, 0, strays)
	})
}

func allModes() []model.RouterMode {
	return []model.RouterMode{
		model.ModeRoundRobin, model.ModeLeastLoaded, model.ModeKV, model.ModeLockstep,
		model.ModeRandom, model.ModePowerOfTwo, model.ModeDirect,
	}
}

// asksIn names a worker where the mode needs one.
func asksIn(mode model.RouterMode, target model.Target) func(*model.Request) {
	return func(q *model.Request) {
		if mode == model.ModeDirect {
			q.Explicit = &model.Target{Worker: target.Worker, Rank: model.NoRank}
		}
	}
}

func checkConserved(t tester, b *bench, open int, strays uint64) {
	t.Helper()
	s := b.Snapshot()
	sum := 0
	for _, r := range s.Ranks {
		if r.InFlight < 0 {
			t.Fatalf("%v has %d in flight", r.Target, r.InFlight)
		}
		sum += r.InFlight
	}
	for _, w := range b.workers {
		sum += b.book.Waiting(w.index)
	}
	if got := b.steer.tier.Load().Counters().Open; got > open || got < open && b.elapsed() < time.Hour {
		t.Fatalf("the cluster tier has %d booked, %d are open", got, open)
	}
	byConv := 0
	for _, c := range s.Convs {
		byConv += c.Open
		if c.Open < 0 || c.Turns < 0 {
			t.Fatalf("%+v", c)
		}
	}
	if sum != open || s.Totals.Open != open || b.Strays() != strays || byConv > open {
		t.Fatalf("%d in flight or waiting, %d in totals, %d by conversation, want %d; %d strays, want %d",
			sum, s.Totals.Open, byConv, open, b.Strays(), strays)
	}
}

func TestDoneTwice(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault)
	id, _ := b.place(t, "a", nil)
	for range 3 {
		b.Done(id, model.OutcomeError)
	}
	s := b.Snapshot()
	if b.Strays() != 2 || s.Totals.Open != 0 || len(s.Events) != 1 || s.Events[0].Level != "warn" {
		t.Fatalf("%d strays, %+v", b.Strays(), s.Events)
	}
	b.FirstToken(id, model.Usage{Ran: at("w0", 0)})
	if id, err := b.Submit(&model.Request{ID: id}); err != nil {
		t.Fatalf("the id is free again: %v, %v", id, err)
	}
}

// TestHonoured compares where a turn ran with where it was sent.
func TestHonoured(t *testing.T) {
	b := newBench(t, 2, 4, model.PolicyConversation)
	run := func(ran model.Target) {
		id, _ := b.place(t, "a", nil)
		b.FirstToken(id, model.Usage{Ran: ran, CachedTokens: 40, TTFTMs: 12})
		b.FirstToken(id, model.Usage{Ran: at("w1", 0), CachedTokens: 99}) // once only
		b.Done(id, model.OutcomeOK)
	}
	b.turn(t, "a", nil, asks(at("w0", 1)))
	run(at("w0", 1))
	run(at("w1", 3))
	run(model.Target{Rank: model.NoRank})
	c := b.conv(t, "a")
	if c.Honoured != 1 || c.Lost != 1 || c.Moves != 2 || c.Last != at("w0", 1) || c.CachedTokens != 40 || c.PromptTokens != 100 || c.Turns != 4 {
		t.Fatalf("%+v", c)
	}
}

// TestLoadFollowsTheEngine: a request that ran elsewhere is booked there.
// TestPinNotHonoured: an engine that runs a pinned conversation elsewhere is
// told of at once, and then not more often than every ten seconds; one that
// runs a free conversation elsewhere is only counted.
func TestPinNotHonoured(t *testing.T) {
	b := newBench(t, 1, 4, model.PolicyKVAware)
	lose := func(conv string) {
		id, got := b.place(t, conv, nil)
		b.FirstToken(id, model.Usage{Ran: at("w0", (got.Rank+1)%4)})
		b.Done(id, model.OutcomeOK)
	}
	lose("free")
	if n := len(b.Snapshot().Events); n != 0 {
		t.Fatalf("%d events for a conversation that nothing holds", n)
	}
	b.must(t, onConvs(model.VerbPin, ptr(at("w0", 2)), "free"))
	for range 5 {
		lose("free")
		b.clock.advance(time.Second)
	}
	events := b.Snapshot().Events
	if len(events) != 2 || events[0].Level != "warn" || !strings.HasPrefix(events[0].What, "pin not honoured: free was sent to w0/2 and ran on w0/3 (turn 1 that did so)") {
		t.Fatalf("%+v", events)
	}
	b.clock.advance(lostEvery)
	lose("free")
	if events := b.Snapshot().Events; len(events) != 3 || !strings.Contains(events[0].What, "(turn 6 that did so)") {
		t.Fatalf("%+v", events[0])
	}
}

func TestLoadFollowsTheEngine(t *testing.T) {
	b := newBench(t, 2, 2, model.PolicyDefault)
	id, from := b.place(t, "a", nil)
	b.FirstToken(id, model.Usage{Ran: at("w1", 1)})
	for _, r := range b.Snapshot().Ranks {
		if want := 0; r.Target == at("w1", 1) && r.InFlight != 1 || r.Target != at("w1", 1) && r.InFlight != want {
			t.Fatalf("sent to %v, ran at w1/1: %+v", from, r)
		}
	}
	b.Done(id, model.OutcomeOK)
}

// TestRouteOnBookings: batches of one spread a burst evenly on the router's own
// counts, whatever an old report says, and settle on what was cached.
func TestRouteOnBookings(t *testing.T) {
	for _, policy := range []model.Policy{model.PolicyDefault, model.PolicyKVAware, model.PolicyConversation} {
		t.Run(string(policy), func(t *testing.T) {
			b := newBench(t, 1, 8, policy)
			for i := range 64 {
				if i == 10 {
					b.Report("w0", 0, 0, []model.RankState{{Rank: 3}}, nil) // older than the burst
				}
				b.ids++
				if _, err := b.Route(&model.Request{ID: b.ids, PromptTokens: 100, Conv: conversation(fmt.Sprint(i))}, nil); err != nil {
					t.Fatal(err)
				}
			}
			for _, r := range b.Snapshot().Ranks {
				if r.InFlight != 8 {
					t.Errorf("%v has %d of 64", r.Target, r.InFlight)
				}
			}
			b.ids++
			d, err := b.Route(&model.Request{ID: b.ids, Conv: conversation("late")}, nil)
			if policy != model.PolicyConversation && (!errors.Is(err, ErrFull) || d.Target.Rank != model.NoRank) {
				t.Fatalf("the 65th: %v, %v", d.Target, err)
			}
		})
	}
}

func TestRouteUsesMatches(t *testing.T) {
	b := newBench(t, 1, 4, model.PolicyKVAware)
	b.ids++
	d, err := b.Route(&model.Request{ID: b.ids, PromptTokens: 1000, Conv: conversation("a")}, map[string][]int32{"w0": {0, 0, 800, 300}})
	if err != nil || d.Target != at("w0", 2) || d.Why != "longest prefix" || d.Reachable != 800 {
		t.Fatalf("%+v, %v", d, err)
	}
	if d.RunnerUp != 3 || !d.Margin.Known() || d.Margin <= 0 {
		t.Fatalf("runner-up %d by %v", d.RunnerUp, d.Margin)
	}
	if got := b.book.Rank(0, 2); got.PromptTokens != 1000 || got.EffectiveTokens != 200 {
		t.Fatalf("%+v", got)
	}
	b.FirstToken(b.ids, model.Usage{Ran: d.Target, CachedTokens: 600, TTFTMs: 5})
	if got := b.book.Rank(0, 2); got.EffectiveTokens != 400 {
		t.Fatalf("%+v", got)
	}
	s := b.Snapshot()
	if r := s.Ranks[2]; r.Hit != 0.6 || r.Reachable != 0.8 || r.Requests != 1 || s.Totals.Hit != 0.6 {
		t.Fatalf("%+v", r)
	}
}

func TestWhyScored(t *testing.T) {
	for name, c := range map[string]struct {
		matches []int32
		counts  []int
		want    string
	}{
		"prefix":    {[]int32{0, 900, 0, 0}, nil, "longest prefix"},
		"tie":       {nil, nil, "tie: seeded shuffle"},
		"lightest":  {nil, []int{3, 2, 1, 3}, "lightest"},
		"shut out":  {[]int32{900, 0, 0, 0}, []int{8, 1, 2, 3}, "w0/0 hard cap, match 900 lost"},
		"gate shut": {[]int32{0, 0, 0, 50}, []int{1, 0, 1, 1}, "lightest"},
		"outweighs": {[]int32{0, 0, 0, 150}, []int{0, 1, 1, 7}, "lighter: load outweighs prefix"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, 4, model.PolicyKVAware)
			b.must(t, set(model.FieldFairShareMultiplier, "8"))
			id, _ := b.submit(t, "a", func(q *model.Request) { q.PromptTokens = 1000 })
			in := model.StepInput{HardCap: 8, Requests: []model.StepRequest{{ID: id, Matches: c.matches}}}
			for k := range 4 {
				st := model.RankState{Rank: k}
				if k < len(c.counts) {
					st.NumActiveRequests, st.NumActiveTokens = c.counts[k], 100*c.counts[k]
				}
				in.States = append(in.States, st)
			}
			var out model.StepOutput
			if err := b.Step("w0", &in, &out); err != nil {
				t.Fatal(err)
			}
			if d := b.lastDecision(t); d.Why != c.want {
				t.Fatalf("why %q, want %q; %+v", d.Why, c.want, d.Placement)
			}
		})
	}
}

// TestSettled: every recorded decision is followed to its end.
func TestSettled(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault)
	sub := b.Subscribe()
	sub.Start()
	id, where := b.place(t, "a", nil)
	b.FirstToken(id, model.Usage{Ran: where, CachedTokens: 7, TTFTMs: 12})
	b.Done(id, model.OutcomeOK)
	id, _ = b.place(t, "a", nil)
	b.Done(id, model.OutcomeCancelled)
	c, resync := sub.Take(100)
	if resync || len(c.Decisions) != 2 || len(c.Settled) != 3 {
		t.Fatalf("%+v", c)
	}
	first, end, cut := c.Settled[0], c.Settled[1], c.Settled[2]
	if first.Decision != 1 || first.Ran != where || first.CachedTokens != 7 || first.TTFTMs != 12 || first.Outcome != "" {
		t.Fatalf("%+v", first)
	}
	if end.Outcome != model.OutcomeOK || end.TTFTMs != 12 || cut.Outcome != model.OutcomeCancelled || cut.TTFTMs.Known() || cut.Decision != 2 {
		t.Fatalf("%+v, %+v", end, cut)
	}
}

// TestFigures checks the windows at their edges in router time.
func TestFigures(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault)
	s := b.Snapshot()
	if s.Totals.RequestsPerSec.Known() || s.Totals.Hit.Known() || s.Totals.TTFTMsP50.Known() || s.Totals.Skew.Known() || s.Ranks[0].Hit.Known() {
		t.Fatalf("nothing has been measured: %+v", s.Totals)
	}
	one := func(cached int, ttft float64) {
		id, where := b.place(t, "a", []int{1, 0})
		b.FirstToken(id, model.Usage{Ran: where, CachedTokens: cached, TTFTMs: ttft})
		b.Done(id, model.OutcomeOK)
	}
	for i := range 20 {
		one(50, float64(i+1))
		b.clock.advance(500 * time.Millisecond)
	}
	s = b.Snapshot()
	if got := s.Totals; got.RequestsPerSec != 2 || got.Hit != 0.5 || got.TTFTMsP50 != 11 || got.TTFTMsP99 != 20 {
		t.Fatalf("after 10 s: %+v", got)
	}
	b.clock.advance(20 * time.Second)
	s = b.Snapshot()
	if got := s.Totals; got.RequestsPerSec != 0 || got.Hit.Known() || got.TTFTMsP50.Known() || s.Ranks[1].Hit != 0.5 {
		t.Fatalf("after a pause: %+v, rank %+v", got, s.Ranks[1])
	}
	b.clock.advance(time.Minute)
	if s = b.Snapshot(); s.Ranks[1].Hit.Known() {
		t.Fatal("a minute on, the rank still has a hit rate")
	}
}

func TestSkewAndReports(t *testing.T) {
	b := newBench(t, 2, 2, model.PolicyDefault)
	b.clock.advance(time.Second)
	b.Report("w0", 3, 2, []model.RankState{{Rank: 0, NumActiveRequests: 2, NumActiveTokens: 300}, {Rank: 1, NumActiveTokens: 100}, {Rank: 9}}, []model.RankLoad{{Rank: 1, Queued: 4, KVUsedBlocks: 5, KVTotalBlocks: 9}, {Rank: -1}})
	b.Report("nobody", 9, 9, nil, nil)
	s := b.Snapshot()
	if s.Totals.Skew != 1.5 || s.Totals.SkewAt != at("w0", 0) || s.Totals.Queued != 7 {
		t.Fatalf("%+v", s.Totals)
	}
	if w := s.Workers[0]; w.Waiting != 3 || w.Held != 2 {
		t.Fatalf("%+v", w)
	}
	if r := s.Ranks[1]; !r.ReportedAt.Equal(epoch.Add(time.Second)) || r.Queued != 4 || r.KVTotalBlocks != 9 || r.Tokens != 100 {
		t.Fatalf("%+v", r)
	}
	if r := s.Ranks[2]; !r.ReportedAt.IsZero() {
		t.Fatalf("never reported: %+v", r)
	}
	b.must(t, onRank(model.VerbDrain, at("w0", 0)))
	if got := b.Snapshot().Totals; got.Skew != 1 || got.SkewAt != at("w0", 1) {
		t.Fatalf("a draining rank is not in the skew: %+v", got)
	}
}

// TestConvsAreBounded: the least recently active goes first, but neither a
// pinned one nor one with an open turn; what is dropped is told.
func TestConvsAreBounded(t *testing.T) {
	b := newBench(t, 1, 4, model.PolicyDefault, func(c *Config) { c.MaxConvs = 4 })
	turn := func(id string) {
		b.turn(t, id, nil)
		b.clock.advance(time.Second)
	}
	turn("pinned")
	open, _ := b.place(t, "open", nil)
	turn("a")
	turn("b")
	b.must(t, onConvs(model.VerbPin, ptr(at("w0", 1)), "pinned"))
	sub := b.Subscribe()
	sub.Start()
	turn("c")
	turn("d")
	c, _ := sub.Take(0)
	if len(c.Gone) != 2 || c.Gone[0].ID != "a" || c.Gone[1].ID != "b" {
		t.Fatalf("gone: %+v", c.Gone)
	}
	turn("a")
	b.Done(open, model.OutcomeOK)
	turn("e")
	b.must(t, onConvs(model.VerbUnpin, nil, "pinned"))
	turn("f")
	turn("g")
	names := ""
	for _, c := range b.Snapshot().Convs {
		names += c.Key.ID + " "
	}
	if names != "g f e a " {
		t.Fatalf("left: %s", names)
	}
}
