package settings

import (
	"testing"

	"adpdeck/router/model"
)

func TestChangesMakeOneTheOther(t *testing.T) {
	from := model.DefaultSettings()
	from.SetWeight(model.Target{Worker: "a", Rank: 0}, 0.5)
	from.SetWeight(model.Target{Worker: "a", Rank: 1}, 0.5)
	to := model.DefaultSettings()
	to.RouterMode = model.ModeKV
	to.AttentionDpConfig.KVCacheRoutingLoadBalanceWeight = 3
	to.SetWeight(model.Target{Worker: "a", Rank: 1}, 0.5)
	to.SetWeight(model.Target{Worker: "b", Rank: 0}, 2)
	values := Changes(from, to)
	if len(values) != 4 {
		t.Errorf("%d values: %v", len(values), values)
	}
	got := from
	if _, err := model.SetFields(&got, values); err != nil {
		t.Fatal(err)
	}
	if !same(&got, &to) {
		t.Errorf("got %+v\nwant %+v", got, to)
	}
	if v := Changes(to, to); v != nil {
		t.Errorf("a change to itself: %v", v)
	}
}
