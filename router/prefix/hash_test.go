package prefix

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"
)

func seqTokens(from, to uint32) []uint32 {
	var out []uint32
	for t := from; t <= to; t++ {
		out = append(out, t)
	}
	return out
}

// The golden values of Dynamo's block and sequence hashes.
func TestGoldenHashes(t *testing.T) {
	cases := map[string]struct {
		tokens     []uint32
		block      int
		lora, salt string
		chain      bool // the last chain hash, else the only local hash
		want       uint64
	}{
		"1..4":             {tokens: seqTokens(1, 4), block: 4, want: 14643705804678351452},
		"5..8":             {tokens: seqTokens(5, 8), block: 4, want: 16777012769546811212},
		"9..12":            {tokens: seqTokens(9, 12), block: 4, want: 483935686894639516},
		"chain of two":     {tokens: seqTokens(1, 8), block: 4, chain: true, want: 4945711292740353085},
		"chain of three":   {tokens: seqTokens(1, 12), block: 4, chain: true, want: 12583592247330656132},
		"0..15":            {tokens: seqTokens(0, 15), block: 16, want: 15310707395893867146},
		"0..31":            {tokens: seqTokens(0, 31), block: 32, want: 5756925433886871916},
		"0..63":            {tokens: seqTokens(0, 63), block: 64, want: 3480597578098033343},
		"0..511":           {tokens: seqTokens(0, 511), block: 512, want: 9967019188267418660},
		"adapter":          {tokens: seqTokens(1, 4), block: 4, lora: "my-lora", want: 15671544057904749233},
		"salt":             {tokens: seqTokens(1, 4), block: 4, salt: "tenant-a", want: 5738685477468498325},
		"adapter and salt": {tokens: seqTokens(1, 4), block: 4, lora: "my-lora", salt: "tenant-a", want: 6157910915076630503},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h, err := NewHasher(c.block, Seed(c.lora, c.salt))
			if err != nil {
				t.Fatal(err)
			}
			locals := h.Locals(nil, c.tokens)
			chains := h.Chains(nil, c.tokens)
			if got := chainLocals(nil, locals); fmt.Sprint(got) != fmt.Sprint(chains) {
				t.Errorf("chains of locals %d, chains of tokens %d", got, chains)
			}
			got := uint64(locals[0])
			if c.chain {
				got = uint64(chains[len(chains)-1])
			}
			if got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// The written-out lengths, and every block size, equal the xxh3 package.
func TestHashesEqualXXH3(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	tokens := make([]uint32, 5000)
	for i := range tokens {
		tokens[i] = rng.Uint32()
	}
	for range 300 {
		size, seed := 1+rng.IntN(64), rng.Uint64()
		if rng.IntN(2) == 0 {
			size = 16
		}
		n := rng.IntN(len(tokens))
		h, _ := NewHasher(size, seed)
		window := size
		if rng.IntN(3) == 0 {
			h, window = h.Bigram(), size+1
		}
		var want []Chain
		for at := 0; at+window <= n; at += size {
			var raw []byte
			for _, v := range tokens[at : at+window] {
				raw = binary.LittleEndian.AppendUint32(raw, v)
			}
			l := xxh3.HashSeed(raw, seed)
			if len(want) > 0 {
				raw = binary.LittleEndian.AppendUint64(nil, uint64(want[len(want)-1]))
				raw = binary.LittleEndian.AppendUint64(raw, l)
				l = xxh3.HashSeed(raw, 1337)
			}
			want = append(want, Chain(l))
		}
		got := h.Chains(nil, tokens[:n])
		if !slices.Equal(got, want) || h.Blocks(n) != len(want) {
			t.Fatalf("blocks of %d, %d tokens: %d hashes, want %d, or others", size, n, len(got), len(want))
		}
		if cut := rng.IntN(len(want) + 1); cut > 0 && !slices.Equal(h.Extend(got[:cut:cut], got[cut-1], tokens[cut*size:n]), want) {
			t.Fatalf("extended at block %d the hashes are others", cut)
		}
		if !slices.Equal(chainLocals(nil, h.Locals(nil, tokens[:n])), want) {
			t.Fatal("chained local hashes are others")
		}
	}
}

func TestMedia(t *testing.T) {
	hex := "00000000000000ff" + strings.Repeat("a", 48)
	for id, want := range map[string]uint64{
		hex:                           255,
		strings.ToUpper(hex):          255,
		"z" + hex[1:]:                 xxh3.HashString("z" + hex[1:]),
		"image-7":                     xxh3.HashString("image-7"),
		strings.Repeat("f", 63) + "!": xxh3.HashString(strings.Repeat("f", 63) + "!"),
	} {
		if got := MediaHash(id); got != want {
			t.Errorf("%s: %d, want %d", id, got, want)
		}
	}
}

// chainLocals appends to dst the chain hashes of a prompt whose blocks have
// these local hashes.
func chainLocals(dst []Chain, locals []Local) []Chain {
	for i, l := range locals {
		if i == 0 {
			dst = append(dst, First(l))
		} else {
			dst = append(dst, Next(dst[len(dst)-1], l))
		}
	}
	return dst
}
