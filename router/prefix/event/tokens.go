package event

import (
	"encoding/binary"
	"slices"

	"github.com/tinylib/msgp/msgp"
	"github.com/zeebo/xxh3"
)

const fieldTokens = "token_ids"

// tokens appends a list of token ids to the batch: plain ids, or pairs as
// Eagle's drafts send them. Pairs overlap: each second is the next one's first,
// so the firsts and the last second say it all.
func (w *wire) tokens(b *Batch) (ids []uint32, bigram, ok bool) {
	n, ok := w.list(fieldTokens)
	if !ok || n == 0 {
		return nil, false, ok
	}
	from := len(b.tokens)
	if w.next() == msgp.ArrayType {
		if !w.pairs(b, n) {
			return nil, false, false
		}
		return b.tokens[from:len(b.tokens):len(b.tokens)], true, true
	}
	b.tokens = slices.Grow(b.tokens, n)[:from+n]
	ids = b.tokens[from : from+n : from+n]
	return ids, false, w.plain(ids)
}

// plain fills ids. Token ids are most of an event's bytes, so their usual forms
// are read here and only the rest by way of token.
func (w *wire) plain(ids []uint32) bool {
	p := w.b
	for i := range ids {
		switch {
		case len(p) >= 3 && p[0] == 0xcd:
			ids[i] = uint32(binary.BigEndian.Uint16(p[1:]))
			p = p[3:]
		case len(p) >= 1 && p[0] < 0x80:
			ids[i] = uint32(p[0])
			p = p[1:]
		case len(p) >= 5 && p[0] == 0xce:
			ids[i] = binary.BigEndian.Uint32(p[1:])
			p = p[5:]
		case len(p) >= 2 && p[0] == 0xcc:
			ids[i] = uint32(p[1])
			p = p[2:]
		default:
			w.b = p
			id, ok := w.token()
			if !ok {
				return false
			}
			ids[i] = id
			p = w.b
		}
	}
	w.b = p
	return true
}

// token reads one id: a whole number of 32 bits, or a media key in place of a
// placeholder (TensorRT-LLM's streaming publisher).
func (w *wire) token() (uint32, bool) {
	if t := w.next(); t == msgp.StrType || t == msgp.BinType {
		s, ok := w.text(fieldTokens)
		return MediaToken(MediaHash(s)), ok
	}
	u, negative, ok := w.bits(fieldTokens)
	if ok && (negative || u > 1<<32-1) {
		return 0, w.fail(BadField, fieldTokens, "a token id beyond 32 bits")
	}
	return uint32(u), ok
}

func (w *wire) pairs(b *Batch, n int) bool {
	var second uint32
	for range n {
		size, ok := w.list(fieldTokens)
		if !ok {
			return false
		}
		if size != 2 {
			return w.fail(BadField, fieldTokens, "a list of other than two ids")
		}
		first, ok := w.token()
		if !ok {
			return false
		}
		if second, ok = w.token(); !ok {
			return false
		}
		b.tokens = append(b.tokens, first)
	}
	b.tokens = append(b.tokens, second)
	return true
}

// MediaHash gives a media object's identity as a number: the first 16 of 64
// hex digits, or XXH3 of anything else (Dynamo's rule).
func MediaHash(key []byte) uint64 {
	if len(key) == 64 && isHex(key) {
		h, _ := hex64(key[:16])
		return h
	}
	return xxh3.Hash(key)
}

// MediaToken is the token id that stands for a media object's placeholder when
// blocks are hashed: 1,000,000 + hash mod 2^30 (Dynamo's rule).
func MediaToken(hash uint64) uint32 {
	return 1_000_000 + uint32(hash&(1<<30-1))
}

func isHex(s []byte) bool {
	_, ok := hex64(s)
	return ok
}

// hex64 reads hex digits; beyond 16 only the last 16 remain in the number.
func hex64(s []byte) (u uint64, ok bool) {
	for _, c := range s {
		var d byte
		switch {
		case c >= '0' && c <= '9':
			d = c - '0'
		case c >= 'a' && c <= 'f':
			d = c - 'a' + 10
		case c >= 'A' && c <= 'F':
			d = c - 'A' + 10
		default:
			return 0, false
		}
		u = u<<4 | uint64(d)
	}
	return u, len(s) > 0
}
