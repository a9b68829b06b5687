package router

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"adpdeck/router/model"
)

// TestHeldToABusyRank: a request that an operator's pin or its client holds to a
// rank obeys the queue's thresholds as any other, and looks at that rank alone:
// it waits while the rank is busy or others wait for it, however idle the rest,
// and goes while the rank is not, however busy the rest. Who may go elsewhere
// too (Relax) looks at the worker's ranks together.
func TestHeldToABusyRank(t *testing.T) {
	pinned := func(q *model.Request) { q.Conv = conversation("pinned") }
	asked := func(q *model.Request) { q.Explicit = ptr(at("w0", 1)) }
	relaxed := func(q *model.Request) { q.Explicit, q.Relax = ptr(at("w0", 1)), true }
	for name, c := range map[string]struct {
		want  func(*model.Request)
		waits bool
	}{
		"pin": {pinned, true}, "rank": {asked, true}, "rank or another": {relaxed, false},
	} {
		for _, mode := range []model.RouterMode{model.ModeKV, model.ModeLockstep} {
			t.Run(name+" "+string(mode), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { heldToABusyRank(t, mode, c.want, c.waits) })
			})
		}
	}
}

func heldToABusyRank(t *testing.T, mode model.RouterMode, want func(*model.Request), waits bool) {
	b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, inMode(mode, fieldValue("router_queue_threshold_tokens", "50")))
	id, _ := b.routed(t, "pinned")
	b.Done(id, model.OutcomeOK)
	b.must(t, onConvs(model.VerbPin, ptr(at("w0", 1)), "pinned"))
	ask := func(rank int) int64 {
		q := &model.Request{ID: int64(100 + rank), PromptTokens: 100, Explicit: ptr(at("w0", rank))}
		if _, err := b.Route(q, nil); err != nil {
			t.Fatal(err)
		}
		return q.ID
	}
	other := ask(0) // the other rank is busy: no matter
	q := &model.Request{ID: 50, PromptTokens: 10}
	want(q)
	if d, err := b.Route(q, nil); err != nil || d.Target != at("w0", 1) {
		t.Fatal(d.Target, err)
	}
	b.Done(50, model.OutcomeOK)
	b.Done(other, model.OutcomeOK)
	busy := ask(1)
	q = &model.Request{ID: 51, PromptTokens: 10}
	want(q)
	if _, err := b.Route(q, nil); errors.Is(err, ErrFull) != waits {
		t.Fatalf("at a busy rank: %v", err)
	}
	if !waits {
		return
	}
	first := b.waiting(t.Context(), 52, want)
	synctest.Wait()
	b.clock.advance(time.Millisecond)
	second := b.waiting(t.Context(), 53, want, func(q *model.Request) { q.PromptTokens = 10 })
	synctest.Wait()
	if answered(first) || answered(second) {
		t.Fatal("they went to a busy rank")
	}
	b.FirstToken(busy, model.Usage{Ran: at("w0", 1)}) // no longer busy
	synctest.Wait()
	if !answered(first) || answered(second) { // the first makes it busy again
		t.Fatalf("first went: %v, second: %v", answered(first), answered(second))
	}
	b.FirstToken(52, model.Usage{Ran: at("w0", 1)})
	synctest.Wait()
	if !answered(second) {
		t.Fatal("it waits on for an idle rank")
	}
}

// TestPinnedToABlockedRank: an operator's pin reaches a rank that is out for all
// others, and its request looks at that rank alone there too.
func TestPinnedToABlockedRank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV), func(c *Config) { c.Workers[0].MaxNumActiveRequests = 1 })
		id, _ := b.routed(t, "pinned")
		b.Done(id, model.OutcomeOK)
		b.must(t, onConvs(model.VerbPin, ptr(at("w0", 1)), "pinned"))
		first, _ := b.routed(t, "pinned")
		rest, _ := b.routed(t, "") // w0/0 is full as well
		if err := b.Block(at("w0", 1), true); err != nil {
			t.Fatal(err)
		}
		got := b.waiting(t.Context(), 50, func(q *model.Request) { q.Conv = conversation("pinned") })
		synctest.Wait()
		b.Done(first, model.OutcomeOK)
		synctest.Wait()
		if !answered(got) {
			t.Fatal("it waits for ranks that it may not go to")
		}
		if a := <-got; a.err != nil || a.decision.Target != at("w0", 1) {
			t.Fatal(a.decision.Target, a.err)
		}
		b.Done(rest, model.OutcomeOK)
	})
}
