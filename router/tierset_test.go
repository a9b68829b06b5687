package router

import (
	"math"
	"strconv"
	"testing"

	"adpdeck/router/model"

	"github.com/google/go-cmp/cmp"
)

// another is an allowed value of f that differs from now.
func another(f *model.Field, now string) string {
	switch f.Kind {
	case model.KindBool:
		return strconv.FormatBool(now != "true")
	case model.KindChoice:
		for _, o := range f.Options {
			if o != now {
				return o
			}
		}
	case model.KindInt:
		return strconv.Itoa(int(math.Min(f.Max, f.Min+3)))
	}
	return strconv.FormatFloat(f.Min+(f.Max-f.Min)/3, 'g', -1, 64)
}

// TestEveryTierFieldIsSetLive: each field of the cluster tier is taken between
// two requests, acts at once, is refused out of its bounds, and comes back
// exactly by undo.
func TestEveryTierFieldIsSetLive(t *testing.T) {
	for _, f := range model.ClusterFields() {
		t.Run(f.Name, func(t *testing.T) {
			b := newBench(t, 2, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV))
			e := newEngine(b, 0)
			e.turn(t, "a", prompt(1, 2, 3))
			before := *b.settings
			old := model.FieldText(&before, f.Name, model.Target{})
			cmds := set(f.Name, another(&f, old))
			if f.Name == "router_track_active_blocks" || f.Name == "booking_expiry_secs" {
				cmds.Set[0].Value = map[string]string{"router_track_active_blocks": "false", "booking_expiry_secs": "7200.25"}[f.Name]
			}
			if f.Name == "phantom_after_secs" {
				cmds.Set[0].Value = "77.125"
			}
			b.must(t, cmds)
			if got := b.steer.tier.Config(); got != b.settings.ClusterConfig || got == before.ClusterConfig {
				t.Fatalf("the cluster tier works with %+v", got)
			}
			e.turn(t, "b", prompt(1, 2, 3, 4))
			if d := b.lastDecision(t); d.Version != 2 || d.Selection.Config != b.settings.ClusterConfig {
				t.Fatalf("decided under v%d", d.Version)
			}
			b.must(t, undo(0))
			if diff := cmp.Diff(before, *b.settings); diff != "" {
				t.Fatalf("undo: %s", diff)
			}
			for _, bad := range []string{"", "-1", "NaN", "1e300", "many"} {
				if bad == "" && f.Optional {
					continue
				}
				if reply := b.do(set(f.Name, bad)); reply.Accepted || reply.Refusal.Code != model.RefusedBounds || reply.Refusal.Next == "" {
					t.Fatalf("%q: %+v", bad, reply)
				}
			}
		})
	}
}

func TestTierRulesAreRefused(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault, inMode(model.ModeKV))
	for name, cmd := range map[string]model.Command{
		"queue without prefill": {Verb: model.VerbSet, Set: []model.FieldValue{fieldValue("router_queue_threshold", "1"), fieldValue("router_track_prefill_tokens", "false")}},
		"output without blocks": {Verb: model.VerbSet, Set: []model.FieldValue{fieldValue("router_track_output_blocks", "true"), fieldValue("router_track_active_blocks", "false")}},
		"expiry first":          set("booking_expiry_secs", "10"),
		"of a rank":             {Verb: model.VerbSet, Set: []model.FieldValue{{Field: "router_temperature", Target: ptr(at("w0", 0)), Value: "1"}}},
	} {
		if reply := b.do(cmd); reply.Accepted || reply.Refusal == nil || b.version != 1 {
			t.Errorf("%s: %+v", name, reply)
		}
	}
	if _, err := New(Config{Clock: &fakeClock{}, Workers: b.specs(), Settings: model.Settings{RouterMode: "best"}}); err == nil {
		t.Error("an unknown mode is taken")
	}
}

func (b *bench) specs() (out []model.WorkerSpec) {
	for _, w := range b.workers {
		out = append(out, w.spec)
	}
	return out
}

// TestWeightsSteerTheTier: a rank of half the weight gets about half the load.
func TestWeightsSteerTheTier(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault, inMode(model.ModeKV, fieldValue("router_decode_active_request_weight", "1")), func(c *Config) { c.Workers[0].MaxNumActiveRequests = 0 })
	b.must(t, setWeight(at("w0", 1), "0.5"))
	n := [2]int{}
	for range 90 {
		_, got := b.submit(t, "")
		n[got.Rank]++
	}
	if n[0] < 55 || n[0] > 65 {
		t.Fatalf("%v, want about 60 and 30", n)
	}
}
