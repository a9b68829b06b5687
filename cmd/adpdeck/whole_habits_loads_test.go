package main

import (
	"strings"

	"adpdeck/router/engine"
	"adpdeck/router/engine/enginetest"
	"adpdeck/router/model"
)

// loadStories are of two workers behind a Dynamo frontend that publish their
// loads. Whatever they publish, requests go on.
func loadStories() map[string]story {
	known := func(s *model.State, rank int) bool {
		for i := range s.Ranks {
			if r := &s.Ranks[i]; r.Target == (model.Target{Worker: "w0", Rank: rank}) {
				return !r.ReportedAt.IsZero()
			}
		}
		return false
	}
	tell := func(habits string, then func(w *whole)) story {
		return story{
			engines: []enginetest.Config{{Kind: model.EngineDynamo, Workers: 2, Events: enginetest.EventsConfig{Endpoint: anyPort, Loads: anyPort}}},
			tell: func(w *whole) {
				work := func() {
					for rank := range 2 {
						w.good(ask{text: "work", at: model.Target{Worker: "w0", Rank: rank}.String()})
					}
				}
				both := func(s *model.State) bool {
					f := feedOf(s, "w0", model.FeedMetrics)
					if !known(s, 0) || !known(s, 1) {
						work()
					}
					return f.State == model.FeedLive && strings.HasPrefix(f.Why, "published: ") && known(s, 0) && known(s, 1)
				}
				w.until("what both ranks publish is heard", both)
				w.bad(habits)
				work()
				then(w)
				work()
				w.mended()
				w.until("it is heard again", both)
			},
		}
	}
	old := func(w *whole) {
		w.until("old loads are not shown as new", func(s *model.State) bool {
			f := feedOf(s, "w0", model.FeedMetrics)
			return f.State == model.FeedStale && strings.Contains(f.Why, "no loads have been published for ")
		})
	}
	return map[string]story{
		"loads_silent": tell(`{"loads_silent": true}`, old),
		"loads_rank0_only": tell(`{"loads_rank0_only": true}`, func(w *whole) {
			w.until("the rank that says nothing is unknown", func(s *model.State) bool { return known(s, 0) && !known(s, 1) })
		}),
		"no_heartbeat": tell(`{"no_heartbeat": true}`, old), // when all are idle
		"loads_bad": tell(`{"loads_bad": "version"}`, func(w *whole) {
			w.until("the unknown version is named", func(s *model.State) bool {
				for i := range s.Findings {
					if x := &s.Findings[i]; x.Code == engine.FindingLoads && strings.Contains(x.Message, "version 2") {
						return true
					}
				}
				return false
			})
		}),
	}
}
