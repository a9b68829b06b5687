package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"

	"adpdeck/router/engine/enginetest"
)

// reload changes the settings file and has it read again by ctl.
func (w *whole) reload(change func(p *plan)) (string, error) {
	w.t.Helper()
	p := *w.plan.Load()
	p.serve.Workers = append([]model.EngineSpec(nil), p.serve.Workers...)
	change(&p)
	was := w.plan.Swap(&p)
	out, errOut, code := w.ctl("reload")
	if code != 0 {
		w.plan.Store(was)
		return out, fmt.Errorf("%s", errOut)
	}
	return out, nil
}

// talk has a conversation go on for some turns, each of which carries all before
// it, and wants each on a target where one is named.
func (w *whole) talk(id string, turns int, want *model.Target) (last model.Target) {
	w.t.Helper()
	for range turns {
		turn := conv(w.h.live.Snapshot(), id).Turns
		last = w.good(ask{text: words(id, 40*(turn+1)), conv: id, stream: turn%2 == 1}).target
		if want != nil && last != *want {
			w.t.Fatalf("turn %d of %s ran on %s, want %s", turn, id, last, *want)
		}
	}
	return last
}

// TestPinnedTurns: an operator's pin holds every turn of a conversation, and the
// engine's own events prove it; unpinned it stays, evicted it is placed afresh.
func TestPinnedTurns(t *testing.T) {
	t.Parallel()
	for _, kind := range []model.EngineKind{model.EngineVLLM, model.EngineSGLang, model.EngineDynamo} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w := stand(t, nil, enginetest.Config{Kind: kind}, enginetest.Config{Kind: kind, InstanceBase: 1<<62 + 9})
			first := w.talk("c", 1, nil)
			home := model.Target{Worker: "w1", Rank: 1}
			if first == home {
				home.Rank = 0
			}
			w.ctlOK("pin", "c", home.String(), "--reason", "quiet")
			before := len(w.engines[1].Served())
			w.talk("c", 6, &home)
			c := conv(w.h.live.Snapshot(), "c")
			if c.Pin != model.PinOperator || c.Bound != home || c.Reason != "quiet" || c.Lost != 0 || c.CachedTokens == 0 {
				t.Errorf("%+v", c)
			}
			for _, s := range w.engines[1].Served()[before:] {
				if s.Ran != home.Rank || s.Asked != home.Rank {
					t.Errorf("%+v", s)
				}
			}
			more := time.Now().Add(3 * time.Second)
			w.until("it is proven", func(s *model.State) bool {
				if time.Now().After(more) { // a tokeniser that is slow leaves nothing to prove with
					w.talk("c", 1, &home)
					more = time.Now().Add(300 * time.Millisecond)
				}
				for _, p := range workerOf(s, "w1").Proofs {
					if p.Route == model.RouteChat && p.Honoured > 0 && p.Ignored == 0 && p.Evidence != "" {
						return true
					}
				}
				return false
			})
			w.ctlOK("migrate", "c", "w0/0")
			there := model.Target{Worker: "w0", Rank: 0}
			w.talk("c", 2, &there)
			w.ctlOK("unpin", "c")
			w.talk("c", 2, nil)
			w.ctlOK("evict", "c")
			if c := conv(w.h.live.Snapshot(), "c"); c.Pin != model.PinNone {
				t.Errorf("evicted: %+v", c)
			}
			w.talk("c", 2, nil)
			w.ctlOK("undo") // of the eviction
			w.closed()
		})
	}
}

// TestPinsToTheDead: a pin to a rank that does not answer is refused with the
// reason; one that stood before is never silently elsewhere, and acts again.
func TestPinsToTheDead(t *testing.T) {
	t.Parallel()
	w := stand(t, nil, enginetest.Config{}, enginetest.Config{})
	w.talk("held", 1, nil)
	w.talk("free", 1, nil)
	w.ctlOK("pin", "held", "w0/1")
	home := model.Target{Worker: "w0", Rank: 1}
	w.talk("held", 1, &home)
	w.ctlOK("migrate", "free", "w0/0")
	w.engines[0].Kill()
	w.until("w0 is down", func(s *model.State) bool { return workerOf(s, "w0").Liveness == model.LiveDown })

	_, told, code := w.ctl("pin", "free", "w0/1")
	if code == 0 || !strings.Contains(told, "does not answer") {
		t.Errorf("a pin to a dead worker: %d %q", code, told)
	}
	got := w.send(ask{text: "x", conv: "held"})
	if got.status != 503 || !strings.Contains(got.body, "does not answer") || got.header.Get("Retry-After") == "" {
		t.Errorf("a turn whose pin is dead: %d %s", got.status, got.body)
	}
	if f, ok := found(w.h.live.Snapshot(), model.FindingPinGone, "w0"); !ok || f.Next == "" {
		t.Errorf("%+v", f)
	}
	moved := w.talk("free", 3, nil) // once, and it says so
	if c := conv(w.h.live.Snapshot(), "free"); moved.Worker != "w1" || c.Moves > 2 {
		t.Errorf("%+v", c)
	}
	w.revive(w.engines[0])
	w.until("w0 is back", func(s *model.State) bool { return workerOf(s, "w0").Liveness == model.LiveUp })
	w.talk("held", 2, &home)
	if w.missed("w1") {
		t.Skip("the machine was too busy for an engine that was well to be seen as well: what was bound there rightly moved")
	}
	w.talk("free", 2, &moved) // it does not flap back
	w.closed()
}

// TestDrainToDrained: a worker that drains takes no new conversation, keeps those
// it has, and the count to zero is visible.
func TestDrainToDrained(t *testing.T) {
	t.Parallel()
	w := stand(t, nil, enginetest.Config{}, enginetest.Config{})
	var here []string
	for i := range 12 {
		id := fmt.Sprint("old", i)
		if w.talk(id, 1, nil).Worker == "w0" {
			here = append(here, id)
		}
	}
	if len(here) == 0 || len(here) == 12 {
		t.Fatalf("%d of 12 on w0", len(here))
	}
	w.ctlOK("drain", "w0", "--reason", "update")
	for i := range 12 {
		if at := w.talk(fmt.Sprint("new", i), 1, nil); at.Worker != "w1" {
			t.Errorf("a new conversation went to %s, which drains", at)
		}
	}
	left := func(s *model.State) (n int) {
		for _, r := range s.Ranks {
			if r.Target.Worker == "w0" {
				if r.Availability != model.Draining {
					t.Errorf("%+v", r)
				}
				n += r.Pins + r.OperatorPins + r.InFlight
			}
		}
		return n
	}
	for i, id := range here {
		if at := w.talk(id, 1, nil); at.Worker != "w0" {
			t.Errorf("%s, which is bound to w0, went to %s", id, at)
		}
		if n := left(w.h.live.Snapshot()); n != len(here)-i {
			t.Errorf("%d left, want %d", n, len(here)-i)
		}
		w.ctlOK("migrate", id, "w1/0")
	}
	if n := left(w.h.live.Snapshot()); n != 0 {
		t.Errorf("%d left on a drained worker", n)
	}
	w.ctlOK("ready", "w0")
	w.until("it takes work again", func(s *model.State) bool {
		return w.good(ask{text: fmt.Sprint("fresh ", time.Now())}).target.Worker == "w0"
	})
	w.closed()
}

// TestSettingsActAtOnce: what is set while it runs decides the next request.
func TestSettingsActAtOnce(t *testing.T) {
	t.Parallel()
	w := stand(t, nil, enginetest.Config{}, enginetest.Config{})
	n := 0
	spread := func(k int) map[string]int {
		at := map[string]int{}
		for range k {
			at[w.good(ask{path: "/v1/completions", tokens: tokens(n)}).target.String()]++
			n++
		}
		return at
	}
	w.ctlOK("set", "weight:w0/0=0", "weight:w0/1=0", "weight:w1/0=0")
	if at := spread(8); at["w1/1"] != 8 {
		t.Errorf("one rank has a weight: %v", at)
	}
	w.ctlOK("set", "weight:w0/0=1", "weight:w0/1=1", "weight:w1/0=1", "router_mode=round_robin")
	if at := spread(8); at["w0/0"]+at["w0/1"] != 4 {
		t.Errorf("round robin: %v", at)
	}
	w.ctlOK("set", "router_mode=direct")
	if got := w.send(ask{text: "x"}); got.status != 400 || !strings.Contains(got.body, "worker_needed") {
		t.Errorf("direct: %d %s", got.status, got.body)
	}
	if at := w.good(ask{text: "x", at: "w1"}).target; at.Worker != "w1" {
		t.Errorf("direct: %s", at)
	}
	version := w.h.live.Snapshot().Version
	w.ctlOK("undo")
	s := w.h.live.Snapshot()
	if s.Settings.RouterMode != model.ModeRoundRobin || s.Version != version+1 || s.Revisions[0].Undoes != version {
		t.Errorf("%s in v%d: %+v", s.Settings.RouterMode, s.Version, s.Revisions[0])
	}
	w.closed()
}

// TestReloadKeepsPins: workers come and go with the file; pins name them by id,
// wherever they stand in it.
func TestReloadKeepsPins(t *testing.T) {
	t.Parallel()
	third := fake(t, enginetest.Config{})
	w := stand(t, nil, enginetest.Config{}, enginetest.Config{})
	w.talk("c", 1, nil)
	w.ctlOK("pin", "c", "w1/1")
	home := model.Target{Worker: "w1", Rank: 1}
	w.talk("c", 1, &home)
	w.engines = append(w.engines, third)
	spec := specs(third, "w2")[0]
	out, err := w.reload(func(p *plan) {
		p.serve.Workers = []model.EngineSpec{spec, p.serve.Workers[1], p.serve.Workers[0]}
		p.settings.ClusterConfig.Temperature = 0.25
	})
	if err != nil || !strings.Contains(out, "1 setting, 1 worker changed") {
		t.Errorf("%q, %v", out, err)
	}
	w.ready()
	if s := w.h.live.Snapshot(); s.Settings.ClusterConfig.Temperature != 0.25 || s.Revisions[0].Verb != model.VerbReload {
		t.Errorf("%+v", s.Revisions[0])
	}
	w.talk("c", 2, &home)
	if at := w.good(ask{text: "by name", at: "w2/0"}).target.Worker; at != "w2" {
		t.Errorf("went to %s", at)
	}

	was := w.plan.Load().serve.Workers
	if _, err := w.reload(func(p *plan) { p.serve.Workers = was[:1] }); err != nil {
		t.Fatal(err)
	}
	s := w.h.live.Snapshot()
	if len(s.Workers) != 1 || s.Workers[0].ID != "w2" {
		t.Errorf("%+v", s.Workers)
	}
	got := w.send(ask{text: "x", conv: "c"})
	if got.status != 503 {
		t.Errorf("its pin names a worker that has left: %d %s", got.status, got.body)
	}
	if _, err := w.reload(func(p *plan) { p.serve.Workers = was }); err != nil {
		t.Fatal(err)
	}
	w.ready()
	w.talk("c", 2, &home)

	for what, change := range map[string]func(*plan){
		"cannot change while it serves": func(p *plan) { p.serve.Gateway.Retry = false },
		"overlap": func(p *plan) {
			p.serve.Workers[0].StartRank, p.serve.Workers[0].Group, p.serve.Workers[1].Group = 1, "g", "g"
		},
	} {
		before := w.h.live.Snapshot().Version
		if _, err := w.reload(change); err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("%s: %v", what, err)
		}
		if s := w.h.live.Snapshot(); s.Version != before || len(s.Workers) != 3 {
			t.Errorf("%s: something was changed", what)
		}
	}
	if out, err = w.reload(func(*plan) {}); err != nil || !strings.Contains(out, "nothing has changed") {
		t.Errorf("%q, %v", out, err)
	}
	w.closed()
}

// TestTheConsoleSeesWhatTheRouterKnows: what the feed carries to an operator is
// the router's own state.
func TestTheConsoleSeesWhatTheRouterKnows(t *testing.T) {
	t.Parallel()
	w := stand(t, nil, enginetest.Config{}, enginetest.Config{})
	for i := range 6 {
		w.talk(fmt.Sprint("c", i), 2, nil)
	}
	w.ctlOK("pin", "c3", "w1/1", "--reason", "seen")
	w.engines[0].Kill()
	w.until("w0 is down", func(s *model.State) bool { return workerOf(s, "w0").Liveness == model.LiveDown })
	w.until("the console shows the same conversations", func(s *model.State) bool {
		var convs []model.Conv
		if err := json.Unmarshal([]byte(w.ctlOK("get", "convs", "-o", "json")), &convs); err != nil {
			t.Fatal(err)
		}
		for _, c := range convs {
			if own := conv(s, c.Key.ID); c.Bound != own.Bound || c.Pin != own.Pin || c.Turns != own.Turns || c.Reason != own.Reason {
				return false
			}
		}
		return len(convs) == len(s.Convs)
	})
	w.until("the console shows it down", func(*model.State) bool {
		return strings.Contains(w.ctlOK("get", "workers"), "down")
	})
}
