package model

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"
)

func TestParseTarget(t *testing.T) {
	tests := map[string]struct {
		in   string
		want Target
		err  error
	}{
		"plain":         {in: "w0/3", want: Target{"w0", 3}},
		"named worker":  {in: "gpu-eu1-07/12", want: Target{"gpu-eu1-07", 12}},
		"no rank":       {in: "w0", err: ErrTarget},
		"no worker":     {in: "/3", err: ErrTarget},
		"negative rank": {in: "w0/-1", err: ErrTarget},
		"not a number":  {in: "w0/x", err: ErrTarget},
		"empty":         {in: "", err: ErrTarget},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseTarget(tc.in)
			if !errors.Is(err, tc.err) || got != tc.want {
				t.Fatalf("ParseTarget(%q) = %v, %v; want %v, %v", tc.in, got, err, tc.want, tc.err)
			}
		})
	}
}

func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"w0/3", "w0", "/", "a/b/1", "w/99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseTarget(s)
		if err != nil {
			return
		}
		again, err := ParseTarget(got.String())
		if err != nil || again != got {
			t.Fatalf("%q read as %v, written and read again as %v, %v", s, got, again, err)
		}
	})
}

func TestTargetLessCountsNumbers(t *testing.T) {
	ts := []Target{{"w10", 0}, {"w2", 1}, {"w9", 0}, {"w2", 0}, {"a", 3}}
	slices.SortFunc(ts, func(a, b Target) int {
		if a.Less(b) {
			return -1
		}
		return 1
	})
	want := []Target{{"a", 3}, {"w2", 0}, {"w2", 1}, {"w9", 0}, {"w10", 0}}
	if !slices.Equal(ts, want) {
		t.Fatalf("sorted %v, want %v", ts, want)
	}
}

func TestTargetLessIsAnOrder(t *testing.T) {
	names := []string{"", "w", "w1", "w01", "w1x", "w2", "w10", "w10x", "10", "9", "a", "w1-2", "w1-10", "w-1"}
	less := func(a, b string) bool { return Target{Worker: a}.Less(Target{Worker: b}) }
	for _, a := range names {
		for _, b := range names {
			if a != b && less(a, b) == less(b, a) {
				t.Errorf("%q and %q are not ordered", a, b)
			}
			for _, c := range names {
				if less(a, b) && less(b, c) && !less(a, c) {
					t.Errorf("%q < %q < %q, but not %q < %q", a, b, c, a, c)
				}
			}
		}
	}
}

func TestMaybeKeepsUnknownApartFromZero(t *testing.T) {
	tests := map[string]struct {
		in   Maybe
		json string
	}{
		"zero":     {0, "0"},
		"number":   {87.4, "87.4"},
		"unknown":  {Unknown(), "null"},
		"infinite": {Maybe(math.Inf(1)), "null"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b, err := json.Marshal(struct{ M Maybe }{tc.in})
			if err != nil || string(b) != `{"M":`+tc.json+`}` {
				t.Fatalf("marshalled %s, %v", b, err)
			}
			var back struct{ M Maybe }
			if err := json.Unmarshal(b, &back); err != nil {
				t.Fatal(err)
			}
			if back.M.Known() != (tc.json != "null") {
				t.Fatalf("read back %v from %s", back.M, b)
			}
		})
	}
	if err := json.Unmarshal([]byte(`"x"`), new(Maybe)); err == nil {
		t.Fatal("a string was read as a number")
	}
}

func TestPolicyFollowsUpstreamsSwitches(t *testing.T) {
	tests := map[string]struct {
		affinity, kv bool
		want         Policy
	}{
		"both off":      {want: PolicyDefault},
		"kv aware":      {kv: true, want: PolicyKVAware},
		"affinity":      {affinity: true, want: PolicyConversation},
		"affinity wins": {affinity: true, kv: true, want: PolicyConversation},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := DefaultAttentionDpConfig()
			c.KVCacheRoutingConversationAffinity, c.EnableKVCacheAwareRouting = tc.affinity, tc.kv
			if got := c.Policy(); got != tc.want {
				t.Fatalf("policy %q, want %q", got, tc.want)
			}
			if got := c.WithPolicy(tc.want).Policy(); got != tc.want {
				t.Fatalf("WithPolicy(%q) answers %q", tc.want, got)
			}
		})
	}
}

func TestWeightOf(t *testing.T) {
	s := Settings{Weights: []Weight{{Target{"w0", 5}, 0.8}}}
	if got := s.WeightOf(Target{"w0", 5}); got != 0.8 {
		t.Fatalf("weight %v, want 0.8", got)
	}
	if got := s.WeightOf(Target{"w0", 4}); got != DefaultWeight {
		t.Fatalf("weight %v, want the default", got)
	}
}

func TestRefusalSaysWhatNext(t *testing.T) {
	r := &Refusal{Message: "pin conv-8f2c to w0/3: rank is draining", Next: "choose another rank or ready it first"}
	if got := r.Error(); got != "pin conv-8f2c to w0/3: rank is draining; choose another rank or ready it first" {
		t.Fatal(got)
	}
}
