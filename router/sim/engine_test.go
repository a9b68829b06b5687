package sim

import (
	"errors"
	"testing"

	"adpdeck/router/model"
)

func submit(t *testing.T, r Router, id int64, conv string) model.Target {
	t.Helper()
	to, err := r.Submit(&model.Request{ID: id, Conv: model.ConvKey{ID: conv}, PromptTokens: 100})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func TestEngineKeepsAConversationAtItsWorker(t *testing.T) {
	cfg := small(2, 4)
	cfg.Workers = 3
	set := settingsFor(model.PolicyConversation, "")
	e, err := NewEngine(cfg.Specs(), set)
	if err != nil {
		t.Fatal(err)
	}
	home := submit(t, e, 1, "a").Worker
	for id := range int64(6) {
		submit(t, e, 10+id, "")
		if at := submit(t, e, 20+id, "a").Worker; at != home {
			t.Errorf("turn %d went to %s, not %s", id, at, home)
		}
	}
	e.Use(settingsFor(model.PolicyKVAware, ""))
	seen := map[string]bool{}
	for id := range int64(3) {
		seen[submit(t, e, 30+id, "a").Worker] = true
	}
	if cfg2, _, _ := e.Gate("w0"); len(seen) != 3 || cfg2.Policy() != model.PolicyKVAware {
		t.Errorf("after the switch it still went to %v", seen)
	}
}

func TestEnginePicksTheLeastLoadedWorker(t *testing.T) {
	cfg := small(2, 4)
	cfg.Workers = 2
	set := settingsFor(model.PolicyDefault, "")
	set.RouterMode = model.ModeLeastLoaded
	e, err := NewEngine(cfg.Specs(), set)
	if err != nil {
		t.Fatal(err)
	}
	a, b := submit(t, e, 1, ""), submit(t, e, 2, "")
	if a.Worker == b.Worker {
		t.Errorf("both went to %s", a.Worker)
	}
	e.Done(1, model.OutcomeOK)
	e.Done(1, model.OutcomeOK) // counts once
	for id := range int64(2) {
		if at := submit(t, e, 3+id, ""); id == 0 && at.Worker != a.Worker {
			t.Errorf("went to %s, %s is idle", at, a)
		}
	}
}

func TestEngineRefusesWhatItDoesNotKnow(t *testing.T) {
	cfg := small(2, 4)
	if _, err := NewEngine(nil, DefaultSettings()); !errors.Is(err, ErrEngine) {
		t.Errorf("no workers: %v", err)
	}
	e, err := NewEngine(cfg.Specs(), DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	var out model.StepOutput
	if err := e.Step("w7", &model.StepInput{}, &out); !errors.Is(err, ErrEngine) {
		t.Errorf("no such worker: %v", err)
	}
	in := model.StepInput{States: make([]model.RankState, 2), HardCap: 4, Requests: []model.StepRequest{{ID: 99}}}
	if err := e.Step("w0", &in, &out); !errors.Is(err, ErrEngine) {
		t.Errorf("no such request: %v", err)
	}
}

func TestRotateTakesTurnsOverAllRanks(t *testing.T) {
	r := NewRotate([]model.WorkerSpec{{ID: "w0", Ranks: 2}, {ID: "w1", Ranks: 3}})
	want := []string{"w0/0", "w1/0", "w0/1", "w1/1", "w1/2", "w0/0"}
	for i, w := range want {
		if got := submit(t, r, int64(i), "a").String(); got != w {
			t.Errorf("request %d goes to %s, want %s", i, got, w)
		}
	}
}
