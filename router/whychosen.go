package router

import (
	"strconv"

	"adpdeck/router/cluster"
	"adpdeck/router/model"
)

// whyTurn is the reason of the cluster tier's choice of a rank.
func (r *Router) whyTurn(t *turn) string {
	if t.steerWhy != "" {
		return t.steerWhy
	}
	return t.workerWhy
}

// whySteered explains a choice by its record: a tie, a draw, a longer prefix
// that was shut out, the longest prefix, or the load.
func (r *Router) whySteered(rec *model.Selection, c *cluster.Choice) string {
	switch {
	case r.steer.followed:
		return "after its first turn"
	case c.By == model.ByBinding:
		return "bound"
	case c.By == model.ByRequired:
		return "asked for"
	case c.By == model.ByTemperature:
		return "drawn: " + percent(probability(rec)) + " likely"
	case c.Eligible == 1:
		return "only rank that takes it"
	}
	switch c.Tie {
	case model.TieReservoir:
		return "tie: one of " + strconv.Itoa(c.Tied) + " at random"
	case model.TiePrefix:
		return "tie: prefix went here last"
	case model.TieIdle:
		return "tie: longest idle"
	}
	return whyCost(rec)
}

func probability(rec *model.Selection) float64 {
	for i := range rec.Candidates {
		if rec.Candidates[i].Target == rec.Chosen {
			return rec.Candidates[i].Probability
		}
	}
	return 0
}

func percent(p float64) string { return strconv.FormatFloat(100*p, 'f', 0, 64) + " %" }

// whyCost says what made a cost the lowest.
func whyCost(rec *model.Selection) string {
	var won *model.ScoredTarget
	best, idlest, contest := 0, true, false
	for i := range rec.Candidates {
		if k := &rec.Candidates[i]; k.Target == rec.Chosen {
			won = k
		}
	}
	if won == nil {
		return "lowest cost"
	}
	for i := range rec.Candidates {
		k := &rec.Candidates[i]
		if k == won || k.Excluded != "" {
			continue
		}
		best, contest = max(best, k.CachedTokens), true
		idlest = idlest && won.Pending < k.Pending
	}
	switch {
	case best > won.CachedTokens:
		return "lighter: load outweighs " + thousands(best-won.CachedTokens) + " more cached"
	case won.CachedTokens > best:
		return "longest prefix, by " + thousands(won.CachedTokens-best)
	case idlest && contest:
		return "pending lowest"
	}
	return "lightest"
}

// thousands writes a count with commas: 1,895.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
