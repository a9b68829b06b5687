package decisions

import (
	"strings"

	"adpdeck/router/model"
	"adpdeck/tui/view"
)

// chosen returns the cluster tier's terms of the target that was chosen, nil
// where it compared none.
func chosen(s *model.Selection) *model.ScoreTerms {
	if s == nil {
		return nil
	}
	for i := range s.Candidates {
		if s.Candidates[i].Target == s.Chosen && s.Candidates[i].Excluded == "" {
			return &s.Candidates[i].ScoreTerms
		}
	}
	return nil
}

// predicted is how many prompt tokens the router expected to be cached where it
// sent the request; ok is false where it looked into no cache, or knew no rank.
func predicted(d *model.Decision) (tokens float64, ok bool) {
	if d.Placement.Phase == model.PhaseEngine {
		return float64(model.Unknown()), false
	}
	if t := chosen(d.Selection); t != nil {
		return float64(t.CachedTokens), true
	}
	if d.Placement.MatchTokens == 0 && d.Policy != model.PolicyKVAware {
		return float64(model.Unknown()), false
	}
	return float64(d.Placement.MatchTokens), true
}

// compared reports whether the cluster tier chose among costs.
func compared(s *model.Selection) bool {
	return s != nil && (s.By == model.ByCost || s.By == model.ByTemperature)
}

// scoreOf is the score or cost of what was chosen, unknown where none was
// compared.
func scoreOf(d *model.Decision) float64 {
	if compared(d.Selection) {
		if t := chosen(d.Selection); t != nil {
			return t.Cost
		}
	}
	if c := candidate(&d.Placement); c != nil {
		return float64(c.Score)
	}
	return float64(model.Unknown())
}

// candidate is the recorded candidate that was chosen, nil where there is none.
func candidate(p *model.Placement) *model.Candidate {
	for i := range p.Candidates {
		if p.Candidates[i].Rank == p.Rank {
			return &p.Candidates[i]
		}
	}
	return nil
}

func marginOf(d *model.Decision) float64 {
	if compared(d.Selection) {
		return float64(d.Selection.Margin)
	}
	return float64(d.Margin)
}

// runnerUp is the next best target, NoRank where there was no contest.
func runnerUp(d *model.Decision) model.Target {
	if compared(d.Selection) {
		return d.Selection.RunnerUp
	}
	return model.Target{Worker: d.Target.Worker, Rank: d.RunnerUp}
}

// whyOf is the reason in a few words: the tier's that chose the rank.
func whyOf(d *model.Decision) string {
	if d.Why == "" {
		return d.WorkerWhy
	}
	return d.Why
}

// shortWhy is whyOf for a narrow column.
func shortWhy(d *model.Decision) string {
	why := whyOf(d)
	switch d.Placement.Phase {
	case model.PhaseOperator:
		return "op pin"
	case model.PhaseEngine:
		return "engine picks"
	case model.PhaseScored, model.PhaseSteered:
		why, _, _ = strings.Cut(why, ", ")
		why, _, _ = strings.Cut(why, ": ")
		return strings.TrimPrefix(why, "longest ")
	}
	return why
}

// odd says in a word what is odd about a decision, empty when nothing is.
func odd(f *view.Frame, d *model.Decision) string {
	switch d.Placement.Phase {
	case model.PhaseUnplaced:
		return "waits"
	case model.PhaseOverflow:
		return "overflow"
	}
	if d.Conflict != "" {
		return "overruled"
	}
	if d.LostTo == "cap" || d.LostTo == "filter" {
		return "match lost"
	}
	s, ok := f.Settled[d.ID]
	if !ok {
		return ""
	}
	want, known := predicted(d)
	switch {
	case elsewhere(d, &s):
		return "ran elsewhere"
	case s.Outcome != "" && s.Outcome != model.OutcomeOK:
		return string(s.Outcome)
	case known && !s.CachedUnknown && int(want) != s.CachedTokens && s.TTFTMs.Known():
		return "not as predicted"
	}
	return ""
}

// elsewhere reports that the engine used another rank than it was told.
func elsewhere(d *model.Decision, s *model.Settled) bool {
	return s.Ran.Worker != "" && s.Ran.Rank != model.NoRank && s.Ran != d.Target && d.Target.Rank != model.NoRank
}
