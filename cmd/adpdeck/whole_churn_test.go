package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"
)

var seriesOf = regexp.MustCompile(`(?m)^adpdeck_(?:rank|worker)_\w+\{(?:rank="(\d+)",)?worker="([^"]*)"\}`)

// labels are the workers and ranks that the metrics page names.
func (w *whole) labels() map[string]bool {
	w.t.Helper()
	set := map[string]bool{}
	for _, m := range seriesOf.FindAllStringSubmatch(w.metrics(), -1) {
		set[m[2]+"/"+m[1]] = true
	}
	return set
}

// alive are the workers and ranks that there are.
func (w *whole) alive() map[string]bool {
	set := map[string]bool{}
	s := w.h.live.Snapshot()
	for i := range s.Workers {
		set[s.Workers[i].ID+"/"] = true
	}
	for i := range s.Ranks {
		set[s.Ranks[i].Target.String()] = true
	}
	return set
}

// TestWorkersThatLeaveAreGone is A15: series of a worker that leaves vanish at the
// next scrape, and what ends late brings nothing back. Meanwhile traffic goes on
// and loses nothing.
func TestWorkersThatLeaveAreGone(t *testing.T) {
	t.Parallel()
	rounds := 25
	switch {
	case long():
		rounds = 1000
	case testing.Short():
		rounds = 8
	}
	slow := slowPair()[0]
	guest := fake(t, slow)
	w := stand(t, nil, enginetest.Config{})
	w.engines = append(w.engines, guest)
	base := w.plan.Load().serve.Workers
	stop := make(chan struct{})
	var traffic sync.WaitGroup
	var sent, lost atomic.Int64
	for k := range 4 {
		traffic.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				sent.Add(1)
				if got := w.send(ask{text: fmt.Sprintf("traffic %d of %d", i, k), most: 2}); !got.ok() {
					lost.Add(1)
					t.Errorf("lost: %d %v %s", got.status, got.err, got.body)
				}
			}
		})
	}
	for round := range rounds {
		spec := specs(guest, "guest")[0]
		spec.ID = fmt.Sprint("guest", round)
		w.plan.Store(w.with(append(slices.Clone(base), spec)))
		if r := w.h.reload(model.Command{ID: fmt.Sprint("come", round), Verb: model.VerbReload}); !r.Accepted {
			t.Fatal(r.Refusal)
		}
		w.until("the guest is up", func(s *model.State) bool { return workerOf(s, spec.ID).Liveness == model.LiveUp })
		held := w.hold(2, spec.ID)
		w.plan.Store(w.with(base))
		if r := w.h.reload(model.Command{ID: fmt.Sprint("go", round), Verb: model.VerbReload}); !r.Accepted {
			t.Fatal(r.Refusal)
		}
		if got, want := w.labels(), w.alive(); fmt.Sprint(got) != fmt.Sprint(want) || len(got) != 3 {
			t.Fatalf("round %d: the page names %v, there are %v", round, got, want)
		}
		if n := w.h.live.Departed(); n < 2 { // others may be there too, for a moment
			t.Fatalf("round %d: %d are open where nothing is any more", round, n)
		}
		held.release()
		w.until("late ends", func(*model.State) bool { return w.h.live.Departed() == 0 })
	}
	close(stop)
	traffic.Wait()
	if got := w.labels(); len(got) != 3 {
		t.Errorf("late ends brought back %v", got)
	}
	if n := w.h.live.LateEnds(); n < uint64(2*rounds) {
		t.Errorf("%d late ends", n)
	}
	t.Logf("%d requests during %d rounds, %d lost", sent.Load(), rounds, lost.Load())
	w.closed()
}

// with is the plan with other workers.
func (w *whole) with(workers []model.EngineSpec) *plan {
	p := *w.plan.Load()
	p.serve.Workers = workers
	return &p
}

// TestEnginesThatShrink is A15's other half: an engine that comes back with fewer
// ranks takes the others with it.
func TestEnginesThatShrink(t *testing.T) {
	t.Parallel()
	four := fake(t, enginetest.Config{Ranks: 4})
	at := four.Addr(model.NoRank)
	w := before(t, func(p *plan) {
		p.serve.Workers[0].Ranks, p.serve.Workers[0].Events = 0, model.EventSource{Transport: "none"}
	}, four)
	w.ready()
	w.until("four ranks", func(s *model.State) bool { return len(s.Ranks) == 4 })
	four.Close()
	w.engines = []*enginetest.Engine{fake(t, enginetest.Config{Ranks: 2}, at)}
	w.until("two ranks", func(s *model.State) bool { return len(s.Ranks) == 2 && workerOf(s, "w0").Liveness == model.LiveUp })
	if got := w.labels(); len(got) != 3 || got["w0/2"] {
		t.Errorf("the page names %v", got)
	}
	if got := w.send(ask{text: "gone", at: "w0/3"}); got.status != 400 || !strings.Contains(got.body, "no such rank") {
		t.Errorf("%d %s", got.status, got.body)
	}
	w.closed()
}

// TestSharedPrefixSpreads is A12: a system prompt that all share does not pull all
// to where it was first, and the weight that governs this acts while it runs.
func TestSharedPrefixSpreads(t *testing.T) {
	t.Parallel()
	cfg := enginetest.Config{Ranks: 4, Timing: enginetest.Timing{PrefillTokensPerSecond: 40_000, DecodeBase: 2 * time.Millisecond, DecodePerRequest: 100 * time.Microsecond}}
	w := stand(t, nil, cfg, cfg)
	shared := make([]uint32, 2000)
	for i := range shared {
		shared[i] = uint32(7000 + i)
	}
	n := 0
	// talk has conversations of one turn and says how many each rank got.
	talk := func(convs int) (at map[model.Target]int) {
		var mu sync.Mutex
		at = map[model.Target]int{}
		first := n
		n += convs
		each(24, convs, func(i int) {
			own := rand.New(rand.NewPCG(1, uint64(first+i)))
			prompt := slices.Clone(shared)
			for range 50 {
				prompt = append(prompt, own.Uint32N(50_000))
			}
			got := w.send(ask{path: "/v1/completions", tokens: prompt, conv: fmt.Sprint("c", first+i), most: 16})
			if !got.ok() {
				t.Errorf("%d %v %s", got.status, got.err, got.body)
			}
			mu.Lock()
			defer mu.Unlock()
			at[got.target]++
		})
		return at
	}
	skew := func(at map[model.Target]int) float64 {
		most, all := 0, 0
		for _, k := range at {
			most, all = max(most, k), all+k
		}
		return float64(most) * 8 / float64(all)
	}
	talk(60) // warm-up
	at := talk(200)
	t.Logf("the default: %v, max/mean %.2f", at, skew(at))
	if skew(at) > 1.5 {
		t.Errorf("max/mean is %.2f: %v", skew(at), at)
	}
	holders := 0
	s := w.h.live.Snapshot()
	for _, row := range s.Index {
		if row.Device >= len(shared)/16 {
			holders++
		}
	}
	if holders < 3 || s.IndexTotals == nil || len(s.IndexTotals.Shared) == 0 {
		t.Errorf("%d ranks hold the shared prefix; shown: %+v", holders, s.IndexTotals)
	}
	half := model.Target{Worker: "w0", Rank: 0}
	w.ctlOK("set", "weight:w0/0=0.25")
	at = talk(200)
	t.Logf("a quarter for %s: %v", half, at)
	if at[half] > 200/8*2/3 || at[half] == 0 {
		t.Errorf("%d of 200 on a rank of weight 0.25", at[half])
	}
	w.ctlOK("set", "weight:w0/0=1", "router_kv_overlap_score_credit=0")
	at = talk(200)
	t.Logf("without credit for caches: %v, max/mean %.2f", at, skew(at))
	if skew(at) > 1.3 || len(at) != 8 {
		t.Errorf("max/mean is %.2f without credit for caches: %v", skew(at), at)
	}
	all := w.h.live.Decisions(0, 1)
	if len(all) == 0 || all[len(all)-1].Selection == nil || all[len(all)-1].Selection.Config.KVOverlapScoreCredit != 0 {
		t.Errorf("the decision does not show the weight that was used: %+v", all)
	}
	w.closed()
}

// TestEnginesThatComeAndGo has engines die and return under traffic: who asks is
// answered, but for what an engine had begun to answer when it died.
func TestEnginesThatComeAndGo(t *testing.T) {
	t.Parallel()
	w := stand(t, nil, enginetest.Config{}, enginetest.Config{}, enginetest.Config{})
	stop := make(chan struct{})
	end := sync.OnceFunc(func() { close(stop) })
	defer end()
	var traffic sync.WaitGroup
	var sent, broken atomic.Int64
	for k := range 6 {
		traffic.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				sent.Add(1)
				a := ask{text: fmt.Sprintf("traffic %d of %d", i, k), most: 4, stream: i%2 == 0}
				if i%3 == 0 {
					a.conv = fmt.Sprint("c", k)
				}
				switch got := w.send(a); {
				case got.err != nil && a.stream && got.status == 200:
					broken.Add(1)
				case got.status == 500 && strings.Contains(got.body, "the engine is gone"):
					broken.Add(1) // its own last word, after which nothing may be sent again
				case !got.ok():
					t.Errorf("lost: %d %v %s", got.status, got.err, got.body)
				}
			}
		})
	}
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	for i := range rounds {
		e := w.engines[i%2]
		id := fmt.Sprint("w", i%2)
		began := time.Now()
		e.Kill()
		w.until("it is down", func(s *model.State) bool { return workerOf(s, id).Liveness == model.LiveDown })
		within(t, "out of rotation", time.Since(began), 3*time.Second)
		began = time.Now()
		w.revive(e)
		w.until("it is back", func(s *model.State) bool { return workerOf(s, id).Liveness == model.LiveUp })
		within(t, "back", time.Since(began), 5*time.Second)
	}
	end()
	traffic.Wait()
	t.Logf("%d requests, %d broken off", sent.Load(), broken.Load())
	w.closed()
}

// revive starts an engine again that was killed. Its ports may for a moment be
// those of somebody's connection.
func (w *whole) revive(e *enginetest.Engine) {
	w.t.Helper()
	w.until("its ports are free", func(*model.State) bool { return e.Revive(context.Background()) == nil })
}
