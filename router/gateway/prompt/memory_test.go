package prompt

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

func mustHasher(t testing.TB, block int, seed uint64) prefix.Hasher {
	h, err := prefix.NewHasher(block, seed)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestMemoryIsExact: whatever becomes of a conversation, it has the hashes of
// its tokens.
func TestMemoryIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	m := newMemory(64<<20, 100)
	hashers := []prefix.Hasher{
		mustHasher(t, 16, prefix.Seed("", "")), mustHasher(t, 16, prefix.Seed("", "salt")),
		mustHasher(t, 16, prefix.Seed("", "")).Bigram(), mustHasher(t, 7, prefix.Seed("lora", "")),
	}
	prompts := make([][]uint32, 5)
	for range 3000 {
		k := rng.IntN(len(prompts))
		p := slices.Clone(prompts[k])
		switch rng.IntN(6) {
		case 0: // the conversation is cut
			p = p[:rng.IntN(len(p)+1)]
		case 1: // one token in its past differs
			if len(p) > 0 {
				p[rng.IntN(len(p))]++
			}
		}
		for range rng.IntN(300) {
			p = append(p, rng.Uint32N(50000))
		}
		if len(p) > 20000 {
			p = p[:rng.IntN(100)]
		}
		prompts[k] = p
		h := hashers[0]
		if rng.IntN(10) == 0 {
			h = hashers[rng.IntN(len(hashers))]
		}
		got, known := m.locals(model.ConvKey{ID: strconv.Itoa(k)}, h, p, head{})
		if want := plainLocals(h.Locals(nil, p)); !slices.Equal(got, want) {
			t.Fatalf("%d tokens, %d of %d blocks remembered: the hashes are wrong", len(p), known, len(want))
		}
	}
}

// BenchmarkKnownConversation is a turn of a conversation that is known: its
// tokens are compared with those of the last turn, the tail is hashed, and the
// hashes are handed over.
func BenchmarkKnownConversation(b *testing.B) {
	for _, tokens := range []int{4096, 32768, 131072} {
		b.Run(fmt.Sprintf("%dk", tokens/1024), func(b *testing.B) {
			m, h, key := newMemory(64<<20, 10), mustHasher(b, 16, prefix.Seed("", "")), model.ConvKey{ID: "c"}
			p := make([]uint32, tokens)
			for i := range p {
				p[i] = uint32(i*2654435761) % 150_000
			}
			m.locals(key, h, p, head{})
			last := uint32(0)
			b.ReportAllocs()
			for b.Loop() {
				last++
				p[len(p)-40] = last // the last turn differs
				if got, _ := m.locals(key, h, p, head{}); len(got) != tokens/16 {
					b.Fatal(len(got))
				}
			}
		})
	}
}
