package adp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"adpdeck/router/model"
)

// python holds upstream's own figures in microseconds per routed request, by
// tp 8, 64, 256 and within that batch 1, 64, 1024.
var benchShapes = []struct {
	name      string
	policy    model.Policy
	placement string
	fresh     bool
	ratio     float64
	python    [3][3]float64
}{
	{"default", model.PolicyDefault, "", false, 20, [3][3]float64{{12.2, 1.9, 2.0}, {50, 2.7, 2.2}, {179, 5.0, 2.5}}},
	{"kv_aware", model.PolicyKVAware, "", false, 50, [3][3]float64{{23.7, 17.1, 23.5}, {74, 57.7, 63.1}, {263, 197, 203}}},
	{"conversation/sticky", model.PolicyConversation, model.PlaceRoundRobin, false, 10, [3][3]float64{{4.8, 1.0, 1.1}, {14.4, 1.3, 1.1}, {61.5, 2.0, 1.2}}},
	{"conversation/round_robin", model.PolicyConversation, model.PlaceRoundRobin, true, 10, [3][3]float64{{7.9, 1.2, 1.2}, {19.3, 1.4, 1.2}, {60, 2.1, 1.2}}},
	{"conversation/least_queued", model.PolicyConversation, model.PlaceLeastQueued, true, 10, [3][3]float64{{9.7, 3.0, 3.1}, {22.8, 10.9, 11.3}, {88.2, 36.2, 37.8}}},
	{"conversation/least_tokens", model.PolicyConversation, model.PlaceLeastTokens, true, 10, [3][3]float64{{13.1, 3.8, 3.8}, {48.7, 14.2, 13.8}, {176, 50.7, 50.2}}},
}

// benchBatches are batches in the measured shape: prompts of 128 to 964
// tokens, 16 prefix groups, each held by some ranks, counts 0 to 32, a cap of
// 100,000. Conversation keys are 16 bytes of hex.
func benchBatches(tp, n, batches int) []*Batch {
	rng := rand.New(rand.NewPCG(1, uint64(tp*n)))
	var leads [16][]int32
	for g := range leads {
		for range leadTokens {
			leads[g] = append(leads[g], rng.Int32N(50000))
		}
	}
	out := make([]*Batch, batches)
	for at := range out {
		b := &Batch{HardCap: 100000}
		for k := range tp {
			c := rng.IntN(33)
			b.States = append(b.States, model.RankState{Rank: k, NumActiveRequests: c, NumActiveTokens: c * (128 + rng.IntN(837))})
		}
		for range n {
			q := Request{ID: rng.Int64N(1 << 40), Tokens: 128 + rng.IntN(837), Conv: fmt.Sprintf("%016x", rng.Uint64())}
			q.Lead = append(q.Lead, leads[rng.IntN(16)]...)
			q.Matches = make([]int32, tp)
			for range 1 + tp/8 {
				q.Matches[rng.IntN(tp)] = int32(rng.IntN(q.Tokens/32)) * 32
			}
			b.Requests = append(b.Requests, q)
		}
		out[at] = b
	}
	return out
}

// BenchmarkRoute reports ns of processor time per routed request, how many
// times faster that is than upstream's Python, and that as a multiple of the
// bar (KV-aware 50, default 20, conversation 10).
func BenchmarkRoute(b *testing.B) {
	for _, s := range benchShapes {
		for ti, tp := range []int{8, 64, 256} {
			for ni, n := range []int{1, 64, 1024} {
				b.Run(fmt.Sprintf("%s/tp%d/batch%d", s.name, tp, n), func(b *testing.B) {
					cfg := model.DefaultAttentionDpConfig().WithPolicy(s.policy)
					if s.placement != "" {
						cfg.KVCacheRoutingNewConvPlacement = s.placement
					}
					r := New(tp, cfg, nil, Options{})
					batches := benchBatches(tp, n, max(8, 1024/n))
					var out Result
					if s.policy == model.PolicyConversation {
						warmConversations(r, batches, &out, s.fresh)
					}
					b.ReportAllocs()
					began := processTime()
					b.ResetTimer()
					for i := range b.N {
						_ = r.Route(batches[i%len(batches)], &out)
					}
					b.StopTimer()
					took := processTime() - began
					if took == 0 {
						took = b.Elapsed()
					}
					ns := float64(took.Nanoseconds()) / float64(b.N*n)
					b.ReportMetric(ns, "ns/req")
					b.ReportMetric(s.python[ti][ni]*1000/ns, "x-python")
					b.ReportMetric(s.python[ti][ni]*1000/ns/s.ratio, "x-bar")
				})
			}
		}
	}
}

// warmConversations binds every key. For fresh ones the map is then made so
// small that each has been forgotten when its batch comes round again, so that
// every request evicts the oldest and stores its own key.
func warmConversations(r *Router, batches []*Batch, out *Result, fresh bool) {
	cfg := r.cfg
	if fresh {
		keys := 0
		for _, b := range batches {
			keys += len(b.Requests)
		}
		cfg.KVCacheRoutingMaxSessions = keys / 2
		r.Configure(cfg)
	}
	for range 2 {
		for _, b := range batches {
			_ = r.Route(b, out)
		}
	}
}

// BenchmarkFloor measures the least that each router could do per request at
// tp 64 and batch 1024: store the answer and count it (all), look one key up in
// a map (conversation), sort by length (default), read each rank's match and
// load once (kv_aware).
func BenchmarkFloor(b *testing.B) {
	const tp, n = 64, 1024
	batch := benchBatches(tp, n, 1)[0]
	run := func(name string, do func()) {
		b.Run(name, func(b *testing.B) {
			began := processTime()
			for range b.N {
				do()
			}
			took := processTime() - began
			if took == 0 {
				took = b.Elapsed()
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N*n), "ns/req")
		})
	}
	ranks, counts := make([]int32, n), make([]int, tp)
	run("copy-counts", func() {
		for k, s := range batch.States {
			counts[k] = s.NumActiveRequests
		}
		for i := range ranks {
			k := i % tp
			ranks[i] = int32(k)
			counts[k]++
		}
	})
	keys := map[string]int{}
	for i, q := range batch.Requests {
		keys[q.Conv] = i
	}
	sum := 0
	run("map-look-up", func() {
		for i := range batch.Requests {
			sum += keys[batch.Requests[i].Conv]
		}
	})
	lengths := make([]int, n)
	run("sort", func() {
		for i := range lengths {
			lengths[i] = batch.Requests[i].Tokens
		}
		slices.Sort(lengths)
	})
	loads := make([]float64, tp)
	run("scan", func() {
		for i := range batch.Requests {
			best := 0.0
			for k, m := range batch.Requests[i].Matches {
				if x := float64(m) - loads[k]; x > best {
					best = x
				}
			}
			loads[i%tp] += best
		}
	})
	_ = sum
}
