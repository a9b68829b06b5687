package router

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

// shared counts which prefixes requests begin with that more than one rank
// holds. Of a request it is the longest such prefix that counts: where the
// match of the second-best rank ends, which is where the conversations of a
// shared system prompt part. It keeps the maxShared that were hit most; one
// that is new takes the place of the one hit least, so that a prefix hit less
// than all others may be missed, and no count is ever too high.
//
// Used under the router's lock.
type shared struct {
	at      map[prefix.Chain]int // place in entries
	entries []sharedPrefix
	scratch []int32
}

type sharedPrefix struct {
	chain         prefix.Chain
	blocks, ranks int
	last          time.Duration
	minute        int64             // of the newest count
	hits          [sharedFor]uint32 // by minute
}

const (
	maxShared = 64
	sharedFor = 5 // minutes that hits count
)

// noteShared counts the prefix of a request that was let in.
func (r *Router) noteShared(l *lookup) {
	if l != nil {
		r.view.shared.note(l, r.elapsed())
	}
}

// note counts the prefix of one request that was looked up.
func (s *shared) note(l *lookup, now time.Duration) {
	held := l.matches.Device
	if l.lower {
		s.scratch = s.scratch[:0]
		for i := range held {
			s.scratch = append(s.scratch, int32(l.matches.Total(prefix.ID(i))))
		}
		held = s.scratch
	}
	best, second := int32(0), int32(0)
	for _, n := range held {
		second = max(second, min(best, n))
		best = max(best, n)
	}
	if second == 0 {
		return
	}
	ranks := 0
	for _, n := range held {
		if n >= second {
			ranks++
		}
	}
	minute := int64(now / time.Minute)
	e := s.entry(l.chain[second-1], minute)
	e.roll(minute)
	e.hits[minute%sharedFor]++
	e.blocks, e.ranks, e.last = int(second), ranks, now
}

// entry is the place of a prefix, made where there is none.
func (s *shared) entry(chain prefix.Chain, minute int64) *sharedPrefix {
	if at, ok := s.at[chain]; ok {
		return &s.entries[at]
	}
	if s.at == nil {
		s.at = make(map[prefix.Chain]int, maxShared)
	}
	at := len(s.entries)
	if at < maxShared {
		s.entries = append(s.entries, sharedPrefix{})
	} else {
		least := uint32(0)
		for i := range s.entries {
			e := &s.entries[i]
			if n := e.sum(minute); i == 0 || n < least || n == least && e.last < s.entries[at].last {
				at, least = i, n
			}
		}
		delete(s.at, s.entries[at].chain)
	}
	s.at[chain] = at
	s.entries[at] = sharedPrefix{chain: chain, minute: minute}
	return &s.entries[at]
}

// roll makes room for the counts of a minute.
func (e *sharedPrefix) roll(minute int64) {
	for m := max(e.minute, minute-sharedFor) + 1; m <= minute; m++ {
		e.hits[m%sharedFor] = 0
	}
	e.minute = minute
}

// sum is the hits of the last minutes.
func (e *sharedPrefix) sum(minute int64) (n uint32) {
	for m := max(0, minute-sharedFor+1); m <= e.minute; m++ {
		n += e.hits[m%sharedFor]
	}
	return n
}

// top is the prefixes hit most, the most first, then the longest.
func (s *shared) top(start time.Time, now time.Duration, block int) []model.SharedPrefix {
	minute := int64(now / time.Minute)
	order := make([]*sharedPrefix, 0, maxShared)
	for i := range s.entries {
		if e := &s.entries[i]; e.sum(minute) > 0 {
			order = append(order, e)
		}
	}
	slices.SortFunc(order, func(a, b *sharedPrefix) int {
		return cmp.Or(cmp.Compare(b.sum(minute), a.sum(minute)), cmp.Compare(b.blocks, a.blocks), cmp.Compare(a.chain, b.chain))
	})
	var out []model.SharedPrefix
	for _, e := range order[:min(len(order), model.MaxSharedPrefixes)] {
		out = append(out, model.SharedPrefix{
			Hash: fmt.Sprintf("%08x", uint64(e.chain)>>32), Tokens: e.blocks * block, Ranks: e.ranks,
			Hits: int(e.sum(minute)), LastAt: start.Add(e.last),
		})
	}
	return out
}
