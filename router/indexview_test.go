package router

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/prefix/event"
)

// TestRestartWipesOneRankOnly: numbers from 0 with other content are another
// process; a late duplicate is not.
func TestRestartWipesOneRankOnly(t *testing.T) {
	b := newBench(t, 1, 3, model.PolicyDefault, withBlocks)
	e := newEngine(b, 0)
	for k := range 3 {
		for i := range uint32(5) {
			e.serve(at("w0", k), prompt(1, 2, 10+i))
		}
	}
	old := e.ranks[at("w0", 1)].enc.AppendBatch(nil, 1, 1, nil)
	b.Events("w0", 1, 5, old)
	b.Events("w0", 1, 5, old)
	if row := indexOf(t, b, at("w0", 1)); row.Device != 7 || row.Restarts != 0 {
		t.Fatalf("after a duplicate: %+v", row)
	}
	e.restart(at("w0", 1))
	e.serve(at("w0", 1), prompt(4, 5))
	for k, want := range []int{7, 2, 7} {
		row := indexOf(t, b, at("w0", k))
		if row.Device != want || row.Restarts != uint64(k%2) || row.Feed != model.FeedLive {
			t.Errorf("rank %d: %+v, want %d blocks", k, row, want)
		}
	}
	if f := b.Snapshot().Findings; len(f) != 1 || f[0].Code != "restarted" || f[0].Target != at("w0", 1) {
		t.Fatalf("findings: %+v", f)
	}
}

// TestFindingsAppearAndClear: a rank that works and says nothing is found out
// within 30 s, and bad bytes at once; both clear by themselves.
func TestFindingsAppearAndClear(t *testing.T) {
	b := newBench(t, 1, 1, model.PolicyDefault, withBlocks, inMode(model.ModeKV))
	sub := b.Subscribe()
	state := sub.Start()
	e := newEngine(b, 0)
	e.mute = true
	e.turn(t, "", prompt(1, 2, 3))
	b.clock.advance(29 * time.Second)
	if s := b.Snapshot(); len(s.Findings) != 0 || s.Index[0].Feed != model.FeedNone {
		t.Fatalf("too early: %+v, feed %s", s.Findings, s.Index[0].Feed)
	}
	b.clock.advance(2 * time.Second)
	c, _ := sub.Take(10)
	if c == nil || !c.FindingsChanged || len(c.Findings) != 1 || c.Findings[0].Code != "silent" || c.Findings[0].Next == "" || len(c.Index) != 1 || c.Index[0].Feed != model.FeedSilent {
		t.Fatalf("silent: %+v", c)
	}
	e.mute = false
	e.turn(t, "", prompt(7, 8))
	b.clock.advance(time.Second)
	c, _ = sub.Take(10)
	if c == nil || !c.FindingsChanged || len(c.Findings) != 0 || c.Index[0].Feed != model.FeedLive {
		t.Fatalf("it goes away: %+v", c)
	}
	b.Events("w0", 0, e.ranks[at("w0", 0)].seq, []byte("{not msgpack"))
	e.ranks[at("w0", 0)].seq++
	s := b.Snapshot()
	if len(s.Findings) != 1 || s.Findings[0].Code != "unreadable" || s.Index[0].Refused == 0 || s.Index[0].LastError == "" {
		t.Fatalf("unreadable: %+v, row %+v", s.Findings, s.Index[0])
	}
	b.clock.advance(31 * time.Second)
	e.turn(t, "", prompt(20, 21))
	if s := b.Snapshot(); len(s.Findings) != 0 {
		t.Fatalf("it goes away: %+v", s.Findings)
	}
	if state.Index[0].Feed != model.FeedNone {
		t.Fatal("a published state was written")
	}
}

// TestEventsOfNobody: a worker or rank that is not there, and a router whose
// workers name no block size, take events without harm.
func TestEventsOfNobody(t *testing.T) {
	b := newBench(t, 1, 1, model.PolicyDefault, withBlocks)
	b.Events("w9", 0, 0, nil)
	b.Events("w0", 7, 0, nil)
	b.Events("w0", -1, 0, nil)
	plain := newBench(t, 1, 1, model.PolicyDefault)
	plain.Events("w0", 0, 0, []byte{1})
	if s := plain.Snapshot(); s.Index != nil || s.IndexTotals != nil || s.Findings != nil {
		t.Fatalf("an index where none is kept: %+v", s)
	}
}

// TestApproximateRanks: what was routed stands in for events, marked, until
// its time is over.
func TestApproximateRanks(t *testing.T) {
	for name, policy := range map[string]string{"ttl": model.ApproxTTL, "lru": model.ApproxLRU} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV, fieldValue("router_approximate_cache_policy", policy)),
				func(c *Config) { c.Workers[0].KVEvents, c.Workers[1].KVEvents = false, false })
			id, home := b.place(t, "", nil, of(prompt(1, 2, 3)))
			b.Done(id, model.OutcomeOK)
			row := indexOf(t, b, home)
			if row.Feed != model.FeedApproximate || row.Device != 3 {
				t.Fatalf("row %+v", row)
			}
			for range 5 {
				id, got := b.place(t, "", nil, of(prompt(1, 2, 3)))
				if got != home {
					t.Fatalf("went to %s, the prompt was sent to %s", got, home)
				}
				b.Done(id, model.OutcomeOK)
			}
			b.clock.advance(121 * time.Second)
			b.place(t, "", nil, of(prompt(9)))
			want := map[string]int{"ttl": 0, "lru": 3}[name]
			sum := 0
			for _, row := range b.Snapshot().Index {
				sum += row.Device
			}
			if sum != want+1 {
				t.Fatalf("%d blocks after the TTL, want %d and a new one", sum, want)
			}
		})
	}
}

// TestEngineTiersPlacesAreRemembered: in a mode that leaves the rank to the
// engine tier, ranks without events are known by what it put there.
func TestEngineTiersPlacesAreRemembered(t *testing.T) {
	b := newBench(t, 1, 4, model.PolicyDefault, withBlocks, func(c *Config) { c.Workers[0].KVEvents = false })
	id, home := b.place(t, "", nil, of(prompt(1, 2, 3)))
	b.Done(id, model.OutcomeOK)
	if row := indexOf(t, b, home); row.Device != 3 {
		t.Fatalf("row %+v", row)
	}
	b.must(t, set(model.FieldRouterMode, "kv"))
	if _, got := b.submit(t, "", of(prompt(1, 2, 3, 4))); got != home {
		t.Fatalf("went to %s, the prefix was sent to %s", got, home)
	}
	if len(b.notes) != 0 {
		t.Fatalf("%d notes are left", len(b.notes))
	}
}

// TestPredictionsBridgeTheEvents: with router_predicted_ttl_secs a routed prompt
// counts before its events come, and events off makes all ranks approximate.
func TestPredictionsBridgeTheEvents(t *testing.T) {
	b := newBench(t, 2, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV))
	b.must(t, set("router_predicted_ttl_secs", "5"))
	id, home := b.place(t, "", nil, of(prompt(1, 2, 3)))
	b.Done(id, model.OutcomeOK)
	if _, got := b.submit(t, "", of(prompt(1, 2, 3, 4))); got != home {
		t.Fatalf("went to %s, the prefix is on its way to %s", got, home)
	}
	if d := b.lastDecision(t); d == nil {
		t.Fatal("no record")
	}
	if row := indexOf(t, b, home); row.Feed == model.FeedApproximate {
		t.Fatal("a rank with events is not approximate")
	}
	b.must(t, set("router_kv_events", "false"))
	if row := indexOf(t, b, home); row.Feed != model.FeedApproximate {
		t.Fatalf("events off: %+v", row)
	}
	b.must(t, undo(0))
	if row := indexOf(t, b, home); row.Feed == model.FeedApproximate {
		t.Fatal("events on again")
	}
}

// TestPhantomLoadIsFound: a request whose end never comes shows, and its load
// can be dropped.
func TestPhantomLoadIsFound(t *testing.T) {
	b := newBench(t, 1, 1, model.PolicyDefault, withBlocks, inMode(model.ModeKV))
	b.place(t, "", nil, of(prompt(1, 2)))
	b.clock.advance(301 * time.Second)
	found := func() (codes string) {
		for _, f := range b.Snapshot().Findings {
			codes += f.Code + " "
		}
		return codes
	}
	if got := found(); !strings.Contains(got, "phantom_load") {
		t.Fatalf("findings: %s", got)
	}
	reply := b.must(t, onRank(model.VerbClear, at("w0", 0)))
	if reply.What != "clear phantom load of w0/0: 1 requests, 32 prompt tokens" || strings.Contains(found(), "phantom_load") {
		t.Fatalf("%q, findings %s", reply.What, found())
	}
	for want, cmd := range map[model.RefusalCode]model.Command{
		model.RefusedPhantom:   onRank(model.VerbClear, at("w0", 0)),
		model.RefusedTarget:    onRank(model.VerbClear, at("w0", 7)),
		model.RefusedMalformed: {Verb: model.VerbClear},
		model.RefusedUndo:      undo(0),
	} {
		if reply := b.do(cmd); reply.Accepted || reply.Refusal.Code != want || reply.Refusal.Next == "" {
			t.Errorf("%s: %+v", want, reply.Refusal)
		}
	}
	if open := b.Snapshot().Totals.Open; open != 1 {
		t.Fatalf("%d open: the request itself stays", open)
	}
	b.place(t, "", nil, of(prompt(1, 2)))
	b.clock.advance(3700 * time.Second)
	b.place(t, "", nil)
	if got := b.steer.tier.Load().Counters(); got.Expired != 1 || got.Open != 1 {
		t.Fatalf("expired: %+v", got)
	}
}

// TestEventsWhileRouting runs publishers, requests, commands and screens at
// once, for the race detector.
func TestEventsWhileRouting(t *testing.T) {
	b := newBench(t, 2, 4, model.PolicyKVAware, withBlocks, inMode(model.ModeKV))
	e := newEngine(b, 40)
	var wg sync.WaitGroup
	for _, target := range b.targets() {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(target.Rank)))
			for range 100 {
				e.serve(target, prompt(1, 2, uint32(3+rng.IntN(50)), uint32(rng.IntN(99))))
			}
		})
	}
	for g := range 3 {
		wg.Go(func() {
			for i := range 100 {
				tokens := prompt(1, 2, uint32(i))
				id := int64(1000*(g+1) + i)
				q := model.Request{ID: id, Conv: conversation("c"), PromptTokens: len(tokens), Locals: localsOf(tokens)}
				d, err := b.Route(&q, nil)
				if err != nil {
					continue
				}
				b.FirstToken(id, model.Usage{Ran: d.Target, CachedTokens: 16})
				b.Done(id, model.OutcomeOK)
			}
		})
	}
	wg.Go(func() {
		sub := b.Subscribe()
		sub.Start()
		for i := range 50 {
			b.clock.advance(60 * time.Millisecond)
			sub.Take(10)
			mode := []string{"kv", "lockstep", "round_robin"}[i%3]
			b.do(set(model.FieldRouterMode, mode))
			b.do(set("router_predicted_ttl_secs", []string{"none", "2"}[i%2]))
		}
	})
	wg.Wait()
	for _, row := range b.Snapshot().Index {
		held := 0
		for _, h := range e.ranks[row.Target].holds {
			if h {
				held++
			}
		}
		if row.Feed != model.FeedLive || row.Device != held {
			t.Errorf("%s: %+v, the rank holds %d", row.Target, row, held)
		}
	}
}

// TestTiersAndWords: blocks that move to another tier under their hash alone
// are dropped from where they were, never credited where they cannot be chained.
func TestTiersAndWords(t *testing.T) {
	b := newBench(t, 1, 1, model.PolicyDefault, withBlocks)
	e := newEngine(b, 0)
	home := at("w0", 0)
	e.serve(home, prompt(1, 2, 3))
	names := e.ranks[home].order
	e.publish(home, []event.Event{{Kind: event.Stored, Tier: event.Host, BlockTokens: blockTokens, Hashes: names[2:], HasParent: true, Parent: names[1], Tokens: prompt(3), Group: event.NoGroup}})
	e.publish(home, []event.Event{{Kind: event.Removed, Tier: event.Device, Hashes: names[2:], Group: event.NoGroup}})
	if row := indexOf(t, b, home); row.Device != 2 || row.Host != 1 || row.Disk != 0 {
		t.Fatalf("tiers: %+v", row)
	}
	e.publish(home, []event.Event{{Kind: event.Cleared}})
	if row := indexOf(t, b, home); row.Device+row.Host != 0 {
		t.Fatalf("cleared: %+v", row)
	}
}
