package event

import (
	"encoding/binary"
	"fmt"

	"github.com/tinylib/msgp/msgp"
)

func (c *Encoder) appendHash(p []byte, h Hash) []byte {
	switch c.Hash {
	case SignedHash:
		return msgp.AppendInt64(p, int64(h))
	case BytesHash:
		var digest [32]byte
		for i := range 24 { // what comes before the last 8 bytes is never read
			digest[i] = byte(i)
		}
		binary.BigEndian.PutUint64(digest[24:], uint64(h))
		return msgp.AppendBytes(p, digest[:])
	}
	return msgp.AppendUint64(p, uint64(h))
}

func (c *Encoder) appendHashes(p []byte, hs []Hash) []byte {
	p = msgp.AppendArrayHeader(p, uint32(len(hs)))
	for _, h := range hs {
		p = c.appendHash(p, h)
	}
	return p
}

func appendTokens(_ *Encoder, p []byte, e *Event) []byte {
	if e.Bigram && len(e.Tokens) > 1 {
		p = msgp.AppendArrayHeader(p, uint32(len(e.Tokens)-1))
		for i, t := range e.Tokens[:len(e.Tokens)-1] {
			p = msgp.AppendArrayHeader(p, 2)
			p = msgp.AppendUint32(p, t)
			p = msgp.AppendUint32(p, e.Tokens[i+1])
		}
		return p
	}
	p = msgp.AppendArrayHeader(p, uint32(len(e.Tokens)))
	for _, t := range e.Tokens {
		p = msgp.AppendUint32(p, t)
	}
	return p
}

// appendExtra writes media, and a root's salt, as vLLM's per-block keys.
func appendExtra(c *Encoder, p []byte, e *Event) []byte {
	salted := e.Salt != "" && c.Form == ArrayForm
	if len(e.Media) == 0 && !salted {
		return msgp.AppendNil(p)
	}
	p = msgp.AppendArrayHeader(p, uint32(len(e.Hashes)))
	for i := range e.Hashes {
		n := 0
		for _, m := range e.Media {
			if int(m.Block) == i {
				n++
			}
		}
		withSalt := salted && i == 0
		if n == 0 && !withSalt {
			p = msgp.AppendNil(p)
			continue
		}
		if withSalt {
			n++
		}
		p = msgp.AppendArrayHeader(p, uint32(n))
		for _, m := range e.Media {
			if int(m.Block) == i {
				p = msgp.AppendArrayHeader(p, 2)
				p = msgp.AppendString(p, mediaKey(m.Hash))
				p = msgp.AppendInt32(p, m.Offset)
			}
		}
		if withSalt {
			p = msgp.AppendString(p, saltPrefix+e.Salt)
		}
	}
	return p
}

// mediaKey is a key of 64 hex digits that MediaHash reads back as h.
func mediaKey(h uint64) string {
	return fmt.Sprintf("%016x%048x", h, 0)
}

func appendGroup(_ *Encoder, p []byte, e *Event) []byte {
	if e.Group < 0 {
		return msgp.AppendNil(p)
	}
	return msgp.AppendInt32(p, e.Group)
}

func appendSpec(_ *Encoder, p []byte, e *Event) []byte {
	switch e.Spec {
	case SpecMain:
		return msgp.AppendString(p, "full_attention")
	case SpecOther:
		return msgp.AppendString(p, "sliding_window")
	case SpecUnknown:
		return msgp.AppendString(p, "unknown")
	}
	return msgp.AppendNil(p)
}

func appendWindow(_ *Encoder, p []byte, e *Event) []byte {
	if e.Window <= 0 {
		return msgp.AppendNil(p)
	}
	return msgp.AppendInt32(p, e.Window)
}

func appendName(p []byte, s string) []byte {
	if s == "" {
		return msgp.AppendNil(p)
	}
	return msgp.AppendString(p, s)
}

func mediumOf(t Tier) string {
	switch t {
	case Host:
		return "CPU"
	case Disk:
		return "DISK"
	case External:
		return "EXTERNAL"
	}
	return "GPU"
}
