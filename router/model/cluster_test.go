package model

import (
	"errors"
	"reflect"
	"testing"
)

// TestClusterFieldsAreSettings: each is set through SetFields like any other,
// its default is DefaultClusterConfig's, and copying brings it back exactly.
func TestClusterFieldsAreSettings(t *testing.T) {
	def := DefaultClusterConfig()
	for _, f := range ClusterFields() {
		s := start()
		published := s
		v := map[FieldKind]string{KindBool: "false", KindInt: "64", KindFloat: "0.5", KindChoice: ""}[f.Kind]
		switch {
		case f.Kind == KindChoice:
			v = f.Options[len(f.Options)-1]
		case f.Kind == KindBool && f.Default == "false":
			v = "true"
		case f.Name == "booking_expiry_secs":
			v = "900"
		case f.Min > 0.5:
			v = "2"
		}
		before, err := SetField(&s, FieldValue{Field: f.Name, Value: v})
		if err != nil && f.Name != "router_track_active_blocks" {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		if err == nil && (before != f.Default || FieldText(&s, f.Name, Target{}) != v) {
			t.Errorf("%s: was %q, default %q, now %q", f.Name, before, f.Default, FieldText(&s, f.Name, Target{}))
		}
		if !reflect.DeepEqual(published.ClusterConfig, def) {
			t.Fatalf("%s: a published copy was written", f.Name)
		}
		if !CopyClusterField(&s.ClusterConfig, &def, f.Name) || !reflect.DeepEqual(s.ClusterConfig, def) {
			t.Errorf("%s: copied back: %+v", f.Name, s.ClusterConfig)
		}
		if len(f.Modes) == 0 {
			t.Errorf("%s: names no mode that reads it", f.Name)
		}
	}
	if CopyClusterField(&def, &def, "beta") || PutClusterField(&def, "beta", "1") {
		t.Error("an unknown field is taken")
	}
}

// TestSilentDocumentHasTheDefaults: settings without a cluster_config, as old
// recordings hold them, are whole.
func TestSilentDocumentHasTheDefaults(t *testing.T) {
	s := Settings{RouterMode: ModeKV, AttentionDpConfig: DefaultAttentionDpConfig()}
	if ref := s.Check(); ref != nil {
		t.Fatal(ref)
	}
	if got := FieldText(&s, "router_ttl_secs", Target{}); got != "120" {
		t.Fatalf("ttl %q", got)
	}
	if _, err := SetField(&s, FieldValue{Field: "router_ttl_secs", Value: "60"}); err != nil {
		t.Fatal(err)
	}
	want := DefaultClusterConfig()
	want.TTLSecs = 60
	if !reflect.DeepEqual(s.ClusterConfig, want) {
		t.Fatalf("%+v", s.ClusterConfig)
	}
	s.ClusterConfig.Temperature = -1
	var ref *Refusal
	if _, err := SetField(&s, FieldValue{Field: FieldTimeoutIters, Value: "1"}); !errors.As(err, &ref) || ref.Code != RefusedBounds {
		t.Fatalf("a document out of bounds: %v", err)
	}
}

func TestLostAddsUp(t *testing.T) {
	var l Lost
	for i, cause := range []string{LostLoad, LostCap, LostPin, LostFilter, LostTie, LostTemperature, LostMode, "else", ""} {
		l.Add(cause, 1<<i)
	}
	if want := (Lost{Load: 1, Cap: 2, Pin: 4, Filter: 8, Tie: 16, Temperature: 32, Mode: 64}); l != want || l.Sum() != 127 {
		t.Fatalf("%+v, sum %d", l, l.Sum())
	}
}
