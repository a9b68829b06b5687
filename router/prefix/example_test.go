package prefix_test

import (
	"fmt"

	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

// An engine stores the first two blocks of a prompt; then a longer prompt that
// begins alike is looked up.
func Example() {
	ix, _ := prefix.New(prefix.Options{})
	hasher, _ := prefix.NewHasher(4, prefix.Seed("", ""))
	rank, _ := ix.Add(model.Target{Worker: "w0", Rank: 3})

	locals := hasher.Locals(nil, []uint32{1, 2, 3, 4, 5, 6, 7, 8})
	_, _ = ix.Apply(rank, &prefix.Batch{Events: []prefix.Event{{
		Kind: prefix.Stored,
		Blocks: []prefix.Block{
			{External: prefix.ExternalUint(71), Local: locals[0]},
			{External: prefix.ExternalUint(72), Local: locals[1]},
		},
	}}})

	chain := hasher.Chains(nil, []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13})
	var found prefix.Matches
	ix.NewMatcher().Match(chain, &found)
	fmt.Printf("%d of %d whole blocks\n", found.Device[rank], found.Blocks)
	// Output: 2 of 3 whole blocks
}
