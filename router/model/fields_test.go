package model

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func start() Settings {
	return DefaultSettings()
}

func TestFieldDefaultsAreUpstreams(t *testing.T) {
	s := start()
	for _, f := range Fields() {
		if got := FieldText(&s, f.Name, Target{"w0", 0}); got != f.Default {
			t.Errorf("%s: default %q, the table says %q", f.Name, got, f.Default)
		}
		v := FieldValue{Field: f.Name, Value: f.Default}
		if f.PerTarget {
			v.Target = &Target{"w0", 0}
		}
		if _, err := SetField(&s, v); err != nil {
			t.Errorf("%s: its own default is refused: %v", f.Name, err)
		}
		if n := len([]rune(f.Label)); n > 17 {
			t.Errorf("%s: label is %d columns wide", f.Name, n)
		}
	}
}

func TestSetField(t *testing.T) {
	w03 := &Target{"w0", 3}
	cases := map[string]struct {
		v    FieldValue
		want string // text afterwards, for an accepted value
		code RefusalCode
		next string
	}{
		"beta":               {v: FieldValue{Field: FieldLoadBalanceWeight, Value: " 4.25 "}, want: "4.25"},
		"beta too high":      {v: FieldValue{Field: FieldLoadBalanceWeight, Value: "16.01"}, code: RefusedBounds, next: "0 to 16"},
		"beta nan":           {v: FieldValue{Field: FieldLoadBalanceWeight, Value: "nan"}, code: RefusedBounds},
		"beta word":          {v: FieldValue{Field: FieldLoadBalanceWeight, Value: "lots"}, code: RefusedBounds},
		"threshold":          {v: FieldValue{Field: FieldMatchRateThreshold, Value: "1"}, want: "1"},
		"share below one":    {v: FieldValue{Field: FieldFairShareMultiplier, Value: "0.9"}, code: RefusedBounds, next: "1 to 8"},
		"sessions":           {v: FieldValue{Field: FieldMaxSessions, Value: "1048576"}, want: "1048576"},
		"sessions zero":      {v: FieldValue{Field: FieldMaxSessions, Value: "0"}, code: RefusedBounds},
		"sessions fraction":  {v: FieldValue{Field: FieldMaxSessions, Value: "2.5"}, code: RefusedBounds},
		"placement":          {v: FieldValue{Field: FieldNewConvPlacement, Value: PlaceLeastTokens}, want: PlaceLeastTokens},
		"placement unknown":  {v: FieldValue{Field: FieldNewConvPlacement, Value: "best"}, code: RefusedBounds, next: "least_queued"},
		"policy":             {v: FieldValue{Field: FieldPolicy, Value: "conversation"}, want: "conversation"},
		"mode":               {v: FieldValue{Field: FieldRouterMode, Value: "least_loaded"}, want: "least_loaded"},
		"switch":             {v: FieldValue{Field: FieldColdStartWarmup, Value: "on"}, want: "true"},
		"switch word":        {v: FieldValue{Field: FieldColdStartWarmup, Value: "maybe"}, code: RefusedBounds, next: "true or false"},
		"weight":             {v: FieldValue{Field: FieldWeight, Value: "0.8", Target: w03}, want: "0.8"},
		"weight minus zero":  {v: FieldValue{Field: FieldWeight, Value: "-0", Target: w03}, want: "0"},
		"weight of none":     {v: FieldValue{Field: FieldWeight, Value: "0.8"}, code: RefusedTarget},
		"beta of a rank":     {v: FieldValue{Field: FieldLoadBalanceWeight, Value: "1", Target: w03}, code: RefusedTarget},
		"unknown field":      {v: FieldValue{Field: "beta", Value: "1"}, code: RefusedField, next: FieldLoadBalanceWeight},
		"iterations":         {v: FieldValue{Field: FieldTimeoutIters, Value: "10000"}, want: "10000"},
		"iterations too far": {v: FieldValue{Field: FieldTimeoutIters, Value: "10001"}, code: RefusedBounds},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := start()
			was := FieldText(&s, c.v.Field, *w03)
			before, err := SetField(&s, c.v)
			if c.code != "" {
				var ref *Refusal
				if !errors.As(err, &ref) || ref.Code != c.code || !strings.Contains(ref.Next, c.next) {
					t.Fatalf("got %#v, want a refusal %s that says %q", err, c.code, c.next)
				}
				if len(s.Weights) != 0 || s.AttentionDpConfig != DefaultAttentionDpConfig() {
					t.Error("a refused value left a trace")
				}
				return
			}
			if err != nil || before != was {
				t.Fatalf("before %q, %v; want %q", before, err, was)
			}
			if got := FieldText(&s, c.v.Field, *w03); got != c.want {
				t.Errorf("now %q, want %q", got, c.want)
			}
		})
	}
}

func TestSetFieldsIsAllOrNothingAndOrderFree(t *testing.T) {
	on := FieldValue{Field: FieldEnableBalance, Value: "true"}
	low := FieldValue{Field: FieldLowOccupancyTimeoutIters, Value: "60"}
	limit := FieldValue{Field: FieldTimeoutIters, Value: "80"}
	s := start()
	if _, err := SetFields(&s, []FieldValue{on, low}); err == nil || s.AttentionDpConfig.EnableBalance {
		t.Fatalf("a low-occupancy timeout above the timeout was taken: %v", err)
	}
	for _, vs := range [][]FieldValue{{on, low, limit}, {limit, low, on}, {low, limit, on}} {
		s := start()
		if _, err := SetFields(&s, vs); err != nil {
			t.Errorf("%v: %v", vs, err)
		}
	}
	s = start()
	s.AttentionDpConfig.TimeoutIters = -1 // a file may bring it while the gate is off
	_, err := SetField(&s, on)
	var ref *Refusal
	if !errors.As(err, &ref) || !strings.Contains(ref.Message, "timeout_iters -1: must be greater or equal to 0 when enable_balance is true") {
		t.Errorf("got %v", err)
	}
}

func TestWeightsAreReplacedInOrder(t *testing.T) {
	s := start()
	for _, k := range []int{5, 1, 3} {
		if _, err := SetField(&s, FieldValue{Field: FieldWeight, Value: "0.5", Target: &Target{"w0", k}}); err != nil {
			t.Fatal(err)
		}
	}
	published := s
	kept := slices.Clone(s.Weights)
	if _, err := SetField(&s, FieldValue{Field: FieldWeight, Value: "1", Target: &Target{"w0", 1}}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(published.Weights, kept) {
		t.Error("a published list was written in place")
	}
	if len(s.Weights) != 2 || s.Weights[0].Target.Rank != 3 || s.Weights[1].Target.Rank != 5 {
		t.Errorf("got %v, want ranks 3 and 5", s.Weights)
	}
}

func TestStepFitsTheValue(t *testing.T) {
	f, _ := FieldByName(FieldLoadBalanceWeight)
	for v, want := range map[float64]float64{0: 0.05, 1.99: 0.05, 2: 0.25, 9.9: 0.25, 10: 1, 16: 1} {
		if got := f.Step(v, false); got != want {
			t.Errorf("small step at %s is %v, want %v", strconv.FormatFloat(v, 'f', -1, 64), got, want)
		}
		if got := f.Step(v, true); got != 10*want {
			t.Errorf("large step at %v is %v, want %v", v, got, 10*want)
		}
	}
}

func TestUsedBy(t *testing.T) {
	share, _ := FieldByName(FieldFairShareMultiplier)
	if share.UsedBy(PolicyDefault) || !share.UsedBy(PolicyKVAware) || !share.UsedBy(PolicyConversation) {
		t.Error("the fair share multiplier is read by kv_aware and conversation alone")
	}
	gate, _ := FieldByName(FieldEnableBalance)
	if !gate.UsedBy(PolicyDefault) {
		t.Error("the gate acts under every policy")
	}
}
