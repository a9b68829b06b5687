package router

import (
	"errors"
	"testing"
	"testing/synctest"

	"adpdeck/router/model"
)

// TestAWaitingRequestCountsOnce however often it is tried: one conflict, one
// wait, one hit of the prefix that ranks share, one decision that says that it
// waits and one that says where it went.
func TestAWaitingRequestCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, inMode(model.ModeRoundRobin), func(c *Config) {
			c.Workers[0].MaxNumActiveRequests = 1
		})
		e := newEngine(b, 0)
		for rank := range 2 {
			e.serve(at("w0", rank), prompt(1, 2))
		}
		b.turn(t, "c", nil, func(q *model.Request) { q.Explicit = ptr(at("w0", 0)) })
		b.must(t, onConvs(model.VerbPin, ptr(at("w0", 0)), "c"))
		id, _ := b.routed(t, "", func(q *model.Request) { q.Explicit = ptr(at("w0", 0)) })
		before := b.Snapshot().Totals
		got := b.waiting(t.Context(), 50, of(prompt(1, 2, 3)), func(q *model.Request) {
			q.Conv, q.Explicit = conversation("c"), ptr(at("w0", 1))
		})
		synctest.Wait()
		for range 3 { // each lets those who wait choose anew
			b.must(t, onConvs(model.VerbMigrate, ptr(at("w0", 0)), "c"))
		}
		synctest.Wait()
		s := b.Snapshot()
		if answered(got) || s.Totals.Unplaced != before.Unplaced+1 || s.Totals.Conflicts != before.Conflicts || s.Totals.Decisions != before.Decisions+1 {
			t.Fatalf("while it waits: before %+v\nnow %+v", before, s.Totals)
		}
		b.Done(id, model.OutcomeOK)
		synctest.Wait()
		if a := <-got; a.err != nil || a.decision.Target != at("w0", 0) || a.decision.Conflict == "" {
			t.Fatalf("%+v, %v", a.decision, a.err)
		}
		s = b.Snapshot()
		if s.Totals.Unplaced != before.Unplaced+1 || s.Totals.Conflicts != before.Conflicts+1 || s.Totals.Decisions != before.Decisions+2 {
			t.Fatalf("before %+v\nafter  %+v", before, s.Totals)
		}
		if p := s.IndexTotals.Shared; len(p) != 1 || p[0].Hits != 1 {
			t.Fatalf("%+v", p)
		}
	})
}

// TestRefusedIsNotCounted: what finds no room and does not wait is no conflict,
// no wait and no hit.
func TestRefusedIsNotCounted(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, inMode(model.ModeRoundRobin), func(c *Config) {
		c.Workers[0].MaxNumActiveRequests = 1
	})
	e := newEngine(b, 0)
	for rank := range 2 {
		e.serve(at("w0", rank), prompt(1, 2))
	}
	b.turn(t, "c", nil, func(q *model.Request) { q.Explicit = ptr(at("w0", 0)) })
	b.must(t, onConvs(model.VerbPin, ptr(at("w0", 0)), "c"))
	b.routed(t, "", func(q *model.Request) { q.Explicit = ptr(at("w0", 0)) })
	before := b.Snapshot().Totals
	for i := range int64(3) {
		q := &model.Request{ID: 50 + i, Conv: conversation("c"), Explicit: ptr(at("w0", 1))}
		of(prompt(1, 2, 3))(q)
		if d, err := b.Route(q, nil); !errors.Is(err, ErrFull) || d.Target.Rank != model.NoRank || d.Why == "" {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	s := b.Snapshot()
	if s.Totals.Unplaced != before.Unplaced || s.Totals.Conflicts != before.Conflicts || len(s.IndexTotals.Shared) != 0 {
		t.Fatalf("before %+v\nafter  %+v, %+v", before, s.Totals, s.IndexTotals.Shared)
	}
}
