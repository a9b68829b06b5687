package prompt

import (
	"hash/maphash"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

// memory remembers the last turn of each conversation.
type memory struct {
	seed maphash.Seed
	most int64 // bytes

	mu    sync.Mutex // guards what follows, not the turns themselves
	turns *simplelru.LRU[model.ConvKey, *turn]
	bytes int64
}

// turn is a conversation's last turn.
type turn struct {
	bytes int64 // what the memory counts, guarded by its lock

	mu     sync.Mutex // guards what follows
	hasher prefix.Hasher
	tokens []uint32
	locals []prefix.Local
	head   head
}

// head is the beginning of a turn's text that is known to end where tokenisers
// begin anew.
type head struct {
	bytes, tokens int
	sum           uint64
}

// turnBytes is what a conversation costs beside its tokens and hashes, about.
const turnBytes = 640

func newMemory(most int64, conversations int) *memory {
	m := &memory{seed: maphash.MakeSeed(), most: most}
	// The size is positive, which is all that could be refused.
	m.turns, _ = simplelru.NewLRU(conversations, func(_ model.ConvKey, t *turn) { m.bytes -= t.bytes })
	return m
}

// turn finds the conversation, or begins to remember it.
func (m *memory) turn(key model.ConvKey) *turn {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t, ok := m.turns.Get(key); ok {
		return t
	}
	t := &turn{bytes: turnBytes}
	m.bytes += t.bytes
	m.turns.Add(key, t)
	return t
}

// locals hashes the tokens of a turn, but for what the last one had in common with
// them, and remembers them with their head.
func (m *memory) locals(key model.ConvKey, h prefix.Hasher, tokens []uint32, hd head) (locals []uint64, remembered int) {
	if key.Keyless() {
		return plainLocals(h.Locals(nil, tokens)), 0
	}
	t := m.turn(key)
	t.mu.Lock()
	remembered = t.next(h, tokens)
	t.head = hd
	locals = plainLocals(t.locals)
	size := turnBytes + 4*int64(cap(t.tokens)) + 8*int64(cap(t.locals))
	t.mu.Unlock()
	m.settle(key, t, size)
	return locals, remembered
}

// next replaces the turn by the next one and returns how many of its blocks were
// known.
func (t *turn) next(h prefix.Hasher, tokens []uint32) int {
	if t.hasher != h {
		t.hasher, t.tokens, t.locals = h, t.tokens[:0], t.locals[:0]
	}
	same := prefix.Common(t.tokens, tokens)
	known := min(same/h.BlockTokens(), len(t.locals))
	t.tokens = append(t.tokens[:same], tokens[same:]...)
	t.locals = h.Locals(t.locals[:known], tokens[known*h.BlockTokens():])
	return known
}

// settle books a turn's size and forgets what is too much.
func (m *memory) settle(key model.ConvKey, t *turn, size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now, ok := m.turns.Peek(key); !ok || now != t {
		return // forgotten meanwhile
	}
	m.bytes += size - t.bytes
	t.bytes = size
	for m.bytes > m.most && m.turns.Len() > 0 {
		m.turns.RemoveOldest()
	}
}

// known returns the tokens of the head that text begins with, as a copy, and its
// length in text.
func (m *memory) known(key model.ConvKey, h prefix.Hasher, text []byte) (tokens []uint32, bytes int, ok bool) {
	if key.Keyless() {
		return nil, 0, false
	}
	m.mu.Lock()
	t, found := m.turns.Get(key)
	m.mu.Unlock()
	if !found {
		return nil, 0, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	hd := t.head
	if hd.bytes == 0 || hd.bytes > len(text) || t.hasher != h || hd.tokens > len(t.tokens) || maphash.Bytes(m.seed, text[:hd.bytes]) != hd.sum {
		return nil, 0, false
	}
	return append(make([]uint32, 0, hd.tokens+256), t.tokens[:hd.tokens]...), hd.bytes, true
}

// headOf is the head that ends at bytes of text and has this many tokens.
func (m *memory) headOf(text []byte, bytes, tokens int) head {
	if bytes <= 0 || tokens <= 0 {
		return head{}
	}
	return head{bytes: bytes, tokens: tokens, sum: maphash.Bytes(m.seed, text[:bytes])}
}

func (m *memory) stats() (conversations int, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.turns.Len(), m.bytes
}

// plainLocals copies hashes into the router's form.
func plainLocals(locals []prefix.Local) []uint64 {
	if len(locals) == 0 {
		return nil
	}
	out := make([]uint64, len(locals))
	for i, l := range locals {
		out[i] = uint64(l)
	}
	return out
}
