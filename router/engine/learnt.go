package engine

import (
	"fmt"
	"strings"

	"adpdeck/router/engine/scrape"
	"adpdeck/router/model"
)

// Where something was learnt, as findings name it.
const (
	fromMetrics = "its metrics"
	fromInfo    = "its server info"
	fromEvents  = "its kv events"
)

// shrinkPages is how many pages in a row must name fewer ranks before the others
// are gone: a page that lacks a rank once says nothing of it.
const shrinkPages = 3

// learnt is what an engine has said of itself, beside what its settings say.
// What the settings say counts; what differs becomes a finding.
type learnt struct {
	spec  *model.EngineSpec
	ranks int // 0: not known yet
	// said is how many ranks the engine has by its own word in each place; the
	// most counts: who names few ranks may not know of the others.
	said    map[string]int
	fewer   int // pages of metrics in a row that named as many, and less than before
	fewerAs int

	blockTokens, kvBlocks, maxActive, maxBatched int
	models                                       []scrape.Model
	modelsKnown                                  bool
	events                                       *scrape.EventsAt
	// wrong are the disagreements, by what they are about.
	wrong map[string]string
}

func (l *learnt) begin(spec *model.EngineSpec) {
	l.spec, l.ranks = spec, spec.Ranks
	l.blockTokens, l.kvBlocks = spec.BlockTokens, spec.KVBlocks
	l.maxActive, l.maxBatched = spec.MaxNumActiveRequests, spec.MaxBatchedTokens
	l.wrong, l.said = map[string]string{}, map[string]int{}
}

// advert takes an engine's word for its size, ranks inside the worker, and
// reports whether anything is different by it.
func (l *learnt) advert(from string, a *scrape.Advert) (changed bool) {
	if n := len(a.Advertised); n > 0 {
		changed = l.count(from, a.Advertised[n-1]+1)
	}
	for _, s := range []struct {
		what      string
		set, said int
		at        *int
	}{
		{"tokens in a KV block", l.spec.BlockTokens, a.BlockTokens, &l.blockTokens},
		{"KV blocks of a rank", l.spec.KVBlocks, a.KVBlocks, &l.kvBlocks},
		{"active requests of a rank", l.spec.MaxNumActiveRequests, a.MaxActive, &l.maxActive},
		{"tokens in a batch", l.spec.MaxBatchedTokens, a.MaxBatchedTokens, &l.maxBatched},
	} {
		switch {
		case s.said == 0:
		case s.set == 0:
			changed = changed || *s.at != s.said
			*s.at = s.said
		case s.what == "active requests of a rank" && s.set < s.said: // a cap below the engine's own is a choice
			changed = l.agree(s.what+" "+from, "") || changed
		case s.set != s.said:
			changed = l.agree(s.what+" "+from, fmt.Sprintf("%s: %d in the settings, %d by %s", s.what, s.set, s.said, from)) || changed
		default:
			changed = l.agree(s.what+" "+from, "") || changed
		}
	}
	return changed
}

// count takes a number of ranks.
func (l *learnt) count(from string, n int) (changed bool) {
	n = min(n, MaxRanks)
	before := l.said[from]
	switch {
	case n >= before:
	case from == fromEvents:
		return false // one batch is of one rank
	case from == fromMetrics:
		if n != l.fewerAs {
			l.fewer, l.fewerAs = 0, n
		}
		if l.fewer++; l.fewer < shrinkPages {
			return false
		}
	}
	if from == fromMetrics {
		l.fewer, l.fewerAs = 0, 0
	}
	if n < before {
		delete(l.said, fromEvents) // of ranks that are gone, perhaps
	}
	l.said[from] = n
	for place, m := range l.said {
		if m > n || m == n && place < from {
			from, n = place, m
		}
	}
	if l.spec.Ranks == 0 {
		changed = l.ranks != n
		l.ranks = n
		return changed
	}
	if n == l.spec.Ranks {
		return l.agree("ranks", "")
	}
	return l.agree("ranks", fmt.Sprintf("ranks: %d in the settings, %d by %s", l.spec.Ranks, n, from))
}

// agree keeps what a disagreement is in words, empty for none.
func (l *learnt) agree(what, words string) (changed bool) {
	if l.wrong[what] == words {
		return false
	}
	if words == "" {
		delete(l.wrong, what)
		return true
	}
	l.wrong[what] = words
	return true
}

// disagreements are all of them in one line.
func (l *learnt) disagreements() string {
	var all []string
	for _, what := range sortedKeys(l.wrong) {
		all = append(all, l.wrong[what])
	}
	return strings.Join(all, "; ")
}
