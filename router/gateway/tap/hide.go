package tap

import (
	"bytes"
	"unsafe"

	"github.com/tidwall/gjson"
)

// hider passes a stream on event by event, without those that carry nothing but
// usage. Engines send whole events, so that nothing is held back as a rule.
type hider struct {
	in   []byte // what was read last
	held []byte // the event that has begun
	out  []byte // what is to be passed on
	at   int    // how much of out was
	err  error  // of the source, told when out is empty
	// through says that the event in passing is too long to be held.
	through bool
	blank   bool // the line in passing is empty so far
	afterR  bool // the last byte was \r
	// raw says that lines end in a way that this does not take apart: everything
	// is passed on from then.
	raw bool
}

// readSize is how much is read at once.
const readSize = 16 << 10

func (h *hider) read(p []byte, b *Body) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for h.at == len(h.out) {
		if h.err != nil {
			return 0, h.err
		}
		if h.in == nil {
			h.in, h.blank = make([]byte, readSize), true
		}
		n, err := b.src.Read(h.in)
		b.watch(h.in[:n])
		h.out, h.at = h.out[:0], 0
		h.feed(h.in[:n])
		if err != nil {
			h.err = err
			h.pass()
			b.finish(err)
		}
	}
	n := copy(p, h.out[h.at:])
	h.at += n
	return n, nil
}

// feed takes the next bytes apart at the ends of events: empty lines.
func (h *hider) feed(p []byte) {
	from := 0
	for i, c := range p {
		// Engines end lines with \n or \r\n; a lone \r is allowed but not seen.
		h.raw = h.raw || h.afterR && c != '\n'
		h.afterR = c == '\r'
		switch {
		case h.raw || c == '\r':
		case c != '\n':
			h.blank = false
		case !h.blank:
			h.blank = true // a line ends
		default: // an empty line: the event ends
			h.add(p[from : i+1])
			from = i + 1
			if h.through || !usageOnly(h.held) {
				h.pass()
			}
			h.held, h.through = h.held[:0], false
		}
	}
	h.add(p[from:])
}

// add holds bytes of an event, or passes them on where it is too long.
func (h *hider) add(p []byte) {
	h.held = append(h.held, p...)
	h.through = h.through || len(h.held) > keepWhole
	if h.raw || h.through {
		h.pass()
	}
}

// pass passes on what is held.
func (h *hider) pass() {
	h.out = append(h.out, h.held...)
	h.held = h.held[:0]
}

// usageOnly reports that an event carries usage and no choices.
func usageOnly(event []byte) bool {
	if !bytes.Contains(event, usageKey) {
		return false
	}
	var data []byte
	for line := range bytes.Lines(event) {
		p := payload(bytes.TrimRight(line, "\r\n"))
		if p == nil {
			if len(bytes.TrimRight(line, "\r\n")) > 0 {
				return false // an id, a name, a comment: not ours to drop
			}
			continue
		}
		if data != nil {
			return false
		}
		data = p
	}
	if !nests(data) {
		return false
	}
	text := unsafe.String(unsafe.SliceData(data), len(data))
	if !gjson.Valid(text) {
		return false
	}
	choices := gjson.Get(text, "choices")
	return choices.IsArray() && len(choices.Array()) == 0 && gjson.Get(text, "usage").IsObject()
}
