package router

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"adpdeck/router/cluster"
	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

func fieldValue(field, v string) model.FieldValue { return model.FieldValue{Field: field, Value: v} }

const noAffinity = "router_session_affinity_ttl_secs"

// TestKVFollowsWhatEventsSay: the second conversation with the same system
// prompt goes where events say that it lies, and the record says why.
func TestKVFollowsWhatEventsSay(t *testing.T) {
	b := newBench(t, 2, 2, model.PolicyKVAware, withBlocks, inMode(model.ModeKV))
	e := newEngine(b, 0)
	first, cached := e.turn(t, "a", prompt(1, 2, 3, 4))
	if cached != 0 {
		t.Fatalf("%d cached in an empty cluster", cached)
	}
	row := indexOf(t, b, first)
	if row.Feed != model.FeedLive || row.Device != 4 || row.Seq != 0 || row.EventAt.IsZero() {
		t.Fatalf("index: %+v", row)
	}
	second, cached := e.turn(t, "b", prompt(1, 2, 3, 9))
	if second != first || cached != 3*blockTokens {
		t.Fatalf("ran on %s with %d cached, want %s", second, cached, first)
	}
	d := b.lastDecision(t)
	sel := d.Selection
	if d.Mode != model.ModeKV || d.Placement.Phase != model.PhaseSteered || d.Why != "longest prefix, by 48" || d.WorkerWhy != "kv cost" || d.LostTo != "" {
		t.Fatalf("decision: phase %q, why %q, worker %q, lost %q", d.Placement.Phase, d.Why, d.WorkerWhy, d.LostTo)
	}
	if sel == nil || sel.Chosen != first || len(sel.Candidates) != 4 || sel.Eligible != 4 || sel.Config != b.settings.ClusterConfig {
		t.Fatalf("selection: %+v", sel)
	}
	s := b.Snapshot()
	if s.IndexTotals == nil || s.IndexTotals.Blocks != 5 || s.IndexTotals.Owned != 5 || len(s.Index) != 4 || len(s.Findings) != 0 {
		t.Fatalf("totals %+v, findings %v", s.IndexTotals, s.Findings)
	}
	row = indexOf(t, b, first)
	if row.Hit != 48.0/128 || row.Reachable != 48.0/128 || row.Agreed != 1 || row.Lost.Sum() != 0 {
		t.Fatalf("windows: %+v", row)
	}
	for _, r := range s.Ranks {
		if i := indexOf(t, b, r.Target); r.Target == first && (r.Hit != i.Hit || r.Reachable != i.Reachable) || r.Target != first && r.Reachable.Known() {
			t.Fatalf("%s: hit %v, reachable %v; the index says %v, %v", r.Target, r.Hit, r.Reachable, i.Hit, i.Reachable)
		}
	}
	blind := newBench(t, 1, 1, model.PolicyDefault)
	id, target := blind.routed(t, "c", chat)
	blind.FirstToken(id, model.Usage{Ran: target, CachedTokens: 40})
	if r := blind.Snapshot().Ranks[0]; r.Hit != 0.4 || r.Reachable.Known() {
		t.Fatalf("nothing was looked up: hit %v, reachable %v", r.Hit, r.Reachable)
	}
}

// TestPredictedIsReal: in every mode, with evictions, what the index says of
// the rank that a request is sent to is what its engine finds.
func TestPredictedIsReal(t *testing.T) {
	for _, mode := range []model.RouterMode{model.ModeKV, model.ModeLockstep, model.ModeRoundRobin, model.ModePowerOfTwo} {
		t.Run(string(mode), func(t *testing.T) {
			b := newBench(t, 2, 3, model.PolicyKVAware, withBlocks, inMode(mode, fieldValue(noAffinity, "none")))
			e := newEngine(b, 60)
			rng := rand.New(rand.NewPCG(3, 4))
			convs := stories(rng, 12)
			for range 600 {
				s := convs[rng.IntN(len(convs))]
				e.turn(t, s.conv, s.grow(rng))
				b.clock.advance(20 * time.Millisecond)
			}
			for _, row := range b.Snapshot().Index {
				if row.Feed == model.FeedNone && mode == model.ModeLockstep {
					continue // an idle cluster: the few prefixes fit on fewer ranks
				}
				if row.Agreed != 1 || row.Device > 60 || row.Device < 30 || row.Refused != 0 || row.Waiting != 0 {
					t.Errorf("%+v", row)
				}
				distinct := map[any]bool{}
				for n, held := range e.ranks[row.Target].holds {
					if held {
						distinct[n] = true
					}
				}
				if row.Device != len(distinct) {
					t.Errorf("%s: the index says %d blocks, the rank holds %d", row.Target, row.Device, len(distinct))
				}
				if mode == model.ModeRoundRobin && (row.Lost.Mode == 0 || row.Lost.Sum() != row.Lost.Mode) {
					t.Errorf("%s: lost %+v, want by mode alone", row.Target, row.Lost)
				}
			}
		})
	}
}

// mirror is a cluster tier beside the router's, fed with the same.
type mirror struct {
	tier  *cluster.Router
	slots map[int64]model.Target
}

// TestChoicesAreTheClusterTiers: in the modes with a cost, Submit answers what
// cluster.Router answers for the same requests, matches and load.
func TestChoicesAreTheClusterTiers(t *testing.T) {
	for name, mode := range map[string]struct {
		mode model.RouterMode
		set  []model.FieldValue
	}{
		"kv":          {model.ModeKV, nil},
		"temperature": {model.ModeKV, []model.FieldValue{fieldValue("router_temperature", "0.5")}},
		"lockstep":    {model.ModeLockstep, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2, 4, model.PolicyDefault, withBlocks, inMode(mode.mode, append(mode.set, fieldValue(noAffinity, "none"))...))
			m := &mirror{slots: map[int64]model.Target{}}
			m.tier, _ = cluster.New(mode.mode, b.settings.ClusterConfig, cluster.Options{BlockTokens: blockTokens})
			for _, w := range b.workers {
				if _, err := m.tier.AddWorker(cluster.Worker{ID: w.spec.ID, Ranks: 4, MaxRequests: 8, MaxBatchedTokens: 8192, KVBlocks: 64}); err != nil {
					t.Fatal(err)
				}
			}
			e := newEngine(b, 40)
			rng := rand.New(rand.NewPCG(5, 6))
			convs := stories(rng, 10)
			open := []int64{}
			for i := range 500 {
				s := convs[rng.IntN(len(convs))]
				tokens := s.grow(rng)
				want := m.submit(t, b, int64(i+1), tokens)
				id, got := b.submit(t, s.conv, of(tokens))
				if got != want {
					t.Fatalf("request %d: %s, the cluster tier says %s", id, got, want)
				}
				rank := b.step(t, got.Worker, nil, id)[0]
				if int(rank) != got.Rank {
					t.Fatalf("request %d ran on %d, was sent to %s", id, rank, got)
				}
				cached := e.serve(got, tokens)
				if rng.IntN(3) > 0 {
					b.FirstToken(id, model.Usage{Ran: got, CachedTokens: cached})
					m.tier.FirstToken(b.elapsed(), id)
				}
				open = append(open, id)
				for len(open) > rng.IntN(20) {
					b.Done(open[0], model.OutcomeOK)
					m.tier.Free(b.elapsed(), open[0])
					open = open[1:]
				}
				b.clock.advance(time.Millisecond)
			}
		})
	}
}

func (m *mirror) submit(t *testing.T, b *bench, id int64, tokens []uint32) model.Target {
	t.Helper()
	h, _ := prefix.NewHasher(blockTokens, prefix.Seed("", ""))
	chain := h.Chains(nil, tokens)
	var matches prefix.Matches
	b.know.index.NewMatcher().Match(chain, &matches)
	req := cluster.Request{ID: id, PromptTokens: len(tokens), Matches: cluster.Matches{Device: matches.Device, Host: matches.Host, Disk: matches.Disk}}
	for _, c := range chain {
		req.Blocks = append(req.Blocks, uint64(c))
	}
	var c cluster.Choice
	now := b.clock.Now().Sub(b.start)
	if err := m.tier.Choose(now, &req, &c, nil); err != nil {
		t.Fatal(err)
	}
	if err := m.tier.Book(now, &req, &c); err != nil {
		t.Fatal(err)
	}
	return c.Target
}

// TestClosedRanksAreNeverChosen: draining, weight 0 and blocked take nothing
// new, rank by rank, also when they hold the longest prefix.
func TestClosedRanksAreNeverChosen(t *testing.T) {
	shut := map[string]func(*testing.T, *bench, model.Target){
		"draining": func(t *testing.T, b *bench, x model.Target) { b.must(t, onRank(model.VerbDrain, x)) },
		"weight 0": func(t *testing.T, b *bench, x model.Target) { b.must(t, setWeight(x, "0")) },
		"blocked": func(t *testing.T, b *bench, x model.Target) {
			if err := b.Block(x, true); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, f := range shut {
		for _, mode := range []model.RouterMode{model.ModeKV, model.ModeLockstep} {
			t.Run(name+" "+string(mode), func(t *testing.T) {
				b := newBench(t, 1, 4, model.PolicyDefault, withBlocks, inMode(mode))
				e := newEngine(b, 0)
				home, _ := e.turn(t, "a", prompt(1, 2, 3, 4, 5))
				f(t, b, home)
				for i := range 20 {
					got, _ := e.turn(t, "", prompt(1, 2, 3, 4, 5, uint32(50+i)))
					if got == home {
						t.Fatalf("request %d went to %s", i, got)
					}
					if i > 0 {
						continue
					}
					if d := b.lastDecision(t); d.LostTo != model.LostFilter || d.Reachable != 5*blockTokens {
						t.Fatalf("lost to %q, reachable %d", d.LostTo, d.Reachable)
					}
				}
				want := home
				if name == "blocked" {
					want = model.Target{}
				}
				if got, _ := e.turn(t, "a", prompt(1, 2, 3, 4, 5, 6)); (want != model.Target{}) && got != want || (want == model.Target{}) && got == home {
					t.Fatalf("the bound conversation went to %s, its rank is %s, %s", got, home, name)
				}
			})
		}
	}
}

func TestSteeredWaitsForItsRank(t *testing.T) {
	b := newBench(t, 1, 3, model.PolicyDefault, withBlocks, inMode(model.ModeKV))
	id, got := b.submit(t, "", of(prompt(1, 2)))
	full := []int{0, 0, 0}
	full[got.Rank] = 8
	if ranks := b.step(t, "w0", full, id); ranks[0] != -1 {
		t.Fatalf("placed on %d though full", ranks[0])
	}
	if d := b.lastDecision(t); !strings.HasPrefix(d.Why, "waits: "+got.String()) || d.Placement.Phase != model.PhaseUnplaced {
		t.Fatalf("why %q", d.Why)
	}
	if ranks := b.step(t, "w0", nil, id); int(ranks[0]) != got.Rank {
		t.Fatalf("placed on %d, was sent to %s", ranks[0], got)
	}
}

// TestFullRanksQueueAtTheEngine: Submit sends on although every rank is at its
// cap, Route refuses with the reason.
func TestFullRanksQueueAtTheEngine(t *testing.T) {
	for _, mode := range []model.RouterMode{model.ModeKV, model.ModeLockstep, model.ModeRandom, model.ModePowerOfTwo} {
		t.Run(string(mode), func(t *testing.T) {
			b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, inMode(mode))
			for i := range 20 {
				b.place(t, "", []int{i % 2, 1 - i%2}, of(prompt(uint32(i), 2)))
			}
			b.ids++
			if _, err := b.Route(&model.Request{ID: b.ids, PromptTokens: 10}, nil); !errors.Is(err, ErrFull) {
				t.Fatalf("route: %v", err)
			}
			if got := b.Snapshot().Totals.Open; got != 20 {
				t.Fatalf("%d open", got)
			}
		})
	}
}

func TestModesThatNeedMore(t *testing.T) {
	b := newBench(t, 2, 2, model.PolicyDefault, inMode(model.ModeDirect))
	b.ids++
	if _, err := b.Submit(&model.Request{ID: b.ids, PromptTokens: 10}); !errors.Is(err, ErrWorkerNeeded) {
		t.Fatalf("direct without a worker: %v", err)
	}
	if _, got := b.submit(t, "", asks(at("w1", model.NoRank))); got != at("w1", model.NoRank) {
		t.Fatalf("direct: %v", got)
	}
	b.must(t, set(model.FieldRouterMode, "kv"))
	if _, got := b.submit(t, "", asks(at("w1", model.NoRank))); got.Worker != "w1" || got.Rank == model.NoRank {
		t.Fatalf("kv inside a worker: %v", got)
	}
	b.must(t, set("active_prefill_tokens_threshold", "0"))
	for range 3 {
		b.ids++
		_, _ = b.Submit(&model.Request{ID: b.ids, PromptTokens: 100})
	}
	b.ids++
	if _, err := b.Submit(&model.Request{ID: b.ids, PromptTokens: 10}); !errors.Is(err, ErrOverloaded) {
		t.Fatalf("overloaded: %v", err)
	}
	b.must(t, set("active_prefill_tokens_threshold", "none"))
	b.submit(t, "")
	b.must(t, set(model.FieldRouterMode, "random"))
	if _, got := b.submit(t, ""); got.Rank != model.NoRank {
		t.Fatalf("random names a rank: %v", got)
	}
	if b.Mode() != model.ModeRandom {
		t.Fatalf("mode %s", b.Mode())
	}
}

func TestHashesThatDoNotFitAreRefused(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV))
	for name, q := range map[string]model.Request{
		"block size": {ID: 1, PromptTokens: 64, Locals: []uint64{1}, BlockTokens: 64},
		"too many":   {ID: 2, PromptTokens: 17, Locals: []uint64{1, 2}},
		"negative":   {ID: 3, PromptTokens: -1, Locals: []uint64{1}},
	} {
		if _, err := b.Submit(&q); !errors.Is(err, ErrRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := New(Config{Clock: &fakeClock{}, Workers: []model.WorkerSpec{{ID: "a", Ranks: 1, BlockTokens: 16}, {ID: "b", Ranks: 1, BlockTokens: 64}}})
	if err == nil || !strings.Contains(err.Error(), "one block size") {
		t.Errorf("two block sizes: %v", err)
	}
}

// TestWhatIsClosedChangesNothing: a cluster with further ranks that take
// nothing makes the same choices, whatever load and cache those have.
func TestWhatIsClosedChangesNothing(t *testing.T) {
	for _, mode := range []model.RouterMode{model.ModeKV, model.ModeLockstep} {
		t.Run(string(mode), func(t *testing.T) {
			var benches [2]*bench
			var engines [2]*fakeEngine
			for i, ranks := range []int{3, 6} {
				b := newBench(t, 1, ranks, model.PolicyDefault, withBlocks, inMode(mode, fieldValue("router_kv_overlap_score_credit_decay", "0.5"), fieldValue("active_prefill_tokens_threshold", "4000")))
				benches[i], engines[i] = b, newEngine(b, 50)
			}
			more := benches[1]
			more.must(t, onRank(model.VerbDrain, at("w0", 3)))
			more.must(t, setWeight(at("w0", 4), "0"))
			if err := more.Block(at("w0", 5), true); err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(8, 9))
			convs := stories(rng, 8)
			for i := range 300 {
				s := convs[rng.IntN(len(convs))]
				tokens := s.grow(rng)
				shut := at("w0", 3+rng.IntN(3))
				engines[1].serve(shut, tokens)
				more.Report("w0", 0, 0, nil, []model.RankLoad{{Rank: shut.Rank, PendingTokens: rng.IntN(5000), KVUsedBlocks: 60, KVTotalBlocks: 64}})
				end := rng.IntN(3) > 0
				var got [2]model.Target
				for k, b := range benches {
					var id int64
					id, got[k] = b.place(t, s.conv, nil, of(tokens))
					engines[k].serve(got[k], tokens)
					if end {
						b.FirstToken(id, model.Usage{Ran: got[k]})
						b.Done(id, model.OutcomeOK)
					}
					b.clock.advance(time.Second)
				}
				if got[0] != got[1] {
					t.Fatalf("request %d: %s alone, %s beside closed ranks", i, got[0], got[1])
				}
				if i%20 == 19 {
					for _, b := range benches {
						for id := range b.ids {
							if b.book.Get(id+1) != nil {
								b.Done(id+1, model.OutcomeOK)
							}
						}
					}
				}
			}
		})
	}
}

// TestWhatAPinCost: the conversation policy gives a longer match up to a new
// conversation's turn by its mode, and to a bound one's by the binding.
func TestWhatAPinCost(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyConversation, withBlocks)
	e := newEngine(b, 0)
	home, _ := e.turn(t, "a", prompt(1, 2, 3))
	other, _ := e.turn(t, "b", prompt(1, 2, 9))
	if home == other {
		t.Fatalf("both are on %s", home)
	}
	if d := b.lastDecision(t); d.LostTo != model.LostMode {
		t.Fatalf("a new conversation: lost to %q", d.LostTo)
	}
	e.turn(t, "b", prompt(1, 2, 3, 4))
	if d := b.lastDecision(t); d.LostTo != model.LostPin || d.Target != other {
		t.Fatalf("a bound one, on %s: lost to %q", d.Target, d.LostTo)
	}
	if row := indexOf(t, b, other); row.Lost.Mode != 2*blockTokens || row.Lost.Pin != blockTokens {
		t.Fatalf("lost %+v", row.Lost)
	}
}
