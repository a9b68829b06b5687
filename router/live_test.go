package router

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"adpdeck/router/model"
)

// TestDeadTakesNothing: a rank that does not answer gets no request, in no mode
// and by no way; what is held there is told so.
func TestDeadTakesNothing(t *testing.T) {
	for _, mode := range allModes()[:6] {
		for _, policy := range []model.Policy{model.PolicyDefault, model.PolicyKVAware, model.PolicyConversation} {
			b := newBench(t, 2, 2, policy, withBlocks, inMode(mode))
			for i := range 4 {
				b.turn(t, fmt.Sprint("c", i), nil, asks(at("w0", i%2)))
			}
			b.turn(t, "p", nil)
			b.must(t, onConvs(model.VerbPin, ptr(at("w0", 1)), "p"))
			b.live(t, at("w0", 1), false)
			for i := range 12 {
				id, got := b.routed(t, fmt.Sprint("c", i%6))
				if got == at("w0", 1) {
					t.Fatalf("%s, %s: went to the dead rank", mode, policy)
				}
				b.Done(id, model.OutcomeOK)
			}
			for _, err := range []error{b.refused(t, ErrDown, "p"), b.refused(t, ErrDown, "x", asks(at("w0", 1)))} {
				if !strings.Contains(err.Error(), "w0/1 does not answer since 12:00:00;") || strings.Contains(err.Error(), "connection refused") {
					t.Fatalf("%v", err)
				}
			}
			b.live(t, at("w0", model.NoRank), false)
			b.live(t, at("w1", model.NoRank), false)
			if err := b.refused(t, ErrNoEligible, ""); !strings.Contains(err.Error(), "4 ranks do not answer (w0/0") {
				t.Fatalf("%v", err)
			}
			b.refused(t, ErrDown, "", asks(at("w0", model.NoRank)))
			if reply := b.do(onConvs(model.VerbMigrate, ptr(at("w0", 0)), "c1")); reply.Accepted {
				t.Fatalf("%+v", reply)
			}
			b.live(t, at("w0", model.NoRank), true)
			if _, got := b.routed(t, "p"); got != at("w0", 1) {
				t.Fatalf("the pin acts again: %v", got)
			}
		}
	}
}

// TestDeadBindsOnce: the conversations of a rank that dies are placed once more,
// at their next turn, and stay there when it is back.
func TestDeadBindsOnce(t *testing.T) {
	for _, mode := range []model.RouterMode{model.ModeRoundRobin, model.ModeKV, model.ModeLockstep} {
		b := newBench(t, 2, 4, model.PolicyConversation, withBlocks, inMode(mode))
		for i := range 40 {
			b.turn(t, fmt.Sprint("c", i), nil, asks(at(fmt.Sprint("w", i%2), i/2%4)))
		}
		dead := at("w1", 2)
		b.live(t, dead, false)
		moved := map[string]model.Target{}
		for round := range 4 {
			for i := range 40 {
				conv := fmt.Sprint("c", i)
				id, got := b.routed(t, conv)
				b.FirstToken(id, model.Usage{Ran: got})
				b.Done(id, model.OutcomeOK)
				if home := at(fmt.Sprint("w", i%2), i/2%4); home != dead {
					if got != home {
						t.Fatalf("%s: %s left %v for %v", mode, conv, home, got)
					}
					continue
				}
				if had, ok := moved[conv]; ok && had != got {
					t.Fatalf("%s: %s moved twice, %v then %v", mode, conv, had, got)
				}
				moved[conv] = got
			}
			if round == 1 {
				b.live(t, dead, true)
			}
		}
		if len(moved) != 5 {
			t.Fatalf("%d moved", len(moved))
		}
		for _, e := range b.Snapshot().Events {
			if e.After == "down" && (!strings.Contains(e.What, "5 conversations placed once more: connection refused") || e.Level != "error" || *e.Target != dead) {
				t.Fatalf("%+v", e)
			}
		}
	}
}

// TestLiveness: what screens are told.
func TestLiveness(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault)
	row := func() model.Worker { return b.Snapshot().Workers[0] }
	if w := row(); w.Liveness != model.LiveUnknown || !w.JoinedAt.Equal(epoch) {
		t.Fatalf("%+v", w)
	}
	b.live(t, at("w0", model.NoRank), true)
	if w := row(); w.Liveness != model.LiveUp || len(b.Snapshot().Events) != 0 {
		t.Fatalf("%+v", w)
	}
	b.live(t, at("w0", 1), false)
	b.live(t, at("w0", 1), false)
	if w := row(); w.Liveness != model.LiveParts || w.LivenessWhy != "connection refused" || len(b.Snapshot().Events) != 1 {
		t.Fatalf("%+v", w)
	}
	b.live(t, at("w0", model.NoRank), false)
	if w := row(); w.Liveness != model.LiveDown {
		t.Fatalf("%+v", w)
	}
	if err := b.Live("w9", 0, false, ""); !errors.Is(err, ErrNoWorker) {
		t.Fatalf("%v", err)
	}
	if err := b.Live("w0", 7, false, ""); !errors.Is(err, ErrNoRank) {
		t.Fatalf("%v", err)
	}
}

// TestGrowWhileDown: ranks that come to a worker that is dead are dead.
func TestGrowWhileDown(t *testing.T) {
	b := newBench(t, 0, 0, model.PolicyDefault, room(8))
	b.join(t, spec("w0", 1))
	b.join(t, spec("w1", 1))
	b.live(t, at("w0", model.NoRank), false)
	b.join(t, spec("w0", 4))
	for range 6 {
		if _, got := b.routed(t, ""); got.Worker != "w1" {
			t.Fatalf("went to %v", got)
		}
	}
}

// TestRestartGivesNoCredit: what a rank held before its restart counts no more,
// and its conversations are placed once more; a restart that its events have
// shown wipes nothing twice.
func TestRestartGivesNoCredit(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV))
	e := newEngine(b, 0)
	tokens := prompt(1, 2, 3, 4)
	home, _ := e.turn(t, "a", tokens)
	other := at("w0", 1-home.Rank)
	e.serve(other, prompt(7))
	e.restart(home)
	b.Restarted("w0", home.Rank, "another process id")
	if row := indexOf(t, b, home); row.Device != 0 {
		t.Fatalf("%+v", row)
	}
	if row := indexOf(t, b, other); row.Device != 1 {
		t.Fatalf("the other rank: %+v", row)
	}
	if c := b.conv(t, "a"); c.Pin != model.PinNone {
		t.Fatalf("%+v", c)
	}
	id, _ := b.routed(t, "b", of(tokens))
	if d := b.lastDecision(t); d.Reachable != 0 {
		t.Fatalf("%+v", d)
	}
	b.Done(id, model.OutcomeOK)
	e.serve(home, prompt(9, 8)) // number 0 of the new process: the feed finds out itself
	restarts := func(want uint64) {
		t.Helper()
		if w := b.Snapshot().Workers[0]; w.Restarts != want {
			t.Fatalf("%d restarts, want %d", w.Restarts, want)
		}
	}
	restarts(1)
	e.restart(home)
	e.turn(t, "", prompt(1, 2, 3), asks(home))
	restarts(2)
	b.Restarted("w0", home.Rank, "late news of the same")
	if row := indexOf(t, b, home); row.Device != 3 {
		t.Fatalf("new blocks were wiped: %+v", row)
	}
	restarts(2)
	b.Restarted("w0", model.NoRank, "both")
	restarts(3)
	if row := indexOf(t, b, other); row.Device != 0 {
		t.Fatalf("the other rank: %+v", row)
	}
	b.Restarted("w9", 0, "")
	b.Restarted("w0", 9, "")
}
