package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"adpdeck/router/engine/steer"
	"adpdeck/router/model"
)

func TestSetChangesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	a, b := vllmSpec("a", "http://a:80"), vllmSpec("b", "http://b:80")
	bubble(t, []model.EngineSpec{a, b}, func(n *network) {
		for _, addr := range []string{"a:80", "b:80", "c:80", "d:80"} {
			prometheus(n.host(addr), fmt.Sprintf(vllmPage, 0, 0, 5))
		}
	}, func(t *testing.T, r *rig) {
		until(t, time.Second, func() bool { return r.isLive("a/0") && r.isLive("b/0") })
		before := len(sortedLines(r.sink))
		if err := r.fleet.Set([]model.EngineSpec{a, b}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if got := sortedLines(r.sink)[before:]; len(got) != 0 {
			t.Errorf("nothing differs, and the sink was told %v", got)
		}
		bad := a
		bad.StartRank = 1
		if err := r.fleet.Set([]model.EngineSpec{bad}); err == nil || r.count("leave") != 0 {
			t.Errorf("%v %v", err, sortedLines(r.sink))
		}
		b2 := b
		b2.URL = "http://d:80"
		if err := r.fleet.Set([]model.EngineSpec{vllmSpec("c", "http://c:80"), b2}); err != nil {
			t.Fatal(err)
		}
		until(t, time.Second, func() bool { return r.isLive("c/1") && r.count("restarted b") == 1 })
		if r.count("leave a") != 1 || r.count("leave") != 1 {
			t.Error(sortedLines(r.sink))
		}
		asked := r.net.hosts["a:80"].times("/health")
		time.Sleep(5 * time.Second)
		if r.net.hosts["a:80"].times("/health") != asked {
			t.Error("an engine that left is asked on")
		}
		if _, err := r.fleet.Upstream(model.Target{Worker: "a"}, model.RouteChat, ""); !errors.Is(err, ErrNoWorker) {
			t.Error(err)
		}
		if up, err := r.fleet.Upstream(model.Target{Worker: "b"}, model.RouteChat, ""); err != nil || up.Base.Host != "d:80" {
			t.Error(up.Base, err)
		}
	})
}

func TestAHundredWorkersLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	var workers []model.EngineSpec
	for i := range 100 {
		workers = append(workers, vllmSpec(fmt.Sprintf("w%d", i), fmt.Sprintf("http://h%d:80", i)))
	}
	bubble(t, workers, func(n *network) {
		for i := range 100 {
			h := n.host(fmt.Sprintf("h%d:80", i))
			prometheus(h, fmt.Sprintf(vllmPage, 0, 0, 5))
			h.set([]mode{good, refused, blackhole, halfOpen, drip}[i%5])
		}
	}, func(t *testing.T, r *rig) {
		time.Sleep(5 * time.Second)
		synctest.Wait()
		early := runtime.NumGoroutine()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if late := runtime.NumGoroutine(); late > early+200 {
			t.Errorf("%d goroutines became %d", early, late)
		}
		if n := get(r.sink, func() int { return len(r.joined) }); n != 100 {
			t.Errorf("%d joined", n)
		}
	})
}

func TestRunRunsOnce(t *testing.T) {
	t.Parallel()
	bubble(t, []model.EngineSpec{vllmSpec("a", "http://a:80")}, func(*network) {}, func(t *testing.T, r *rig) {
		synctest.Wait()
		if err := r.fleet.Run(context.Background()); !errors.Is(err, ErrRunning) {
			t.Error(err)
		}
	})
}

func TestNewNeedsTheKeyThatTheSettingsName(t *testing.T) {
	t.Parallel()
	spec := vllmSpec("a", "http://a:80")
	spec.APIKeyEnv = "ENGINE_KEY"
	none := func(string) string { return "" }
	if _, err := New([]model.EngineSpec{spec}, newSink(), Options{Getenv: none}); err == nil || !strings.Contains(err.Error(), "ENGINE_KEY") {
		t.Error(err)
	}
	var h *host
	bubble(t, []model.EngineSpec{spec}, func(n *network) { h = n.host("a:80") }, func(t *testing.T, r *rig) {
		until(t, time.Second, func() bool { return h.times("/health") > 0 })
		h.mu.Lock()
		got := h.headers["/health"].Get("Authorization")
		h.mu.Unlock()
		if up, err := r.fleet.Upstream(model.Target{Worker: "a"}, model.RouteChat, ""); err != nil || got != "Bearer key" || up.Header.Get("Authorization") != got {
			t.Error(got, up.Header, err)
		}
	})
}

func TestUpstreamAndRan(t *testing.T) {
	t.Parallel()
	workers := []model.EngineSpec{
		{ID: "s", Kind: model.EngineSGLang, URL: "http://s:80/x", Ranks: 4},
		{ID: "p", Kind: model.EngineVLLM, RankURLs: []string{"http://p:80", "http://p:81"}},
	}
	f, err := New(workers, newSink(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	up, err := f.Upstream(model.Target{Worker: "s", Rank: 3}, model.RouteChat, "c")
	if err != nil {
		t.Fatal(err)
	}
	body, err := steer.Edit([]byte(`{"routed_dp_rank":0,"model":"m"}`), up.Body)
	if err != nil || string(body) != `{"model":"m","routed_dp_rank":3}` || up.Channel != steer.ChannelHeaderBody || up.Base.String() != "http://s:80/x" {
		t.Errorf("%s %v %+v", body, err, up)
	}
	if up, err = f.Upstream(model.Target{Worker: "p", Rank: 1}, model.RouteChat, "c"); err != nil || up.Base.Host != "p:81" {
		t.Error(up.Base, err)
	}
	if r, how, known := f.Ran(model.Target{Worker: "p", Rank: 1}, nil, nil); r.Rank != 1 || how != "port" || !known {
		t.Error(r, how, known)
	}
	if r, how, known := f.Ran(model.Target{Worker: "s", Rank: 1}, nil, []byte(`{"meta_info":{"dp_rank":2}}`)); r.Rank != 2 || how != "usage" || !known {
		t.Error(r, how, known)
	}
	for _, bad := range []model.Target{{Worker: "s", Rank: 4}, {Worker: "p", Rank: model.NoRank}, {Worker: "x"}} {
		if _, err := f.Upstream(bad, model.RouteChat, ""); err == nil {
			t.Errorf("%v was steered to", bad)
		}
	}
	_, _ = f.Set(nil), f.Models()
}

func TestADynamoFrontendMayHaveSentItElsewhere(t *testing.T) {
	t.Parallel()
	worker := func(id string, start int, instance uint64) model.EngineSpec {
		return model.EngineSpec{ID: id, Group: "g", Kind: model.EngineDynamo, URL: "http://f:80", StartRank: start, Ranks: 2, InstanceID: instance}
	}
	f, err := New([]model.EngineSpec{worker("a", 0, 1<<63), worker("b", 2, 1<<63+1)}, newSink(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]model.Target{
		`{"nvext":{"worker_id":{"decode_worker_id":9223372036854775808,"decode_dp_rank":1}}}`: {Worker: "a", Rank: 1},
		`{"nvext":{"worker_id":{"decode_worker_id":9223372036854775809,"decode_dp_rank":3}}}`: {Worker: "b", Rank: 1},
		`{"nvext":{"worker_id":{"decode_worker_id":7,"decode_dp_rank":0}}}`:                   {Rank: model.NoRank},
	} {
		asked := model.Target{Worker: "a", Rank: 1}
		ran, evidence, known := f.Ran(asked, nil, []byte(body))
		if ran != want || evidence != "usage" || !known {
			t.Errorf("%s: %v %s %v", body, ran, evidence, known)
		}
	}
}

func TestModelsAreMerged(t *testing.T) {
	t.Parallel()
	a, b := vllmSpec("a", "http://a:80"), vllmSpec("b", "http://b:80")
	b.Models = []string{"n", "m"}
	bubble(t, []model.EngineSpec{a, b}, func(n *network) {
		n.host("a:80").page("/v1/models", `{"object":"list","data":[{"id":"m","max_model_len":18446744073709551615},{"id":"l"}]}`, 200)
	}, func(t *testing.T, r *rig) {
		want := `{"object":"list","data":[{"id":"m","max_model_len":18446744073709551615},{"id":"l"},{"id":"n","object":"model"}]}`
		until(t, 3*time.Second, func() bool { return string(r.fleet.Models()) == want })
	})
}

func TestTokenize(t *testing.T) {
	t.Parallel()
	workers := []model.EngineSpec{
		vllmSpec("v", "http://v:80"),
		{ID: "t", Kind: model.EngineTRTLLM, URL: "http://t:80", Ranks: 1},
		{ID: "s", Kind: model.EngineSGLang, URL: "http://s:80", Ranks: 1},
	}
	var v, s *host
	bubble(t, workers, func(n *network) {
		v, s = n.host("v:80"), n.host("s:80")
		n.host("t:80")
		v.page("/tokenize", `{"count":3,"max_model_len":4096,"tokens":[1,2,4294967295]}`, 200)
		s.page("/tokenize", `{"error":"messages?"}`, 422)
	}, func(t *testing.T, r *rig) {
		chat := []byte(`{"model":"m","messages":[{"role":"user","content":"hi"}],"temperature":0,"tools":[{"n":12345678901234567890}]}`)
		if _, err := r.fleet.Tokenize(t.Context(), "v", model.RouteChat, chat); err == nil && !r.isLive("v/0") {
			t.Error("asked an engine that is not known to answer")
		}
		until(t, 3*time.Second, func() bool { return r.isLive("v/0") && r.isLive("s/0") })
		list, err := r.fleet.Tokenize(t.Context(), "v", model.RouteChat, chat)
		if d := cmp.Diff(TokenList{Tokens: []uint32{1, 2, 1<<32 - 1}, MaxTokens: 4096}, list); d != "" || err != nil {
			t.Error(d, err)
		}
		v.mu.Lock()
		asked := v.bodies["/tokenize"]
		v.mu.Unlock()
		if asked != `{"messages":[{"role":"user","content":"hi"}],"model":"m","tools":[{"n":12345678901234567890}]}` {
			t.Error(asked)
		}
		if _, err = r.fleet.Tokenize(t.Context(), "v", model.RouteCompletions, []byte(`{"model":"m","prompt":"hi","n":2}`)); err != nil {
			t.Error(err)
		}
		for worker, ask := range map[string]struct {
			route model.Route
			body  string
			want  error
		}{
			"t": {model.RouteChat, string(chat), ErrNoTokenizer}, "s": {model.RouteChat, string(chat), ErrTokenizerRefused},
			"v": {model.RouteCompletions, `{"prompt":[1,2]}`, ErrTokenizerRefused},
		} {
			if _, err := r.fleet.Tokenize(t.Context(), worker, ask.route, []byte(ask.body)); !errors.Is(err, ask.want) {
				t.Errorf("%s: %v", worker, err)
			}
		}
		v.mu.Lock()
		v.slow["/tokenize"] = time.Hour
		v.mu.Unlock()
		began := time.Now()
		ended := make(chan error, 8)
		for range 8 {
			go func() {
				_, err := r.fleet.Tokenize(t.Context(), "v", model.RouteChat, chat)
				ended <- err
			}()
		}
		busy := 0
		for range 8 {
			if err := <-ended; errors.Is(err, ErrTokenizerBusy) {
				busy++
			} else if err == nil || !strings.Contains(err.Error(), "no answer within 2s") {
				t.Error(err)
			}
		}
		if took := time.Since(began); took > 2100*time.Millisecond || busy != 4 {
			t.Errorf("took %v, %d were turned away", took, busy)
		}
	})
}
