package scrape

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
)

// picker finds the one series of a family that speaks for a rank.
type picker struct {
	// rank is the label that holds the rank.
	rank string
	// lead are labels that number equal copies of a rank's series, by the
	// parallel workers that make it up: the lowest numbers, compared in this
	// order, lead.
	lead []string
	// part is a label that splits a total into parts; the total has it empty.
	part string
}

// ranked reports whether any series names a rank: then one that names none is
// a total over the ranks.
func (k picker) ranked(found samples) bool {
	for _, list := range found {
		for i := range list {
			if _, ok := rankNumber(list[i].get(k.rank)); ok {
				return true
			}
		}
	}
	return false
}

// rankNumber reads a rank as engines write it: decimal, no sign, no zeros
// before it.
func rankNumber(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n > MaxRank || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	return int(n), true
}

// figure is the best series of a rank so far.
type figure struct {
	value float64
	order [3]uint32
}

// figures gives a family's figure for each rank. ranked is the answer of the
// method of that name for the whole page. Every rank named gets its entry in t,
// also one whose figure was refused.
func (k picker) figures(t *table, family string, list []series, ranked bool) map[int]figure {
	best := make(map[int]figure, len(list))
	parts := map[int]int{}
	for i := range list {
		s := &list[i]
		rank, ok := k.rankOf(t, family, s, ranked)
		if !ok {
			continue
		}
		if k.part != "" && s.get(k.part) != "" {
			parts[rank]++
			continue
		}
		v, ok := number(s.value, &t.page.Refused, func() string { return what(family, k.rank, rank) })
		if !ok {
			continue
		}
		best[rank] = t.better(best, rank, figure{v, k.order(s)}, func() string { return what(family, k.rank, rank) })
	}
	for _, rank := range slices.Sorted(maps.Keys(parts)) {
		t.page.Duplicates += parts[rank]
		if _, ok := best[rank]; !ok {
			t.page.Refused.add(NoTotal, "%s is there only by %s, without a total; it counts as unknown", what(family, k.rank, rank), k.part)
		}
	}
	return best
}

// better gives the figure of rank that stands, f or the one that is there.
func (t *table) better(best map[int]figure, rank int, f figure, what func() string) figure {
	old, there := best[rank]
	if !there {
		return f
	}
	t.page.Duplicates++
	switch slices.Compare(f.order[:], old.order[:]) {
	case -1:
		return f
	case 1:
		return old
	}
	if f.value != old.value {
		t.page.Refused.add(Disagree, "%s is there twice, as %g and %g; the larger counts", what(), old.value, f.value)
	}
	f.value = max(f.value, old.value)
	return f
}

// rankOf gives the rank of a series and makes its entry; false if the series
// is a total or has no usable rank.
func (k picker) rankOf(t *table, family string, s *series, ranked bool) (int, bool) {
	named := s.get(k.rank)
	if named == "" {
		if ranked {
			t.page.Duplicates++
			return 0, false
		}
		t.page.Unranked = true
		return 0, t.rank(0) != nil
	}
	n, ok := rankNumber(named)
	if !ok {
		t.page.Refused.add(BadRank, "%s has the %s %s, which is no whole number from 0 to %d", family, k.rank, quoted(named), MaxRank)
		return 0, false
	}
	return n, t.rank(n) != nil
}

func (k picker) order(s *series) (order [3]uint32) {
	for i, name := range k.lead {
		if n, err := strconv.ParseUint(s.get(name), 10, 32); err == nil {
			order[i] = uint32(n)
		} else if s.get(name) != "" {
			order[i] = math.MaxUint32
		}
	}
	return order
}

func what(family, label string, rank int) string {
	return fmt.Sprintf("%s of %s %d", family, label, rank)
}

// share checks a figure that is a part of a whole. Floats may exceed 1 by
// their last bits.
func share(v float64, refused *Refusals, what func() string) (float64, bool) {
	if v <= 1+1e-6 {
		return min(v, 1), true
	}
	refused.add(BadNumber, "%s is %g, over 1; it counts as unknown", what(), v)
	return 0, false
}

// size reads a label that is a count from 1 up; engines write None or 0 for
// what they do not know.
func size(s string) int {
	n, err := strconv.ParseUint(s, 10, 48)
	if err != nil {
		return 0
	}
	return int(n)
}

// rising goes through a family's figures by rank, so that what is refused on
// the way is refused in the same order each time.
func rising(figures map[int]figure) iter.Seq2[int, float64] {
	return func(yield func(int, float64) bool) {
		for _, rank := range slices.Sorted(maps.Keys(figures)) {
			if !yield(rank, figures[rank].value) {
				return
			}
		}
	}
}
