package plane

import (
	"math"

	"github.com/tinylib/msgp/msgp"
)

// NoRank is what BatchRank gives for a batch that names none.
const NoRank = -1

// BatchRank reads which rank a batch of KV events names, as engines publish them
// themselves ([ts, [event…], data_parallel_rank?], or a map of these), in the
// engine's own numbering. The events are skipped, not decoded. A batch that
// cannot be read, or names a rank that cannot be, names none.
func BatchRank(payload []byte) int {
	var at []byte
	switch msgp.NextType(payload) {
	case msgp.ArrayType:
		n, rest, err := msgp.ReadArrayHeaderBytes(payload)
		if err != nil || n < 3 {
			return NoRank
		}
		for range 2 {
			if rest, err = skip(rest, MaxDepth); err != nil {
				return NoRank
			}
		}
		at = rest
	case msgp.MapType:
		_, err := object(payload, func(key string, v []byte) error {
			if key == "data_parallel_rank" || key == "dp_rank" {
				at = v
			}
			return nil
		})
		if err != nil {
			return NoRank
		}
	}
	if len(at) == 0 || msgp.IsNil(at) {
		return NoRank
	}
	n, _, err := msgp.ReadUint64Bytes(at)
	if err != nil || n > math.MaxUint16 {
		return NoRank
	}
	return int(n)
}
