package router

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"adpdeck/router/model"
)

func onWorker(verb model.Verb, worker string) model.Command {
	return onRank(verb, at(worker, model.NoRank))
}

// TestLastEligible: the last rank that takes new work cannot be closed; which
// is the last depends on who chooses the worker.
func TestLastEligible(t *testing.T) {
	cases := map[string]struct {
		mode model.RouterMode
		cmds []model.Command // all but the last are accepted
		text string          // of the refusal, empty where the last is accepted too
	}{
		"a whole worker":          {model.ModeRoundRobin, []model.Command{onWorker(model.VerbDrain, "w1")}, ""},
		"the last rank of one":    {model.ModeKV, []model.Command{onRank(model.VerbDrain, at("w1", 0)), onRank(model.VerbDrain, at("w1", 1))}, ""},
		"the last worker":         {model.ModeLockstep, []model.Command{onWorker(model.VerbDrain, "w1"), onWorker(model.VerbDrain, "w0")}, "drain w0, all 2 ranks: then no rank of the cluster takes new work"},
		"the last rank of all":    {model.ModeRandom, []model.Command{onWorker(model.VerbDrain, "w1"), onRank(model.VerbDrain, at("w0", 0)), onRank(model.VerbDrain, at("w0", 1))}, "drain w0/1: w0/1 is the last rank of the cluster that takes new work"},
		"by weight":               {model.ModeLeastLoaded, []model.Command{onWorker(model.VerbDrain, "w1"), setWeight(at("w0", 0), "0"), setWeight(at("w0", 1), "0")}, "w0/1 is the last rank of the cluster"},
		"a worker in mode direct": {model.ModeDirect, []model.Command{onWorker(model.VerbDrain, "w1")}, "then no rank of w1 takes new work, and in mode direct clients name their worker"},
		"a rank in mode direct":   {model.ModeDirect, []model.Command{onRank(model.VerbDrain, at("w1", 0)), onRank(model.VerbDrain, at("w1", 1))}, "w1/1 is the last rank of w1 that takes new work"},
		"to mode direct":          {model.ModeKV, []model.Command{onWorker(model.VerbDrain, "w1"), set(model.FieldRouterMode, "direct")}, "no rank of w1 takes new work"},
		"no worker":               {model.ModeKV, []model.Command{onWorker(model.VerbDrain, "w7")}, "drain w7: no such worker; the workers are w0, w1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2, 2, model.PolicyDefault, inMode(c.mode))
			for i, cmd := range c.cmds {
				if i < len(c.cmds)-1 || c.text == "" {
					b.must(t, cmd)
					continue
				}
				r := b.do(cmd)
				if r.Accepted || !strings.Contains(r.Refusal.Error(), c.text) || r.Refusal.Next == "" {
					t.Fatalf("%+v", r)
				}
			}
		})
	}
}

// TestDrainWorker: all ranks in one version, which one undo takes back; bound
// conversations stay, others go elsewhere, and a client that names the worker
// is told.
func TestDrainWorker(t *testing.T) {
	for _, mode := range []model.RouterMode{model.ModeRoundRobin, model.ModeLeastLoaded, model.ModeRandom, model.ModePowerOfTwo, model.ModeKV, model.ModeLockstep} {
		t.Run(string(mode), func(t *testing.T) {
			b := newBench(t, 2, 3, model.PolicyConversation, inMode(mode))
			homes := map[string]model.Target{}
			for i := range 6 {
				c := fmt.Sprint("c", i)
				homes[c] = b.turn(t, c, nil)
			}
			b.must(t, onRank(model.VerbDrain, at("w0", 1)))
			got := b.must(t, onWorker(model.VerbDrain, "w0"))
			if got.What != "drain w0, all 3 ranks" || got.Version != 3 {
				t.Fatalf("%+v", got)
			}
			if again := b.must(t, onWorker(model.VerbDrain, "w0")); again.What != "drain w0, all 3 ranks, as it was" {
				t.Fatalf("%+v", again)
			}
			for c, home := range homes {
				if got := b.turn(t, c, nil); got != home {
					t.Errorf("%s went to %s, bound to %s", c, got, home)
				}
			}
			for i := range 8 {
				if got := b.turn(t, fmt.Sprint("new", i), nil); got.Worker != "w1" {
					t.Errorf("a new conversation went to %s", got)
				}
			}
			_, err := b.Submit(&model.Request{ID: 999, PromptTokens: 10, Explicit: ptr(at("w0", model.NoRank))})
			if !errors.Is(err, ErrNoEligible) {
				t.Errorf("a client that names the worker: %v", err)
			}
			b.must(t, undo(3))
			drains := ""
			for _, row := range b.Snapshot().Ranks {
				if row.Availability == model.Draining {
					drains += row.Target.String() + " "
				}
			}
			if drains != "w0/1 " {
				t.Errorf("after the undo %sdrain", drains)
			}
			b.must(t, onWorker(model.VerbReady, "w0"))
			for _, row := range b.Snapshot().Ranks {
				if row.Availability != model.Ready {
					t.Errorf("%s is %s", row.Target, row.Availability)
				}
			}
		})
	}
}

// TestDrainedWorkerServesOut: what waits at an engine for a rank when its
// worker is drained as a whole is placed all the same, but never on a blocked
// rank.
func TestDrainedWorkerServesOut(t *testing.T) {
	for _, policy := range []model.Policy{model.PolicyDefault, model.PolicyKVAware, model.PolicyConversation} {
		t.Run(string(policy), func(t *testing.T) {
			b := newBench(t, 2, 3, policy)
			id, to := b.submit(t, "a")
			keyless, other := b.submit(t, "")
			if other.Worker == to.Worker {
				t.Fatal("both went to one worker")
			}
			b.must(t, setWeight(at(to.Worker, 0), "0"))
			b.must(t, onWorker(model.VerbDrain, to.Worker))
			if rank := b.step(t, to.Worker, nil, id)[0]; rank < 1 {
				t.Errorf("placed on rank %d of a drained worker whose rank 0 has weight 0", rank)
			}
			b.step(t, other.Worker, nil, keyless)
			b.Done(id, model.OutcomeOK)
			b.Done(keyless, model.OutcomeOK)

			b.must(t, onWorker(model.VerbReady, to.Worker))
			for k := range 3 {
				b.must(t, setWeight(at(to.Worker, k), "1"))
			}
			b.submit(t, "") // the other's turn
			id, again := b.submit(t, "")
			if again.Worker != to.Worker {
				id, again = b.submit(t, "")
			}
			for k := range 3 {
				b.must(t, setWeight(at(again.Worker, k), "0"))
			}
			_ = b.Block(at(again.Worker, 0), true)
			_ = b.Block(at(again.Worker, 1), true)
			if rank := b.step(t, again.Worker, nil, id)[0]; rank != 2 {
				t.Errorf("placed on rank %d, want the one that is not blocked", rank)
			}
		})
	}
}

// TestNothingNewGoesToClosedRanks: after any commands there is a rank that
// takes new work, in mode direct one at each worker; each accepted command
// makes one version; and what is new goes only to such ranks.
func TestNothingNewGoesToClosedRanks(t *testing.T) {
	modes := []model.RouterMode{
		model.ModeRoundRobin, model.ModeLeastLoaded, model.ModeRandom, model.ModePowerOfTwo, model.ModeKV, model.ModeLockstep, model.ModeDirect,
	}
	rapid.Check(t, func(rt *rapid.T) {
		mode := rapid.SampledFrom(modes).Draw(rt, "mode")
		policy := rapid.SampledFrom([]model.Policy{model.PolicyDefault, model.PolicyKVAware, model.PolicyConversation}).Draw(rt, "policy")
		b := newBench(t, 3, 2, policy, inMode(mode))
		for i := range rapid.IntRange(1, 25).Draw(rt, "commands") {
			target := at(fmt.Sprint("w", rapid.IntRange(0, 2).Draw(rt, "worker")), rapid.IntRange(model.NoRank, 1).Draw(rt, "rank"))
			cmd := onRank(rapid.SampledFrom([]model.Verb{model.VerbDrain, model.VerbDrain, model.VerbReady}).Draw(rt, "verb"), target)
			switch rapid.IntRange(0, 5).Draw(rt, "kind") {
			case 0:
				if target.Rank == model.NoRank {
					target.Rank = 0
				}
				cmd = setWeight(target, rapid.SampledFrom([]string{"0", "1"}).Draw(rt, "weight"))
			case 1:
				cmd = undo(0)
			case 2:
				mode = rapid.SampledFrom(modes).Draw(rt, "new mode")
				cmd = set(model.FieldRouterMode, string(mode))
			}
			version := b.version
			if r := b.do(cmd); r.Accepted && b.version != version+1 || !r.Accepted && b.version != version {
				rt.Fatalf("command %d: %+v, version %d after %d", i, r, b.version, version)
			}
			mode = b.Mode()
			open := map[model.Target]bool{}
			workers := map[string]bool{}
			for _, row := range b.Snapshot().Ranks {
				if row.Availability == model.Ready && row.Weight > 0 {
					open[row.Target], workers[row.Target.Worker] = true, true
				}
			}
			if len(open) == 0 || mode == model.ModeDirect && len(workers) < 3 {
				rt.Fatalf("command %d, mode %s: open are %v", i, mode, open)
			}
			got := b.turn(t, "", nil, func(q *model.Request) {
				if mode == model.ModeDirect {
					q.Explicit = ptr(at("w2", model.NoRank))
				}
			})
			if !open[got] {
				rt.Fatalf("command %d, mode %s: a request went to %s, open are %v", i, mode, got, open)
			}
		}
	})
}

// TestNothingNewGoesToADrainedWorker: a worker that is drained as a whole serves
// what it has; a client that asks for one of its ranks is told so in every mode.
func TestNothingNewGoesToADrainedWorker(t *testing.T) {
	for _, mode := range allModes() {
		b := newBench(t, 2, 2, model.PolicyDefault, withBlocks, inMode(mode))
		b.must(t, set("router_mode", string(mode)))
		if reply := b.do(onRank(model.VerbDrain, at("w0", model.NoRank))); !reply.Accepted {
			continue // mode direct needs every worker
		}
		for _, rank := range []int{0, 1, model.NoRank} {
			b.refused(t, ErrNoEligible, "", func(q *model.Request) { q.Explicit = ptr(at("w0", rank)) })
		}
	}
}
