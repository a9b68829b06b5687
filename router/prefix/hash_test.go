package prefix

import (
	"fmt"
	"testing"
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
			if got := ChainLocals(nil, locals); fmt.Sprint(got) != fmt.Sprint(chains) {
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
