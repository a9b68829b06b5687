package settings

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"adpdeck/router/model"
)

const tiered = `router_mode: kv
cluster_config:
  router_prefill_load_scale: 16   # P
  router_queue_threshold: 2
  router_session_affinity_ttl_secs: null
  router_kv_events: off
  router_queue_policy: wspt
`

func TestClusterConfigIsRead(t *testing.T) {
	s := read(t, tiered).Settings()
	want := model.DefaultSettings()
	want.RouterMode = model.ModeKV
	c := &want.ClusterConfig
	two := 2.0
	c.PrefillLoadScale, c.QueueThreshold, c.SessionAffinityTTLSecs = 16, &two, nil
	c.KVEvents, c.QueuePolicy = false, model.QueueWSPT
	if !reflect.DeepEqual(s, want) {
		t.Fatalf("read %+v\nwant %+v", s.ClusterConfig, want.ClusterConfig)
	}
}

func TestClusterConfigErrorsNamePlaceAndBounds(t *testing.T) {
	cases := map[string]struct {
		text         string
		line, column int
		say          string
	}{
		"unknown field":      {"cluster_config:\n  beta: 1\n", 2, 3, "allowed are router_prefill_load_scale"},
		"another's field":    {"cluster_config: {router_mode: kv}\n", 1, 18, "no field"},
		"out of bounds":      {"cluster_config:\n  router_prefill_load_scale: -1\n", 2, 30, "a number from 0 to 1024"},
		"infinite":           {"cluster_config:\n  router_temperature: .inf\n", 2, 23, "a number from 0 to 100"},
		"word":               {"cluster_config:\n  router_queue_max_requests: many\n", 2, 30, "want a whole number"},
		"choice":             {"cluster_config:\n  router_queue_policy: lifo\n", 2, 24, "one of fcfs, wspt"},
		"null":               {"cluster_config:\n  router_ttl_secs: null\n", 2, 3, "want a number"},
		"nothing":            {"cluster_config:\n  router_queue_threshold:\n", 2, 3, "write null"},
		"needs prefill":      {"cluster_config:\n  router_queue_threshold: 1\n  router_track_prefill_tokens: false\n", 2, 27, "needs router_track_prefill_tokens"},
		"expiry too early":   {"cluster_config:\n  booking_expiry_secs: 10\n", 2, 24, "below phantom_after_secs"},
		"output needs track": {"cluster_config:\n  router_track_output_blocks: true\n  router_track_active_blocks: false\n", 2, 31, "needs router_track_active_blocks"},
		"a list":             {"cluster_config: [1]\n", 1, 17, "a mapping"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f", []byte(c.text))
			var e *Error
			if !errors.As(err, &e) || e.Line != c.line || e.Column != c.column || !strings.Contains(e.Message, c.say) {
				t.Fatalf("got %v, want line %d column %d and %q", err, c.line, c.column, c.say)
			}
		})
	}
}

func TestClusterConfigUpdateKeepsTheText(t *testing.T) {
	d := read(t, tiered)
	s := d.Settings()
	vs := []model.FieldValue{
		{Field: "router_prefill_load_scale", Value: "0.5"},
		{Field: "router_queue_threshold", Value: "none"},
		{Field: "router_session_affinity_ttl_secs", Value: "60"},
		{Field: "lockstep_weight", Value: "3"},
	}
	if _, err := model.SetFields(&s, vs); err != nil {
		t.Fatal(err)
	}
	if err := d.Update(s); err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("16   # P", "0.5   # P", "threshold: 2", "threshold: null", "ttl_secs: null", "ttl_secs: 60.0").Replace(tiered) + "  lockstep_weight: 3.0\n"
	if got := string(d.Bytes()); got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	if got := d.Settings(); !reflect.DeepEqual(got, s) {
		t.Fatalf("says %+v", got.ClusterConfig)
	}
}

func TestClusterConfigOfNewReadsBack(t *testing.T) {
	s := model.DefaultSettings()
	s.RouterMode = model.ModeLockstep
	if _, err := model.SetFields(&s, []model.FieldValue{{Field: "active_decode_blocks_threshold", Value: "0.9"}, {Field: "router_predicted_ttl_secs", Value: "1.5"}}); err != nil {
		t.Fatal(err)
	}
	d, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, string(d.Bytes())).Settings(); !reflect.DeepEqual(got, s) {
		t.Fatalf("read %+v\nwant %+v", got, s)
	}
}
