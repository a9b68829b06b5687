package adp

import "math/bits"

// Parameters of MT19937.
const (
	mtN = 624
	mtM = 397
)

// twister is CPython's random.Random for one purpose: the order in which a
// list comes out of shuffle when the generator was seeded with a request id.
// Seeding always starts from init_genrand(19650218), so that state is computed
// once, and words are regenerated one at a time as they are drawn.
type twister struct {
	base  [mtN]uint32 // after init_genrand(19650218)
	state [mtN]uint32
	next  int
	perm  []int32
}

func newTwister() *twister {
	t := &twister{}
	t.base[0] = 19650218
	for i := 1; i < mtN; i++ {
		p := t.base[i-1]
		t.base[i] = 1812433253*(p^p>>30) + uint32(i)
	}
	return t
}

// seed sets the state that random.Random(id) has: |id| in 32-bit words, least
// significant first, through init_by_array.
func (t *twister) seed(id int64) {
	u := uint64(id)
	if id < 0 {
		u = -u
	}
	k0, k1 := uint32(u), uint32(u)
	if hi := uint32(u >> 32); hi != 0 {
		k1 = hi + 1 // the word's position in the key is added to it
	}
	s := &t.state
	p := t.base[0]
	for i := 1; i < mtN-1; i += 2 {
		p = (t.base[i] ^ (p^p>>30)*1664525) + k0
		s[i] = p
		p = (t.base[i+1] ^ (p^p>>30)*1664525) + k1
		s[i+1] = p
	}
	p = (t.base[mtN-1] ^ (p^p>>30)*1664525) + k0
	s[mtN-1] = p
	p = (s[1] ^ (p^p>>30)*1664525) + k1
	s[1] = p
	for i := 2; i < mtN; i++ {
		p = (s[i] ^ (p^p>>30)*1566083941) - uint32(i)
		s[i] = p
	}
	s[1] = (s[1] ^ (p^p>>30)*1566083941) - 1
	s[0] = 0x80000000
	t.next = 0
}

// word draws the next 32-bit output.
func (t *twister) word() uint32 {
	i := t.next
	j, m := i+1, i+mtM
	if j == mtN {
		j = 0
	}
	if m >= mtN {
		m -= mtN
	}
	t.next = j
	y := t.state[i]&0x80000000 | t.state[j]&0x7fffffff
	y = t.state[m] ^ y>>1 ^ -(y&1)&0x9908b0df
	t.state[i] = y
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// below draws a number under m > 0. CPython takes the bit length of m, not of
// m-1, and draws again while the number is too large.
func (t *twister) below(m uint32) uint32 {
	shift := uint(32 - bits.Len32(m))
	for {
		if v := t.word() >> shift; v < m {
			return v
		}
	}
}

// shuffle is random.Random(id).shuffle(x).
func (t *twister) shuffle(id int64, x []int32) {
	t.seed(id)
	for i := len(x) - 1; i > 0; i-- {
		j := t.below(uint32(i + 1))
		x[i], x[j] = x[j], x[i]
	}
}

// first says which of the tied positions of a list of len(tied) elements comes
// first once the list is shuffled. count of them, at least 1, are marked; all
// marks are cleared. The shuffle settles the list from its end, so it is over
// as soon as one marked element is left.
func (t *twister) first(id int64, tied []bool, count int) int {
	if count > 1 {
		t.seed(id)
		if cap(t.perm) < len(tied) {
			t.perm = make([]int32, len(tied))
		}
		x := t.perm[:len(tied)]
		for i := range x {
			x[i] = int32(i)
		}
		for i := len(x) - 1; count > 1; i-- {
			j := t.below(uint32(i + 1))
			settled := x[j]
			x[j], x[i] = x[i], settled
			if tied[settled] {
				tied[settled] = false
				count--
			}
		}
	}
	for p, is := range tied {
		if is {
			tied[p] = false
			return p
		}
	}
	return 0
}
