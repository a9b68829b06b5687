package view

import (
	"testing"

	"adpdeck/router/model"
)

func TestPlaces(t *testing.T) {
	for want, at := range map[string]model.Target{
		"w0/3": {Worker: "w0", Rank: 3}, "w0": {Worker: "w0", Rank: model.NoRank}, "—": {Rank: model.NoRank},
	} {
		if got := PlaceText(at, 8).String(); got != want {
			t.Errorf("%v: %q, want %q", at, got, want)
		}
	}
	s := &model.State{Workers: []model.Worker{{ID: "t0", Steering: model.SteerConversation}, {ID: "w0", Steering: model.SteerHeader}}}
	if !EnginePicks(s, "t0") || EnginePicks(s, "w0") || EnginePicks(s, "x") {
		t.Error("who picks the rank")
	}
}

func TestWhatIsLeftOnAWorker(t *testing.T) {
	s := &model.State{Workers: []model.Worker{{ID: "t0", Open: 5, Bound: 3}}}
	if got := (Left{Open: 2, Pins: 1}).OnWorker(s, "t0"); got != (Left{Open: 5, Pins: 4}) {
		t.Errorf("%+v", got)
	}
	if got := (Left{Open: 7}).OnWorker(s, "gone"); got.Open != 7 {
		t.Errorf("%+v", got)
	}
}
