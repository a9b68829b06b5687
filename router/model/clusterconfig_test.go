package model

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestClusterFieldsCoverTheSettings(t *testing.T) {
	def := DefaultClusterConfig()
	if ref := def.Check(); ref != nil {
		t.Fatal(ref)
	}
	names := map[string]bool{}
	for _, f := range ClusterFields() {
		if names[f.Name] {
			t.Errorf("%s is listed twice", f.Name)
		}
		names[f.Name] = true
		if got := ClusterFieldText(&def, f.Name); got != f.Default {
			t.Errorf("%s is %q by default, the table says %q", f.Name, got, f.Default)
		}
		if f.Label == "" || len([]rune(f.Label)) > 17 || f.Help == "" {
			t.Errorf("%s: label %q, help %q", f.Name, f.Label, f.Help)
		}
		c := def
		if _, err := SetClusterFields(&c, []FieldValue{{Field: f.Name, Value: f.Default}}); err != nil || !reflect.DeepEqual(c, def) {
			t.Errorf("%s: setting the default: %v", f.Name, err)
		}
	}
	typ := reflect.TypeFor[ClusterConfig]()
	for i := range typ.NumField() {
		f := typ.Field(i)
		if f.Tag.Get("json") != f.Tag.Get("yaml") || !names[f.Tag.Get("json")] {
			t.Errorf("%s has tags %q and no row of that name", f.Name, f.Tag)
		}
	}
	if typ.NumField() != len(names) {
		t.Errorf("%d settings, %d rows", typ.NumField(), len(names))
	}
}

func TestSetClusterFields(t *testing.T) {
	cases := map[string]struct {
		set  string // field=value, several by commas
		want string // value of the first afterwards
		code RefusalCode
		says string
	}{
		"a number":         {set: "router_prefill_load_scale=32", want: "32"},
		"above its bounds": {set: "router_host_cache_hit_weight=1.5", code: RefusedBounds, says: "a number from 0 to 1"},
		"not a number":     {set: "router_temperature=NaN", code: RefusedBounds},
		"infinite":         {set: "router_kv_overlap_score_credit=Inf", code: RefusedBounds},
		"a switch":         {set: "router_assume_kv_reuse=off", want: "false"},
		"a word":           {set: "router_queue_policy=wspt", want: "wspt"},
		"another word":     {set: "router_queue_policy=lcfs", code: RefusedBounds, says: "one of fcfs, wspt"},
		"a threshold":      {set: "router_queue_threshold=2", want: "2"},
		"set and unset":    {set: "active_decode_blocks_threshold=0.8,active_decode_blocks_threshold=none", want: "none"},
		"whole numbers":    {set: "active_prefill_tokens_threshold=2.5", code: RefusedBounds, says: "or none"},
		"unknown":          {set: "beta=1", code: RefusedField},
		"all or nothing":   {set: "router_prefill_load_scale=32,router_temperature=-1", code: RefusedBounds},
		"output needs blocks": {
			set: "router_track_active_blocks=false,router_track_output_blocks=true", code: RefusedBounds, says: "needs router_track_active_blocks",
		},
		"queueing needs prefill":   {set: "router_track_prefill_tokens=false,router_queue_threshold=1", code: RefusedBounds},
		"seen before it is lost":   {set: "booking_expiry_secs=10", code: RefusedBounds, says: "phantom_after_secs"},
		"both changed in one step": {set: "booking_expiry_secs=10,phantom_after_secs=5", want: "10"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultClusterConfig()
			before := cfg
			var vs []FieldValue
			for kv := range strings.SplitSeq(c.set, ",") {
				field, value, _ := strings.Cut(kv, "=")
				vs = append(vs, FieldValue{Field: field, Value: value})
			}
			_, err := SetClusterFields(&cfg, vs)
			var ref *Refusal
			switch {
			case c.code == "" && err != nil:
				t.Error(err)
			case c.code == "" && ClusterFieldText(&cfg, vs[0].Field) != c.want:
				t.Errorf("%s is %q, want %q", vs[0].Field, ClusterFieldText(&cfg, vs[0].Field), c.want)
			case c.code != "" && (!errors.As(err, &ref) || ref.Code != c.code || ref.Next == "" || !strings.Contains(err.Error(), c.says)):
				t.Errorf("got %v, want %s", err, c.code)
			case c.code != "" && !reflect.DeepEqual(cfg, before):
				t.Error("a refused change changed something")
			}
		})
	}
}

func TestClusterConfigAsJSON(t *testing.T) {
	c := DefaultClusterConfig()
	v := 0.7
	c.ActiveDecodeBlocksThreshold = &v
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back ClusterConfig
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, c) {
		t.Errorf("%s: %v", b, err)
	}
	if !strings.Contains(string(b), `"router_queue_threshold":null`) || !strings.Contains(string(b), `"active_decode_blocks_threshold":0.7`) {
		t.Errorf("%s", b)
	}
}

func TestFieldsByMode(t *testing.T) {
	used := func(name string, m RouterMode) bool {
		for _, f := range ClusterFields() {
			if f.Name == name {
				return f.UsedIn(m)
			}
		}
		return false
	}
	for name, modes := range map[string]map[RouterMode]bool{
		"lockstep_weight":                {ModeKV: false, ModeLockstep: true, ModeRoundRobin: false},
		"router_prefill_load_scale":      {ModeKV: true, ModeLockstep: false, ModeRandom: false},
		"router_temperature":             {ModeKV: true, ModeLockstep: true, ModeDirect: false},
		"active_decode_blocks_threshold": {ModeKV: true, ModeLockstep: true, ModePowerOfTwo: true},
	} {
		for m, want := range modes {
			if used(name, m) != want {
				t.Errorf("%s in %s: %v", name, m, !want)
			}
		}
	}
}
