package adp

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func identity(n int) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(i)
	}
	return x
}

// TestShuffleKnownAnswers is CPython's own output for the ids that matter: one
// key word and two, and the largest.
func TestShuffleKnownAnswers(t *testing.T) {
	cases := map[string]struct {
		id                       int64
		words                    [3]uint32
		three, eight, many, most []int32
	}{
		"0":      {0, [3]uint32{3626764237, 1654615998, 3255389356}, []int32{0, 2, 1}, []int32{4, 1, 5, 2, 0, 3, 7, 6}, []int32{29, 28, 24, 33, 35, 60}, []int32{160, 320, 88, 182}},
		"1":      {1, [3]uint32{577090037, 2444712010, 3639700191}, []int32{1, 2, 0}, []int32{3, 6, 1, 5, 7, 0, 4, 2}, []int32{22, 12, 52, 3, 19, 5}, []int32{169, 497, 245, 466}},
		"42":     {42, [3]uint32{2746317213, 478163327, 107420369}, []int32{1, 0, 2}, []int32{3, 4, 6, 7, 2, 5, 0, 1}, []int32{23, 25, 7, 22, 45, 33}, []int32{415, 508, 243, 185}},
		"2^32-1": {1<<32 - 1, [3]uint32{2728839433, 2661025012, 872737089}, []int32{1, 0, 2}, []int32{0, 6, 7, 2, 5, 4, 1, 3}, []int32{54, 25, 60, 59, 14, 27}, []int32{246, 611, 167, 558}},
		"2^32":   {1 << 32, [3]uint32{485306839, 1508871100, 1794561286}, []int32{2, 1, 0}, []int32{5, 7, 6, 4, 0, 3, 2, 1}, []int32{41, 36, 16, 44, 61, 6}, []int32{43, 222, 370, 162}},
		"2^32+1": {1<<32 + 1, [3]uint32{991850117, 2151679444, 2200792185}, []int32{2, 1, 0}, []int32{2, 5, 1, 0, 7, 6, 4, 3}, []int32{39, 28, 11, 22, 63, 0}, []int32{235, 363, 148, 191}},
		"2^40":   {1 << 40, [3]uint32{445128065, 1517081360, 2880015531}, []int32{2, 1, 0}, []int32{6, 7, 4, 3, 0, 5, 2, 1}, []int32{61, 10, 48, 52, 18, 1}, []int32{631, 301, 90, 233}},
		"2^53+1": {1<<53 + 1, [3]uint32{1512486810, 1330909561, 1448587154}, []int32{0, 2, 1}, []int32{7, 3, 1, 0, 4, 6, 2, 5}, []int32{26, 46, 1, 38, 14, 20}, []int32{400, 485, 470, 192}},
		"2^63-1": {math.MaxInt64, [3]uint32{1359979423, 2819855560, 2711238091}, []int32{2, 0, 1}, []int32{2, 0, 4, 3, 1, 6, 7, 5}, []int32{57, 9, 28, 33, 0, 52}, []int32{251, 337, 453, 349}},
	}
	mt := newTwister()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			mt.seed(c.id)
			for i, want := range c.words {
				if got := mt.word(); got != want {
					t.Fatalf("output %d is %d, want %d", i, got, want)
				}
			}
			for n, want := range map[int][]int32{3: c.three, 8: c.eight, 64: c.many, 700: c.most} {
				x := identity(n)
				mt.shuffle(c.id, x)
				if !slices.Equal(x[:len(want)], want) {
					t.Errorf("%d elements begin %v, want %v", n, x[:len(want)], want)
				}
			}
		})
	}
}

func TestSeedUsesTheMagnitude(t *testing.T) {
	a, b := newTwister(), newTwister()
	a.seed(-5)
	b.seed(5)
	if a.state != b.state {
		t.Error("id -5 seeds another state than 5")
	}
}

// TestFirstIsTheFullShufflesFirst proves the shortcut: for random lists, ties
// and ids it names the tied element that the whole shuffle puts first.
func TestFirstIsTheFullShufflesFirst(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	mt, plain := newTwister(), newTwister()
	for range 3000 {
		n := 1 + rng.IntN(300)
		id := int64(rng.Uint64() >> (1 + rng.IntN(62)))
		tied, count := make([]bool, n), 0
		for count == 0 {
			for i := range tied {
				if !tied[i] && rng.IntN(1+rng.IntN(8)) == 0 {
					tied[i] = true
					count++
				}
			}
		}
		x := identity(n)
		plain.shuffle(id, x)
		want := -1
		for _, e := range x {
			if tied[e] {
				want = int(e)
				break
			}
		}
		if got := mt.first(id, tied, count); got != want {
			t.Fatalf("id %d, %d elements, %d tied: got %d, want %d", id, n, count, got, want)
		}
		if slices.Contains(tied, true) {
			t.Fatal("a mark was left")
		}
	}
}
