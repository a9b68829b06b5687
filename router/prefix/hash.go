package prefix

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"github.com/zeebo/xxh3"
)

// Local is the hash of the tokens of one block, with the adapter and the salt
// in its seed. It says nothing of what comes before the block.
type Local uint64

// Chain is the hash of a block and of everything before it: equal chain hashes
// mean equal prompts up to and including the block.
type Chain uint64

// baseSeed is Dynamo's XXH3 seed of block and chain hashes.
const baseSeed = 1337

// Limits of a block size, in tokens.
const (
	MinBlockTokens = 1
	MaxBlockTokens = 65536
)

// Seed is the seed of the local hashes of prompts that run under the LoRA
// adapter of that name and carry that cache salt; both may be empty.
func Seed(lora, salt string) uint64 {
	s := uint64(baseSeed)
	if lora != "" {
		s += xxh3.HashStringSeed(lora, 0)
	}
	if salt != "" {
		s += xxh3.HashStringSeed(salt, 1)
	}
	return s
}

// MediaHash turns the engine's id of a medium into its hash: of 64 hexadecimal
// digits the first 16 are the number, anything else is hashed.
func MediaHash(id string) uint64 {
	if len(id) == 64 {
		var v uint64
		for i := 0; i < 64; i++ {
			d, ok := hexDigit(id[i])
			if !ok {
				return xxh3.HashString(id)
			}
			if i < 16 {
				v = v<<4 | uint64(d)
			}
		}
		return v
	}
	return xxh3.HashString(id)
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// Hasher hashes prompts into blocks. The zero value is not usable; it is a
// value, holds no buffers and may be shared by any number of goroutines.
type Hasher struct {
	tokens int // tokens in a block
	window int // tokens that are hashed for a block: one more for bigram engines
	seed   uint64
}

// NewHasher returns a hasher of blocks of that many tokens, with a seed from
// Seed. It fails when the block size is outside its limits.
func NewHasher(blockTokens int, seed uint64) (Hasher, error) {
	if blockTokens < MinBlockTokens || blockTokens > MaxBlockTokens {
		return Hasher{}, fmt.Errorf("block size %d tokens: want %d to %d, the engine's own block size", blockTokens, MinBlockTokens, MaxBlockTokens)
	}
	return Hasher{tokens: blockTokens, window: blockTokens, seed: seed}, nil
}

// Bigram returns the hasher for engines that draft with bigrams (Eagle): each
// block's hash takes in the first token of the next block.
func (h Hasher) Bigram() Hasher {
	h.window = h.tokens + 1
	return h
}

// WithSeed returns the hasher with another seed.
func (h Hasher) WithSeed(seed uint64) Hasher {
	h.seed = seed
	return h
}

// BlockTokens is the number of tokens in a block.
func (h Hasher) BlockTokens() int { return h.tokens }

// Blocks is the number of whole blocks in a prompt of n tokens; what is left
// over is never hashed.
func (h Hasher) Blocks(n int) int {
	if n < h.window {
		return 0
	}
	return (n - h.window + h.tokens) / h.tokens
}

// Locals appends to dst the local hash of every whole block of the tokens.
func (h Hasher) Locals(dst []Local, tokens []uint32) []Local {
	raw := tokenBytes(tokens)
	step, size := 4*h.tokens, 4*h.window
	for i, n := 0, h.Blocks(len(tokens)); i < n; i++ {
		block := raw[i*step : i*step+size]
		if size == 64 && littleEndian() {
			dst = append(dst, Local(block64(unsafe.Pointer(&block[0]), h.seed)))
		} else {
			dst = append(dst, Local(xxh3.HashSeed(block, h.seed)))
		}
	}
	return dst
}

// Chains appends to dst the chain hash of every whole block of the tokens.
func (h Hasher) Chains(dst []Chain, tokens []uint32) []Chain {
	return h.extend(dst, 0, false, tokens)
}

// Extend appends to dst the chain hashes of the whole blocks of tokens, which
// follow a block whose chain hash is prev.
func (h Hasher) Extend(dst []Chain, prev Chain, tokens []uint32) []Chain {
	return h.extend(dst, prev, true, tokens)
}

// Next is the chain hash of a block after a block whose chain hash is prev.
func Next(prev Chain, local Local) Chain { return next(prev, local) }

// First is the chain hash of the first block of a prompt.
func First(local Local) Chain { return Chain(local) }

func (h Hasher) extend(dst []Chain, prev Chain, follows bool, tokens []uint32) []Chain {
	n := h.Blocks(len(tokens))
	if n == 0 {
		return dst
	}
	at := len(dst)
	dst = slices.Grow(dst, n)[:at+n]
	if h.tokens == 16 && h.window == 16 && littleEndian() {
		extend16(dst[at:], prev, follows, tokens, h.seed)
		return dst
	}
	raw := tokenBytes(tokens)
	step, size := 4*h.tokens, 4*h.window
	for i := range n {
		l := Local(xxh3.HashSeed(raw[i*step:i*step+size], h.seed))
		if follows {
			prev = next(prev, l)
		} else {
			prev, follows = First(l), true
		}
		dst[at+i] = prev
	}
	return dst
}

// extend16 is extend for blocks of 16 tokens. The local hashes do not depend
// on each other, so they run beside the chain, which does.
func extend16(dst []Chain, prev Chain, follows bool, tokens []uint32, seed uint64) {
	for i := range dst {
		block := tokens[:16:16]
		tokens = tokens[16:]
		l := Local(block64(unsafe.Pointer(&block[0]), seed))
		if follows {
			prev = next(prev, l)
		} else {
			prev, follows = First(l), true
		}
		dst[i] = prev
	}
}

// rawTokens is the tokens' own memory.
func rawTokens(tokens []uint32) []byte {
	if len(tokens) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&tokens[0])), 4*len(tokens))
}

// tokenBytes is the little-endian form of the tokens: their own memory on
// little-endian machines, a copy elsewhere.
func tokenBytes(tokens []uint32) []byte {
	if littleEndian() {
		return rawTokens(tokens)
	}
	out := make([]byte, 0, 4*len(tokens))
	for _, t := range tokens {
		out = binary.LittleEndian.AppendUint32(out, t)
	}
	return out
}

func littleEndian() bool {
	one := uint16(1)
	return *(*byte)(unsafe.Pointer(&one)) == 1
}
