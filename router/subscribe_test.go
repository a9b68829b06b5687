package router

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"adpdeck/router/model"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// follow applies a Change as Take's comment says.
func follow(s *model.State, c *model.Change) *model.State {
	n := *s
	n.At, n.Version = c.At, c.Version
	if c.Settings != nil {
		n.Settings = *c.Settings
	}
	if c.Totals != nil {
		n.Totals = *c.Totals
	}
	if c.Source != nil {
		n.Source = *c.Source
	}
	left := func(t model.Target) bool {
		return slices.Contains(c.WorkersGone, t.Worker) || slices.Contains(c.RanksGone, t)
	}
	worker := func(w model.Worker) model.Target { return *workerTarget(w.ID) }
	rank := func(r model.Rank) model.Target { return r.Target }
	index := func(r model.IndexRank) model.Target { return r.Target }
	n.Workers = placed(slices.DeleteFunc(slices.Clone(s.Workers), func(w model.Worker) bool { return left(worker(w)) }), c.Workers, worker)
	n.Ranks = placed(slices.DeleteFunc(slices.Clone(s.Ranks), func(r model.Rank) bool { return left(r.Target) }), c.Ranks, rank)
	n.Index = placed(slices.DeleteFunc(slices.Clone(s.Index), func(r model.IndexRank) bool { return left(r.Target) }), c.Index, index)
	if c.IndexTotals != nil {
		n.IndexTotals = c.IndexTotals
	}
	if c.FindingsChanged {
		n.Findings = c.Findings
	}
	convs := map[model.ConvKey]*model.Conv{}
	for _, v := range s.Convs {
		convs[v.Key] = v
	}
	for _, k := range c.Gone {
		delete(convs, k)
	}
	for _, v := range c.Convs {
		convs[v.Key] = v
	}
	n.Convs = nil
	for _, v := range convs {
		n.Convs = append(n.Convs, v)
	}
	slices.SortFunc(n.Convs, CompareConvs)
	n.Convs = n.Convs[:min(len(n.Convs), model.MaxFeedConvs)]
	n.Revisions = newest(c.Revisions, s.Revisions, func(r model.Revision) uint64 { return r.Version })
	n.Events = newest(c.Events, s.Events, func(e model.Event) uint64 { return e.ID })
	return &n
}

// placed puts fresh into a list ordered by target, in place of what has the same.
func placed[T any](list, fresh []T, target func(T) model.Target) []T {
	for _, v := range fresh {
		list = slices.DeleteFunc(list, func(o T) bool { return target(o) == target(v) })
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b T) int { return target(a).Compare(target(b)) })
	return list
}

func newest[T any](fresh, old []T, id func(T) uint64) []T {
	by := map[uint64]T{}
	for _, v := range append(slices.Clone(old), fresh...) {
		by[id(v)] = v
	}
	var out []T
	for _, v := range by {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b T) int { return int(id(b)) - int(id(a)) })
	return out[:min(len(out), 256)]
}

var equal = cmp.Options{cmp.Comparer(same), cmpopts.EquateEmpty()}

// TestChangesGiveTheSnapshot: a subscriber that takes at random moments has
// what a snapshot says, every time.
func TestChangesGiveTheSnapshot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newBench(t, 2, 3, model.PolicyConversation, func(c *Config) {
			c.MaxConvs = 5
			c.Settings.AttentionDpConfig.KVCacheRoutingMaxSessions = 4
		}, withBlocks, inMode(rapid.SampledFrom(allModes()[:4]).Draw(t, "mode")))
		e := newEngine(b, 6)
		sub := b.Subscribe()
		state := sub.Start()
		decisions := uint64(0)
		for range rapid.IntRange(1, 40).Draw(t, "n") {
			disturb(t, b, e)
			if rapid.Bool().Draw(t, "later") {
				continue
			}
			c, resync := sub.Take(3)
			if resync {
				t.Fatal("nothing was lost")
			}
			if c != nil {
				state = follow(state, c)
				decisions += uint64(len(c.Decisions)) + c.DecisionsLeftOut
			}
			want := b.Snapshot()
			state.At = want.At
			if diff := cmp.Diff(want, state, equal); diff != "" {
				t.Fatal(diff)
			}
			if decisions != want.Totals.Decisions {
				t.Fatalf("%d decisions told, %d made", decisions, want.Totals.Decisions)
			}
			if c, resync := sub.Take(3); c != nil || resync {
				t.Fatalf("nothing has changed: %+v", c)
			}
		}
	})
}

// disturb does one random thing that an engine, a client or an operator may do.
func disturb(t *rapid.T, b *bench, e *fakeEngine) {
	conv := rapid.StringMatching(`[a-h]?`).Draw(t, "conv")
	tokens := prompt(rapid.SliceOfN(rapid.Uint32Range(1, 4), 0, 3).Draw(t, "blocks")...)
	switch rapid.IntRange(0, 7).Draw(t, "op") {
	case 0, 1:
		b.place(t, conv, []int{0, 8, 3}, of(tokens))
	case 2:
		b.FirstToken(rapid.Int64Range(1, b.ids+1).Draw(t, "id"), model.Usage{Ran: at("w0", 1), CachedTokens: 30, TTFTMs: 9})
	case 3:
		b.Done(rapid.Int64Range(1, b.ids+1).Draw(t, "id"), model.OutcomeOK)
	case 4:
		b.do(randomCommand(t, b))
	case 5:
		b.clock.advance(time.Duration(rapid.IntRange(0, 3000).Draw(t, "tenths")) * refresh)
	case 6:
		b.Report("w1", 2, 0, []model.RankState{{Rank: 1, NumActiveTokens: int(b.ids)}}, []model.RankLoad{{Rank: 1, Queued: 1}})
		b.SetSource(model.Source{Kind: "simulated", Rows: int(b.ids)})
	case 7:
		target := b.targets()[rapid.IntRange(0, 5).Draw(t, "rank")]
		if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
			e.restart(target)
		}
		e.serve(target, tokens)
	}
}

// TestManyAtOnce: eight subscribers and two operators while routing runs. Every
// subscriber ends with the final snapshot, and each version was told once.
func TestManyAtOnce(t *testing.T) {
	b := newBench(t, 2, 4, model.PolicyConversation, func(c *Config) { c.MaxConvs = 200 })
	stop := make(chan struct{})
	var routing, following sync.WaitGroup
	for lane := range 2 {
		routing.Go(func() { drive(t, b, lane, 1500) })
	}
	for op := range 2 {
		routing.Go(func() { operate(b, op, 300) })
	}
	states := make([]*model.State, 8)
	subs := make([]*Subscription, len(states))
	for i := range subs {
		subs[i] = b.Subscribe()
		states[i] = subs[i].Start()
		following.Go(func() {
			for {
				select {
				case <-subs[i].C():
				case <-stop:
					return
				}
				states[i] = take(t, subs[i], states[i])
			}
		})
	}
	routing.Wait()
	close(stop)
	following.Wait()
	want := b.Snapshot()
	for i := range subs {
		got := take(t, subs[i], states[i])
		got.At = want.At
		if diff := cmp.Diff(want, got, equal); diff != "" {
			t.Fatalf("subscriber %d: %s", i, diff)
		}
		subs[i].Close()
		if c, resync := subs[i].Take(1); c != nil || !resync {
			t.Fatal("a closed subscription still tells")
		}
	}
	checkConserved(t, b, want.Totals.Open, b.Strays())
}

func take(t *testing.T, s *Subscription, state *model.State) *model.State {
	c, resync := s.Take(10)
	switch {
	case resync:
		t.Error("resync")
	case c != nil:
		return follow(state, c)
	}
	return state
}

// drive routes n requests of its own ids, in steps and one at a time.
func drive(t *testing.T, b *bench, lane, n int) {
	rng := rand.New(rand.NewPCG(1, uint64(lane)))
	var out model.StepOutput
	for i := range n {
		id := int64(lane*1_000_000 + i)
		req := model.Request{ID: id, PromptTokens: 100, Conv: conversation(fmt.Sprint("c", rng.IntN(300)))}
		b.clock.advance(time.Millisecond)
		if i%2 == 0 {
			if _, err := b.Route(&req, nil); err != nil {
				continue
			}
		} else {
			target, err := b.Submit(&req)
			if err != nil {
				t.Error(err)
				return
			}
			in := model.StepInput{HardCap: 8, Requests: []model.StepRequest{{ID: id}}}
			for k := range 4 {
				in.States = append(in.States, model.RankState{Rank: k})
			}
			if err := b.Step(target.Worker, &in, &out); err != nil {
				t.Error(err)
				return
			}
		}
		b.FirstToken(id, model.Usage{Ran: at("w0", 0), CachedTokens: 10, TTFTMs: 5})
		b.Done(id, model.OutcomeOK)
	}
}

func operate(b *bench, who, n int) {
	rng := rand.New(rand.NewPCG(2, uint64(who)))
	for i := range n {
		conv := fmt.Sprint("c", rng.IntN(300))
		target := at("w1", rng.IntN(4))
		cmd := []model.Command{
			onConvs(model.VerbPin, &target, conv), onConvs(model.VerbEvict, nil, conv), onConvs(model.VerbMigrate, &target, conv),
			onRank(model.VerbDrain, target), onRank(model.VerbReady, target), undo(0), setWeight(target, "0.5"),
			set(model.FieldTimeoutIters, fmt.Sprint(rng.IntN(100))),
		}[rng.IntN(8)]
		cmd.ID, cmd.Actor = fmt.Sprintf("%d/%d", who, i), fmt.Sprint("op", who)
		b.Apply(cmd)
	}
}

// TestPublishedIsNeverWritten: a state and the records told with it read the
// same after much has happened.
func TestPublishedIsNeverWritten(t *testing.T) {
	b := newBench(t, 1, 4, model.PolicyKVAware)
	b.must(t, setWeight(at("w0", 1), "0.5"))
	sub := b.Subscribe()
	sub.Start()
	for i := range 20 {
		b.turn(t, fmt.Sprint("c", i%5), []int{i % 8, 1, 2, 3})
	}
	state := b.Snapshot()
	change, _ := sub.Take(100)
	copyOf := fmt.Sprintf("%+v", state) + convText(state.Convs)
	records := recordText(change.Decisions)
	for i := range 50 {
		b.turn(t, fmt.Sprint("c", i%7), []int{7 - i%8, 1, 2, 3})
		b.do(setWeight(at("w0", i%4), fmt.Sprint(float64(i%3)/2)))
		b.do(onConvs(model.VerbPin, ptr(at("w0", i%4)), fmt.Sprint("c", i%5)))
		b.do(undo(0))
	}
	if got := fmt.Sprintf("%+v", state) + convText(state.Convs); got != copyOf {
		t.Fatalf("the state was written:\n%s\n%s", copyOf, got)
	}
	if got := recordText(change.Decisions); got != records {
		t.Fatal("a decision was written")
	}
}

func convText(convs []*model.Conv) (text string) {
	for _, c := range convs {
		text += fmt.Sprintf("%+v\n", *c)
	}
	return text
}

func recordText(ds []*model.Decision) (text string) {
	for _, d := range ds {
		text += fmt.Sprintf("%+v\n", *d)
	}
	return text
}

// TestDecisionIDsHaveNoHoles and the ring keeps the newest.
func TestDecisionIDsHaveNoHoles(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault)
	sub := b.Subscribe()
	sub.Start()
	for range model.MaxDecisions + 100 {
		b.turn(t, "", nil)
	}
	c, _ := sub.Take(50)
	if len(c.Decisions) != 50 || c.DecisionsLeftOut != model.MaxDecisions+50 || len(c.Settled) != 100 {
		t.Fatalf("%d told, %d left out, %d settled", len(c.Decisions), c.DecisionsLeftOut, len(c.Settled))
	}
	all := b.Decisions(0, 1<<20)
	if len(all) != model.MaxDecisions {
		t.Fatalf("%d kept", len(all))
	}
	for i, d := range all {
		if d.ID != uint64(101+i) {
			t.Fatalf("decision %d at %d", d.ID, i)
		}
	}
	if some := b.Decisions(4190, 3); len(some) != 3 || some[2].ID != 4196 {
		t.Fatalf("%d, newest %d", len(some), some[2].ID)
	}
}

// TestTooMuchHasGoneBy: when more conversations were dropped than are
// remembered, Take says so and Start begins afresh.
func TestTooMuchHasGoneBy(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault, func(c *Config) { c.MaxConvs, c.Record = 10, false })
	sub := b.Subscribe()
	if _, resync := sub.Take(1); !resync {
		t.Fatal("before Start there is nothing to follow")
	}
	sub.Start()
	for i := range maxGone + 20 {
		b.turn(t, fmt.Sprint("c", i), nil)
	}
	if c, resync := sub.Take(1); c != nil || !resync {
		t.Fatal("the dropped ones cannot all be told")
	}
	if s := sub.Start(); len(s.Convs) != 10 {
		t.Fatalf("%d conversations", len(s.Convs))
	}
	b.turn(t, "c1", nil)
	if c, resync := sub.Take(1); resync || len(c.Convs) != 1 || len(c.Gone) != 1 {
		t.Fatalf("%+v", c)
	}
}

// TestSignal: C holds one signal, and routing never waits for it.
func TestSignal(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault)
	sub := b.Subscribe()
	sub.Start()
	for range 100 {
		b.turn(t, "a", nil)
	}
	<-sub.C()
	select {
	case <-sub.C():
		t.Fatal("more than one signal")
	default:
	}
}
