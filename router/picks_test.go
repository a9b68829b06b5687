package router

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"adpdeck/router/model"
)

func picking(s *model.WorkerSpec) { s.Steering = model.SteerConversation }

// TestEnginePicks: a request goes to the worker, its rank is known when the
// engine tells, and its conversation stays with the worker, then with the rank.
func TestEnginePicks(t *testing.T) {
	for _, mode := range allModes()[:6] {
		b := newBench(t, 0, 0, model.PolicyConversation, room(16), inMode(mode))
		for i := range 3 {
			b.join(t, spec(fmt.Sprint("w", i), 4, picking))
		}
		homes := map[string]model.Target{}
		for round := range 3 {
			for i := range 12 {
				conv := fmt.Sprint("c", i)
				id, got := b.routed(t, conv, of(prompt(uint32(1+i), 50)))
				if got.Rank != model.NoRank {
					t.Fatalf("%s: sent to rank %v", mode, got)
				}
				d := b.lastDecision(t)
				if d.Why != "engine picks the rank" || d.Placement.Phase != model.PhaseEngine || d.Target != got {
					t.Fatalf("%s: %+v", mode, d)
				}
				home, known := homes[conv]
				if known && home.Worker != got.Worker {
					t.Fatalf("%s: %s went from %v to %v", mode, conv, home, got)
				}
				ran := at(got.Worker, i%4)
				if round == 0 && i%2 == 0 { // it does not tell
					ran.Rank = model.NoRank
				}
				b.FirstToken(id, model.Usage{Ran: ran, CachedTokens: 16, TTFTMs: 5, Evidence: "usage"})
				c := b.conv(t, conv)
				if c.Bound != ran && round == 0 || c.Pin != model.PinAuto || c.Lost != 0 {
					t.Fatalf("%s: %+v, ran on %v", mode, c, ran)
				}
				homes[conv] = ran
				inFlight := 0
				for _, r := range b.Snapshot().Ranks {
					inFlight += r.InFlight
				}
				if want := map[bool]int{true: 1, false: 0}[ran.Rank != model.NoRank]; inFlight != want {
					t.Fatalf("%s: %d in flight on ranks", mode, inFlight)
				}
				b.Done(id, model.OutcomeOK)
			}
		}
		s := b.Snapshot()
		if s.Totals.Open != 0 || s.Totals.Unplaced != 0 || b.steer.tier.Load().Counters().Open != 0 || s.Totals.Hit != 0.5 {
			t.Fatalf("%s: %+v", mode, s.Totals)
		}
		if s.Workers[0].Proofs != nil {
			t.Fatal("nothing was asked")
		}
	}
}

// TestEnginePicksOtherThanPinned: an operator's pin holds the worker; the rank
// cannot be asked for, which the decision says, and another one shows as lost.
func TestEnginePicksOtherThanPinned(t *testing.T) {
	b := newBench(t, 0, 0, model.PolicyConversation, room(16))
	b.join(t, spec("w0", 2, picking))
	b.join(t, spec("w1", 2))
	b.turn(t, "a", nil, asks(at("w1", 0)))
	if r := b.must(t, onConvs(model.VerbPin, ptr(at("w0", 1)), "a")); r.What != "pin a to w0/1 (only worker w0 is held: its engine picks the rank)" {
		t.Errorf("%q", r.What)
	}
	for i := range 2 {
		id, got := b.routed(t, "a")
		if got != at("w0", model.NoRank) || b.lastDecision(t).Why != "engine picks the rank: it cannot be asked for w0/1" {
			t.Fatalf("%v, %q", got, b.lastDecision(t).Why)
		}
		b.FirstToken(id, model.Usage{Ran: at("w0", i)})
		b.Done(id, model.OutcomeOK)
	}
	if c := b.conv(t, "a"); c.Lost != 1 || c.Honoured != 1 || c.Bound != at("w0", 1) {
		t.Fatalf("%+v", c)
	}
}

// TestEnginePicksDrain: a rank that the engine goes on using is not drained alone,
// a worker is.
func TestEnginePicksDrain(t *testing.T) {
	b := newBench(t, 0, 0, model.PolicyDefault, room(16))
	b.join(t, spec("w0", 2, picking))
	b.join(t, spec("w1", 2))
	drain := func(rank int) model.Reply {
		return b.Apply(model.Command{ID: fmt.Sprint("drain-", rank), Verb: model.VerbDrain, Target: ptr(at("w0", rank))})
	}
	r := drain(1)
	if r.Accepted || r.Refusal.Code != model.RefusedEngine || r.Refusal.Error() != "drain w0/1: the engine of w0 picks the rank and would go on using this one; drain all of it: w0" {
		t.Errorf("%+v", r.Refusal)
	}
	if r = drain(model.NoRank); !r.Accepted {
		t.Errorf("%v", r.Refusal)
	}
}

// TestEnginePicksWaiting: requests that an engine has taken do not wait here, and
// what it found in its cache counts also where it does not tell the rank.
func TestEnginePicksWaiting(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyConversation, func(c *Config) { c.Workers[0].Steering = model.SteerConversation })
	id, target := b.routed(t, "c", chat)
	b.FirstToken(id, model.Usage{Ran: target, CachedUnknown: true, TTFTMs: 5})
	b.Cached(id, model.Usage{Ran: target, CachedTokens: 40})
	s := b.Snapshot()
	if s.Workers[0].Open != 1 || s.Workers[0].Bound != 1 {
		t.Errorf("%d open, %d bound", s.Workers[0].Open, s.Workers[0].Bound)
	}
	if s.Workers[0].Waiting != 0 || s.Totals.Queued != 0 || s.Totals.Hit != 0.4 {
		t.Errorf("waiting %d, queued %d, hit %v", s.Workers[0].Waiting, s.Totals.Queued, s.Totals.Hit)
	}
}

// TestEnginePicksShareTheLoad: what engines do not tell counts all the same, so
// that workers share conversations, also beside one that is asked for ranks.
func TestEnginePicksShareTheLoad(t *testing.T) {
	for _, mode := range []model.RouterMode{model.ModeKV, model.ModeLockstep} {
		b := newBench(t, 0, 0, model.PolicyDefault, room(16), inMode(mode))
		b.join(t, spec("w0", 4, picking))
		b.join(t, spec("w1", 4, picking))
		b.join(t, spec("w2", 4))
		open := map[string]int{}
		var ids []int64
		for i := range 60 {
			id, got := b.routed(t, fmt.Sprint("c", i), of(prompt(uint32(1+i), 50)))
			ran := got
			b.FirstToken(id, model.Usage{Ran: ran, TTFTMs: 5})
			open[got.Worker]++
			ids = append(ids, id)
		}
		for _, w := range []string{"w0", "w1", "w2"} {
			if n := open[w]; n < 15 || n > 25 {
				t.Errorf("%s: %v", mode, open)
			}
		}
		for _, id := range ids {
			b.Done(id, model.OutcomeOK)
		}
		if n := b.steer.tier.Load().Counters().Open; n != 0 {
			t.Errorf("%s: %d booked after the end", mode, n)
		}
	}
}

// TestEnginePicksCaps: the caps of its ranks hold together, the rest waits; what
// was tried is the worker as a whole.
func TestEnginePicksCaps(t *testing.T) {
	for _, mode := range allModes()[:6] {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, 0, 0, model.PolicyDefault, room(16), inMode(mode))
			b.join(t, spec("w0", 2, picking, func(s *model.WorkerSpec) { s.MaxNumActiveRequests = 2 }))
			var open []int64
			for range 4 {
				id, _ := b.routed(t, "")
				open = append(open, id)
			}
			b.FirstToken(open[0], model.Usage{Ran: at("w0", 1)})
			b.refused(t, ErrFull, "")
			got := b.waiting(t.Context(), 99)
			synctest.Wait()
			if answered(got) {
				t.Fatalf("%s: over the cap", mode)
			}
			b.Done(open[1], model.OutcomeOK)
			synctest.Wait()
			if a := <-got; a.err != nil || a.decision.Target != at("w0", model.NoRank) {
				t.Fatalf("%s: %v", mode, a.err)
			}
			b.Done(open[2], model.OutcomeOK)
			b.Done(open[3], model.OutcomeOK)
			b.refused(t, ErrNoEligible, "", func(q *model.Request) { q.Exclude = []model.Target{at("w0", 1)} })
			b.live(t, at("w0", model.NoRank), false)
			if _, err := b.Route(&model.Request{ID: 500}, nil); !errors.Is(err, ErrNoEligible) {
				t.Fatalf("%v", err)
			}
			b.leave(t, "w0")
			for _, id := range open {
				b.Done(id, model.OutcomeOK)
			}
			b.Done(99, model.OutcomeOK)
			if b.book.Len() != 0 {
				t.Fatalf("%d open", b.book.Len())
			}
		})
	}
}
