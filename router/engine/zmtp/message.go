package zmtp

import (
	"encoding/binary"
	"fmt"
)

// Message is what a publisher sent. Its frames are borrowed: they hold until the
// function that was given them returns, and are written over then. Who keeps a
// frame copies it.
type Message struct {
	// Conn numbers the connection that brought it, from 1 up: a new one may lead
	// to a new process behind the same endpoint.
	Conn   uint64
	Frames [][]byte
}

// Batch is a message in the form in which engines publish their KV events.
// Topic and Payload are borrowed like a [Message]'s frames.
type Batch struct {
	Conn    uint64
	Seq     uint64 // the publisher's own count, from 0 in each process
	Topic   []byte
	Payload []byte
}

// Batch reads the message as topic, number (8 bytes, big-endian) and payload.
func (m Message) Batch() (Batch, error) {
	if len(m.Frames) != 3 {
		return Batch{}, fmt.Errorf("%w: %d frames, want topic, number, payload", ErrMalformed, len(m.Frames))
	}
	if n := len(m.Frames[1]); n != 8 {
		return Batch{}, fmt.Errorf("%w: a number of %d bytes, want 8", ErrMalformed, n)
	}
	return Batch{
		Conn: m.Conn, Seq: binary.BigEndian.Uint64(m.Frames[1]),
		Topic: m.Frames[0], Payload: m.Frames[2],
	}, nil
}

// endOfReplay is the number that ends a replay's answer.
const endOfReplay = 1<<64 - 1

// readReplay reads one answer to a replay: the last two frames are number and
// payload, whether a topic stands before them (newer publishers) or not. An
// empty payload ends the answer too.
func readReplay(frames [][]byte) (seq uint64, payload []byte, ended bool, err error) {
	n := len(frames)
	if n < 2 || n > 4 {
		return 0, nil, false, fmt.Errorf("%w: a replay's answer of %d frames, want \"\", [topic,] number, payload", ErrMalformed, n)
	}
	if size := len(frames[n-2]); size != 8 {
		return 0, nil, false, fmt.Errorf("%w: a replay's answer with a number of %d bytes, want 8", ErrMalformed, size)
	}
	seq, payload = binary.BigEndian.Uint64(frames[n-2]), frames[n-1]
	return seq, payload, seq == endOfReplay || len(payload) == 0, nil
}
