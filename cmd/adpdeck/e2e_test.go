package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"adpdeck/feed"
	"adpdeck/router/model"
	"adpdeck/router/trace"
)

func other(t model.Target) model.Target {
	if t.Worker == "w0" {
		return model.Target{Worker: "w1", Rank: (t.Rank + 1) % 4}
	}
	return model.Target{Worker: "w0", Rank: (t.Rank + 1) % 4}
}

func TestBetaThroughTheFeed(t *testing.T) {
	d := newDeck(t, "kv_aware", &chats{convs: 16, turns: 30})
	d.advance(3 * time.Second)
	before := d.see("decisions", func(v *feed.View) bool { return len(v.Decisions) > 0 })
	if got := before.Decisions[len(before.Decisions)-1].Version; got != 1 {
		t.Fatalf("the first decisions were made under v%d", got)
	}
	at := d.cl.sim.Now()
	beta := d.set(model.FieldLoadBalanceWeight, "4", nil)
	if beta.Version != 2 {
		t.Fatalf("β made v%d", beta.Version)
	}
	d.advance(3 * time.Second)
	after := d.see("decisions under v2", func(v *feed.View) bool {
		return len(v.Decisions) > 0 && v.Decisions[len(v.Decisions)-1].Version == 2
	})
	if got := after.State.Settings.AttentionDpConfig.KVCacheRoutingLoadBalanceWeight; got != 4 {
		t.Fatalf("the client shows β %v", got)
	}
	for _, dec := range after.Decisions {
		want := uint64(1)
		if dec.At.After(at) {
			want = 2
		}
		if dec.Version != want {
			t.Fatalf("decision %d of %s was made under v%d", dec.ID, dec.At, dec.Version)
		}
	}
	d.undo(beta.Version)
	v := d.client.View()
	if got := v.State.Settings.AttentionDpConfig.KVCacheRoutingLoadBalanceWeight; got != 1 || v.State.Version != 3 {
		t.Fatalf("after undo β %v in v%d", got, v.State.Version)
	}
	if rev := v.State.Revisions[0]; rev.Undoes != 2 || rev.Actor != "ann" {
		t.Fatalf("%+v", rev)
	}
}

// TestPinThroughTheFeed: a conversation pinned by hand stays on its rank
// through 20 turns, under each policy; evicted it is placed afresh; undo
// restores each.
func TestPinThroughTheFeed(t *testing.T) {
	for _, policy := range []string{"default", "kv_aware", "conversation"} {
		t.Run(policy, func(t *testing.T) {
			d := newDeck(t, policy, &chats{convs: 12, turns: 60})
			d.advance(2500 * time.Millisecond)
			home := other(d.conv(0).Last)
			pinned := d.must(model.Command{Verb: model.VerbPin, Target: &home, Convs: []model.ConvKey{chat(0)}, Reason: "hot"})
			stays := func(turns int, want bool) {
				t.Helper()
				for range turns {
					turn := d.known(0).Turns
					d.advance(time.Second)
					c := d.known(0)
					if c.Turns != turn+1 {
						t.Fatalf("turn %d follows turn %d", c.Turns, turn)
					}
					if want && c.Last != home {
						t.Fatalf("turn %d ran on %s, pinned to %s", c.Turns, c.Last, home)
					}
				}
			}
			stays(20, true)
			if c := d.conv(0); c.Pin != model.PinOperator || c.Bound != home || c.By != "ann" || c.Reason != "hot" || c.Lost != 0 {
				t.Fatalf("%+v", c)
			}
			evicted := d.must(model.Command{Verb: model.VerbEvict, Convs: []model.ConvKey{chat(0)}})
			if c := d.conv(0); c.Pin != model.PinNone {
				t.Fatalf("evicted, it is held by %q", c.Pin)
			}
			stays(1, false)
			afresh := d.see("its decision", func(v *feed.View) bool {
				return slices.ContainsFunc(v.Decisions, func(d *model.Decision) bool { return d.Conv == chat(0) && d.Version == evicted.Version })
			})
			for _, dec := range afresh.Decisions {
				if dec.Conv == chat(0) && dec.Version == evicted.Version {
					switch dec.Placement.Phase {
					case model.PhaseScored, model.PhaseBalanced, model.PhasePlaced:
					default:
						t.Fatalf("placed by %q: %s", dec.Placement.Phase, dec.Why)
					}
				}
			}
			d.undo(evicted.Version)
			stays(2, true)
			d.undo(pinned.Version)
			if c := d.conv(0); c.Pin == model.PinOperator {
				t.Fatalf("%+v", c)
			}
			stays(1, false)
		})
	}
}

// TestDrainThroughTheFeed: a draining rank, and one of weight 0, keeps its
// bound conversations and gets no new ones, until it is ready again.
func TestDrainThroughTheFeed(t *testing.T) {
	drain := func(d *deck, to model.Target) { d.must(model.Command{Verb: model.VerbDrain, Target: &to}) }
	ready := func(d *deck, to model.Target) { d.must(model.Command{Verb: model.VerbReady, Target: &to}) }
	zero := func(d *deck, to model.Target) { d.set(model.FieldWeight, "0", &to) }
	one := func(d *deck, to model.Target) { d.set(model.FieldWeight, "1", &to) }
	for name, c := range map[string]struct{ shut, open func(*deck, model.Target) }{
		"drain": {drain, ready}, "weight 0": {zero, one},
	} {
		t.Run(name, func(t *testing.T) {
			const early = 14
			d := newDeck(t, "conversation", &growing{chats{convs: early + 2, turns: 20}})
			d.advance(1900 * time.Millisecond)
			home := d.lasts(early)
			shut, since := home[0], d.cl.sim.Now()
			c.shut(d, shut)
			d.advance(4 * time.Second)
			if got := d.lasts(early); !slices.Equal(got, home) {
				t.Fatalf("bound conversations moved: %v, were %v", got, home)
			}
			arrived := 0
			for _, s := range d.cl.live.Snapshot().Convs {
				if s.Key.Tenant == "late" && s.FirstAt.After(since) {
					arrived++
					if s.Last == shut {
						t.Fatalf("%s is new and went to %s", s.Key.ID, shut)
					}
				}
			}
			if arrived < 8 {
				t.Fatalf("only %d new conversations came: the test shows nothing", arrived)
			}
			c.open(d, shut)
			d.advance(6 * time.Second)
			came := slices.ContainsFunc(d.cl.live.Snapshot().Convs, func(s *model.Conv) bool {
				return s.Key.Tenant == "late" && s.FirstAt.After(since) && s.Last == shut
			})
			if !came {
				t.Fatalf("no new conversation came to %s when it took some again", shut)
			}
		})
	}
}

// growing is chats of which the last two are a new conversation at each turn.
type growing struct{ chats }

func (g *growing) Next(row *trace.Row) bool {
	at := g.sent
	if !g.chats.Next(row) {
		return false
	}
	if at%g.convs >= g.convs-2 {
		row.Conv = model.ConvKey{Tenant: "late", ID: fmt.Sprintf("n%d", at)}
		row.Turn = 1
	}
	return true
}

// TestPolicySwitchThroughTheFeed: bindings outlive a policy that does not use
// them.
func TestPolicySwitchThroughTheFeed(t *testing.T) {
	const convs = 12
	d := newDeck(t, "conversation", &chats{convs: convs, turns: 30})
	d.advance(1900 * time.Millisecond)
	home := d.lasts(convs)
	d.set(model.FieldPolicy, "default", nil)
	d.advance(4 * time.Second)
	if slices.Equal(d.lasts(convs), home) {
		t.Fatal("the default policy moved none: the test shows nothing")
	}
	for i := range convs {
		if c := d.conv(i); c.Pin != model.PinAuto || c.Bound != home[i] {
			t.Fatalf("under another policy the binding is %q to %s, was to %s", c.Pin, c.Bound, home[i])
		}
	}
	d.set(model.FieldPolicy, "conversation", nil)
	d.advance(2 * time.Second)
	if got := d.lasts(convs); !slices.Equal(got, home) {
		t.Fatalf("back under the conversation policy they run on %v, were bound to %v", got, home)
	}
}

func TestSameCommandThreeTimesThroughTheFeed(t *testing.T) {
	d := newDeck(t, "kv_aware", &chats{convs: 4, turns: 4})
	cmd := model.Command{ID: "once", Verb: model.VerbSet, Set: []model.FieldValue{{Field: model.FieldLoadBalanceWeight, Value: "2"}}}
	first := d.send(cmd)
	for range 2 {
		if again := d.send(cmd); again.Version != first.Version || again.What != first.What || !again.Accepted {
			t.Fatalf("answered %+v, then %+v", first, again)
		}
	}
	v := d.see("v2", func(v *feed.View) bool { return v.State.Version >= 2 })
	if v.State.Version != 2 || len(v.State.Revisions) != 2 {
		t.Fatalf("v%d with %d revisions", v.State.Version, len(v.State.Revisions))
	}
	old := model.Command{ID: "old", Expect: 1, Verb: model.VerbSet, Set: cmd.Set}
	if got := d.send(old); got.Accepted || got.Refusal.Code != model.RefusedConflict || got.Refusal.Current.Version != 2 {
		t.Fatalf("%+v", got)
	}
}

// TestFullPinnedRankDoesNotStopTheRest: more requests wait for the one slot of
// the rank that they are pinned to than the worker has slots; all others go on.
func TestFullPinnedRankDoesNotStopTheRest(t *testing.T) {
	for _, policy := range []string{"default", "kv_aware", "conversation"} {
		t.Run(policy, func(t *testing.T) {
			const convs, pinned = 40, 30
			d := newDeck(t, policy, &chats{convs: convs, turns: 30}, func(c *clusterFlags) { c.workers, c.maxActive = 1, 2 })
			d.advance(900 * time.Millisecond)
			hot := model.Target{Worker: "w0", Rank: 0}
			pin := model.Command{Verb: model.VerbPin, Target: &hot}
			for i := range pinned {
				pin.Convs = append(pin.Convs, chat(i))
			}
			d.must(pin)
			before := d.known(convs - 1).Honoured
			d.advance(20 * time.Second)
			waiting := d.cl.live.Snapshot().Workers[0].Waiting
			if waiting < 3*4*2 {
				t.Fatalf("only %d requests wait: the test shows nothing", waiting)
			}
			for i := pinned; i < convs; i++ {
				if c := d.known(i); c.Honoured < before+15 || c.Open > 2 {
					t.Errorf("c%d, which nobody pinned, had %d of %d turns served", i, c.Honoured, c.Turns)
				}
			}
			d.must(model.Command{Verb: model.VerbUnpin, Convs: pin.Convs})
			d.advance(60 * time.Second)
			if !d.cl.sim.Done() || d.cl.live.Snapshot().Totals.Open != 0 {
				t.Errorf("%d requests are left", d.cl.live.Snapshot().Totals.Open)
			}
		})
	}
}

// shared is traffic of new conversations without end that all begin with the
// same four blocks and add a little of their own.
type shared struct{ sent int }

func (s *shared) Total() int { return 0 }

func (s *shared) Next(row *trace.Row) bool {
	blocks := []uint64{trace.Chain(0, 7)}
	for i := range uint64(4) {
		id := i
		if i == 3 {
			id = uint64(1000 + s.sent)
		}
		blocks = append(blocks, trace.Chain(blocks[i], id))
	}
	*row = trace.Row{
		At: time.Duration(s.sent) * 60 * time.Millisecond, Conv: chat(s.sent), Turn: 1,
		PromptTokens: 5*512 + 50, OutputTokens: 40, Blocks: blocks, BlockTokens: 512,
	}
	s.sent++
	return true
}

// TestSharedPromptDoesNotPullAllToOneRank: with β 0 the ranks that first held
// what all prompts begin with get nearly all of them. With β set to 4 under way
// the load spreads, and the shared prompt is soon cached everywhere.
func TestSharedPromptDoesNotPullAllToOneRank(t *testing.T) {
	d := newDeck(t, "kv_aware", &shared{}, func(c *clusterFlags) { c.workers, c.ranks = 1, 8 })
	counts := func(s *model.State) (out []uint64) {
		for _, r := range s.Ranks {
			out = append(out, r.Requests)
		}
		return out
	}
	split := func() (maxOverMean float64) {
		before := counts(d.cl.live.Snapshot())
		d.advance(4 * time.Second)
		sum, most := uint64(0), uint64(0)
		for k, n := range counts(d.cl.live.Snapshot()) {
			sum, most = sum+n-before[k], max(most, n-before[k])
		}
		return float64(most) * float64(len(before)) / float64(sum)
	}
	d.set(model.FieldFairShareMultiplier, "8", nil)
	d.set(model.FieldLoadBalanceWeight, "0", nil)
	if got := split(); got < 2 {
		t.Errorf("with β 0 the busiest rank took %.2f times the mean: the test shows nothing", got)
	}
	d.set(model.FieldLoadBalanceWeight, "4", nil)
	d.advance(4 * time.Second)
	if got := split(); got > 1.5 {
		t.Errorf("with β 4 the busiest rank took %.2f times the mean", got)
	}
	if hit := d.cl.live.Snapshot().Totals.Hit; !(hit > 0.7) {
		t.Errorf("only %.2f of the tokens are found: the shared prompt is not cached on all ranks", hit)
	}
}

// TestGeneratedTrafficSuitsTheCluster: whatever its size, a cluster is busy and
// nothing piles up.
func TestGeneratedTrafficSuitsTheCluster(t *testing.T) {
	for name, flags := range map[string]clusterFlags{
		"default": {workers: 2, ranks: 8, seed: 1}, "one rank": {workers: 1, ranks: 1, seed: 1},
		"four": {workers: 2, ranks: 2, seed: 1}, "64": {workers: 8, ranks: 8, seed: 1},
	} {
		t.Run(name, func(t *testing.T) {
			traffic, cfg, _, err := flags.traffic("")
			if err != nil {
				t.Fatal(err)
			}
			cl, err := flags.build(traffic, cfg, cfg.Start, 1, true)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := cl.sim.Advance(2*time.Minute, 0); err != nil {
				t.Fatal(err)
			}
			cl.sim.Feed()
			ranks := flags.workers * flags.ranks
			s := cl.live.Snapshot()
			if s.Totals.Queued > 2*ranks || s.Totals.TTFTMsP50 > 1000 || s.Totals.Decisions < uint64(20*ranks) {
				t.Errorf("%d queued, ttft %.0f ms, %d decisions in two minutes", s.Totals.Queued, s.Totals.TTFTMsP50, s.Totals.Decisions)
			}
		})
	}
}
