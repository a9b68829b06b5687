package cluster

import (
	"cmp"
	"math"

	"adpdeck/router/model"
)

// Rescore scores the candidates of a recorded selection as mode (kv or
// lockstep) and cfg would have, the recorded loads given, and writes the terms
// to terms, by candidate. It returns the index of the cheapest, -1 when there
// was none, and whether others cost the same. Only candidates in the record
// take part; a choice that was not made by cost is scored all the same. The
// special cost of decode pools is not recorded and not computed.
func Rescore(sel *model.Selection, mode model.RouterMode, cfg *Config, terms []model.ScoreTerms) (best int, tied bool) {
	p := newPrompt(mode, cfg, sel.PromptTokens, max(1, sel.BlockTokens))
	p.minActive, p.load, p.recent = sel.MinActiveTokens, sel.MeanPending, sel.MeanRecent
	best = -1
	lowest := math.Inf(1)
	for i := range sel.Candidates {
		k := &sel.Candidates[i]
		if k.Excluded != "" || i >= len(terms) {
			continue
		}
		f := facts{
			device: k.Device, host: k.Host, disk: k.Disk, shared: k.Shared, onWay: k.OnWay, tiers: true, known: true,
			active: k.ActiveTokens, requests: k.Requests, decode: k.DecodeBlocks,
			pending: k.Pending, rest: k.Rest, high: k.HighestRest, step: k.Step, lately: k.Recent, held: k.Held, full: k.HighestHeld,
			waiting: k.Waiting, chunk: cmp.Or(k.Chunk, defaultChunk), taint: k.Taint,
		}
		cost := p.score(&f, &terms[i])
		switch {
		case cost < lowest:
			best, lowest, tied = i, cost, false
		case cost == lowest:
			tied = true
			if k.Target == sel.Chosen {
				best = i
			}
		}
	}
	return best, tied
}
