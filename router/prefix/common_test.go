package prefix

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestCommon(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 300 {
		a := seqTokens(1, rng.Uint32N(12_000))
		b := slices.Clone(a[:rng.IntN(len(a)+1)])
		want := len(b)
		if len(b) > 0 && rng.IntN(2) == 0 {
			want = rng.IntN(len(b))
			b[want]++
		}
		if got := Common(a, b); got != want {
			t.Fatalf("of %d and %d tokens %d are the same, want %d", len(a), len(b), got, want)
		}
		if got := Common(b, a); got != want {
			t.Fatalf("the other way round %d, want %d", got, want)
		}
	}
}
