package event

import (
	"encoding/binary"
	"math"

	"github.com/tinylib/msgp/msgp"
)

// wire is the unread rest of a msgpack message. A read that fails leaves the
// reason in bad and consumes nothing that matters: the caller gives the event
// up.
type wire struct {
	b   []byte
	bad Refusal
}

func (w *wire) fail(r Reason, field, got string) bool {
	w.bad = Refusal{Reason: r, Field: field, Got: got}
	return false
}

// miss fails with the type that was found, or with CutShort at the end.
func (w *wire) miss(field string) bool {
	if len(w.b) == 0 {
		return w.fail(CutShort, field, "")
	}
	return w.fail(BadField, field, article(msgp.NextType(w.b)))
}

func article(t msgp.Type) string {
	switch t {
	case msgp.StrType:
		return "a string"
	case msgp.BinType:
		return "bytes"
	case msgp.MapType:
		return "a map"
	case msgp.ArrayType:
		return "a list"
	case msgp.Float32Type, msgp.Float64Type:
		return "a float"
	case msgp.BoolType:
		return "a boolean"
	case msgp.NilType:
		return "nil"
	case msgp.IntType, msgp.UintType:
		return "a whole number"
	}
	return "an unknown type"
}

func (w *wire) next() msgp.Type {
	if len(w.b) == 0 {
		return msgp.InvalidType
	}
	return msgp.NextType(w.b)
}

// isNil takes a nil, if there is one.
func (w *wire) isNil() bool {
	if len(w.b) == 0 || !msgp.IsNil(w.b) {
		return false
	}
	w.b = w.b[1:]
	return true
}

// list reads an array's header. A declared length beyond the bytes that are
// left is refused at once, so that it can be trusted for reserving memory.
func (w *wire) list(field string) (int, bool) {
	if w.next() != msgp.ArrayType {
		return 0, w.miss(field)
	}
	n, rest, err := msgp.ReadArrayHeaderBytes(w.b)
	if err != nil || uint64(n) > uint64(len(rest)) {
		return 0, w.fail(CutShort, field, "")
	}
	w.b = rest
	return int(n), true
}

func (w *wire) dict(field string) (int, bool) {
	if w.next() != msgp.MapType {
		return 0, w.miss(field)
	}
	n, rest, err := msgp.ReadMapHeaderBytes(w.b)
	if err != nil || 2*uint64(n) > uint64(len(rest)) {
		return 0, w.fail(CutShort, field, "")
	}
	w.b = rest
	return int(n), true
}

// text reads a string or bytes without copying.
func (w *wire) text(field string) ([]byte, bool) {
	var s, rest []byte
	var err error
	switch w.next() {
	case msgp.StrType:
		s, rest, err = msgp.ReadStringZC(w.b)
	case msgp.BinType:
		s, rest, err = msgp.ReadBytesZC(w.b)
	default:
		return nil, w.miss(field)
	}
	if err != nil {
		return nil, w.fail(CutShort, field, "")
	}
	w.b = rest
	return s, true
}

// name reads a short text; nil reads as "".
func (w *wire) name(field string) ([]byte, bool) {
	if w.isNil() {
		return nil, true
	}
	s, ok := w.text(field)
	if ok && len(s) > MaxNameBytes {
		w.bad = Refusal{Reason: TooLarge, Field: field, Value: int64(len(s)), Want: MaxNameBytes}
		return nil, false
	}
	return s, ok
}

// bits reads a whole number of either sign as 64 bits.
func (w *wire) bits(field string) (u uint64, negative, ok bool) {
	switch w.next() {
	case msgp.IntType:
		i, rest, err := msgp.ReadInt64Bytes(w.b)
		if err != nil {
			return 0, false, w.fail(CutShort, field, "")
		}
		w.b = rest
		return uint64(i), i < 0, true
	case msgp.UintType:
		u, rest, err := msgp.ReadUint64Bytes(w.b)
		if err != nil {
			return 0, false, w.fail(CutShort, field, "")
		}
		w.b = rest
		return u, false, true
	}
	return 0, false, w.miss(field)
}

// count reads a whole number from 0 to limit.
func (w *wire) count(field string, limit uint64) (int64, bool) {
	u, negative, ok := w.bits(field)
	if !ok {
		return 0, false
	}
	if negative || u > limit {
		return 0, w.fail(BadField, field, "out of range")
	}
	return int64(u), true
}

// hash reads a block hash in any of its three forms.
func (w *wire) hash(field string) (Hash, bool) {
	if len(w.b) >= 9 && (w.b[0] == 0xcf || w.b[0] == 0xd3) {
		h := Hash(binary.BigEndian.Uint64(w.b[1:]))
		w.b = w.b[9:]
		return h, true
	}
	switch w.next() {
	case msgp.StrType, msgp.BinType:
		s, ok := w.text(field)
		if ok && len(s) == 0 {
			return 0, w.fail(BadField, field, "an empty hash")
		}
		return foldHash(s), ok
	}
	u, _, ok := w.bits(field)
	return Hash(u), ok
}

// foldHash keeps the last 8 bytes, big-endian.
func foldHash(s []byte) Hash {
	var h Hash
	for _, c := range s[max(0, len(s)-8):] {
		h = h<<8 | Hash(c)
	}
	return h
}

// hashes appends a list of hashes to the batch.
func (w *wire) hashes(b *Batch, field string) ([]Hash, bool) {
	n, ok := w.list(field)
	if !ok {
		return nil, false
	}
	if n > MaxHashes {
		w.bad = Refusal{Reason: TooLarge, Field: field, Value: int64(n), Want: MaxHashes}
		return nil, false
	}
	from := len(b.hashes)
	for range n {
		h, ok := w.hash(field)
		if !ok {
			return nil, false
		}
		b.hashes = append(b.hashes, h)
	}
	return b.hashes[from:len(b.hashes):len(b.hashes)], true
}

// float reads any number as seconds; anything else is passed over as 0.
func (w *wire) float() (float64, bool) {
	switch w.next() {
	case msgp.Float64Type, msgp.Float32Type:
		f, rest, err := msgp.ReadFloat64Bytes(w.b)
		if err != nil {
			return 0, w.fail(CutShort, "", "")
		}
		w.b = rest
		if math.IsNaN(f) || math.IsInf(f, 0) {
			f = 0
		}
		return f, true
	case msgp.IntType, msgp.UintType:
		u, negative, ok := w.bits("")
		if negative {
			return float64(int64(u)), ok
		}
		return float64(u), ok
	}
	return 0, w.skip()
}
