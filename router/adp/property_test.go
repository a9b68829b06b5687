package adp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"adpdeck/router/model"
)

func ptr[T any](v T) *T { return &v }

// everyConfig is each policy and placement.
func everyConfig() map[string]model.AttentionDpConfig {
	out := map[string]model.AttentionDpConfig{}
	for _, p := range []model.Policy{model.PolicyDefault, model.PolicyKVAware, model.PolicyConversation} {
		out[string(p)] = model.DefaultAttentionDpConfig().WithPolicy(p)
	}
	c := out["kv_aware"]
	c.KVCacheRoutingColdStartWarmup = true
	out["kv_aware warm-up"] = c
	for _, place := range []string{model.PlaceLeastQueued, model.PlaceLeastTokens} {
		c := out["conversation"]
		c.KVCacheRoutingNewConvPlacement = place
		c.KVCacheRoutingMaxSessions = 6
		out[place] = c
	}
	return out
}

// randomBatch has many ties: few distinct counts, tokens and prompt lengths.
func randomBatch(rng *rand.Rand, tp int) *Batch {
	b := &Batch{HardCap: 1 + rng.IntN(12)}
	for k := range tp {
		b.States = append(b.States, model.RankState{Rank: k, NumActiveRequests: rng.IntN(6), NumActiveTokens: rng.IntN(4) * 100})
	}
	for range rng.IntN(24) {
		q := Request{ID: int64(rng.Uint64() >> (1 + rng.IntN(50))), Tokens: rng.IntN(5) * 64}
		for range min(q.Tokens, 64) {
			q.Lead = append(q.Lead, rng.Int32N(2))
		}
		if rng.IntN(2) == 0 {
			q.Matches = make([]int32, rng.IntN(tp+1))
			for i := range q.Matches {
				q.Matches[i] = rng.Int32N(5) * 64
			}
		}
		if rng.IntN(3) == 0 {
			q.Params = &Params{}
			if rng.IntN(2) == 0 {
				q.Params.Rank = ptr(rng.IntN(tp))
			}
			if rng.IntN(2) == 0 {
				q.Params.Relax = ptr(rng.IntN(2) == 0)
			}
		}
		if rng.IntN(3) > 0 {
			q.Conv = fmt.Sprint("c", rng.IntN(8))
		}
		q.Null = rng.IntN(20) == 0
		b.Requests = append(b.Requests, q)
	}
	return b
}

// state is what a router keeps, for comparison.
func state(r *Router) string {
	return fmt.Sprint(r.Cursor(), r.PendingWarmup(), pinList(r.Pins()))
}

func sameResult(a, b *Result) bool {
	return reflect.DeepEqual(a.Assignments, b.Assignments) && slices.Equal(a.Ranks, b.Ranks) &&
		slices.Equal(a.Unassigned, b.Unassigned) && a.Expected == b.Expected
}

func TestWeightOneAndRecordingChangeNothing(t *testing.T) {
	for name, cfg := range everyConfig() {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			for range 200 {
				tp := 1 + rng.IntN(12)
				plain, ones, rec := New(tp, cfg, nil, Options{}), New(tp, cfg, nil, Options{}), New(tp, cfg, nil, Options{Record: true, MaxCandidates: rng.IntN(5)})
				other := New(tp, cfg, &sliceLRU{max: cfg.KVCacheRoutingMaxSessions}, Options{})
				var a, b, c, d Result
				for range 4 {
					batch := randomBatch(rng, tp)
					_ = plain.Route(batch, &a)
					_ = rec.Route(batch, &c)
					_ = other.Route(batch, &d)
					batch.Weights, batch.Closed = slices.Repeat([]float64{1}, tp), make([]bool, tp)
					_ = ones.Route(batch, &b)
					if !sameResult(&a, &b) || state(plain) != state(ones) {
						t.Fatal("weight 1 everywhere differs from no weights")
					}
					if !sameResult(&a, &c) || state(plain) != state(rec) {
						t.Fatal("recording changed a placement")
					}
					if !sameResult(&a, &d) || plain.Cursor() != other.Cursor() {
						t.Fatal("a given conversation map differs from the router's own")
					}
				}
			}
		})
	}
}

// TestClosedRanksAreInvisible adds closed ranks to a fleet, by draining and by
// weight 0, at random places and with absurd loads: the others see no change.
// Where the small fleet exceeds the hard cap, as upstream does, the large one
// does not.
func TestClosedRanksAreInvisible(t *testing.T) {
	for name, cfg := range everyConfig() {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(7, 9))
			for range 200 {
				tp := 1 + rng.IntN(8)
				closed := 1 + rng.IntN(5)
				isClosed := make([]bool, tp+closed)
				for _, k := range rng.Perm(tp + closed)[:closed] {
					isClosed[k] = true
				}
				var to []int // open rank of the small fleet → rank of the large one
				for k, c := range isClosed {
					if !c {
						to = append(to, k)
					}
				}
				small, large := New(tp, cfg, nil, Options{}), New(tp+closed, cfg, nil, Options{})
				weights := make([]float64, tp)
				for k := range weights {
					weights[k] = float64(1+rng.IntN(4)) / 2
				}
				var a, b Result
				for range 4 {
					batch := randomBatch(rng, tp)
					if rng.IntN(2) == 0 {
						batch.Weights = weights
					}
					_ = small.Route(batch, &a)
					wide := widen(rng, batch, isClosed, to)
					_ = large.Route(wide, &b)
					if overfilled(wide, &b) {
						t.Fatal("a rank beside a closed one was filled beyond the hard cap")
					}
					if overfilled(batch, &a) {
						break
					}
					for i := range a.Ranks {
						want := int32(-1)
						if a.Ranks[i] >= 0 {
							want = int32(to[a.Ranks[i]])
						}
						if b.Ranks[i] != want {
							t.Fatalf("request %d went to %d, without the closed ranks to %d", i, b.Ranks[i], want)
						}
					}
					if a.Expected != b.Expected {
						t.Fatalf("expected %d, without the closed ranks %d", b.Expected, a.Expected)
					}
				}
			}
		})
	}
}

// overfilled reports that a rank was given more than the hard cap has room for.
func overfilled(b *Batch, out *Result) bool {
	for k, list := range out.Assignments {
		if len(list) > 0 && b.States[k].NumActiveRequests+len(list) > b.HardCap {
			return true
		}
	}
	return false
}

// TestNoRankIsOverfilled: with a weight or a closed rank in the fleet, a batch
// that holds more than the open ranks have room for fills them to the hard cap
// and leaves the rest over.
func TestNoRankIsOverfilled(t *testing.T) {
	for name, cfg := range everyConfig() {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			for range 300 {
				tp := 2 + rng.IntN(8)
				r := New(tp, cfg, nil, Options{Record: true})
				var out Result
				for range 3 {
					b := randomBatch(rng, tp)
					b.HardCap = 1 + rng.IntN(4)
					b.Closed, b.Weights = make([]bool, tp), slices.Repeat([]float64{1}, tp)
					b.Closed[rng.IntN(tp)] = rng.IntN(2) == 0
					b.Weights[rng.IntN(tp)] = []float64{0, 0.25, 0.5, 2}[rng.IntN(4)]
					if err := r.Route(b, &out); err != nil || overfilled(b, &out) {
						t.Fatalf("%v, assigned %v with cap %d", err, out.Assignments, b.HardCap)
					}
					if cfg.Policy() != model.PolicyConversation || len(out.Unassigned) == 0 {
						continue
					}
					for k, list := range out.Assignments {
						if b.States[k].NumActiveRequests+len(list) < b.HardCap && !b.Closed[k] && b.Weights[k] > 0 {
							t.Fatalf("%d requests are left over, rank %d has room", len(out.Unassigned), k)
						}
					}
				}
			}
		})
	}
}

// widen is batch seen by a fleet with closed ranks in between.
func widen(rng *rand.Rand, batch *Batch, isClosed []bool, to []int) *Batch {
	n := len(isClosed)
	w := &Batch{HardCap: batch.HardCap, States: make([]model.RankState, n), Closed: make([]bool, n), Weights: make([]float64, n)}
	for k := range n {
		w.States[k] = model.RankState{Rank: k, NumActiveRequests: rng.IntN(1000), NumActiveTokens: rng.IntN(1 << 30)}
		w.Weights[k] = 1
		if isClosed[k] {
			w.Weights[k] = float64(rng.IntN(2)) * 1.5
			w.Closed[k] = w.Weights[k] > 0
		}
	}
	for k, at := range to {
		w.States[at] = batch.States[k]
		w.States[at].Rank = at
		if batch.Weights != nil {
			w.Weights[at] = batch.Weights[k]
		}
	}
	for _, q := range batch.Requests {
		if q.Params != nil && q.Params.Rank != nil {
			p := *q.Params
			p.Rank = ptr(to[*p.Rank])
			q.Params = &p
		}
		m := make([]int32, n)
		for k := range m {
			m[k] = rng.Int32N(1000)
		}
		for k, at := range to {
			m[at] = int32(q.match(k))
		}
		q.Matches = m
		w.Requests = append(w.Requests, q)
	}
	return w
}

// TestWeightedCapsHoldTheBatch: with room under the hard cap everywhere, soft
// caps scaled by weights still add up to the whole batch.
func TestWeightedCapsHoldTheBatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	var out Result
	for range 500 {
		tp := 1 + rng.IntN(8)
		b := randomBatch(rng, tp)
		b.HardCap = 1000
		b.Weights = make([]float64, tp)
		for k := range b.Weights {
			b.Weights[k] = 0.05 + 1.95*rng.Float64()
		}
		for _, cfg := range everyConfig() {
			if _ = New(tp, cfg, nil, Options{}).Route(b, &out); len(out.Unassigned) > 0 {
				t.Fatalf("%d of %d requests found no room with weights %v", len(out.Unassigned), len(b.Requests), b.Weights)
			}
		}
	}
}

func TestWeightShiftsWork(t *testing.T) {
	for name, cfg := range everyConfig() {
		if name == "conversation" || name == "kv_aware warm-up" {
			continue // plain turns take no load into account
		}
		b := &Batch{HardCap: 1000, States: make([]model.RankState, 2), Weights: []float64{2, 0.5}}
		b.States[1].Rank = 1
		for i := range 100 {
			b.Requests = append(b.Requests, Request{ID: int64(i), Tokens: 100})
		}
		var out Result
		_ = New(2, cfg, nil, Options{}).Route(b, &out)
		if n := len(out.Assignments[0]); n < 75 || n > 85 {
			t.Errorf("%s: the rank of weight 2 beside one of 0.5 got %d of 100, want about 80", name, n)
		}
	}
}

// TestChooseMatchesThePlainLoop holds the scoring shortcuts against a literal
// walk of the shuffled list, for every sign of β and threshold.
func TestChooseMatchesThePlainLoop(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	betas := []float64{0, 1, 0.1, 3.7, -1, 1e308, -1e308, 1e-300, math.Inf(1), math.Inf(-1), math.NaN()}
	for range 4000 {
		tp := 1 + rng.IntN(40)
		cfg := model.DefaultAttentionDpConfig().WithPolicy(model.PolicyKVAware)
		cfg.KVCacheRoutingLoadBalanceWeight = betas[rng.IntN(len(betas))]
		cfg.KVCacheRoutingMatchRateThreshold = []float64{0, 0.1, 0.5, -1, 2, math.NaN()}[rng.IntN(6)]
		r := New(tp, cfg, nil, Options{})
		b := randomBatch(rng, tp)
		r.fleet.load(b, tp)
		if _, err := r.fleet.expect(ptr(2.0), len(b.Requests), b.HardCap, false); err != nil {
			t.Fatal(err)
		}
		r.scan.fill(&r.fleet)
		if len(r.scan.ranks) == 0 {
			continue
		}
		for i := range b.Requests {
			q := &b.Requests[i]
			got, _ := r.choose(q)
			r.scan.open()
			if want := r.chooseLiteral(q.ID); got != want {
				t.Fatalf("β %v, threshold %v: chose position %d, upstream's loop %d", cfg.KVCacheRoutingLoadBalanceWeight,
					cfg.KVCacheRoutingMatchRateThreshold, got, want)
			}
		}
	}
}

// sliceLRU is the conversation map in its plainest form.
type sliceLRU struct {
	max  int
	keys []string
	rank []int
}

func (l *sliceLRU) Get(key string) (int, bool) {
	if i := slices.Index(l.keys, key); i >= 0 {
		return l.rank[i], true
	}
	return 0, false
}

func (l *sliceLRU) Record(key string, rank int) {
	if i := slices.Index(l.keys, key); i >= 0 {
		l.keys, l.rank = slices.Delete(l.keys, i, i+1), slices.Delete(l.rank, i, i+1)
	}
	l.keys, l.rank = append(l.keys, key), append(l.rank, rank)
	for len(l.keys) > l.max {
		l.keys, l.rank = l.keys[1:], l.rank[1:]
	}
}

func TestLRUAgainstThePlainForm(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 60 {
		limit := 1 + rng.IntN(40)
		l, plain := NewLRU(limit), &sliceLRU{max: limit}
		for range 2000 {
			key := fmt.Sprint(rng.IntN(3 * limit))
			switch rng.IntN(8) {
			case 0:
				i := slices.Index(plain.keys, key)
				if l.Remove(key) != (i >= 0) {
					t.Fatal("Remove says otherwise")
				}
				if i >= 0 {
					plain.keys, plain.rank = slices.Delete(plain.keys, i, i+1), slices.Delete(plain.rank, i, i+1)
				}
			case 1:
				limit = 1 + rng.IntN(40)
				l.SetMax(limit)
				plain.max = limit
				for len(plain.keys) > limit {
					plain.keys, plain.rank = plain.keys[1:], plain.rank[1:]
				}
			case 2:
				a, aok := l.Get(key)
				b, bok := plain.Get(key)
				if a != b || aok != bok {
					t.Fatal("Get says otherwise")
				}
			default:
				k := rng.IntN(9)
				l.Record(key, k)
				plain.Record(key, k)
			}
			if l.Len() != len(plain.keys) {
				t.Fatalf("%d entries, want %d", l.Len(), len(plain.keys))
			}
		}
		i := 0
		for key, rank := range l.All() {
			if key != plain.keys[i] || rank != plain.rank[i] {
				t.Fatalf("entry %d is %s→%d, want %s→%d", i, key, rank, plain.keys[i], plain.rank[i])
			}
			i++
		}
	}
}
