// Package delta makes what the renderer writes to a terminal smaller. Bubble
// Tea rewrites a line whole when one cell of it has changed; a Writer knows what
// each line held before and passes on the changed cells only.
//
// It promises that the terminal shows what it would have shown without it: a
// write that is not a plain frame goes through as it is and everything known is
// forgotten; so does a frame that paints every line, as after a change of size.
// A Writer belongs to one goroutine; its memory is one screen.
package delta

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// home begins every frame of the renderer on the alternate screen.
const home = "\x1b[H"

// maxLines bounds what is remembered.
const maxLines = 2000

// Writer turns frames into changes.
type Writer struct {
	lines []string // as they stand on the terminal; "" is unknown
	old   []glyph
	fresh []glyph
	out   []byte
}

// glyph is what one or more cells show: a rune and the style in force.
type glyph struct {
	style string
	r     rune
	at    int // column
}

// Forget says that the terminal was written to by someone else.
func (w *Writer) Forget() { w.lines = w.lines[:0] }

// Next returns what to write in place of b, which the caller must not keep.
func (w *Writer) Next(b []byte) []byte {
	if !bytes.HasPrefix(b, []byte(home)) {
		w.Forget()
		return b
	}
	body, tail, ok := cutTail(b[len(home):])
	if !ok {
		w.Forget()
		return b
	}
	w.out = append(w.out[:0], home...)
	skipped, n := 0, 0
	for ; ; n++ {
		if n >= maxLines {
			w.Forget()
			return b
		}
		if n >= len(w.lines) {
			w.lines = append(w.lines, "")
		}
		if len(body) > 0 && body[0] == '\n' {
			skipped++
			w.out = append(w.out, '\n')
			body = body[1:]
			continue
		}
		line, rest, more := bytes.Cut(body, []byte("\r\n"))
		if len(line) > 0 || more {
			w.line(n, string(line))
		} else {
			skipped++
		}
		if !more {
			break
		}
		w.out = append(w.out, "\r\n"...)
		body = rest
	}
	if skipped == 0 {
		return b // all painted anew: what was there before may be gone
	}
	w.out = append(w.out, tail...)
	return w.out
}

// cutTail parts a frame from the move of the cursor that ends it.
func cutTail(b []byte) (body, tail []byte, ok bool) {
	i := bytes.LastIndex(b, []byte("\x1b["))
	if i < 0 || b[len(b)-1] != 'H' {
		return nil, nil, false
	}
	return b[:i], b[i:], true
}

// line writes the n-th line, which stands in column 0, as its changes.
func (w *Writer) line(n int, line string) {
	was := w.lines[n]
	w.lines[n] = line
	start := len(w.out)
	if was != "" {
		var ok1, ok2 bool
		var end1, end2 int
		w.old, end1, ok1 = glyphs(w.old[:0], was)
		w.fresh, end2, ok2 = glyphs(w.fresh[:0], line)
		if ok1 && ok2 && end1 == end2 {
			w.changes(end2)
			if len(w.out)-start < len(line) {
				return
			}
			w.out = w.out[:start]
		}
	}
	if _, _, ok := glyphs(w.fresh[:0], line); !ok {
		w.lines[n] = "" // not understood: whole again the next time
	}
	w.out = append(w.out, line...)
}

// bridge is the number of unchanged cells that cost less than jumping them.
const bridge = 5

// changes writes the glyphs that differ from the old ones.
func (w *Writer) changes(end int) {
	style, at := "unknown", 0
	jumped := false
	o := 0
	last := -bridge - 1 // index of the last changed glyph
	for i := range w.fresh {
		g := &w.fresh[i]
		for o < len(w.old) && w.old[o].at < g.at {
			o++
		}
		same := o < len(w.old) && w.old[o] == *g
		if same && nextAt(w.old, o, end) == nextAt(w.fresh, i, end) {
			continue
		}
		from := i
		if i-last <= bridge && jumped {
			from = last + 1
		}
		if w.fresh[from].at != at || !jumped {
			w.out = append(w.out, "\x1b["...)
			w.out = strconv.AppendInt(w.out, int64(w.fresh[from].at+1), 10)
			w.out = append(w.out, 'G')
		}
		for k := from; k <= i; k++ {
			if w.fresh[k].style != style {
				style = w.fresh[k].style
				w.out = append(w.out, sequence(style)...)
			}
			w.out = utf8.AppendRune(w.out, w.fresh[k].r)
		}
		at, last, jumped = nextAt(w.fresh, i, end), i, true
	}
	if style != "" && jumped {
		w.out = append(w.out, reset...)
	}
}

const reset = "\x1b[m"

// sequence is what puts a style in force from any other.
func sequence(style string) string {
	if style == "" {
		return reset
	}
	return style
}

func nextAt(list []glyph, i, end int) int {
	if i+1 < len(list) {
		return list[i+1].at
	}
	return end
}

// glyphs reads a line of plain runes and styles. ok is false for a line with
// anything else in it: another sequence, a control, a mark that joins.
func glyphs(list []glyph, line string) (out []glyph, end int, ok bool) {
	style := ""
	for i := 0; i < len(line); {
		c := line[i]
		if c == '\x1b' {
			n := sgr(line[i:])
			if n == 0 {
				return list, 0, false
			}
			style = styled(line[i : i+n])
			i += n
			continue
		}
		if c < 0x20 || c == 0x7f {
			return list, 0, false
		}
		r, size, width := rune(c), 1, 1
		if c >= 0x80 {
			r, size = utf8.DecodeRuneInString(line[i:])
			if r < 0x2500 || r > 0x25ff { // lines, blocks and shapes take one cell
				width = ansi.StringWidth(line[i : i+size])
			}
			if width == 0 || (r == utf8.RuneError && size == 1) {
				return list, 0, false
			}
		}
		list = append(list, glyph{style, r, end})
		end += width
		i += size
	}
	return list, end, true
}

// styled is a style as glyphs keep it: "" for none. Only sequences that begin
// with a reset are absolute.
func styled(seq string) string {
	if seq == reset || seq == "\x1b[0m" {
		return ""
	}
	return seq
}

// sgr is the length of the absolute style sequence that s begins with, 0 when
// it begins with another one. Themes write ESC [ ; … m: an empty first
// parameter resets.
func sgr(s string) int {
	end := strings.IndexByte(s, 'm')
	if end < 2 || s[1] != '[' {
		return 0
	}
	params := s[2:end]
	if strings.Trim(params, "0123456789;") != "" {
		return 0
	}
	if params == "" || params == "0" || params[0] == ';' || strings.HasPrefix(params, "0;") {
		return end + 1
	}
	return 0
}
