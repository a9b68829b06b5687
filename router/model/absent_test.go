package model

import (
	"encoding/json"
	"reflect"
	"testing"
)

var maybeType = reflect.TypeFor[Maybe]()

// holders are the structs below t that hold figures which may be unknown.
func holders(t reflect.Type, seen, out map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Array:
		holders(t.Elem(), seen, out)
	case reflect.Struct:
		for i := range t.NumField() {
			if t.Field(i).Type == maybeType {
				out[t] = true
			}
			holders(t.Field(i).Type, seen, out)
		}
	}
}

// TestWhatAnOlderServerDoesNotSendIsUnknown holds for every figure that may be
// unknown in a State, also one that is added later.
func TestWhatAnOlderServerDoesNotSendIsUnknown(t *testing.T) {
	all := map[reflect.Type]bool{}
	holders(reflect.TypeFor[State](), map[reflect.Type]bool{}, all)
	all[reflect.TypeFor[Settled]()] = true
	if len(all) < 6 {
		t.Fatalf("only %v", all)
	}
	for typ := range all {
		v := reflect.New(typ)
		if err := json.Unmarshal([]byte(`{}`), v.Interface()); err != nil {
			t.Fatal(err)
		}
		for i := range typ.NumField() {
			if typ.Field(i).Type == maybeType && v.Elem().Field(i).Interface().(Maybe).Known() {
				t.Errorf("%s.%s is 0 where it was not sent: see absent.go", typ, typ.Field(i).Name)
			}
		}
	}
}

// TestWhatWasSentIsRead: nothing else is different by it.
func TestWhatWasSentIsRead(t *testing.T) {
	in := State{
		Totals: Totals{Hit: 0.5, Skew: Unknown(), Open: 3}, Workers: []Worker{{ID: "w", TTFTMsP50: 7, TTFTMsP99: Unknown()}},
		Ranks: []Rank{{Target: Target{Worker: "w", Rank: 1}, Hit: 0, Reachable: 0.25, InFlight: 2}}, IndexTotals: &IndexTotals{EventsPerSec: 4},
		Index: []IndexRank{{Hit: 1, Agreed: Unknown()}},
	}
	first, err := json.Marshal(&in)
	if err != nil {
		t.Fatal(err)
	}
	var out State
	if err := json.Unmarshal(first, &out); err != nil {
		t.Fatal(err)
	}
	if again, err := json.Marshal(&out); err != nil || string(again) != string(first) {
		t.Errorf("%s\nbecame\n%s (%v)", first, again, err)
	}
	if json.Unmarshal([]byte(`{"hit":"x"}`), &Rank{}) == nil {
		t.Error("a damaged figure is taken")
	}
}
