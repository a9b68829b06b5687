package engine

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"adpdeck/router/model"
)

// TestEveryGlobalRankIsReachedOnce is report A3: over any layout of a deployment
// on nodes, a global rank is asked of the one worker that has it, by the number
// that this worker expects, and what it answers is read back to the same rank.
func TestEveryGlobalRankIsReachedOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]model.EngineKind{model.EngineVLLM, model.EngineSGLang, model.EngineDynamo}).Draw(t, "kind")
		var workers []model.EngineSpec
		start := 0
		for i := range rapid.IntRange(1, 5).Draw(t, "workers") {
			ranks := rapid.IntRange(1, 8).Draw(t, "ranks")
			workers = append(workers, model.EngineSpec{ID: fmt.Sprintf("n%d", i), Group: "g", Kind: kind, URL: fmt.Sprintf("http://n%d:80", i), StartRank: start, Ranks: ranks})
			start += ranks
		}
		f, err := New(workers, newSink(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		name := "X-Data-Parallel-Rank"
		if kind == model.EngineDynamo {
			name = "X-Dynamo-Dp-Rank"
		}
		reached := map[int]int{}
		for i := range workers {
			w := &workers[i]
			for r := range w.Ranks {
				target := model.Target{Worker: w.ID, Rank: r}
				up, err := f.Upstream(target, model.RouteChat, "c")
				if err != nil {
					t.Fatal(err)
				}
				number, err := strconv.Atoi(up.Header.Get(name))
				if err != nil || up.Base.Host != fmt.Sprintf("n%d:80", i) {
					t.Fatalf("%v: %v to %s", target, up.Header, up.Base)
				}
				if kind == model.EngineVLLM { // local 0 … n-1, of whom each node knows its own
					if number < 0 || number >= w.Ranks {
						t.Fatalf("%v is asked for as %d of %d", target, number, w.Ranks)
					}
					number += w.StartRank
				}
				reached[number]++
				said := http.Header{name: up.Header[name]}
				if back, _, known := f.Ran(target, said, nil); !known || back.Rank != r {
					t.Fatalf("%v said %v and was read as %d", target, said, back.Rank)
				}
			}
			if _, err := f.Upstream(model.Target{Worker: w.ID, Rank: w.Ranks}, model.RouteChat, ""); err == nil {
				t.Fatalf("%s took a rank that it has not", w.ID)
			}
		}
		for g := range start {
			if reached[g] != 1 {
				t.Fatalf("global rank %d is reached %d times", g, reached[g])
			}
		}
	})
}
