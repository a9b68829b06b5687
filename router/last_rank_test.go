package router

import (
	"testing"

	"adpdeck/router/model"
)

// TestLastRankThatAnswers: ranks that do not answer are no reserve. What would
// leave no other is refused and says so, also by undo; a dead worker keeps
// nobody from mode direct, and nothing is refused where no rank took work before.
func TestLastRankThatAnswers(t *testing.T) {
	b := newBench(t, 2, 2, model.PolicyDefault)
	b.must(t, onRank(model.VerbDrain, at("w0", 1))) // v2
	b.must(t, onRank(model.VerbReady, at("w0", 1))) // v3
	live := func(worker string, up bool) {
		t.Helper()
		if err := b.Live(worker, model.NoRank, up, "test"); err != nil {
			t.Fatal(err)
		}
	}
	live("w1", false)
	w0 := at("w0", model.NoRank)
	for _, c := range []model.Command{
		onRank(model.VerbDrain, w0),
		{Verb: model.VerbSet, Set: []model.FieldValue{
			{Field: model.FieldWeight, Target: ptr(at("w0", 0)), Value: "0"}, {Field: model.FieldWeight, Target: ptr(at("w0", 1)), Value: "0"},
		}},
	} {
		if r := b.do(c); r.Accepted || r.Refusal.Code != model.RefusedLast {
			t.Fatalf("%s: %+v", c.Verb, r)
		}
	}
	if r := b.do(onRank(model.VerbDrain, w0)); r.Refusal.Message != "drain w0, all 2 ranks: then no rank of the cluster (2 do not answer) takes new work" {
		t.Fatalf("%v", r.Refusal)
	}
	b.must(t, onRank(model.VerbDrain, at("w0", 0))) // v4
	if r := b.do(undo(3)); r.Accepted || r.Refusal.Message != "undo v3: w0/1 is the last rank of the cluster that takes new work" {
		t.Fatalf("%+v", r)
	}
	b.must(t, onRank(model.VerbDrain, at("w1", model.NoRank))) // of the dead one
	b.must(t, onRank(model.VerbReady, at("w1", model.NoRank)))
	b.must(t, set(model.FieldRouterMode, string(model.ModeDirect)))
	b.must(t, set(model.FieldRouterMode, string(model.ModeRoundRobin)))
	live("w0", false)
	b.must(t, onRank(model.VerbDrain, w0))
}
