package router

import (
	"strconv"

	"adpdeck/router/model"
)

// why is the reason of a decision in a few words.
func (r *Router) why(w *worker, i int, p *model.Placement) string {
	g := &w.batch
	switch g.how[i] {
	case waitsForPin:
		if k := int(g.fullRank[i]); !w.answers(k) {
			return "pin waits: " + r.name(w, k) + " does not answer"
		}
		return "pin waits: " + r.name(w, int(g.fullRank[i])) + " full"
	case waitsForRank:
		return "waits: " + r.name(w, int(g.fullRank[i])) + " full, chosen by " + string(r.settings.RouterMode)
	case enginePicks:
		if c := g.bookings[i].Value.conv; c != nil {
			if p, ok := r.ops.Get(c.data.Key); ok && p.Target.Worker == w.spec.ID {
				return "engine picks the rank: it cannot be asked for " + p.Target.String()
			}
		}
		return "engine picks the rank"
	case bySteering, bySession:
		return r.whyTurn(&g.bookings[i].Value)
	case byOperator:
		return "operator pin (" + r.pinnedBy(w, i) + ")"
	case byBinding:
		return "migrated (" + r.pinnedBy(w, i) + ")"
	}
	if full := int(g.fullRank[i]); full != model.NoRank && p.Rank != model.NoRank {
		return "overflow: " + r.name(w, full) + " full"
	}
	switch p.Phase {
	case model.PhaseExplicit:
		return "explicit rank"
	case model.PhaseWarmup:
		return "warm-up"
	case model.PhasePinned:
		return "pinned"
	case model.PhaseOverflow:
		return r.whyOverflow(w, i)
	case model.PhaseScored:
		return r.whyScored(w, i, p)
	case model.PhaseBalanced:
		return whyLight(p.Tie)
	case model.PhasePlaced:
		return r.whyPlaced(w, i)
	case model.PhaseUnplaced:
		return "waits: no rank has room"
	}
	return string(p.Phase)
}

func (r *Router) name(w *worker, rank int) string { return w.spec.ID + "/" + strconv.Itoa(rank) }

// pinnedBy names who pinned or migrated the conversation of request i.
func (r *Router) pinnedBy(w *worker, i int) string {
	key := w.batch.bookings[i].Value.conv.data.Key
	if p, ok := r.ops.Get(key); ok {
		return p.Note.By
	}
	if b, ok := r.binds.Get(key); ok && b.Note != nil {
		return b.Note.By
	}
	return "operator"
}

func (r *Router) whyOverflow(w *worker, i int) string {
	if c := w.batch.bookings[i].Value.conv; c != nil {
		if b, ok := r.binds.Get(c.data.Key); ok && b.Target.Worker == w.spec.ID {
			return "overflow: " + b.Target.String() + " full"
		}
	}
	return "overflow: bound rank full"
}

func whyLight(tie model.Tie) string {
	switch tie {
	case model.TieTokens:
		return "tie: fewer tokens"
	case model.TieShuffle:
		return "tie: seeded shuffle"
	case model.TieCount:
		return "tie: fewer requests"
	case model.TieCursor:
		return "tie: next in turn"
	case model.TieIndex:
		return "tie: lowest rank"
	}
	return "lightest"
}

// whyScored explains a score: a longer prefix elsewhere that was shut out, a
// tie, the longest prefix, or the load.
func (r *Router) whyScored(w *worker, i int, p *model.Placement) string {
	best, at := r.bestMatch(w, i)
	switch {
	case best > p.MatchTokens && excluded(p, at) != "":
		return r.name(w, at) + " " + excluded(p, at) + ", match " + strconv.Itoa(best) + " lost"
	case p.Tie != model.TieNone:
		return whyLight(p.Tie)
	case p.GateOpen && p.MatchTokens > 0 && p.MatchTokens >= best:
		return "longest prefix"
	case p.GateOpen && best > p.MatchTokens:
		return "lighter: load outweighs prefix"
	}
	return "lightest"
}

func (r *Router) bestMatch(w *worker, i int) (best, rank int) {
	rank = model.NoRank
	for k, m := range w.batch.matches[i] {
		if int(m) > best {
			best, rank = int(m), k
		}
	}
	return best, rank
}

func excluded(p *model.Placement, rank int) string {
	for k := range p.Candidates {
		if p.Candidates[k].Rank == rank {
			return p.Candidates[k].Excluded
		}
	}
	return ""
}

// whyPlaced explains where the conversation policy put what was not bound.
func (r *Router) whyPlaced(w *worker, i int) string {
	who := "new: "
	if c := w.batch.bookings[i].Value.conv; c == nil {
		who = "keyless: "
	}
	switch r.settings.AttentionDpConfig.KVCacheRoutingNewConvPlacement {
	case model.PlaceLeastQueued:
		return who + "fewest requests"
	case model.PlaceLeastTokens:
		return who + "fewest tokens"
	}
	return who + "round robin"
}

// conflictText names the wish that was overruled, empty for none.
func (r *Router) conflictText(w *worker, i int, what wish) string {
	if what == noWish {
		return ""
	}
	t := &w.batch.bookings[i].Value
	asked := "asked for " + t.asked.String()
	switch what {
	case overPin:
		p, _ := r.ops.Get(t.conv.data.Key)
		return asked + ", operator pin " + p.Target.String()
	case overBinding:
		return asked + ", bound to " + t.bound.String()
	case pinTooLate:
		p, _ := r.ops.Get(t.conv.data.Key)
		return "operator pin " + p.Target.String() + ", sent to " + w.spec.ID + " before"
	}
	if s := r.rank(t.asked); s != nil && !s.eligible() {
		return asked + ", which takes no new work"
	}
	return asked + ", which is full"
}
