package engine

import (
	"fmt"
	"slices"
	"strings"

	"adpdeck/router/engine/scrape"
	"adpdeck/router/model"
)

// said is what the server at one address has said of itself; it is kept while the
// server does not answer.
type said struct {
	models      []scrape.Model
	modelsKnown bool
	info        *scrape.Advert
}

// take makes the worker's models of what its addresses list, and reports whether
// anything is different by it. A request may go to any of a worker's ranks, so that
// it serves what all of them list that have said anything; where they have nothing
// in common, what any of them lists.
func (l *learnt) take(doors []*door) (changed bool) {
	var all []scrape.Model
	lists := map[string]int{}
	known := 0
	for _, d := range doors {
		if !d.said.modelsKnown {
			continue
		}
		known++
		for _, m := range d.said.models {
			if lists[m.ID]++; lists[m.ID] == 1 {
				all = append(all, m)
			}
		}
	}
	common := slices.DeleteFunc(slices.Clone(all), func(m scrape.Model) bool { return lists[m.ID] < known })
	words := ""
	if len(common) < len(all) {
		words = "models: " + apart(doors, lists, known)
	}
	changed = l.agree("ranks' models", words)
	if len(common) == 0 {
		common = all
	}
	same := l.modelsKnown && slices.EqualFunc(l.models, common, func(a, b scrape.Model) bool { return a.ID == b.ID && a.Parent == b.Parent })
	l.models, l.modelsKnown = common, true
	return l.agree("models", l.unlisted()) || !same || changed
}

// apart names what some addresses list and others do not, a few of them.
func apart(doors []*door, lists map[string]int, known int) string {
	var parts []string
	for _, d := range doors {
		for _, m := range d.said.models {
			if lists[m.ID] < known && len(parts) < 3 {
				parts = append(parts, fmt.Sprintf("rank %d lists %s", d.rank, cut(m.ID)))
			}
		}
	}
	return strings.Join(parts, ", ") + fmt.Sprintf(", and of the %d ranks that answered others do not", known)
}

// unlisted says which models of the settings the engine does not list.
func (l *learnt) unlisted() string {
	var not []string
	for _, m := range l.spec.Models {
		if !slices.ContainsFunc(l.models, func(o scrape.Model) bool { return o.ID == m }) {
			not = append(not, m)
		}
	}
	if len(not) == 0 || l.spec.Kind == model.EngineDynamo {
		return ""
	}
	return fmt.Sprintf("models: %s in the settings, not by its list", cut(strings.Join(not, ", ")))
}

// serves are the models: those of the settings if they name any, with the adapters
// of these that the engine lists; else what it lists.
func (l *learnt) serves() []string {
	ids := slices.Clone(l.spec.Models)
	for _, m := range l.models {
		if len(l.spec.Models) == 0 || slices.Contains(l.spec.Models, m.Parent) && !slices.Contains(ids, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// together is what the addresses of a worker say of its size: where they differ the
// least, which none of them lacks, and in words.
func together(doors []*door) (all scrape.Advert, words string) {
	var apart []string
	for i, d := range doors {
		a := d.said.info
		if a == nil {
			continue
		}
		if len(a.Advertised) > len(all.Advertised) {
			all.Advertised = a.Advertised
		}
		for _, f := range []struct {
			what    string
			at      *int
			has     int
			differs bool
		}{
			{"tokens in a KV block", &all.BlockTokens, a.BlockTokens, true},
			{"KV blocks of a rank", &all.KVBlocks, a.KVBlocks, false}, // memory is never quite equal
			{"active requests of a rank", &all.MaxActive, a.MaxActive, true},
			{"tokens in a batch", &all.MaxBatchedTokens, a.MaxBatchedTokens, true},
		} {
			if f.differs && f.has > 0 && *f.at > 0 && f.has != *f.at {
				apart = append(apart, fmt.Sprintf("%s: %d at rank %d, %d at others", f.what, f.has, i, *f.at))
			}
			*f.at = least(*f.at, f.has)
		}
	}
	if len(apart) > 3 {
		apart = apart[:3]
	}
	return all, strings.Join(apart, "; ")
}
