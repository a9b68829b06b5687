package router

import (
	"fmt"
	"testing"
	"testing/synctest"

	"adpdeck/router/model"
)

// TestWorkerThatIsSteeredFromNowOn: conversations that were bound to a worker
// whose engine picked the rank go on there, and have a rank from then on.
func TestWorkerThatIsSteeredFromNowOn(t *testing.T) {
	for _, policy := range []model.Policy{model.PolicyDefault, model.PolicyKVAware, model.PolicyConversation} {
		for _, mode := range []model.RouterMode{model.ModeKV, model.ModeLockstep, model.ModeRoundRobin, model.ModeLeastLoaded} {
			t.Run(fmt.Sprint(policy, "/", mode), func(t *testing.T) {
				b := newBench(t, 0, 0, policy, room(8), inMode(mode))
				b.join(t, spec("w0", 2))
				b.join(t, spec("w1", 2, picking))
				homes := map[string]string{}
				for i := range 8 {
					conv := fmt.Sprint("c", i)
					id, got := b.routed(t, conv)
					homes[conv] = got.Worker
					b.FirstToken(id, model.Usage{Ran: model.Target{Rank: model.NoRank}})
					b.Done(id, model.OutcomeOK)
				}
				b.join(t, spec("w1", 2))
				for i := range 8 {
					conv := fmt.Sprint("c", i)
					id, got := b.routed(t, conv)
					_, bound := b.bound(conversation(conv))
					if got.Rank == model.NoRank || bound && got.Worker != homes[conv] {
						t.Fatalf("%s went from %s to %v", conv, homes[conv], got)
					}
					if c := b.conv(t, conv); bound && c.Bound != got {
						t.Fatalf("%s is bound to %v, runs on %v", conv, c.Bound, got)
					}
					b.Done(id, model.OutcomeOK)
				}
			})
		}
	}
}

// TestBoundToAWorkerThatIsFull: one that is bound to a worker, not to a rank, has
// no rank to go to where all are full.
func TestBoundToAWorkerThatIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 0, 0, model.PolicyConversation, room(8), inMode(model.ModeRoundRobin))
		one := func(s *model.WorkerSpec) { s.MaxNumActiveRequests = 1 }
		b.join(t, spec("w0", 2, one, picking))
		id, _ := b.routed(t, "c")
		b.FirstToken(id, model.Usage{Ran: model.Target{Rank: model.NoRank}})
		b.Done(id, model.OutcomeOK)
		b.join(t, spec("w0", 2, one))
		first, _ := b.routed(t, "x")
		b.routed(t, "y")
		got := b.waiting(t.Context(), 100, func(q *model.Request) { q.Conv = conversation("c") })
		synctest.Wait()
		if answered(got) {
			t.Fatalf("%+v", <-got)
		}
		b.Done(first, model.OutcomeOK)
		if a := <-got; a.err != nil || a.decision.Target.Rank == model.NoRank {
			t.Fatalf("%v, %v", a.decision.Target, a.err)
		}
	})
}
