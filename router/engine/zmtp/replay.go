package zmtp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// Dealer asks publishers for the batches that they keep. Its zero value is ready;
// zero fields take the defaults named. It holds no connection between calls and
// may be used from several goroutines.
type Dealer struct {
	// MaxBatches (100,000) and MaxBytes (512 MiB, of payloads) bound one answer.
	MaxBatches int
	MaxBytes   int64
	// Timeout (30 s) bounds one replay from dial to end, Silence (5 s) the wait
	// for the next byte of its answer.
	Timeout, Silence time.Duration
	// Handshake (3 s) bounds the dial and, again, the handshake.
	Handshake time.Duration
	// Limits bound each message.
	Limits Limits
	// Dial replaces the dialer.
	Dial DialFunc
}

// Replayed says what a replay brought. First and Last mean nothing while Count
// is 0.
type Replayed struct {
	First, Last uint64 // numbers
	Count       int    // batches handed on
	Bytes       int64  // of their payloads
	// Skipped counts answers that were not handed on: a number below the one
	// asked for, or not above the one before. Malformed counts those that were no
	// batch.
	Skipped, Malformed int
}

// Replay is [Dealer.Replay] of a dealer with the defaults.
func Replay(ctx context.Context, endpoint string, from uint64, each func(seq uint64, payload []byte) error) (Replayed, error) {
	return Dealer{}.Replay(ctx, endpoint, from, each)
}

// Replay asks the publisher at endpoint for all it keeps from number from on,
// and hands it to each in ascending order, every number once; a payload is
// borrowed until each returns. Both framings are read, with the topic and
// without.
//
// Whatever the error, the result says what was handed on before. An answer that
// begins above from is handed on to its end, and the error is an [*EvictedError]
// then. An empty answer is no error: there is nothing from that number on. A
// malformed one among others is counted and no more; when all are, the error
// wraps [ErrMalformed]. An error of each ends the replay and is returned wrapped.
func (d Dealer) Replay(ctx context.Context, endpoint string, from uint64, each func(seq uint64, payload []byte) error) (Replayed, error) {
	d.defaults()
	fail := func(got Replayed, err error) (Replayed, error) {
		return got, fmt.Errorf("replay from %d at %s: %w", from, endpoint, err)
	}
	end, err := ParseEndpoint(endpoint)
	if err != nil {
		return Replayed{}, err
	}
	timed, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	ended := func(err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case timed.Err() != nil:
			return fmt.Errorf("the answer did not end within %v: %w", d.Timeout, context.DeadlineExceeded)
		}
		return err
	}
	c, err := Dial(timed, end, Config{Type: DEALER, Limits: d.Limits, Handshake: d.Handshake, Silence: d.Silence}, d.Dial)
	if err != nil {
		return fail(Replayed{}, ended(err))
	}
	stop := context.AfterFunc(timed, func() { c.Close() })
	defer func() { stop(); c.Close() }()
	if err := c.Write(nil, binary.BigEndian.AppendUint64(nil, from)); err != nil {
		return fail(Replayed{}, ended(err))
	}
	got, err := d.answer(c, from, each)
	if err != nil {
		return fail(got, ended(err))
	}
	if got.Count > 0 && got.First > from {
		return fail(got, &EvictedError{Asked: from, First: got.First})
	}
	return got, nil
}

func (d *Dealer) defaults() {
	if d.MaxBatches <= 0 {
		d.MaxBatches = 100_000
	}
	if d.MaxBytes <= 0 {
		d.MaxBytes = 512 << 20
	}
	orDuration(&d.Timeout, 30*time.Second)
	orDuration(&d.Silence, 5*time.Second)
}

// answer reads to the end marker.
func (d *Dealer) answer(c *Conn, from uint64, each func(uint64, []byte) error) (Replayed, error) {
	var got Replayed
	var bad error
	for {
		frames, err := c.Read()
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("%w: the publisher closed the connection before the end of its answer", io.ErrUnexpectedEOF)
		}
		if err != nil {
			return got, err
		}
		seq, payload, ended, err := readReplay(frames)
		switch {
		case ended && got.Count == 0:
			return got, bad
		case ended:
			return got, nil
		case got.Count+got.Skipped+got.Malformed == d.MaxBatches:
			return got, fmt.Errorf("an answer of more than %d batches: %w", d.MaxBatches, ErrTooLarge)
		case got.Bytes+int64(len(payload)) > d.MaxBytes:
			return got, fmt.Errorf("an answer of more than %d bytes: %w", d.MaxBytes, ErrTooLarge)
		case err != nil:
			got.Malformed++
			bad = err
			continue
		case seq < from || got.Count > 0 && seq <= got.Last:
			got.Skipped++
			continue
		}
		if err := each(seq, payload); err != nil {
			return got, err
		}
		got.add(seq, len(payload))
	}
}

func (r *Replayed) add(seq uint64, size int) {
	if r.Count == 0 {
		r.First = seq
	}
	r.Last = seq
	r.Count++
	r.Bytes += int64(size)
}
