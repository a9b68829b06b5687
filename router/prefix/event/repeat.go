package event

import "slices"

// repeatsLarge looks for a repeated hash with a small open-addressed table: a
// multiplicative hash, a handful of probes. Hashes chosen to collide overflow
// the probes and are sorted instead, so that no input costs more than a sort.
// Zero marks an empty slot; the hash 0 itself is looked for apart.
func (b *Batch) repeatsLarge(hs []Hash) bool {
	const probes = 24
	shift := 64
	for n := 1; n < 2*len(hs); n <<= 1 {
		shift--
	}
	size := 1 << (64 - shift)
	b.seen = slices.Grow(b.seen[:0], size)[:size]
	clear(b.seen)
	zeros := 0
next:
	for _, h := range hs {
		if h == 0 {
			zeros++
			continue
		}
		at := int(uint64(h) * 0x9E3779B97F4A7C15 >> shift)
		for range probes {
			switch b.seen[at] {
			case h:
				return true
			case 0:
				b.seen[at] = h
				continue next
			}
			at = (at + 1) & (size - 1)
		}
		return b.repeatsSorted(hs)
	}
	return zeros > 1
}

func (b *Batch) repeatsSorted(hs []Hash) bool {
	b.seen = append(b.seen[:0], hs...)
	slices.Sort(b.seen)
	for i := 1; i < len(b.seen); i++ {
		if b.seen[i] == b.seen[i-1] {
			return true
		}
	}
	return false
}
