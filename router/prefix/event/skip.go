package event

import "encoding/binary"

// skip passes over one value, however deep, without recursion: it counts the
// values still owed. A list that declares more than the bytes left can hold is
// cut short.
func (w *wire) skip() bool {
	b := w.b
	for owed := uint64(1); owed > 0; owed-- {
		if uint64(len(b)) < owed {
			return w.fail(CutShort, "", "")
		}
		size, values, ok := extent(b)
		if !ok || size > uint64(len(b)) {
			return w.fail(CutShort, "", "")
		}
		b = b[size:]
		owed += values
	}
	w.b = b
	return true
}

// extent gives the bytes of the value at the start of b, without the values
// inside it, and how many those are. The one lead byte that msgpack leaves
// unused (0xc1) counts as a byte.
func extent(b []byte) (size, values uint64, ok bool) {
	c := b[0]
	switch {
	case c < 0x80 || c >= 0xe0 || c == 0xc0 || c == 0xc1 || c == 0xc2 || c == 0xc3:
		return 1, 0, true
	case c < 0x90:
		return 1, 2 * uint64(c&0x0f), true
	case c < 0xa0:
		return 1, uint64(c & 0x0f), true
	case c < 0xc0:
		return 1 + uint64(c&0x1f), 0, true
	}
	switch c {
	case 0xcc, 0xd0:
		return 2, 0, true
	case 0xcd, 0xd1, 0xd4:
		return 3, 0, true
	case 0xce, 0xd2, 0xca:
		return 5, 0, true
	case 0xcf, 0xd3, 0xcb:
		return 9, 0, true
	case 0xd5:
		return 4, 0, true
	case 0xd6:
		return 6, 0, true
	case 0xd7:
		return 10, 0, true
	case 0xd8:
		return 18, 0, true
	}
	return extentSized(c, b[1:])
}

// extentSized is extent for the forms whose length follows the lead byte.
func extentSized(c byte, b []byte) (size, values uint64, ok bool) {
	width := lengthWidth(c)
	if len(b) < width {
		return 0, 0, false
	}
	var n uint64
	switch width {
	case 1:
		n = uint64(b[0])
	case 2:
		n = uint64(binary.BigEndian.Uint16(b))
	default:
		n = uint64(binary.BigEndian.Uint32(b))
	}
	head := uint64(1 + width)
	switch c {
	case 0xdc, 0xdd: // list
		return head, n, true
	case 0xde, 0xdf: // map
		return head, 2 * n, true
	case 0xc7, 0xc8, 0xc9: // extension: its type byte, then its bytes
		return head + 1 + n, 0, true
	}
	return head + n, 0, true // bytes or string
}

// lengthWidth is the width of the length that follows lead byte c.
func lengthWidth(c byte) int {
	switch c {
	case 0xc4, 0xc7, 0xd9:
		return 1
	case 0xc5, 0xc8, 0xda, 0xdc, 0xde:
		return 2
	}
	return 4
}
