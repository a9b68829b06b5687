package router

import (
	"strings"
	"testing"

	"adpdeck/router/model"
)

// TestWhatIsKeptOfRanksThatLeft can be seen and taken back: who joins again says
// how many ranks still drain, and before that a drain or a weight of a rank that
// is not there can be lifted, and no other set.
func TestWhatIsKeptOfRanksThatLeft(t *testing.T) {
	b := newBench(t, 0, 0, model.PolicyDefault, room(16))
	b.join(t, spec("w0", 1))
	b.join(t, spec("w1", 4))
	b.must(t, onRank(model.VerbDrain, at("w1", model.NoRank))) // v2
	b.must(t, setWeight(at("w1", 3), "0.5"))                   // v3
	b.leave(t, "w1")
	b.join(t, spec("w1", 2))
	if e := b.Snapshot().Events[0]; e.What != "w1 joined: test, 2 ranks, 2 of them draining as before" {
		t.Fatalf("%q", e.What)
	}
	if r := b.must(t, onRank(model.VerbReady, at("w1", 3))); r.What != "ready w1/3, for when it is back" {
		t.Fatalf("%q", r.What)
	}
	if r := b.must(t, setWeight(at("w1", 3), "1")); r.What != "w1/3 weight 0.50 → 1.00" {
		t.Fatalf("%q", r.What)
	}
	for _, c := range []model.Command{onRank(model.VerbReady, at("w1", 3)), onRank(model.VerbDrain, at("w1", 2)), setWeight(at("w1", 3), "0.5")} {
		if r := b.do(c); r.Accepted || r.Refusal.Error() != r.Refusal.Message+"; w1 has ranks 0 to 1" {
			t.Fatalf("%+v", r)
		}
	}
	b.join(t, spec("w1", 4))
	if e := b.Snapshot().Events[0]; !strings.HasPrefix(e.What, "w1: ranks 2 → 4") || !strings.HasSuffix(e.What, "1 of them draining as before") {
		t.Fatalf("%q", e.What)
	}
	b.leave(t, "w1")
	if r := b.must(t, onRank(model.VerbReady, at("w1", model.NoRank))); r.What != "ready w1, 3 ranks, for when it is back" {
		t.Fatalf("%q", r.What)
	}
	b.must(t, undo(0))
	b.join(t, spec("w1", 4))
	for _, r := range b.Snapshot().Ranks[1:] {
		if want := r.Target.Rank != 3; (r.Availability == model.Draining) != want || r.Weight != 1 {
			t.Fatalf("%+v", r)
		}
	}
	b.leave(t, "w0")
	b.leave(t, "w1")
	if r := b.do(onRank(model.VerbReady, at("w7", model.NoRank))); r.Refusal.Error() != "ready w7: no such worker; no worker has joined yet" {
		t.Fatalf("%v", r.Refusal)
	}
}

// TestWeightWhereTheEnginePicks says that it does not keep the engine off.
func TestWeightWhereTheEnginePicks(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault, func(c *Config) { c.Workers[0].Steering = model.SteerConversation })
	if r := b.must(t, setWeight(at("w0", 1), "0")); r.What != "w0/1 weight 1.00 → 0.00 (the engine of w0 picks the rank and may use this one all the same)" {
		t.Fatalf("%q", r.What)
	}
	if r := b.do(onRank(model.VerbClear, at("w0", model.NoRank))); r.Accepted || !strings.HasPrefix(r.Refusal.Message, "clear w0: its requests without a rank") {
		t.Fatalf("%+v", r)
	}
}
