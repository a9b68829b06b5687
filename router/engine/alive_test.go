package engine

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"adpdeck/router/model"
)

// TestADeadEngineLeavesAndReturns is safety.md 3.5, tests 20 and 22: whatever is
// wrong with an engine, it is out in three seconds and back in five.
func TestADeadEngineLeavesAndReturns(t *testing.T) {
	t.Parallel()
	sickness := map[string]func(h *host){
		string(refused): func(h *host) { h.set(refused) }, string(blackhole): func(h *host) { h.set(blackhole) },
		string(halfOpen): func(h *host) { h.set(halfOpen) }, string(reset): func(h *host) { h.set(reset) },
		string(drip): func(h *host) { h.set(drip) }, string(flood): func(h *host) { h.set(flood) }, string(stall): func(h *host) { h.set(stall) },
		"503":            func(h *host) { h.page("/health", "no", 503) },
		"unhealthy body": func(h *host) { h.page("/health", `{"status":"unhealthy"}`, 200) },
		"a page of html": func(h *host) { h.page("/health", "<html>sorry</html>", 200) },
		"10 MiB":         func(h *host) { h.page("/health", string(make([]byte, 10<<20)), 500) },
		"slow answer":    func(h *host) { h.mu.Lock(); h.slow["/health"] = 1500 * time.Millisecond; h.mu.Unlock() },
	}
	for name, fall := range sickness {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, phase := range []time.Duration{0, 130 * time.Millisecond, 490 * time.Millisecond} {
				var h *host
				bubble(t, []model.EngineSpec{vllmSpec("w0", "http://a:80")}, func(n *network) {
					h = n.host("a:80")
					prometheus(h, fmt.Sprintf(vllmPage, 0, 0, 100))
				}, func(t *testing.T, r *rig) {
					until(t, time.Second, func() bool { return r.isLive("w0/0") && r.isLive("w0/1") })
					time.Sleep(10*time.Second + phase)
					fall(h)
					if d := until(t, 3*time.Second, func() bool { return !r.isLive("w0/0") && !r.isLive("w0/1") }); d < 100*time.Millisecond {
						t.Errorf("out after %v: one lost answer is no death", d)
					}
					if why := get(r.sink, func() string { return r.why["w0/0"] }); why == "" {
						t.Error("no reason")
					}
					time.Sleep(10*time.Second + phase)
					if r.isLive("w0/0") {
						t.Error("back while dead")
					}
					h.set(good)
					h.page("/health", "", 200)
					h.mu.Lock()
					h.slow = map[string]time.Duration{}
					h.mu.Unlock()
					until(t, 5*time.Second, func() bool { return r.isLive("w0/0") && r.isLive("w0/1") })
					if n := r.count("live "); n != 3 {
						t.Errorf("told %d times of life: %v", n, sortedLines(r.sink))
					}
				})
			}
		})
	}
}

func TestOneLostAnswerIsNoDeathAndAnIdleEngineIsAlive(t *testing.T) {
	t.Parallel()
	var h *host
	bubble(t, []model.EngineSpec{vllmSpec("w0", "http://a:80")}, func(n *network) {
		h = n.host("a:80")
		prometheus(h, fmt.Sprintf(vllmPage, 0, 0, 100))
	}, func(t *testing.T, r *rig) {
		time.Sleep(10 * time.Minute)
		h.page("/health", "", 500)
		asked := h.times("/health")
		until(t, time.Second, func() bool { return h.times("/health") > asked })
		h.page("/health", "", 200)
		h.mu.Lock()
		h.slow["/health"] = 900 * time.Millisecond // slow is not dead
		h.mu.Unlock()
		time.Sleep(10 * time.Minute)
		if n := r.count("live "); n != 1 {
			t.Errorf("an idle engine was told of %d times: %v", n, sortedLines(r.sink))
		}
	})
}

func TestAnEngineTooBusyForTheQuestionIsAliveWhileItAnswersRequests(t *testing.T) {
	t.Parallel()
	var h *host
	bubble(t, []model.EngineSpec{vllmSpec("w0", "http://a:80")}, func(n *network) { h = n.host("a:80") }, func(t *testing.T, r *rig) {
		until(t, time.Second, func() bool { return r.isLive("w0/0") })
		h.mu.Lock()
		h.slow["/health"] = time.Hour
		h.mu.Unlock()
		for range 60 {
			time.Sleep(200 * time.Millisecond)
			r.fleet.Answered(model.Target{Worker: "w0", Rank: 1})
		}
		if !r.isLive("w0/0") {
			t.Error("out although it answers")
		}
		until(t, 3*time.Second, func() bool { return !r.isLive("w0/0") })
	})
}

func TestAPortThatNeverAnswersLeavesAlone(t *testing.T) {
	t.Parallel()
	spec := model.EngineSpec{ID: "w0", Kind: model.EngineVLLM, RankURLs: []string{"http://a:80", "http://a:81", "http://a:82"}}
	var h *host
	bubble(t, []model.EngineSpec{spec}, func(n *network) {
		n.host("a:80")
		h = n.host("a:81")
		n.host("a:82")
	}, func(t *testing.T, r *rig) {
		until(t, time.Second, func() bool { return r.isLive("w0/1") })
		h.set(halfOpen)
		until(t, 3*time.Second, func() bool { return !r.isLive("w0/1") })
		if !r.isLive("w0/0") || !r.isLive("w0/2") {
			t.Error("took others along")
		}
		h.set(good)
		until(t, 5*time.Second, func() bool { return r.isLive("w0/1") })
	})
}

// TestARankThatNeverAnswersLeaves has one rank of several behind one address take
// requests and keep them.
func TestARankThatNeverAnswersLeaves(t *testing.T) {
	t.Parallel()
	var h *host
	bubble(t, []model.EngineSpec{vllmSpec("w0", "http://a:80")}, func(n *network) {
		h = n.host("a:80")
		h.page("/v1/models", `{"data":[{"id":"m"}]}`, 200)
		h.page("/v1/completions", `{}`, 200)
	}, func(t *testing.T, r *rig) {
		until(t, time.Second, func() bool {
			return r.isLive("w0/1") && get(r.sink, func() bool { return len(r.joined["w0"].Models) == 1 })
		})
		hung := model.Target{Worker: "w0", Rank: 1}
		h.mu.Lock()
		h.slow["/v1/completions"] = time.Hour
		h.mu.Unlock()
		r.fleet.Failed(hung, errors.New("timeout"))
		r.fleet.Failed(hung, errors.New("timeout"))
		r.fleet.Answered(hung)
		r.fleet.Failed(hung, errors.New("timeout"))
		r.fleet.Failed(hung, errors.New("timeout"))
		time.Sleep(time.Second)
		if !r.isLive("w0/1") {
			t.Fatal("out although it answered between")
		}
		r.fleet.Failed(hung, errors.New("timeout"))
		until(t, time.Second, func() bool { return !r.isLive("w0/1") })
		if !r.isLive("w0/0") {
			t.Error("took another along")
		}
		time.Sleep(time.Minute)
		if r.isLive("w0/1") || h.times("/v1/completions") == 0 {
			t.Error("not tried, or believed")
		}
		h.mu.Lock()
		rank, body := h.headers["/v1/completions"].Get("X-Data-Parallel-Rank"), h.bodies["/v1/completions"]
		h.slow = map[string]time.Duration{}
		h.mu.Unlock()
		if rank != "1" || body != `{"max_tokens":1,"model":"m","prompt":"1"}` {
			t.Errorf("tried rank %q with %s", rank, body)
		}
		until(t, 5*time.Second, func() bool { return r.isLive("w0/1") })
	})
}

func TestFailedHasTheEngineCheckedAtOnce(t *testing.T) {
	t.Parallel()
	var h *host
	bubble(t, []model.EngineSpec{vllmSpec("w0", "http://a:80")}, func(n *network) { h = n.host("a:80") }, func(t *testing.T, r *rig) {
		until(t, time.Second, func() bool { return r.isLive("w0/0") })
		time.Sleep(10 * time.Millisecond)
		h.set(refused)
		r.fleet.Failed(model.Target{Worker: "w0", Rank: 0}, errors.New("connection refused"))
		if d := until(t, time.Second, func() bool { return !r.isLive("w0/0") }); d > 300*time.Millisecond {
			t.Errorf("out after %v", d)
		}
		r.fleet.Failed(model.Target{Worker: "nobody"}, errors.New("x"))
		r.fleet.Answered(model.Target{Worker: "nobody"})
	})
}

func TestARankThatTheEngineCallsUnhealthyLeaves(t *testing.T) {
	t.Parallel()
	var h *host
	healthy := "vllm:engine_healthy{engine=\"0\"} 1\nvllm:engine_healthy{engine=\"1\"} %d\n"
	bubble(t, []model.EngineSpec{vllmSpec("w0", "http://a:80")}, func(n *network) {
		h = n.host("a:80")
		prometheus(h, fmt.Sprintf(vllmPage+healthy, 0, 0, 1, 1))
	}, func(t *testing.T, r *rig) {
		until(t, 2*time.Second, func() bool { return r.isLive("w0/1") })
		prometheus(h, fmt.Sprintf(vllmPage+healthy, 0, 0, 1, 0))
		until(t, 3*time.Second, func() bool { return !r.isLive("w0/1") })
		if !r.isLive("w0/0") {
			t.Error("took another along")
		}
		prometheus(h, fmt.Sprintf(vllmPage+healthy, 0, 0, 1, 1))
		until(t, 3*time.Second, func() bool { return r.isLive("w0/1") })
	})
}

func TestDynamoAnswers200WithoutWorkers(t *testing.T) {
	t.Parallel()
	spec := model.EngineSpec{ID: "d", Kind: model.EngineDynamo, URL: "http://f:80", Ranks: 1, InstanceID: 1<<63 + 3}
	var h *host
	bubble(t, []model.EngineSpec{spec}, func(n *network) {
		h = n.host("f:80")
		h.page("/health", `{"status":"unhealthy","instances":[]}`, 200)
	}, func(t *testing.T, r *rig) {
		until(t, time.Second, func() bool { return r.count("join d") == 1 })
		synctest.Wait()
		if r.isLive("d/0") {
			t.Error("live without workers")
		}
		h.page("/health", `{"status":"healthy","instances":[{"instance_id":9223372036854775810}]}`, 200)
		time.Sleep(5 * time.Second)
		if r.isLive("d/0") {
			t.Error("live without its own instance")
		}
		h.page("/health", `{"status":"healthy","instances":[{"instance_id":9223372036854775811}]}`, 200)
		until(t, 5*time.Second, func() bool { return r.isLive("d/0") })
	})
}
