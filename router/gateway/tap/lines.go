package tap

import "bytes"

// Bounds of what is kept of a line or of a document: one that is longer is cut
// down to its end, where engines put the usage.
const (
	keepWhole = 64 << 10
	keepTail  = 8 << 10
	keepHead  = 512 // of a line beside its end
)

// keeper keeps bytes that come in pieces: all of them while they are few, their
// end otherwise.
type keeper struct {
	buf []byte
	cut bool // the beginning is not kept
}

func (k *keeper) add(p []byte) {
	if len(k.buf)+len(p) <= keepWhole {
		k.buf = append(k.buf, p...)
		return
	}
	k.cut = true
	if len(p) >= keepTail {
		k.buf = append(k.buf[:0], p[len(p)-keepTail:]...)
		return
	}
	// It fills up again before it is cut down once more, so that little is moved.
	keep := min(keepTail, len(k.buf))
	copy(k.buf, k.buf[len(k.buf)-keep:])
	k.buf = append(k.buf[:keep], p...)
}

func (k *keeper) reset() { k.buf, k.cut = k.buf[:0], false }

// lines splits a stream into lines, which end with \n, \r\n or \r as those of
// server-sent events do.
type lines struct {
	held   keeper
	head   []byte // the beginning of the line that is too long, or was last
	afterR bool   // the last byte was \r: a \n now belongs to it
}

// hold keeps bytes of a line.
func (l *lines) hold(p []byte) {
	if !l.held.cut && len(l.held.buf)+len(p) > keepWhole {
		l.head = append(l.head[:0], l.held.buf[:min(keepHead, len(l.held.buf))]...)
		l.head = append(l.head, p[:min(keepHead-len(l.head), len(p))]...)
	}
	l.held.add(p)
}

// next takes the bytes of the next line off p. Without a whole line in p it keeps
// p for later. whole says that the line's beginning is there, rest is what
// follows it; line is valid until the next call.
func (l *lines) next(p []byte) (line, rest []byte, whole, ok bool) {
	if l.afterR {
		l.afterR = false
		if len(p) > 0 && p[0] == '\n' {
			p = p[1:]
		}
	}
	i := bytes.IndexByte(p, '\n')
	if i < 0 {
		i = len(p)
	}
	if r := bytes.IndexByte(p[:i], '\r'); r >= 0 {
		i = r
	}
	if i == len(p) {
		l.hold(p)
		return nil, nil, false, false
	}
	line, rest = p[:i], p[i+1:]
	if p[i] == '\r' {
		if len(rest) == 0 {
			l.afterR = true
		} else if rest[0] == '\n' {
			rest = rest[1:]
		}
	}
	whole = true
	if len(l.held.buf) > 0 || l.held.cut {
		l.hold(line)
		line, whole = l.held.buf, !l.held.cut
		// The line is read before the buffer is filled again.
		l.held.reset()
	}
	return line, rest, whole, true
}
