package model

import (
	"bytes"
	"math"
	"strconv"
)

// Maybe is a measured number that may be unknown. Unknown is NaN inside and
// null in JSON, so that it can never be mistaken for 0.
type Maybe float64

// Unknown is the Maybe that was not measured.
func Unknown() Maybe { return Maybe(math.NaN()) }

// Known reports whether the number was measured.
func (m Maybe) Known() bool { return !math.IsNaN(float64(m)) }

// MarshalJSON writes null for an unknown or infinite number.
func (m Maybe) MarshalJSON() ([]byte, error) {
	f := float64(m)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, f, 'g', -1, 64), nil
}

// UnmarshalJSON reads a number, or null as unknown.
func (m *Maybe) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		*m = Unknown()
		return nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return err
	}
	*m = Maybe(f)
	return nil
}
