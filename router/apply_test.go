package router

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"adpdeck/router/model"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		cmd  model.Command
		want string
	}{
		"beta":       {set(model.FieldLoadBalanceWeight, "4"), "load balance β 1.00 → 4.00"},
		"fine value": {set(model.FieldMatchRateThreshold, "0.125"), "match threshold 0.10 → 0.125"},
		"policy":     {set(model.FieldPolicy, "kv_aware"), "policy default → kv_aware"},
		"no change":  {set(model.FieldRouterMode, "round_robin"), "router mode stays round_robin"},
		"weight":     {setWeight(at("w0", 3), "0.5"), "w0/3 weight 1.00 → 0.50"},
		"several": {model.Command{Verb: model.VerbSet, Set: []model.FieldValue{
			{Field: model.FieldLoadBalanceWeight, Value: "2"}, {Field: model.FieldNewConvPlacement, Value: "least_tokens"},
		}}, "load balance β 1.00 → 2.00, new placement round_robin → least_tokens"},
		"pin":          {onConvs(model.VerbPin, ptr(at("w0", 3)), "a"), "pin a to w0/3"},
		"move pin":     {onConvs(model.VerbPin, ptr(at("w0", 3)), "p"), "pin p w0/1 → w0/3"},
		"unpin":        {onConvs(model.VerbUnpin, nil, "p"), "unpin p from w0/1"},
		"pin many":     {onConvs(model.VerbPin, ptr(at("w0", 3)), "a", "p"), "pin 2 conversations to w0/3"},
		"evict":        {onConvs(model.VerbEvict, nil, "p"), "evict p from w0/1, where an operator pinned it (blocks on the engine are not touched)"},
		"evict many":   {onConvs(model.VerbEvict, nil, "a", "p"), "evict 2 conversations (blocks on the engine are not touched), operator pins of 1 conversation with them"},
		"evict free":   {onConvs(model.VerbEvict, nil, "a"), "evict a (blocks on the engine are not touched)"},
		"migrate":      {onConvs(model.VerbMigrate, ptr(at("w0", 2)), "a"), "migrate a w0/0 → w0/2"},
		"migrate pin":  {onConvs(model.VerbMigrate, ptr(at("w0", 2)), "p"), "migrate p w0/1 → w0/2"},
		"migrate many": {onConvs(model.VerbMigrate, ptr(at("w0", 2)), "a", "p"), "migrate 2 conversations to w0/2"},
		"drain":        {onRank(model.VerbDrain, at("w0", 2)), "drain w0/2"},
		"ready":        {onRank(model.VerbReady, at("w0", 2)), "ready w0/2, as it was"},
		"undo":         {undo(0), "undo v2 (pin p to w0/1)"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, 4, model.PolicyDefault)
			b.turn(t, "a", nil, asks(at("w0", 0)))
			b.turn(t, "p", nil)
			b.must(t, onConvs(model.VerbPin, ptr(at("w0", 1)), "p"))
			c.cmd.Reason, c.cmd.Expect = "because", 2
			reply := b.must(t, c.cmd)
			s := b.Snapshot()
			if reply.What != c.want || reply.Version != 3 || s.Version != 3 {
				t.Fatalf("v%d %q, want v3 %q", reply.Version, reply.What, c.want)
			}
			rev, ev := s.Revisions[0], s.Events[0]
			if rev.Version != 3 || rev.What != c.want || rev.Actor != "bob" || rev.Reason != "because" || rev.Verb != c.cmd.Verb {
				t.Fatalf("%+v", rev)
			}
			if ev.Version != 3 || ev.What != c.want || ev.Who != "bob" || ev.ID != 2 || ev.Level != "info" {
				t.Fatalf("%+v", ev)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	w := func(rank int) *model.Target { return ptr(at("w0", rank)) }
	for name, c := range map[string]struct {
		cmd  model.Command
		code model.RefusalCode
		text string
	}{
		"old version":      {model.Command{Verb: model.VerbDrain, Target: w(0), Expect: 2}, model.RefusedConflict, "v2 is not current, bob made v4 (drain w0/2); look"},
		"no such verb":     {model.Command{Verb: "fly"}, model.RefusedVerb, `"fly": no such verb; choose one of`},
		"speed":            {model.Command{Verb: model.VerbSpeed}, model.RefusedVerb, "on a simulation"},
		"long reason":      {model.Command{Verb: model.VerbDrain, Target: w(0), Reason: strings.Repeat("x", 257)}, model.RefusedMalformed, "reason bytes of 257, at most 256"},
		"long actor":       {model.Command{Verb: model.VerbDrain, Target: w(0), Actor: strings.Repeat("x", 65)}, model.RefusedMalformed, "actor bytes"},
		"not utf-8":        {model.Command{Verb: model.VerbDrain, Target: w(0), Reason: "\xff"}, model.RefusedMalformed, "not UTF-8"},
		"nothing to set":   {model.Command{Verb: model.VerbSet}, model.RefusedMalformed, "nothing to set"},
		"out of bounds":    {set(model.FieldLoadBalanceWeight, "17"), model.RefusedBounds, "0 to 16"},
		"not a number":     {set(model.FieldLoadBalanceWeight, "much"), model.RefusedBounds, "0 to 16"},
		"no such field":    {set("gamma", "1"), model.RefusedField, `"gamma": no such field`},
		"twice":            {model.Command{Verb: model.VerbSet, Set: []model.FieldValue{{Field: model.FieldPolicy, Value: "default"}, {Field: model.FieldPolicy, Value: "kv_aware"}}}, model.RefusedMalformed, "twice"},
		"weight of nobody": {setWeight(at("w0", 9), "1"), model.RefusedTarget, "w0/9: no such rank; w0 has ranks 0 to 3"},
		"weight of all":    {set(model.FieldWeight, "1"), model.RefusedTarget, "name a rank"},
		"no rank":          {model.Command{Verb: model.VerbDrain}, model.RefusedMalformed, "no rank is named"},
		"drain nobody":     {onRank(model.VerbDrain, at("w3", 0)), model.RefusedTarget, "drain w3/0: no such rank; the workers are w0, w1"},
		"pin to nobody":    {onConvs(model.VerbPin, w(7), "a"), model.RefusedTarget, "pin to w0/7: no such rank"},
		"pin to draining":  {onConvs(model.VerbPin, w(2), "a"), model.RefusedDraining, "pin to w0/2: rank is draining"},
		"migrate to 0":     {onConvs(model.VerbMigrate, ptr(at("w1", 0)), "a"), model.RefusedDraining, "weight 0"},
		"pin nowhere":      {onConvs(model.VerbPin, nil, "a"), model.RefusedMalformed, "no rank is named"},
		"pin nothing":      {onConvs(model.VerbPin, w(0)), model.RefusedMalformed, "no conversation is named"},
		"unknown":          {onConvs(model.VerbEvict, nil, "zz"), model.RefusedConv, "evict zz: no such conversation"},
		"keyless":          {onConvs(model.VerbPin, w(0), ""), model.RefusedConv, "no such conversation"},
		"not pinned":       {onConvs(model.VerbUnpin, nil, "a"), model.RefusedConv, "unpin a: no operator pinned it"},
		"undo the start":   {undo(1), model.RefusedUndo, "undo v1"},
		"undo the future":  {undo(99), model.RefusedUndo, "no such version yet"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2, 4, model.PolicyDefault, func(c *Config) { c.Workers[1].Ranks = 2 })
			b.turn(t, "a", nil)
			b.must(t, setWeight(at("w1", 0), "0"))
			b.must(t, set(model.FieldLoadBalanceWeight, "2"))
			b.must(t, onRank(model.VerbDrain, at("w0", 2)))
			before := b.Snapshot()
			reply := b.do(c.cmd)
			if reply.Accepted || reply.Refusal == nil || reply.Refusal.Code != c.code || reply.Version != 4 {
				t.Fatalf("%+v", reply)
			}
			if text := reply.Refusal.Error(); !strings.Contains(text, c.text) || reply.Refusal.Next == "" {
				t.Fatalf("says %q", text)
			}
			if c.code == model.RefusedConflict && (reply.Refusal.Current.Version != 4 || reply.Refusal.Settings.AttentionDpConfig.KVCacheRoutingLoadBalanceWeight != 2) {
				t.Fatalf("the conflict does not show what stands: %+v", reply.Refusal)
			}
			if diff := cmp.Diff(before, b.Snapshot(), cmp.Comparer(same)); diff != "" {
				t.Fatalf("a refused command changed something: %s", diff)
			}
		})
	}
}

func TestCommandIDs(t *testing.T) {
	b := newBench(t, 1, 4, model.PolicyDefault)
	for _, id := range []string{"", strings.Repeat("x", 65), "\xff"} {
		cmd := set(model.FieldPolicy, "kv_aware")
		cmd.ID = id
		if reply := b.Apply(cmd); reply.Accepted || reply.Refusal.Code != model.RefusedMalformed {
			t.Fatalf("id %q: %+v", id, reply)
		}
	}
}

// TestLongNamesAreNotRemembered: answers are kept and quote what they refuse,
// so nothing long gets into them.
func TestLongNamesAreNotRemembered(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for name, cmd := range map[string]model.Command{
		"verb":            {Verb: model.Verb(long)},
		"verb and reason": {Verb: model.Verb(long), Reason: long},
		"worker":          {Verb: model.VerbDrain, Target: &model.Target{Worker: long}},
		"field":           set(long, "1"),
		"value":           set(model.FieldLoadBalanceWeight, long),
		"weight's worker": setWeight(model.Target{Worker: long}, "1"),
		"conversation id": onConvs(model.VerbEvict, nil, "a", long),
		"tenant":          {Verb: model.VerbEvict, Convs: []model.ConvKey{{Tenant: long, ID: "a"}}},
		"model":           {Verb: model.VerbEvict, Convs: []model.ConvKey{{Model: long, ID: "a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, 4, model.PolicyDefault)
			b.turn(t, "a", nil)
			reply := b.do(cmd)
			if reply.Accepted || reply.Refusal.Code != model.RefusedMalformed || len(reply.Items) > 0 || reply.Refusal.Next == "" {
				t.Fatalf("%.300v", reply)
			}
			if n := len(reply.Refusal.Error()) + len(reply.What); n > 300 {
				t.Fatalf("the answer has %d bytes", n)
			}
		})
	}
}

// TestEachCommandThreeTimes: the same id again gives the first answer, be it a
// refusal, and acts once.
func TestEachCommandThreeTimes(t *testing.T) {
	b := newBench(t, 1, 4, model.PolicyConversation)
	b.turn(t, "a", nil)
	for i, cmd := range []model.Command{
		set(model.FieldTimeoutIters, "51"), onConvs(model.VerbPin, ptr(at("w0", 2)), "a", "gone"), onConvs(model.VerbMigrate, ptr(at("w0", 1)), "a"),
		onConvs(model.VerbUnpin, nil, "a"), onConvs(model.VerbEvict, nil, "a"), onRank(model.VerbDrain, at("w0", 1)),
		onRank(model.VerbReady, at("w0", 1)), undo(0), set(model.FieldTimeoutIters, "-1"),
	} {
		cmd.ID = fmt.Sprint("id", i)
		first := b.Apply(cmd)
		after := b.Snapshot()
		for range 2 {
			again := b.Apply(cmd)
			if diff := cmp.Diff(first, again); diff != "" {
				t.Fatalf("%s: %s", cmd.Verb, diff)
			}
		}
		if diff := cmp.Diff(after, b.Snapshot(), cmp.Comparer(same)); diff != "" {
			t.Fatalf("%s acted again: %s", cmd.Verb, diff)
		}
		if first.Accepted != (i != 8) {
			t.Fatalf("%s: %+v", cmd.Verb, first.Refusal)
		}
	}
	if v := b.Snapshot().Version; v != 9 {
		t.Fatalf("version %d after 8 accepted commands", v)
	}
}

func TestManyConversations(t *testing.T) {
	b := newBench(t, 1, 4, model.PolicyDefault)
	b.turn(t, "a", nil)
	b.turn(t, "b", nil)
	reply := b.must(t, onConvs(model.VerbPin, ptr(at("w0", 2)), "a", "gone", "b", "a"))
	if reply.Version != 2 || reply.What != "pin 2 conversations to w0/2" || len(reply.Items) != 4 {
		t.Fatalf("%+v", reply)
	}
	for i, done := range []bool{true, false, true, true} {
		if it := reply.Items[i]; it.Done != done || (it.Refusal == nil) != done {
			t.Errorf("item %d: %+v", i, it)
		}
	}
	if s := b.Snapshot(); s.Totals.OperatorPins != 2 || s.Ranks[2].OperatorPins != 2 {
		t.Fatalf("%+v", s.Totals)
	}
}

func TestPinsAreFull(t *testing.T) {
	b := newBench(t, 1, 4, model.PolicyDefault)
	var names []string
	for i := range model.MaxOperatorPins + 2 {
		names = append(names, fmt.Sprint("c", i))
		b.turn(t, names[i], nil)
	}
	b.must(t, onConvs(model.VerbPin, ptr(at("w0", 1)), names[:model.MaxOperatorPins-1]...))
	reply := b.must(t, onConvs(model.VerbPin, ptr(at("w0", 1)), names[model.MaxOperatorPins-1:]...))
	if reply.Items[0].Refusal != nil || reply.Items[1].Refusal.Code != model.RefusedFull || reply.Items[2].Done {
		t.Fatalf("%+v", reply.Items)
	}
	if reply := b.do(onConvs(model.VerbPin, ptr(at("w0", 1)), names[model.MaxOperatorPins])); reply.Accepted || reply.Refusal.Code != model.RefusedFull {
		t.Fatalf("%+v", reply)
	}
	b.must(t, onConvs(model.VerbPin, ptr(at("w0", 2)), names[0])) // moving needs no room
}

// TestSettingsActAtOnce: the next batch sees them, and bindings, cursor and
// pending warm-up outlive them.
func TestSettingsActAtOnce(t *testing.T) {
	b := newBench(t, 1, 4, model.PolicyConversation)
	for i := range 3 {
		b.turn(t, fmt.Sprint("c", i), nil)
	}
	b.must(t, set(model.FieldPolicy, "kv_aware"))
	b.must(t, set(model.FieldColdStartWarmup, "true"))
	b.turn(t, "x", nil)
	if d := b.lastDecision(t); d.Why != "warm-up" || d.Policy != model.PolicyKVAware || d.Version != 3 {
		t.Fatalf("%+v", d)
	}
	b.must(t, set(model.FieldPolicy, "conversation"))
	if got := b.turn(t, "c1", nil); got.Rank != 1 {
		t.Fatalf("c1 lost its binding: %v", got)
	}
	if got := b.turn(t, "new", nil); got.Rank != 3 {
		t.Fatalf("the cursor was lost: %v", got)
	}
	b.must(t, set(model.FieldPolicy, "kv_aware"))
	if diff := cmp.Diff([]int{1, 2, 3}, b.workers[0].engine.PendingWarmup()); diff != "" {
		t.Fatalf("pending warm-up: %s", diff)
	}
	if cfg, minGen, _ := b.Gate("w0"); cfg != b.settings.AttentionDpConfig || minGen != 0 {
		t.Fatalf("%+v", cfg)
	}
	b.must(t, setWeight(at("w0", 0), "0"))
	b.must(t, set(model.FieldPolicy, "default"))
	for range 8 {
		if got := b.turn(t, "", nil); got.Rank == 0 {
			t.Fatal("weight 0 took new work")
		}
	}
}

// TestTwoOperators: 1,000 times two operators send a command against the same
// version, at once: exactly one wins, versions form one order, no update is
// lost.
func TestTwoOperators(t *testing.T) {
	b := newBench(t, 1, 4, model.PolicyDefault)
	won := map[uint64]string{}
	for round := range 1000 {
		version := b.Snapshot().Version
		iters := b.settings.AttentionDpConfig.TimeoutIters
		var replies [2]model.Reply
		var wg sync.WaitGroup
		for who := range replies {
			wg.Go(func() {
				cmd := set(model.FieldTimeoutIters, fmt.Sprint(iters+1))
				cmd.ID, cmd.Expect, cmd.Actor = fmt.Sprintf("%d-%d", round, who), version, fmt.Sprint("op", who)
				replies[who] = b.Apply(cmd)
			})
		}
		wg.Wait()
		if replies[0].Accepted == replies[1].Accepted {
			t.Fatalf("round %d: %+v", round, replies)
		}
		for who, r := range replies {
			if r.Accepted {
				won[r.Version] = fmt.Sprint("op", who)
			} else if r.Refusal.Code != model.RefusedConflict || r.Refusal.Current.Version != version+1 {
				t.Fatalf("round %d: %+v", round, r.Refusal)
			}
		}
	}
	s := b.Snapshot()
	if s.Version != 1001 || len(won) != 1000 || s.Settings.AttentionDpConfig.TimeoutIters != 50+1000 {
		t.Fatalf("v%d, %d winners, %d", s.Version, len(won), s.Settings.AttentionDpConfig.TimeoutIters)
	}
	for i, rev := range s.Revisions {
		if rev.Version != s.Version-uint64(i) || rev.Actor != won[rev.Version] {
			t.Fatalf("revision %d: %+v, won by %s", i, rev, won[rev.Version])
		}
	}
	if len(s.Revisions) != model.MaxRevisions || len(s.Events) != model.MaxEvents {
		t.Fatalf("%d revisions, %d events", len(s.Revisions), len(s.Events))
	}
}
