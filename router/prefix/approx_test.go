package prefix

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// refApprox remembers for each block when it was last routed.
type refApprox struct {
	rule Approximation
	last map[Chain]time.Duration
	pos  map[Chain]int
}

func (r *refApprox) routed(chain []Chain, now time.Duration) {
	for i, c := range chain {
		r.last[c], r.pos[c] = now, i
	}
	r.forget(now)
}

// forget drops for good what the rule does not cover.
func (r *refApprox) forget(now time.Duration) {
	for c, at := range r.last {
		if r.rule.TTL > 0 && now-at >= r.rule.TTL {
			delete(r.last, c)
		}
	}
	for r.rule.Blocks > 0 && len(r.last) > r.rule.Blocks {
		var oldest Chain
		found := false
		for c, at := range r.last {
			if o := r.last[oldest]; !found || at < o || at == o && r.pos[c] > r.pos[oldest] {
				oldest, found = c, true
			}
		}
		delete(r.last, oldest)
	}
}

func (r *refApprox) match(chain []Chain, now time.Duration) int32 {
	for i, c := range chain {
		if at, ok := r.last[c]; !ok || r.rule.TTL > 0 && now-at >= r.rule.TTL {
			return int32(i)
		}
	}
	return int32(len(chain))
}

// branches is n chains, most of which begin like an earlier one. Another target
// holds the first, which must not matter.
func branches(bd *bed, rng *rand.Rand, n int) [][]Chain {
	var chains [][]Chain
	for i := range n {
		blocks := bd.fresh(1 + rng.IntN(20))
		chain := chainLocals(nil, locals(blocks))
		if i == 0 {
			bd.store(bd.ids[0], blocks)
		} else if old := chains[rng.IntN(i)]; rng.IntN(4) > 0 {
			chain = slices.Clone(old[:1+rng.IntN(len(old))])
			for _, l := range locals(blocks) {
				chain = append(chain, Next(chain[len(chain)-1], l))
			}
		}
		chains = append(chains, chain)
	}
	return chains
}

func TestApproximateEqualsReference(t *testing.T) {
	cases := map[string]Approximation{
		"ttl":      {TTL: 100 * time.Millisecond},
		"capacity": {Blocks: 60},
		"both":     {TTL: 100 * time.Millisecond, Blocks: 60},
		"small":    {Blocks: 5},
	}
	for name, rule := range cases {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(8, 8))
			bd := newBed(t, 2, Options{})
			id, err := bd.ix.AddApproximate(w0(100), rule)
			if err != nil {
				t.Fatal(err)
			}
			ref := &refApprox{rule, map[Chain]time.Duration{}, map[Chain]int{}}
			chains := branches(bd, rng, 12)
			m := bd.ix.NewMatcher()
			var out Matches
			now := time.Duration(0)
			for i := range 4000 {
				if i%500 == 499 { // the rule changes, and back
					ref.forget(now)
					if ref.rule = rule; i%1000 == 499 {
						ref.rule.TTL, ref.rule.Blocks = rule.TTL/2, rule.Blocks/2
					}
					if err := bd.ix.Rule(id, ref.rule); err != nil {
						t.Fatal(err)
					}
					ref.forget(now)
				}
				now += time.Duration(1+rng.IntN(20)) * time.Millisecond
				if c := chains[rng.IntN(len(chains))]; rng.IntN(2) == 0 {
					ref.routed(c, now)
					if err := bd.ix.Routed(id, c, now); err != nil {
						t.Fatal(err)
					}
				} else {
					bd.ix.Expire(now)
				}
				for _, c := range chains {
					m.Match(c, &out)
					if want := ref.match(c, now); out.Device[id] != want || !out.Approximate(id) || out.Approximate(bd.ids[0]) {
						t.Fatalf("at %v: %d blocks of %d, want %d", now, out.Device[id], len(c), want)
					}
				}
			}
			s, _ := bd.ix.TargetStats(id)
			if s.Expired == 0 || !s.Approximate || len(bd.ix.targets[id].approx.order) > 200 {
				t.Errorf("figures %+v", s)
			}
		})
	}
}

func TestRuleIsChecked(t *testing.T) {
	bd := newBed(t, 1, Options{})
	id, _ := bd.ix.AddApproximate(w0(100), Approximation{TTL: time.Minute})
	for name, err := range map[string]error{
		"nothing": bd.ix.Rule(id, Approximation{}), "negative": bd.ix.Rule(id, Approximation{TTL: -1, Blocks: 2}),
		"fed by events": bd.ix.Rule(bd.ids[0], Approximation{Blocks: 1}), "unknown": bd.ix.Rule(99, Approximation{Blocks: 1}),
	} {
		if err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestApproximateClockNeverGoesBack(t *testing.T) {
	bd := newBed(t, 0, Options{})
	id, _ := bd.ix.AddApproximate(w0(0), Approximation{TTL: time.Minute})
	chain := chainLocals(nil, locals(bd.fresh(10)))
	_ = bd.ix.Routed(id, chain, time.Hour)
	_ = bd.ix.Routed(id, chain, 0) // late by an hour, counts as now
	bd.ix.Expire(time.Hour + 59*time.Second)
	if d := depths(bd.ix, chain)[id]; d != 10 {
		t.Errorf("%d blocks before the time was over", d)
	}
	bd.ix.Expire(time.Hour + time.Minute)
	if d := depths(bd.ix, chain)[id]; d != 0 {
		t.Errorf("%d blocks after the time was over", d)
	}
	_ = bd.ix.Routed(id, chain, 2*time.Hour)
	_ = bd.ix.Clear(id)
	if d := depths(bd.ix, chain)[id]; d != 0 {
		t.Errorf("%d blocks after a clear", d)
	}
}

func TestApproximateUnderTheIndexBound(t *testing.T) {
	bd := newBed(t, 0, Options{MaxBlocks: 100})
	id, _ := bd.ix.AddApproximate(w0(0), Approximation{TTL: time.Hour})
	for i := range 50 {
		chain := chainLocals(nil, locals(bd.fresh(30)))
		_ = bd.ix.Routed(id, chain, time.Duration(i))
		if d := depths(bd.ix, chain)[id]; d != 30 {
			t.Fatalf("prompt %d: %d blocks of the newest", i, d)
		}
	}
	if s := bd.ix.Stats(); s.Blocks > 100 || s.Evicted < 1300 {
		t.Errorf("holds %+v", s)
	}
	bd.ix.Expire(2 * time.Hour)
	if s := bd.ix.Stats(); s.Blocks != 0 {
		t.Errorf("after the time was over %d blocks are left", s.Blocks)
	}
}
