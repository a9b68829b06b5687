package router

import (
	"fmt"
	"strings"
	"testing"

	"adpdeck/router/model"
)

// TestResync: a rank's cache is forgotten at once and learned afresh, that of
// no other; it is a version and an event, and nothing that an undo takes back.
func TestResync(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV))
	e := newEngine(b, 0)
	rank, other := at("w0", 0), at("w0", 1)
	e.serve(rank, prompt(1, 2, 3))
	e.serve(other, prompt(1, 2))
	before := b.Snapshot()
	got := b.must(t, onRank(model.VerbResync, rank))
	if got.What != "resync w0/0: its cache is learned afresh" || got.Version != before.Version+1 {
		t.Fatalf("%+v", got)
	}
	if row := indexOf(t, b, rank); row.Device != 0 || row.Feed != model.FeedLive {
		t.Fatalf("%+v", row)
	}
	if row := indexOf(t, b, other); row.Device != 2 {
		t.Fatalf("the other rank: %+v", row)
	}
	if s := b.Snapshot(); s.Events[0].What != got.What || s.Revisions[0].Verb != model.VerbResync {
		t.Fatalf("%+v, %+v", s.Events[0], s.Revisions[0])
	}
	e.serve(rank, prompt(7, 8))
	if row := indexOf(t, b, rank); row.Device != 2 || row.Gaps != 0 || row.Restarts != 0 {
		t.Fatalf("it goes on: %+v", row)
	}
	for _, c := range []model.Command{undo(0), undo(got.Version)} {
		if r := b.do(c); r.Accepted || r.Refusal.Code != model.RefusedUndo {
			t.Errorf("undo %d: %+v", c.Undo, r)
		}
	}
	if again := b.Apply(model.Command{ID: got.ID, Verb: model.VerbResync, Target: &rank}); again.Version != got.Version {
		t.Errorf("the same command again: %+v", again)
	}
	if row := indexOf(t, b, rank); row.Device != 2 {
		t.Errorf("it acted twice: %+v", row)
	}
	for want, c := range map[model.RefusalCode]model.Command{
		model.RefusedMalformed: {Verb: model.VerbResync},
		model.RefusedTarget:    onRank(model.VerbResync, at("w0", 9)),
	} {
		if r := b.do(c); r.Accepted || r.Refusal.Code != want || r.Refusal.Next == "" {
			t.Errorf("%s: %+v", want, r.Refusal)
		}
	}
	none := newBench(t, 1, 1, model.PolicyDefault)
	if r := none.do(onRank(model.VerbResync, at("w0", 0))); r.Accepted || r.Refusal.Code != model.RefusedIndex || !strings.Contains(r.Refusal.Next, "block size") {
		t.Errorf("without an index: %+v", r.Refusal)
	}
}

// TestResyncOfAGuess: what was routed to a rank without events is forgotten too.
func TestResyncOfAGuess(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV), func(c *Config) { c.Workers[0].KVEvents = false })
	id, home := b.place(t, "", nil, of(prompt(1, 2, 3)))
	b.Done(id, model.OutcomeOK)
	if row := indexOf(t, b, home); row.Device != 3 {
		t.Fatalf("%+v", row)
	}
	b.must(t, onRank(model.VerbResync, home))
	if row := indexOf(t, b, home); row.Device != 0 || row.Feed != model.FeedApproximate {
		t.Fatalf("%+v", row)
	}
}

// TestResyncOfAWorker concerns each of its ranks, and no other worker's.
func TestResyncOfAWorker(t *testing.T) {
	b := newBench(t, 2, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV))
	for i := range 2 {
		e := newEngine(b, i)
		e.serve(at(fmt.Sprint("w", i), 0), prompt(1, 2, 3))
		e.serve(at(fmt.Sprint("w", i), 1), prompt(1, 2))
	}
	if got := b.must(t, onRank(model.VerbResync, at("w1", model.NoRank))); got.What != "resync w1, all 2 ranks: their caches are learned afresh" {
		t.Fatalf("%q", got.What)
	}
	for target, want := range map[model.Target]int{at("w0", 0): 3, at("w0", 1): 2, at("w1", 0): 0, at("w1", 1): 0} {
		if row := indexOf(t, b, target); row.Device != want {
			t.Errorf("%s holds %d, want %d", target, row.Device, want)
		}
	}
	if r := b.do(onRank(model.VerbResync, at("w7", model.NoRank))); r.Accepted || r.Refusal.Message != "resync w7: no such worker" {
		t.Errorf("%+v", r.Refusal)
	}
}
