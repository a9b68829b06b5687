package adp

import (
	"math/bits"
	"slices"
)

// leadTokens is how many leading token ids make the KV-aware router's
// fingerprint.
const leadTokens = 64

// sortKey is one request in a sort: ascending key, equal keys in order.
type sortKey struct {
	key uint64
	idx int32
}

// sorter orders requests stably without comparing requests with each other:
// keys of few bits go through a radix sort, and fingerprints are numbered
// first, so that each is looked at once or twice and only distinct ones are
// compared.
type sorter struct {
	keys, spare []sortKey

	group  []int32   // by position in the order: number of its fingerprint
	leads  [][]int32 // distinct fingerprints
	hashes []uint64  // by distinct fingerprint
	table  []int32   // hash table of fingerprint numbers + 1
	byLead []int32   // fingerprint numbers in lexicographic order
	place  []int32   // by fingerprint number: its position in byLead
}

// byLength orders the listed requests by tokens, descending.
func (s *sorter) byLength(reqs []Request, list []int32) []sortKey {
	most := 0
	s.keys = sized(s.keys, len(list))
	for p, i := range list {
		n := reqs[i].tokens()
		most = max(most, n)
		s.keys[p] = sortKey{uint64(n), i}
	}
	var all uint64
	for p := range s.keys {
		s.keys[p].key = uint64(most) - s.keys[p].key
		all |= s.keys[p].key
	}
	s.sort(all)
	return s.keys
}

// byFingerprint orders the listed requests by their first 64 token ids, then
// by tokens, descending.
func (s *sorter) byFingerprint(reqs []Request, list []int32) []sortKey {
	order := s.byLength(reqs, list)
	if len(order) < 2 {
		return order
	}
	if s.number(reqs, order) == 1 {
		return order
	}
	var all uint64
	for p := range order {
		order[p].key = uint64(s.place[s.group[p]])
		all |= order[p].key
	}
	s.sort(all)
	return s.keys
}

// number gives each request's fingerprint a number, and the numbers their
// lexicographic places. It returns how many distinct ones there are.
func (s *sorter) number(reqs []Request, order []sortKey) int {
	size := 1 << bits.Len(uint(2*len(order)))
	if cap(s.table) < size {
		s.table = make([]int32, size)
	}
	s.table = s.table[:size]
	clear(s.table)
	s.leads, s.hashes = s.leads[:0], s.hashes[:0]
	s.group = sized(s.group, len(order))
	for p, o := range order {
		s.group[p] = s.intern(lead(&reqs[o.idx]))
	}
	s.byLead, s.place = sized(s.byLead, len(s.leads)), sized(s.place, len(s.leads))
	for g := range s.byLead {
		s.byLead[g] = int32(g)
	}
	slices.SortFunc(s.byLead, func(a, b int32) int { return slices.Compare(s.leads[a], s.leads[b]) })
	for at, g := range s.byLead {
		s.place[g] = int32(at)
	}
	clear(s.leads) // hold no caller's memory
	return len(s.byLead)
}

func lead(q *Request) []int32 {
	if q.Null {
		return nil
	}
	return q.Lead[:min(len(q.Lead), leadTokens)]
}

func (s *sorter) intern(l []int32) int32 {
	h := hashLead(l)
	mask := uint64(len(s.table) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		ref := s.table[i]
		if ref == 0 {
			s.table[i] = int32(len(s.leads)) + 1
			s.leads, s.hashes = append(s.leads, l), append(s.hashes, h)
			return int32(len(s.leads)) - 1
		}
		if s.hashes[ref-1] == h && sameLead(s.leads[ref-1], l) {
			return ref - 1
		}
	}
}

func sameLead(a, b []int32) bool {
	if len(a) != len(b) {
		return false
	}
	if len(a) == 0 || &a[0] == &b[0] {
		return true
	}
	return slices.Equal(a, b)
}

// hashLead mixes four lanes so that their multiplications overlap.
func hashLead(l []int32) uint64 {
	const m = 0x9e3779b97f4a7c15
	a, b, c, d := uint64(len(l)), uint64(1), uint64(2), uint64(3)
	for len(l) >= 8 {
		a = bits.RotateLeft64(a^(uint64(uint32(l[0]))|uint64(uint32(l[1]))<<32), 29) * m
		b = bits.RotateLeft64(b^(uint64(uint32(l[2]))|uint64(uint32(l[3]))<<32), 29) * m
		c = bits.RotateLeft64(c^(uint64(uint32(l[4]))|uint64(uint32(l[5]))<<32), 29) * m
		d = bits.RotateLeft64(d^(uint64(uint32(l[6]))|uint64(uint32(l[7]))<<32), 29) * m
		l = l[8:]
	}
	for _, t := range l {
		a = bits.RotateLeft64(a^uint64(uint32(t)), 29) * m
	}
	a = (bits.RotateLeft64(a, 7) ^ b) * m
	c = (bits.RotateLeft64(c, 7) ^ d) * m
	a = (bits.RotateLeft64(a, 31) ^ c) * m
	return a ^ a>>32
}

// radixFrom is the length from which the radix sort is faster than insertion.
const radixFrom = 48

// sort orders s.keys, whose key bits are all within all.
func (s *sorter) sort(all uint64) {
	if len(s.keys) < radixFrom {
		insertionSort(s.keys)
		return
	}
	s.spare = sized(s.spare, len(s.keys))
	for shift := 0; shift < bits.Len64(all); shift += 8 {
		var starts [256]int32
		for p := range s.keys {
			starts[byte(s.keys[p].key>>shift)]++
		}
		at := int32(0)
		for d, n := range starts {
			starts[d] = at
			at += n
		}
		for _, e := range s.keys {
			d := byte(e.key >> shift)
			s.spare[starts[d]] = e
			starts[d]++
		}
		s.keys, s.spare = s.spare, s.keys
	}
}

func insertionSort(x []sortKey) {
	for i := 1; i < len(x); i++ {
		e := x[i]
		j := i
		for ; j > 0 && x[j-1].key > e.key; j-- {
			x[j] = x[j-1]
		}
		x[j] = e
	}
}
