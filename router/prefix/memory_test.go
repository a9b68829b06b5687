package prefix

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"adpdeck/router/model"
)

func mustHasher(t testing.TB, block int, seed uint64) Hasher {
	h, err := NewHasher(block, seed)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestMemoryIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	m := NewMemory(MemoryOptions{})
	hashers := []Hasher{
		mustHasher(t, 16, Seed("", "")), mustHasher(t, 16, Seed("", "salt")),
		mustHasher(t, 16, Seed("", "")).Bigram(), mustHasher(t, 7, Seed("lora", "")),
	}
	prompts := make([][]uint32, 5)
	var dst []Chain
	for range 3000 {
		k := rng.IntN(len(prompts))
		p := prompts[k]
		switch rng.IntN(6) {
		case 0: // the conversation is cut
			p = p[:rng.IntN(len(p)+1)]
		case 1: // one token in its past differs
			if len(p) > 0 {
				p = slices.Clone(p)
				p[rng.IntN(len(p))]++
			}
		}
		p = slices.Clone(p)
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
		var known int
		dst, known = m.Chains(dst[:0], model.ConvKey{ID: strconv.Itoa(k)}, h, p)
		if want := h.Chains(nil, p); !slices.Equal(dst, want) {
			t.Fatalf("%d tokens, %d of %d blocks remembered: the hashes are wrong", len(p), known, len(want))
		}
	}
}

func TestMemoryHashesOnlyTheTail(t *testing.T) {
	m, h := NewMemory(MemoryOptions{}), mustHasher(t, 16, Seed("", ""))
	key := model.ConvKey{Tenant: "a", ID: "c"}
	p := seqTokens(1, 1000)
	cases := []struct {
		tokens []uint32
		key    model.ConvKey
		want   int
	}{
		{p, key, 0},
		{append(slices.Clone(p), seqTokens(1, 50)...), key, 62}, // 1,000 tokens are 62 blocks and a half
		{p[:160], key, 10},
		{p, key, 10},
		{p, model.ConvKey{Tenant: "b", ID: "c"}, 0}, // another tenant's
		{p, model.ConvKey{}, 0},                     // no conversation
		{append([]uint32{9}, p[1:]...), key, 0},
	}
	for i, c := range cases {
		if _, known := m.Chains(nil, c.key, h, c.tokens); known != c.want {
			t.Errorf("turn %d: %d blocks remembered, want %d", i, known, c.want)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	h := mustHasher(t, 16, Seed("", ""))
	m := NewMemory(MemoryOptions{MaxBytes: 1 << 20, MaxConversations: 100})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			for range 500 {
				p := seqTokens(1, 1+rng.Uint32N(4000))
				key := model.ConvKey{ID: strconv.Itoa(rng.IntN(300))}
				if got, _ := m.Chains(nil, key, h, p); len(got) != len(p)/16 {
					t.Errorf("%d blocks of %d tokens", len(got), len(p))
				}
			}
		})
	}
	wg.Wait()
	if s := m.Stats(); s.Bytes > 1<<20 || s.Conversations > 100 || s.Conversations == 0 {
		t.Errorf("holds %+v", s)
	}
	m.Chains(nil, model.ConvKey{ID: "huge"}, h, seqTokens(1, 1<<20))
	if s := m.Stats(); s.Bytes > 1<<20 {
		t.Errorf("a prompt larger than the bound stays: %+v", s)
	}
	m.Chains(nil, model.ConvKey{ID: "x"}, h, seqTokens(1, 100))
	m.Forget(model.ConvKey{ID: "x"})
	if _, known := m.Chains(nil, model.ConvKey{ID: "x"}, h, seqTokens(1, 100)); known != 0 {
		t.Errorf("a forgotten conversation is remembered: %d blocks", known)
	}
}
