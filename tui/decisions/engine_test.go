package decisions

import (
	"strings"
	"testing"

	"adpdeck/router/model"
	"adpdeck/tui/fixture"
)

// atEngine is the newest decision of kv at a worker whose engine picks the rank.
func atEngine(by string) *model.Decision {
	d := *fixture.Frame(fixture.KV(), 120, 40).Decisions[0]
	sel := *d.Selection
	sel.By = by
	d.Selection, d.Target, d.Why = &sel, model.Target{Worker: "t0", Rank: model.NoRank}, "engine picks the rank"
	d.Placement.Phase, d.Placement.Rank = model.PhaseEngine, model.NoRank
	return &d
}

// TestTheEnginePicks: no rank is said to be chosen, predicted or compared with
// another of its worker.
func TestTheEnginePicks(t *testing.T) {
	for by, want := range map[string]string{
		model.ByBinding: "Its conversation stays on t0; which rank runs it is picked by its engine, which cannot be told one.",
		model.ByCost:    "t0 has the rank with the lowest cost, ",
	} {
		d := atEngine(by)
		s := tell(d)
		if got := s.sentence(false).String(); !strings.HasPrefix(got, want) || strings.Contains(got, "holds for") {
			t.Errorf("%s: %q", by, got)
		}
		if s.first() != nil || len(s.flips) > 0 {
			t.Errorf("%s: a rank is marked as chosen", by)
		}
		if _, ok := predicted(d); ok {
			t.Errorf("%s: something is predicted", by)
		}
	}
	d := atEngine(model.ByBinding)
	d.Why = "engine picks the rank: it cannot be asked for t0/2"
	if got := tell(d).sentence(true).String(); got != "Its conversation stays on t0; engine picks the rank: it cannot be asked for t0/2." {
		t.Errorf("%q", got)
	}
	for want, st := range map[string]model.Settled{
		"the engine does not tell which rank it picked, 40 cached (none predicted), first token 9 ms": {Ran: d.Target, CachedTokens: 40, TTFTMs: 9, Outcome: model.OutcomeOK},
		"the engine picked t0/1, what was cached is told at its end, first token 9 ms, still running": {Ran: model.Target{Worker: "t0", Rank: 1}, CachedUnknown: true, TTFTMs: 9},
		"the engine picked t0/1, the engine does not tell what was cached, first token 9 ms":          {Ran: model.Target{Worker: "t0", Rank: 1}, CachedUnknown: true, TTFTMs: 9, Outcome: model.OutcomeOK},
	} {
		if _, got := then(d, &st, true); got.String() != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
