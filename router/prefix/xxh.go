package prefix

import (
	"math/bits"
	"unsafe"
)

// The two lengths that are hashed for every block, written out: XXH3 of 64
// bytes (a block of 16 tokens) and of 16 bytes (a link of the chain). All other
// lengths go through the xxh3 package, against which these two are tested.

// XXH3's default secret from its start, as little-endian words.
const (
	secret0  = 0xbe4ba423396cfeb8
	secret8  = 0x1cad21f72c81017c
	secret16 = 0xdb979083e96dd4de
	secret24 = 0x1f67b3b7a4a44072
	secret32 = 0x78e5c0cc4ee679cb
	secret40 = 0x2172ffcc7dd05a82
	secret48 = 0x8e2443f7744608b8
	secret56 = 0x4c263a81e69035e0

	prime64    = 0x9E3779B185EBCA87
	primeFinal = 0x165667919E3779F9

	// What a link's two words are mixed with, under the seed of chains.
	linkLow  = (secret24 ^ secret32) + baseSeed
	linkHigh = (secret40 ^ secret48) - baseSeed
)

// next is XXH3 of the two words, 16 bytes.
func next(prev Chain, local Local) Chain {
	lo, hi := uint64(prev)^linkLow, uint64(local)^linkHigh
	return Chain(finish(16 + bits.ReverseBytes64(lo) + hi + fold(lo, hi)))
}

// block64 is XXH3 of the 64 bytes at p, on little-endian machines.
func block64(p unsafe.Pointer, seed uint64) uint64 {
	w := (*[8]uint64)(p)
	acc := uint64(64 * prime64 & (1<<64 - 1))
	acc += fold(w[0]^(secret0+seed), w[1]^(secret8-seed))
	acc += fold(w[2]^(secret32+seed), w[3]^(secret40-seed))
	acc += fold(w[4]^(secret48+seed), w[5]^(secret56-seed))
	acc += fold(w[6]^(secret16+seed), w[7]^(secret24-seed))
	return finish(acc)
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func finish(h uint64) uint64 {
	h ^= h >> 37
	h *= primeFinal
	return h ^ h>>32
}
