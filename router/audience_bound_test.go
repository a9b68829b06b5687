package router

import (
	"fmt"
	"testing"

	"adpdeck/router/model"
)

// TestModelsThatClientsInvent take no memory: a worker that names no models
// serves them all as one.
func TestModelsThatClientsInvent(t *testing.T) {
	b := newBench(t, 0, 0, model.PolicyDefault, room(8))
	b.join(t, spec("any", 1))
	b.join(t, spec("llama", 1, func(s *model.WorkerSpec) { s.Models = []string{"llama"} }))
	for i := range 1000 {
		id, got := b.routed(t, "", func(q *model.Request) { q.Conv.Model = fmt.Sprint("invented-", i) })
		if got.Worker != "any" {
			t.Fatal(got)
		}
		b.Done(id, model.OutcomeOK)
	}
	workers := map[string]int{}
	for range 10 {
		id, got := b.routed(t, "", func(q *model.Request) { q.Conv.Model = "llama" })
		workers[got.Worker]++
		b.Done(id, model.OutcomeOK)
	}
	if len(workers) != 2 {
		t.Errorf("llama: %v", workers)
	}
	if n := len(b.serves.byModel) + len(b.serves.byLane); n > 4 {
		t.Errorf("%d audiences and lanes for one name", n)
	}
	b.leave(t, "any")
	b.refused(t, ErrNoModel, "", func(q *model.Request) { q.Conv.Model = "invented-1" })
}
