package feed

import (
	"bytes"
	"encoding/json"
)

// list is one named array of a message: n values, the i-th of which at returns.
type list struct {
	name string
	n    int
	at   func(i int) any
}

func listOf[T any](name string, items []T) list {
	return list{name, len(items), func(i int) any { return &items[i] }}
}

// packer writes lists as members of JSON objects and ends an object when it is
// full, so that a big message becomes several, each whole JSON:
//
//	"ranks":[…],"convs":[…       first message: all ranks, some conversations
//	"convs":[…                   second: the rest
//
// A value that alone exceeds what a message may hold is left out and counted.
type packer struct {
	lists   []list
	i       int  // the next value of lists[0]
	held    bool // that value is encoded in buf already
	leftOut uint64

	buf bytes.Buffer
	enc *json.Encoder
}

func newPacker(lists ...list) *packer {
	p := &packer{lists: lists}
	p.enc = json.NewEncoder(&p.buf)
	p.enc.SetEscapeHTML(false)
	p.skipEmpty()
	return p
}

func (p *packer) skipEmpty() {
	for len(p.lists) > 0 && p.i >= p.lists[0].n {
		p.lists, p.i = p.lists[1:], 0
	}
}

// more reports whether values are left to write.
func (p *packer) more() bool { return len(p.lists) > 0 }

// room is a buffer that will likely hold the next message: 400 bytes for each
// value left, no more than a full part.
func (p *packer) room() []byte {
	left := -p.i
	for _, l := range p.lists {
		left += l.n
	}
	return make([]byte, 0, min(1<<10+400*left, partBytes+4<<10))
}

// fill appends members to dst, which ends in an open JSON object, until dst
// holds partBytes or nothing is left. At least one value is written, or none
// when the object already holds more than that and must be closed.
func (p *packer) fill(dst []byte) []byte {
	open, limit := "", max(partBytes, len(dst)+1)
	wrote := len(dst) > partBytes/2 // a long head leaves big values to the next part
	for p.more() {
		if !p.held && !p.encode() {
			p.leftOut++
			p.step()
			continue
		}
		if len(dst)+p.buf.Len() > limit && wrote {
			break
		}
		if name := p.lists[0].name; name != open {
			if open != "" {
				dst = append(dst, ']')
			}
			if dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			dst = append(append(append(dst, '"'), name...), `":[`...)
			open = name
		} else {
			dst = append(dst, ',')
		}
		dst = append(dst, p.buf.Bytes()...)
		wrote = true
		p.step()
	}
	if open != "" {
		dst = append(dst, ']')
	}
	return dst
}

func (p *packer) step() {
	p.i, p.held = p.i+1, false
	p.skipEmpty()
}

// encode puts the next value into buf; false when it cannot be sent.
func (p *packer) encode() bool {
	p.buf.Reset()
	switch v := p.lists[0].at(p.i).(type) {
	case *json.RawMessage: // encoded already
		p.buf.Write(*v)
	default:
		if err := p.enc.Encode(v); err != nil {
			return false
		}
		p.buf.Truncate(p.buf.Len() - 1) // the newline
	}
	p.held = p.buf.Len() <= MaxMessageBytes-partBytes && values(p.buf.Bytes()) <= maxValues/2
	return p.held
}
