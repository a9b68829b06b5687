package router

import (
	"strings"
	"testing"

	"adpdeck/router/model"
)

// TestPinsKnowModels: a command sends no conversation to a worker that does not
// serve its model, where a pin would have it refused and a migration would
// silently not act; a pin whose worker stops serving it is found.
func TestPinsKnowModels(t *testing.T) {
	only := func(names ...string) func(*model.WorkerSpec) {
		return func(s *model.WorkerSpec) { s.Models = names }
	}
	b := newBench(t, 0, 0, model.PolicyConversation, room(16))
	b.join(t, spec("w0", 2, only("m1")))
	b.join(t, spec("w1", 8, only("m2")))
	key := model.ConvKey{ID: "a", Model: "m1"}
	of := func(q *model.Request) { q.Conv = key }
	conv := func(verb model.Verb, to *model.Target) model.Command {
		return model.Command{Verb: verb, Target: to, Convs: []model.ConvKey{key}}
	}
	id, is := b.routed(t, "a", of)
	b.Done(id, model.OutcomeOK)
	for _, verb := range []model.Verb{model.VerbPin, model.VerbMigrate} {
		want := string(verb) + ` a to w1/0: w1 does not serve its model "m1"; choose a rank of a worker that does`
		if r := b.do(conv(verb, ptr(at("w1", 0)))); r.Accepted || r.Refusal.Error() != want {
			t.Fatalf("%+v", r)
		}
	}
	for range 6 { // never to the eight idle ranks of the other
		other := at("w0", 1-is.Rank)
		if r := b.must(t, conv(model.VerbMigrate, nil)); !strings.HasSuffix(r.What, "→ "+other.String()) {
			t.Fatalf("%q", r.What)
		}
		is = other
	}
	b.must(t, onRank(model.VerbDrain, at("w0", 1-is.Rank)))
	if r := b.do(conv(model.VerbMigrate, nil)); r.Accepted || r.Refusal.Code != model.RefusedLast {
		t.Fatalf("%+v", r)
	}
	b.must(t, conv(model.VerbPin, &is))
	b.join(t, spec("w0", 2, only("m3")))
	b.join(t, spec("w1", 8, only("m1", "m2")))
	f := b.Snapshot().Findings
	if len(f) != 1 || f[0].Code != model.FindingPinGone || f[0].Target != is || !strings.Contains(f[0].Message, "does not serve their model") {
		t.Fatalf("%+v", f)
	}
	b.refused(t, ErrNoModel, "a", of)
	b.must(t, conv(model.VerbMigrate, ptr(at("w1", 0))))
	if _, got := b.routed(t, "a", of); got != at("w1", 0) || len(b.Snapshot().Findings) != 0 {
		t.Fatalf("%v, %+v", got, b.Snapshot().Findings)
	}
}
