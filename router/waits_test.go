package router

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"adpdeck/router/model"
)

// TestQueueWaitsForWhatItNeeds: a request that only a pinned rank, the rank it
// asked for, or the worker it asked for may take waits for that one, however
// much room others have, and is counted once.
func TestQueueWaitsForWhatItNeeds(t *testing.T) {
	pinned := func(q *model.Request) { q.Conv = conversation("pinned") }
	asked := func(rank int) func(*model.Request) {
		return func(q *model.Request) { q.Explicit = &model.Target{Worker: "w0", Rank: rank} }
	}
	for name, c := range map[string]struct {
		want func(*model.Request)
		rank int
	}{
		"pin":    {pinned, 1},
		"rank":   {asked(1), 1},
		"worker": {asked(model.NoRank), model.NoRank},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 2, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV), func(c *Config) {
					for i := range c.Workers {
						c.Workers[i].MaxNumActiveRequests = 1
					}
				})
				if _, err := b.Route(&model.Request{ID: 1, PromptTokens: 10, Conv: conversation("pinned")}, nil); err != nil {
					t.Fatal(err)
				}
				b.Done(1, model.OutcomeOK)
				b.must(t, onConvs(model.VerbPin, ptr(at("w0", 1)), "pinned"))
				for rank := range 2 { // w0 is full, w1 is empty
					if _, err := b.Route(&model.Request{ID: int64(10 + rank), PromptTokens: 10, Explicit: ptr(at("w0", rank))}, nil); err != nil {
						t.Fatal(err)
					}
				}
				before := b.Snapshot().Totals
				got := b.waiting(t.Context(), 20, c.want)
				synctest.Wait()
				if answered(got) {
					a := <-got
					t.Fatalf("it did not wait: %s, %v", a.decision.Target, a.err)
				}
				other := <-b.waiting(t.Context(), 30)
				if other.err != nil || other.decision.Target.Worker != "w1" {
					t.Fatalf("another is held back: %s, %v", other.decision.Target, other.err)
				}
				b.Done(11, model.OutcomeOK)
				synctest.Wait()
				if !answered(got) {
					t.Fatal("it still waits")
				}
				a := <-got
				if a.err != nil || a.decision.Target != at("w0", 1) {
					t.Fatalf("went to %s: %v", a.decision.Target, a.err)
				}
				after := b.Snapshot().Totals
				if after.Open != before.Open+1 || after.Keyless-before.Keyless > 2 || b.steer.queue.Len() != 0 {
					t.Fatalf("before %+v\nafter %+v", before, after)
				}
				if got, want := b.submitted, uint64(5); got != want {
					t.Fatalf("%d submitted, want %d", got, want)
				}
			})
		})
	}
}

// TestRefusedIsAsIfItHadNotCome: a request that finds no room leaves no count.
func TestRefusedIsAsIfItHadNotCome(t *testing.T) {
	b := newBench(t, 1, 1, model.PolicyDefault, func(c *Config) { c.Workers[0].MaxNumActiveRequests = 1 })
	if _, err := b.Route(&model.Request{ID: 1, PromptTokens: 10}, nil); err != nil {
		t.Fatal(err)
	}
	before, arrived := b.Snapshot().Totals, b.submitted
	for id := range int64(5) {
		if _, err := b.Route(&model.Request{ID: 2 + id, PromptTokens: 10}, nil); !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
	}
	after := b.Snapshot().Totals
	if b.submitted != arrived || after.Keyless != before.Keyless || after.Open != before.Open {
		t.Fatalf("%d submitted, was %d\nbefore %+v\nafter  %+v", b.submitted, arrived, before, after)
	}
}

// TestNothingMovesToABlockedRank: a migration to a rank that is out altogether
// is refused, since the binding would count as gone at once.
func TestNothingMovesToABlockedRank(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyConversation)
	b.turn(t, "a", nil)
	from := b.conv(t, "a").Last
	to := at("w0", 1-from.Rank)
	if err := b.Block(to, true); err != nil {
		t.Fatal(err)
	}
	if reply := b.do(onConvs(model.VerbMigrate, &to, "a")); reply.Accepted {
		t.Fatalf("migrated to a blocked rank: %+v", reply)
	}
}

// TestStrictPriorityGoesFirst: it stands above arrival and priority.
func TestStrictPriorityGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1, 1, model.PolicyDefault, withBlocks, queued(model.ModeKV))
		for id := range int64(2) {
			if got := <-b.waiting(t.Context(), 1+id); got.err != nil {
				t.Fatal(got.err)
			}
		}
		first := b.waiting(t.Context(), 11, func(q *model.Request) { q.Priority = 1 << 20 })
		synctest.Wait()
		strict := b.waiting(t.Context(), 12, func(q *model.Request) { q.StrictPriority = 1 })
		synctest.Wait()
		b.Done(1, model.OutcomeOK)
		synctest.Wait()
		if !answered(strict) || answered(first) {
			t.Fatalf("strict went: %v, the other: %v", answered(strict), answered(first))
		}
		b.Done(12, model.OutcomeOK)
		synctest.Wait()
		if !answered(first) {
			t.Fatal("the other still waits")
		}
	})
}

// TestOverridesOfOneRequest: a request without credit for what is cached goes
// by load alone, and the next one by the settings again; nonsense is refused.
func TestOverridesOfOneRequest(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV))
	e := newEngine(b, 0)
	text := prompt(1, 2, 3, 4)
	home, _ := e.turn(t, "a", text)
	other := at("w0", 1-home.Rank)
	b.place(t, "", nil, func(q *model.Request) { q.Explicit, q.PromptTokens = &home, 10 })
	zero, nan := 0.0, math.NaN()
	for i, o := range []*model.Overrides{nil, {KVOverlapScoreCredit: &zero}, nil} {
		want := home
		if o != nil {
			want = other
		}
		id, got := b.submit(t, "", of(text), func(q *model.Request) { q.Overrides = o })
		if got != want {
			t.Errorf("request %d went to %s, want %s", i, got, want)
		}
		b.Done(id, model.OutcomeOK)
	}
	q := model.Request{ID: 99, PromptTokens: 10, Overrides: &model.Overrides{Temperature: &nan}}
	if _, err := b.Submit(&q); !errors.Is(err, ErrRequest) {
		t.Errorf("no number: %v", err)
	}
}

// TestRefusalsAreTold: an operator hears of what is turned away, once in a
// while and with the count, and that a threshold does it.
func TestRefusalsAreTold(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV, fieldValue("active_prefill_tokens_threshold", "50")))
	for range 2 {
		b.place(t, "", nil)
	}
	told := func() (out []string) {
		for _, e := range b.Snapshot().Events {
			if strings.HasPrefix(e.What, "refused") {
				out = append(out, e.What)
			}
		}
		return out
	}
	for i := range 40 {
		if _, err := b.Submit(&model.Request{ID: int64(100 + i), PromptTokens: 100}); !errors.Is(err, ErrOverloaded) {
			t.Fatal(err)
		}
		b.clock.advance(time.Second)
	}
	got := told()
	if len(got) != 4 || !strings.HasPrefix(got[0], "refused (31 so far): ") || !strings.Contains(got[0], "overload thresholds") {
		t.Fatalf("%q", got)
	}
	b.must(t, set("active_prefill_tokens_threshold", "none"))
	b.submit(t, "")
	if len(told()) != 4 {
		t.Fatalf("%q", told())
	}
}

// TestRefusalsAreCounted by reason, and those that wait while they do.
func TestRefusalsAreCounted(t *testing.T) {
	synctest.Test(t, refusals)
}

func refusals(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV, fieldValue("router_queue_max_requests", "1")))
	for range 16 { // both ranks at their cap
		b.place(t, "", nil)
	}
	ask := func(id int64, change ...func(*model.Request)) *model.Request {
		q := &model.Request{ID: id, PromptTokens: 100}
		for _, f := range change {
			f(q)
		}
		return q
	}
	if _, err := b.Route(ask(100), nil); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(context.Background())
	waiting := b.waiting(ctx, 101)
	synctest.Wait()
	if got := <-b.waiting(ctx, 102); !errors.Is(got.err, ErrQueueFull) {
		t.Fatal(got.err)
	}
	if tot := b.Snapshot().Totals; tot.InQueue != 1 || tot.Queued != 1 {
		t.Fatalf("waiting: %+v", tot)
	}
	leave()
	if got := <-waiting; !errors.Is(got.err, context.Canceled) {
		t.Fatal(got.err)
	}
	b.must(t, set("active_prefill_tokens_threshold", "50"))
	b.Done(1, model.OutcomeOK)
	if _, err := b.Submit(ask(103)); !errors.Is(err, ErrOverloaded) {
		t.Fatal(err)
	}
	b.must(t, set("active_prefill_tokens_threshold", "none"))
	_ = b.Block(at("w0", 0), true)
	_ = b.Block(at("w0", 1), true)
	if _, err := b.Submit(ask(104)); !errors.Is(err, ErrNoEligible) {
		t.Fatal(err)
	}
	_ = b.Block(at("w0", 0), false)
	b.must(t, set(model.FieldRouterMode, "direct"))
	if _, err := b.Submit(ask(105)); !errors.Is(err, ErrWorkerNeeded) {
		t.Fatal(err)
	}
	got := b.Snapshot().Totals
	if want := (model.Refused{NoEligible: 1, Overloaded: 1, QueueFull: 1, NoRoom: 1, LeftQueue: 1, Other: 1}); got.Refused != want || got.InQueue != 0 || want.Sum() != 6 {
		t.Fatalf("%+v, %d in the queue", got.Refused, got.InQueue)
	}
}
