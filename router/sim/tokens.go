package sim

import (
	"adpdeck/router/prefix"
	"adpdeck/router/trace"
)

const (
	// vocabulary is how many token ids prompts are made of.
	vocabulary = 50_000
	// maxLocals bounds the block hashes that are remembered, about 40 MB.
	maxLocals = 1 << 20
)

// vocab invents the token ids of blocks, always the same for the same block,
// and remembers the blocks' local hashes.
type vocab struct {
	blockTokens int
	hasher      prefix.Hasher
	locals      map[uint64]uint64
	tokens      []uint32       // scratch: one block
	hashed      []prefix.Local // scratch
}

func newVocab(blockTokens int) (*vocab, error) {
	h, err := prefix.NewHasher(blockTokens, prefix.Seed("", ""))
	if err != nil {
		return nil, err
	}
	return &vocab{blockTokens: blockTokens, hasher: h, locals: map[uint64]uint64{}}, nil
}

// appendLead appends the first n token ids of a block, at most leadLen.
func appendLead[T int32 | uint32](dst []T, block uint64, n int) []T {
	h := block
	for i := range min(n, leadLen) {
		h = trace.Chain(h, uint64(i))
		dst = append(dst, T(h%vocabulary))
	}
	return dst
}

// append appends the token ids of a whole block.
func (v *vocab) append(dst []uint32, block uint64) []uint32 {
	from := len(dst)
	dst = appendLead(dst, block, v.blockTokens)
	// One word gives three ids of 16 bits, spread over the vocabulary.
	for i := uint64(leadLen); len(dst)-from < v.blockTokens; i++ {
		h := trace.Chain(block, i)
		for range min(3, v.blockTokens-(len(dst)-from)) {
			dst = append(dst, uint32(h&0xffff)*vocabulary>>16)
			h >>= 16
		}
	}
	return dst
}

// local is the local hash of a block's tokens.
func (v *vocab) local(block uint64) uint64 {
	if l, ok := v.locals[block]; ok {
		return l
	}
	v.tokens = v.append(v.tokens[:0], block)
	v.hashed = v.hasher.Locals(v.hashed[:0], v.tokens)
	if len(v.locals) >= maxLocals {
		clear(v.locals)
	}
	l := uint64(v.hashed[0])
	v.locals[block] = l
	return l
}

// appendLocals appends the local hashes of a prompt's full blocks.
func (v *vocab) appendLocals(dst []uint64, blocks []uint64) []uint64 {
	for _, b := range blocks {
		dst = append(dst, v.local(b))
	}
	return dst
}
