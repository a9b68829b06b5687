package prefix

import (
	"bytes"
	"container/list"
	"sync"

	"adpdeck/router/model"
)

// Memory remembers the tokens and chain hashes of each conversation's last
// turn, so that the next turn is compared with it, which is faster than
// hashing, and only what is new gets hashed. It is exact: where the new prompt
// differs from the old one, hashing starts anew at that block. It may be used
// by any number of goroutines; two turns of one conversation wait for each
// other, those of different conversations do not.
type Memory struct {
	opt   MemoryOptions
	mu    sync.Mutex // guards what follows, not the turns themselves
	turns map[model.ConvKey]*list.Element
	used  *list.List // of *turn, last used first
	bytes int64
}

// MemoryOptions bound a Memory. Zero fields take their defaults.
type MemoryOptions struct {
	MaxBytes         int64 // of tokens and hashes (default 256 MiB)
	MaxConversations int   // default 65,536
}

// MemoryStats is what a Memory holds.
type MemoryStats struct {
	Conversations int
	Bytes         int64
}

// turn is a conversation's last turn.
type turn struct {
	key   model.ConvKey
	bytes int64 // guarded by the memory's lock

	mu     sync.Mutex // guards what follows
	hasher Hasher
	tokens []uint32
	chain  []Chain
}

// turnBytes is what a conversation costs beside its tokens and hashes, about.
const turnBytes = 384

// NewMemory makes an empty memory. Beyond its bounds the conversation used
// longest ago is forgotten first.
func NewMemory(opt MemoryOptions) *Memory {
	if opt.MaxBytes <= 0 {
		opt.MaxBytes = 256 << 20
	}
	if opt.MaxConversations <= 0 {
		opt.MaxConversations = 65536
	}
	return &Memory{opt: opt, turns: make(map[model.ConvKey]*list.Element), used: list.New()}
}

// Chains appends to dst the chain hashes of the whole blocks of tokens, as
// h.Chains does, and returns how many of them were remembered. A conversation
// is remembered for the hasher of its last turn; with another one it is hashed
// anew. A keyless request is only hashed.
func (m *Memory) Chains(dst []Chain, key model.ConvKey, h Hasher, tokens []uint32) (chains []Chain, remembered int) {
	if key.Keyless() || h.Blocks(len(tokens)) == 0 {
		return h.Chains(dst, tokens), 0
	}
	t := m.turn(key)
	t.mu.Lock()
	dst, remembered = t.next(dst, h, tokens)
	size := turnBytes + 4*int64(cap(t.tokens)) + 8*int64(cap(t.chain))
	t.mu.Unlock()
	m.settle(t, size)
	return dst, remembered
}

// next replaces the turn by the next one and appends its hashes to dst.
func (t *turn) next(dst []Chain, h Hasher, tokens []uint32) ([]Chain, int) {
	if t.hasher != h {
		t.hasher, t.tokens, t.chain = h, t.tokens[:0], t.chain[:0]
	}
	same := commonTokens(t.tokens, tokens)
	known := min(h.Blocks(same), len(t.chain))
	t.tokens = append(t.tokens[:same], tokens[same:]...)
	rest := tokens[known*h.tokens:]
	if known == 0 {
		t.chain = h.Chains(t.chain[:0], rest)
	} else {
		t.chain = h.Extend(t.chain[:known], t.chain[known-1], rest)
	}
	return append(dst, t.chain...), known
}

// commonTokens is the length of what two prompts begin with in common.
func commonTokens(a, b []uint32) int {
	n := min(len(a), len(b))
	const stretch = 4096
	at := 0
	for at < n {
		to := min(at+stretch, n)
		if !bytes.Equal(rawTokens(a[at:to]), rawTokens(b[at:to])) {
			break
		}
		at = to
	}
	for at < n && a[at] == b[at] {
		at++
	}
	return at
}

// turn finds the conversation, or begins to remember it.
func (m *Memory) turn(key model.ConvKey) *turn {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.turns[key]; e != nil {
		m.used.MoveToFront(e)
		return e.Value.(*turn)
	}
	t := &turn{key: key}
	m.turns[key] = m.used.PushFront(t)
	return t
}

// settle books the turn's size and forgets what is too much.
func (m *Memory) settle(t *turn, size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.turns[t.key]; e == nil || e.Value.(*turn) != t {
		return // forgotten meanwhile
	}
	m.bytes += size - t.bytes
	t.bytes = size
	for m.bytes > m.opt.MaxBytes || len(m.turns) > m.opt.MaxConversations {
		m.forget(m.used.Back())
	}
}

func (m *Memory) forget(e *list.Element) {
	t := m.used.Remove(e).(*turn)
	delete(m.turns, t.key)
	m.bytes -= t.bytes
}

// Forget forgets a conversation.
func (m *Memory) Forget(key model.ConvKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.turns[key]; e != nil {
		m.forget(e)
	}
}

// Stats returns how much is remembered.
func (m *Memory) Stats() MemoryStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return MemoryStats{Conversations: len(m.turns), Bytes: m.bytes}
}
