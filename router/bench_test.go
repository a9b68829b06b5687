package router

import (
	"fmt"
	"testing"
	"time"

	"adpdeck/router/model"
)

// steady is a steady load: batches of n requests out of 512 conversations over
// one worker of some ranks, in the shape of the engine tier's own benchmarks
// (prompts of 128 to 964 tokens, 16 prefix groups).
type steady struct {
	*bench
	in   model.StepInput
	out  model.StepOutput
	reqs []model.Request
	next int
	id   int64
}

func newSteady(t tester, policy model.Policy, ranks, n int, record bool) *steady {
	s := &steady{bench: newBench(t, 1, ranks, policy, func(c *Config) {
		c.Record = record
		c.Workers[0].MaxNumActiveRequests = 64
	})}
	s.in.HardCap = 64
	for k := range ranks {
		s.in.States = append(s.in.States, model.RankState{Rank: k, NumActiveRequests: k % 7, NumActiveTokens: 1000 + 37*k})
	}
	for i := range 512 {
		q := model.Request{Conv: model.ConvKey{Tenant: "t", Model: "m", ID: fmt.Sprint("conv-", i)}, PromptTokens: 128 + 44*(i%20)}
		for j := range int32(64) {
			q.Lead = append(q.Lead, int32(i%16)*1000+j)
		}
		s.reqs = append(s.reqs, q)
		matches := make([]int32, ranks)
		matches[i%ranks] = int32(q.PromptTokens / 2)
		if i < n {
			s.in.Requests = append(s.in.Requests, model.StepRequest{Matches: matches})
		}
	}
	for range 1024/n + 4 { // every conversation known, every buffer grown
		s.batch(t)
	}
	return s
}

// batch submits, routes and ends one batch.
func (s *steady) batch(t tester) {
	for i := range s.in.Requests {
		q := &s.reqs[s.next%len(s.reqs)]
		s.next++
		s.id++
		q.ID = s.id
		s.in.Requests[i].ID = s.id
		if _, err := s.Submit(q); err != nil {
			t.Fatalf("%v", err)
		}
	}
	if err := s.Step("w0", &s.in, &s.out); err != nil {
		t.Fatalf("%v", err)
	}
	for i := range s.in.Requests {
		u := model.Usage{Ran: model.Target{Worker: "w0", Rank: int(s.out.Ranks[i])}, CachedTokens: 64, TTFTMs: 20}
		s.FirstToken(s.in.Requests[i].ID, u)
		s.Done(s.in.Requests[i].ID, model.OutcomeOK)
	}
}

// TestSteadyStateAllocatesNothing over a whole life of requests, from Submit
// to Done, with recording off.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, policy := range []model.Policy{model.PolicyDefault, model.PolicyKVAware, model.PolicyConversation} {
		t.Run(string(policy), func(t *testing.T) {
			s := newSteady(t, policy, 8, 64, false)
			if n := testing.AllocsPerRun(50, func() { s.batch(t) }); n > 0 {
				t.Fatalf("%v allocations for 64 requests", n)
			}
		})
	}
}

func BenchmarkStep(b *testing.B) {
	for _, policy := range []model.Policy{model.PolicyDefault, model.PolicyKVAware, model.PolicyConversation} {
		for _, ranks := range []int{8, 64} {
			for _, n := range []int{1, 64} {
				for _, record := range []bool{false, true} {
					name := fmt.Sprintf("%s/ranks=%d/batch=%d/record=%v", policy, ranks, n, record)
					b.Run(name, func(b *testing.B) {
						s := newSteady(b, policy, ranks, n, record)
						b.ReportAllocs()
						for b.Loop() {
							s.batch(b)
						}
						b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/request")
					})
				}
			}
		}
	}
}

func BenchmarkRoute(b *testing.B) {
	for _, policy := range []model.Policy{model.PolicyDefault, model.PolicyKVAware, model.PolicyConversation} {
		b.Run(string(policy), func(b *testing.B) {
			s := newSteady(b, policy, 8, 64, false)
			matches := map[string][]int32{"w0": {0, 100, 0, 50}}
			b.ReportAllocs()
			for b.Loop() {
				q := &s.reqs[s.next%len(s.reqs)]
				s.next++
				s.id++
				q.ID = s.id
				if _, err := s.Route(q, matches); err != nil {
					b.Fatal(err)
				}
				s.Done(q.ID, model.OutcomeOK)
			}
		})
	}
}

func BenchmarkTake(b *testing.B) {
	for _, busy := range []bool{false, true} {
		b.Run(fmt.Sprintf("ranks=64/busy=%v", busy), func(b *testing.B) {
			s := newSteady(b, model.PolicyKVAware, 64, 64, true)
			sub := s.Subscribe()
			sub.Start()
			b.ReportAllocs()
			for b.Loop() {
				if busy {
					b.StopTimer()
					s.clock.advance(100 * time.Millisecond)
					s.batch(b)
					b.StartTimer()
				}
				sub.Take(32)
			}
		})
	}
}

func BenchmarkSnapshot(b *testing.B) {
	s := newBench(b, 1, 64, model.PolicyDefault, func(c *Config) { c.Record = false })
	for i := range model.MaxFeedConvs {
		s.turn(b, fmt.Sprint("c", i), nil)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Snapshot()
	}
}
