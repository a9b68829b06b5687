package router

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"adpdeck/router/model"
)

// waiting starts RouteWait for a request and returns where its answer comes.
func (b *bench) waiting(ctx context.Context, id int64, change ...func(*model.Request)) chan routed {
	out := make(chan routed, 1)
	q := &model.Request{ID: id, PromptTokens: 100}
	for _, f := range change {
		f(q)
	}
	go func() {
		d, err := b.RouteWait(ctx, q, nil)
		out <- routed{decision: d, err: err}
	}()
	return out
}

func answered(c chan routed) bool { return len(c) == 1 }

func queued(mode model.RouterMode, more ...model.FieldValue) func(*Config) {
	return inMode(mode, append(more, fieldValue("router_queue_threshold_tokens", "150"))...)
}

// TestQueueReleasesInOrder: while every rank is busy requests wait, and each
// first token lets the next one go, by arrival or by the shortest prompt.
func TestQueueReleasesInOrder(t *testing.T) {
	for policy, order := range map[string][]int64{model.QueueFCFS: {11, 12, 13}, model.QueueWSPT: {13, 12, 11}} {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, queued(model.ModeKV, fieldValue("router_queue_policy", policy)))
				ctx := t.Context()
				for id := range int64(4) { // 200 tokens on each rank: busy
					if got := <-b.waiting(ctx, id+1); got.err != nil {
						t.Fatal(got.err)
					}
				}
				answers := map[int64]chan routed{}
				for i, prompt := range []int{900, 500, 300} {
					id := int64(11 + i)
					answers[id] = b.waiting(ctx, id, func(q *model.Request) { q.PromptTokens = prompt })
					synctest.Wait()
					b.clock.advance(1)
				}
				if got := b.Snapshot().Totals.Queued; got != 3 {
					t.Fatalf("%d wait", got)
				}
				ends := []int64{1, 2, 3, 4}
				for _, want := range order {
					for !answered(answers[want]) {
						if len(ends) == 0 {
							t.Fatalf("request %d never went", want)
						}
						b.Done(ends[0], model.OutcomeOK)
						ends = ends[1:]
						synctest.Wait()
					}
					for id, c := range answers {
						if id != want && answered(c) {
							t.Fatalf("request %d went before %d", id, want)
						}
					}
					got := <-answers[want]
					delete(answers, want)
					if got.err != nil || got.decision.Target.Rank == model.NoRank {
						t.Fatalf("request %d: %+v", want, got.err)
					}
					ends = append(ends, want)
				}
			})
		})
	}
}

func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, 1, model.PolicyDefault, withBlocks, queued(model.ModeLockstep, fieldValue("router_queue_max_requests", "2")))
		ctx, cancel := context.WithCancel(t.Context())
		for id := range int64(2) {
			<-b.waiting(ctx, id+1)
		}
		first, second := b.waiting(ctx, 11), b.waiting(ctx, 12)
		synctest.Wait()
		if got := <-b.waiting(ctx, 13); !errors.Is(got.err, ErrQueueFull) {
			t.Fatalf("the third: %v", got.err)
		}
		if _, err := b.Route(&model.Request{ID: 14, PromptTokens: 10}, nil); !errors.Is(err, ErrFull) {
			t.Fatalf("one that does not wait: %v", err)
		}
		if got := <-b.waiting(ctx, 11); got.err == nil {
			t.Fatal("the same id waits twice")
		}
		cancel()
		synctest.Wait()
		for _, c := range []chan routed{first, second} {
			if got := <-c; !errors.Is(got.err, context.Canceled) {
				t.Fatalf("cancelled: %v", got.err)
			}
		}
		if s := b.Snapshot(); s.Totals.Open != 2 || b.steer.queue.Len() != 0 {
			t.Fatalf("%+v, %d in the queue", s.Totals, b.steer.queue.Len())
		}
	})
}

// TestQueueGoesOnWithSettings: unsetting the threshold, another mode, or a rank
// that is made ready lets everybody go.
func TestQueueGoesOnWithSettings(t *testing.T) {
	for name, cmd := range map[string]model.Command{
		"no threshold": set("router_queue_threshold_tokens", "none"),
		"round robin":  set(model.FieldRouterMode, "round_robin"),
		"ready":        onRank(model.VerbReady, at("w0", 1)),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, queued(model.ModeKV))
				b.must(t, onRank(model.VerbDrain, at("w0", 1)))
				for id := range int64(2) {
					<-b.waiting(t.Context(), id+1)
				}
				var all []chan routed
				for i := range int64(2) {
					all = append(all, b.waiting(t.Context(), 11+i))
					synctest.Wait()
				}
				b.must(t, cmd)
				synctest.Wait()
				for i, c := range all {
					if !answered(c) {
						t.Fatalf("request %d still waits", i)
					}
					if got := <-c; got.err != nil {
						t.Fatal(got.err)
					}
				}
			})
		})
	}
}

// TestQueueUnderLoad: many callers, each waits its turn; nothing is lost.
func TestQueueUnderLoad(t *testing.T) {
	b := newBench(t, 2, 2, model.PolicyDefault, withBlocks, queued(model.ModeLockstep))
	answers := make(chan error, 200)
	for id := range int64(200) {
		go func() {
			q := &model.Request{ID: id + 1, PromptTokens: 120, Conv: conversation(fmt.Sprint("c", id%7)), Priority: int(id % 3)}
			d, err := b.RouteWait(t.Context(), q, nil)
			if err == nil {
				b.FirstToken(q.ID, model.Usage{Ran: d.Target})
				b.Done(q.ID, model.OutcomeOK)
			}
			answers <- err
		}()
	}
	for range 200 {
		if err := <-answers; err != nil {
			t.Fatal(err)
		}
	}
	if s := b.Snapshot(); s.Totals.Open != 0 || b.steer.queue.Len() != 0 || b.steer.tier.Load().Counters().Open != 0 {
		t.Fatalf("%+v", s.Totals)
	}
}
