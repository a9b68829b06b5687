package event

import (
	"bytes"
	"fmt"

	"github.com/tinylib/msgp/msgp"
)

// JSON writes a msgpack message with named fields, as Dynamo's event plane
// sends, as the JSON that RouterEvents and Drain read. Whole numbers keep all
// their digits. The error wraps ErrMessage.
func JSON(payload []byte) ([]byte, error) {
	if len(payload) == 0 || len(payload) > MaxBatchBytes {
		return nil, fmt.Errorf("%w: %d bytes, 1 to %d are read", ErrMessage, len(payload), MaxBatchBytes)
	}
	w := wire{b: payload}
	if !w.skip() || !shallow(payload) {
		return nil, fmt.Errorf("%w: the message ends early or is nested too deep", ErrMessage)
	}
	var out bytes.Buffer
	out.Grow(2 * len(payload))
	if _, err := msgp.UnmarshalAsJSON(&out, payload); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return out.Bytes(), nil
}

// maxNesting is how deep a message may be nested: RouterEvents have seven levels.
const maxNesting = 32

// shallow reports that the value at the start of b, which is whole, is nested no
// deeper than maxNesting. It does not recurse.
func shallow(b []byte) bool {
	var owed [maxNesting + 1]uint64 // values still to come, by level
	owed[0] = 1
	for level := 0; level >= 0; {
		if owed[level] == 0 {
			level--
			continue
		}
		owed[level]--
		size, values, ok := extent(b)
		if !ok || size > uint64(len(b)) {
			return false
		}
		b = b[size:]
		if values > 0 {
			if level++; level > maxNesting {
				return false
			}
			owed[level] = values
		}
	}
	return true
}
