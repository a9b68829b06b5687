package main

import (
	"fmt"

	"adpdeck/router/model"
	"adpdeck/tui/view"
)

// takes says whether a worker takes new work: ready, down, drain with the requests and
// conversations that are left, or drained; drain 1/4 where only some of its ranks do.
func takes(s *model.State, worker string) string {
	ranks, draining, left := 0, 0, view.Left{}
	for i := range s.Ranks {
		r := &s.Ranks[i]
		if r.Target.Worker != worker {
			continue
		}
		ranks++
		left = left.Add(view.LeftOn(r))
		if r.Availability == model.Draining {
			draining++
		}
	}
	switch {
	case draining == 0:
		if w := view.WorkerOf(s, worker); w != nil && w.Liveness == model.LiveDown {
			return string(model.LiveDown)
		}
		return string(model.Ready)
	case draining < ranks:
		return fmt.Sprintf("drain %d/%d", draining, ranks)
	}
	left = left.OnWorker(s, worker)
	if left.Drained() {
		return "drained"
	}
	return fmt.Sprintf("drain: %d open, %d pins", left.Open, left.Pins)
}

// rankState is ready, down, drain or drained. Where the engine picks the rank,
// nothing says when one is drained: its worker is.
func rankState(s *model.State, r *model.Rank) string {
	w := view.WorkerOf(s, r.Target.Worker)
	switch {
	case r.Down && r.Availability == model.Draining: // which holds when it answers again
		return string(model.LiveDown) + ", " + string(r.Availability)
	case r.Down:
		return string(model.LiveDown)
	case r.Availability == model.Draining && (w == nil || !w.Steering.EnginePicks()) && view.LeftOn(r).Drained():
		return "drained"
	}
	return string(r.Availability)
}
