package router

import (
	"testing"

	"adpdeck/router/model"

	"pgregory.net/rapid"
)

// reportTokens has an engine report tokens by rank.
func (b *bench) reportTokens(worker string, tokens ...int) {
	var states []model.RankState
	for k, n := range tokens {
		states = append(states, model.RankState{Rank: k, NumActiveTokens: n})
	}
	b.Report(worker, 0, 0, states, nil)
}

// TestMigrateAuto: a migration that names no rank spreads conversations by
// least tokens, away from where they are.
func TestMigrateAuto(t *testing.T) {
	setUp := func(t *testing.T, tokens ...int) *bench {
		b := newBench(t, 1, 4, model.PolicyConversation)
		for _, id := range []string{"a", "b", "c"} {
			n, _ := b.place(t, id, nil, asks(at("w0", 0)))
			b.FirstToken(n, model.Usage{Ran: at("w0", 0)})
			b.Done(n, model.OutcomeOK)
		}
		b.reportTokens("w0", tokens...)
		return b
	}
	for name, c := range map[string]struct {
		tokens []int
		before []model.Command
		want   [3]int
		what   string
	}{
		"one to each":          {[]int{400, 10, 20, 30}, nil, [3]int{1, 2, 3}, "migrate 3 conversations to the ranks with the fewest tokens"},
		"two to the lightest":  {[]int{400, 0, 150, 190}, nil, [3]int{1, 1, 2}, ""},
		"never where it is":    {[]int{0, 50, 900, 900}, nil, [3]int{1, 1, 1}, ""},
		"equal: lowest first":  {[]int{0, 0, 0, 0}, nil, [3]int{1, 2, 3}, ""},
		"not to the draining":  {[]int{400, 10, 20, 30}, []model.Command{onRank(model.VerbDrain, at("w0", 1))}, [3]int{2, 3, 2}, ""},
		"not to weight 0":      {[]int{400, 10, 20, 30}, []model.Command{setWeight(at("w0", 2), "0")}, [3]int{1, 3, 1}, ""},
		"half as much to half": {[]int{400, 900, 30, 40}, []model.Command{setWeight(at("w0", 2), "0.5")}, [3]int{3, 2, 3}, ""},
		"an operator's pin":    {[]int{400, 10, 20, 30}, []model.Command{onConvs(model.VerbPin, ptr(at("w0", 1)), "a")}, [3]int{2, 1, 3}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := setUp(t, c.tokens...)
			for _, cmd := range c.before {
				b.must(t, cmd)
			}
			pin := b.conv(t, "a").Pin
			reply := b.must(t, onConvs(model.VerbMigrate, nil, "a", "b", "c"))
			if c.what != "" && reply.What != c.what {
				t.Errorf("says %q", reply.What)
			}
			for i, id := range []string{"a", "b", "c"} {
				if got := b.conv(t, id).Bound; got != at("w0", c.want[i]) {
					t.Errorf("%s goes to %s, want w0/%d", id, got, c.want[i])
				}
			}
			if got := b.conv(t, "a").Pin; (pin == model.PinOperator) != (got == model.PinOperator) {
				t.Errorf("a is held by %q, was by %q", got, pin)
			}
			b.must(t, undo(reply.Version))
			if got := b.conv(t, "b"); got.Bound != at("w0", 0) || got.Pin != model.PinAuto {
				t.Errorf("after undo b is held by %q on %s", got.Pin, got.Bound)
			}
		})
	}
	b := setUp(t, 5, 5, 5, 5)
	if got := b.must(t, onConvs(model.VerbMigrate, nil, "a")).What; got != "migrate a w0/0 → w0/1" {
		t.Errorf("says %q", got)
	}
	for _, k := range []int{1, 2, 3} {
		b.must(t, onRank(model.VerbDrain, at("w0", k)))
	}
	reply := b.do(onConvs(model.VerbMigrate, nil, "b"))
	if reply.Accepted || reply.Refusal.Code != model.RefusedLast || reply.Refusal.Message != "migrate b: no rank but w0/0 takes new work" {
		t.Errorf("%+v", reply.Refusal)
	}
}

// TestSpreadAgainstASearch compares the heap with looking at every rank.
func TestSpreadAgainstASearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "ranks")
		b := newBench(t, 1, n, model.PolicyDefault)
		b.reportTokens("w0", rapid.SliceOfN(rapid.IntRange(0, 20), n, n).Draw(t, "tokens")...)
		s := b.newSpread()
		plain := make([]int, n)
		for k := range plain {
			plain[k] = b.tokensAt(b.workers[0], k)
		}
		for range 20 {
			from := at("w0", rapid.IntRange(-1, n-1).Draw(t, "from"))
			tokens := rapid.IntRange(0, 9).Draw(t, "added")
			best := -1
			for k := range plain {
				if k != from.Rank && (best < 0 || plain[k] < plain[best]) {
					best = k
				}
			}
			to, ok := s.take(from, tokens, nil)
			if ok != (best >= 0) || ok && to != at("w0", best) {
				t.Fatalf("took %v %v, want %d of %v", to, ok, best, plain)
			}
			if ok {
				plain[best] += max(tokens, 1)
			}
		}
	})
}
