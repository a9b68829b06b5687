package plane

import (
	"math"

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
