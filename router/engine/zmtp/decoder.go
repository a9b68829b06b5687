package zmtp

import (
	"encoding/binary"
	"fmt"
)

// Flags of a frame.
const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

const (
	bufferBytes = 64 << 10  // what a decoder reads into at first
	keepBytes   = 256 << 10 // a larger buffer is let go once it is empty
	leastSpace  = 4 << 10   // worth a read
)

// decoder cuts a stream of bytes into messages and commands. It does no input
// itself: the caller reads into space, says how much came, and takes what step
// finds.
//
//	buf  [ … given out | message begun … | p: next header … | w: free … ]
//	                   ^ r
type decoder struct {
	lim     Limits
	buf     []byte
	r, p, w int
	spans   []span // frames of the message begun, relative to r
	frames  [][]byte
}

type span struct{ from, to int }

// item is a whole message or a whole command.
type item struct {
	command bool
	body    []byte   // of a command
	frames  [][]byte // of a message
}

// space returns where the next bytes go, never empty. What step gave out before
// is no longer valid. The buffer grows only when it is full of bytes that came.
func (d *decoder) space() []byte {
	switch {
	case d.buf == nil, d.r == d.w && len(d.buf) > keepBytes:
		d.buf = make([]byte, bufferBytes)
		fallthrough
	case d.r == d.w:
		d.r, d.p, d.w = 0, 0, 0
	case len(d.buf)-d.w < leastSpace && d.r > 0:
		d.w = copy(d.buf, d.buf[d.r:d.w])
		d.p -= d.r
		d.r = 0
	}
	if d.w == len(d.buf) {
		grown := make([]byte, 2*len(d.buf))
		copy(grown, d.buf[:d.w])
		d.buf = grown
	}
	return d.buf[d.w:]
}

// wrote says that n bytes came into space.
func (d *decoder) wrote(n int) { d.w += n }

// step returns the next whole item; false when more bytes are needed. What it
// returns is valid until the next call of space, a message's slice of frames
// until the next call of step. After an error the stream cannot be read on.
func (d *decoder) step() (item, bool, error) {
	for {
		flags, from, size, ok, err := d.header()
		if err != nil || !ok {
			return item{}, false, err
		}
		if size > d.w-from {
			return item{}, false, nil
		}
		to := from + size
		d.p = to
		if flags&flagCommand != 0 {
			if len(d.spans) == 0 {
				d.r = to
			}
			return item{command: true, body: d.buf[from:to]}, true, nil
		}
		d.spans = append(d.spans, span{from - d.r, to - d.r})
		if flags&flagMore != 0 {
			continue
		}
		d.frames = d.frames[:0]
		for _, s := range d.spans {
			d.frames = append(d.frames, d.buf[d.r+s.from:d.r+s.to:d.r+s.to])
		}
		d.spans, d.r = d.spans[:0], to
		return item{frames: d.frames}, true, nil
	}
}

// header reads the header at p: its flags, and where the body begins and how
// long it is. Whatever is beyond the limits is refused before its body came.
func (d *decoder) header() (flags byte, from, size int, ok bool, err error) {
	head := d.buf[d.p:d.w]
	if len(head) < 2 {
		return 0, 0, 0, false, nil
	}
	flags = head[0]
	n, headBytes := uint64(head[1]), 2
	if flags&flagLong != 0 {
		if len(head) < 9 {
			return 0, 0, 0, false, nil
		}
		n, headBytes = binary.BigEndian.Uint64(head[1:]), 9
	}
	switch {
	case flags&^(flagMore|flagLong|flagCommand) != 0:
		err = protocolError("a frame with the flags %#02x", flags)
	case flags&flagCommand != 0 && flags&flagMore != 0:
		err = protocolError("a command in several frames")
	case n > uint64(d.lim.FrameBytes):
		err = fmt.Errorf("frame of %d bytes: %w of %d", n, ErrTooLarge, d.lim.FrameBytes)
	case flags&flagCommand == 0 && len(d.spans) == d.lim.Frames:
		err = fmt.Errorf("message of more than %d frames: %w", d.lim.Frames, ErrTooLarge)
	case uint64(d.p-d.r+headBytes)+n > uint64(d.lim.MessageBytes):
		err = fmt.Errorf("message of more than %d bytes: %w", d.lim.MessageBytes, ErrTooLarge)
	}
	return flags, d.p + headBytes, int(n), err == nil, err
}
