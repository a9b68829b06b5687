package plane

import (
	"math"
	"strconv"

	"github.com/tinylib/msgp/msgp"
)

// MaxDepth is how deep values may be nested.
const MaxDepth = 64

// MaxFields is how many fields one object may have.
const MaxFields = 1024

// object goes through the map at the head of p: field gets each key with its
// undecoded value. It returns what follows the map.
func object(p []byte, field func(key string, value []byte) error) (rest []byte, err error) {
	n, rest, err := msgp.ReadMapHeaderBytes(p)
	if err != nil {
		return p, refuse(BadMsgpack, "a map was expected: %v", err)
	}
	if n > MaxFields {
		return p, refuse(BadMsgpack, "a map of %d fields, over the limit of %d", n, MaxFields)
	}
	for range n {
		key, after, err := msgp.ReadMapKeyZC(rest)
		if err != nil {
			return p, refuse(BadMsgpack, "the key of a field: %v", err)
		}
		end, err := skip(after, MaxDepth)
		if err != nil {
			return p, err
		}
		if err := field(string(key), after[:len(after)-len(end)]); err != nil {
			return p, err
		}
		rest = end
	}
	return rest, nil
}

// skip gives what follows the value at the head of p. Unlike the library's it
// has a depth that cannot exhaust a stack.
func skip(p []byte, depth int) ([]byte, error) {
	var n uint32
	var err error
	pairs := uint64(1)
	switch msgp.NextType(p) {
	case msgp.MapType:
		n, p, err = msgp.ReadMapHeaderBytes(p)
		pairs = 2
	case msgp.ArrayType:
		n, p, err = msgp.ReadArrayHeaderBytes(p)
	default:
		if p, err = msgp.Skip(p); err != nil {
			return p, refuse(BadMsgpack, "the message is cut short or no msgpack: %v", err)
		}
		return p, nil
	}
	if err != nil {
		return p, refuse(BadMsgpack, "the message is cut short: %v", err)
	}
	if depth == 0 {
		return p, refuse(BadMsgpack, "values are nested over %d deep", MaxDepth)
	}
	for range uint64(n) * pairs {
		if p, err = skip(p, depth-1); err != nil {
			return p, err
		}
	}
	return p, nil
}

func unsigned(key string, v []byte) (uint64, error) {
	n, _, err := msgp.ReadUint64Bytes(v)
	if err != nil {
		return 0, refuse(BadField, "%s: a number from 0 up was expected, not %s", key, msgp.NextType(v))
	}
	return n, nil
}

// workerID reads a worker's id, a number or the digits of one; ok is false
// for a name that is none, which engines write that Dynamo did not start.
func workerID(key string, v []byte) (id uint64, ok bool, err error) {
	if msgp.NextType(v) != msgp.StrType {
		id, err = unsigned(key, v)
		return id, err == nil, err
	}
	s, err := str(key, v, MaxTopicBytes)
	if err != nil {
		return 0, false, err
	}
	id, bad := strconv.ParseUint(s, 10, 64)
	return id, bad == nil, nil
}

// rank reads a rank; absent and nil are rank 0, as in Dynamo.
func rank(key string, v []byte) (int, error) {
	if msgp.IsNil(v) {
		return 0, nil
	}
	n, err := unsigned(key, v)
	if err != nil {
		return 0, err
	}
	if n > math.MaxUint16 {
		return 0, refuse(BadField, "%s %d, over the limit of %d", key, n, math.MaxUint16)
	}
	return int(n), nil
}

func str(key string, v []byte, most int) (string, error) {
	s, _, err := msgp.ReadStringZC(v)
	if err != nil {
		return "", refuse(BadField, "%s: text was expected, not %s", key, msgp.NextType(v))
	}
	if len(s) > most {
		return "", refuse(BadField, "%s of %d bytes, over the limit of %d", key, len(s), most)
	}
	return string(s), nil
}

func bin(key string, v []byte) ([]byte, error) {
	b, _, err := msgp.ReadBytesZC(v)
	if err != nil {
		return nil, refuse(BadField, "%s: bytes were expected, not %s", key, msgp.NextType(v))
	}
	return b, nil
}

// amount reads a figure: a number from 0 up, whole or not; nil is unknown.
func amount(key string, v []byte) (f float64, known bool, err error) {
	switch msgp.NextType(v) {
	case msgp.NilType:
		return 0, false, nil
	case msgp.Float64Type, msgp.Float32Type:
		if msgp.NextType(v) == msgp.Float32Type {
			var g float32
			g, _, err = msgp.ReadFloat32Bytes(v)
			f = float64(g)
		} else {
			f, _, err = msgp.ReadFloat64Bytes(v)
		}
	default:
		var n uint64
		n, err = unsigned(key, v)
		f = float64(n)
	}
	if err != nil {
		return 0, false, refuse(BadField, "%s: a number from 0 up was expected, not %s", key, msgp.NextType(v))
	}
	if !(f >= 0 && f <= 1<<53) {
		return 0, false, refuse(BadField, "%s is %g; a number from 0 to 2^53 was expected", key, f)
	}
	return f, true, nil
}
