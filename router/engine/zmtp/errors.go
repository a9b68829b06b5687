package zmtp

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrProtocol is wrapped by errors about bytes that are no ZMTP 3.
	ErrProtocol = errors.New("not ZMTP 3")
	// ErrMechanism is wrapped when the peer wants authentication.
	ErrMechanism = errors.New("security mechanism not supported")
	// ErrSocketType is wrapped when the peer is a socket of the wrong type.
	ErrSocketType = errors.New("wrong socket type")
	// ErrTooLarge is wrapped when a frame or message is beyond [Limits].
	ErrTooLarge = errors.New("beyond the limit")
	// ErrSilent is wrapped when a peer sent nothing for too long.
	ErrSilent = errors.New("peer is silent")
	// ErrTooMany is wrapped when a bound socket has no room for a publisher.
	ErrTooMany = errors.New("too many publishers")
	// ErrMalformed is wrapped by errors about a message whose frames are no
	// batch of events and no answer to a replay.
	ErrMalformed = errors.New("not the frames of an event publisher")
)

// EvictedError is returned by a replay whose answer begins above the number
// that was asked for: the publisher's buffer no longer holds what came before,
// or never did.
type EvictedError struct {
	Asked uint64 // first number asked for
	First uint64 // first number that came
}

func (e *EvictedError) Error() string {
	return fmt.Sprintf("replay from %d begins at %d: the publisher's buffer no longer holds %d batches; "+
		"resynchronise, or give the publisher a larger buffer (buffer_steps)", e.Asked, e.First, e.First-e.Asked)
}

func protocolError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...))
}

func silentError(d time.Duration, what string) error {
	return fmt.Errorf("%w for %v: %s", ErrSilent, d.Round(time.Millisecond), what)
}
