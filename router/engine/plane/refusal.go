package plane

import (
	"errors"
	"fmt"
)

// Reason names a cause of a refusal, as a metric's label does.
type Reason string

// The reasons.
const (
	BadFrames  Reason = "bad_frames"  // not the frames of an event plane's message
	BadVersion Reason = "bad_version" // a version that this program does not know
	BadLength  Reason = "bad_length"  // too long, or not as long as it says
	BadMsgpack Reason = "bad_msgpack" // not msgpack, or cut short
	BadField   Reason = "bad_field"   // a field that is missing or of another type
	Mismatch   Reason = "mismatch"    // frames and envelope contradict each other
)

// Refusal is the error for a message that cannot be used.
type Refusal struct {
	Reason Reason
	Detail string
}

// Error gives the detail; the reason is its key.
func (r *Refusal) Error() string { return r.Detail }

func refuse(reason Reason, format string, args ...any) *Refusal {
	return &Refusal{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// asRefusal gives an error of this package as what it is.
func asRefusal(err error) *Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return r
	}
	return refuse(BadMsgpack, "%v", err)
}
