package cell

import (
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Foreign makes a Text from a string that came from outside: ids, tenants,
// model names, hosts, error texts. What a terminal would obey, hide, join or
// reorder becomes a visible escape: \x9b for a byte or a control, \u202e for
// other runes, \\ for a backslash, so that two different strings never look
// alike by it.
func Foreign(s string) Text { return foreign(s, -1) }

// Fit is Foreign cut with … to at most w cells. It looks only at as much of s
// as can fill them, so the length of s does not matter.
func Fit(s string, w int) Text {
	if w <= 0 {
		return Text{}
	}
	t := foreign(s, w)
	if t.w <= w {
		return t
	}
	head, n := prefix(t.s, w-1)
	return Text{s: head + "…", w: n + 1, cut: true}
}

// foreign stops once more than limit cells are filled; -1 is no limit.
func foreign(s string, limit int) Text {
	n := plainPrefix(s, limit)
	if n == len(s) || (limit >= 0 && n > limit) {
		return Text{s: s[:n], w: n}
	}
	b := append(make([]byte, 0, len(s)+16), s[:n]...)
	w := n
	for i := n; i < len(s) && (limit < 0 || w <= limit); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			b = appendByteEscape(b, s[i])
			w += 4
			i++
			continue
		}
		before := len(b)
		if rw := runeWidth(r); rw > 0 {
			b = utf8.AppendRune(b, r)
			w += rw
		} else {
			b = appendEscape(b, r)
			w += len(b) - before
		}
		i += size
	}
	return Text{s: string(b), w: w}
}

// plainPrefix returns how many leading bytes of s are printable ASCII other
// than the backslash, at most limit+1 when there is a limit.
func plainPrefix(s string, limit int) int {
	end := len(s)
	if limit >= 0 && end > limit+1 {
		end = limit + 1
	}
	for i := 0; i < end; i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '\\' {
			return i
		}
	}
	return end
}

func appendByteEscape(b []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	return append(b, '\\', 'x', hex[c>>4], hex[c&15])
}

func appendEscape(b []byte, r rune) []byte {
	switch {
	case r == '\\':
		return append(b, '\\', '\\')
	case r < 0x100:
		return appendByteEscape(b, byte(r))
	case r < 0x10000:
		b = append(b, '\\', 'u')
		for shift := 12; shift >= 0; shift -= 4 {
			b = strconv.AppendInt(b, int64(r>>shift&15), 16)
		}
		return b
	}
	b = append(b, '\\', 'u', '{')
	b = strconv.AppendInt(b, int64(r), 16)
	return append(b, '}')
}

// runeWidth returns the cells that r takes as it stands, or 0 when it must be
// escaped.
func runeWidth(r rune) int {
	if r < 0x7f {
		if r < 0x20 || r == '\\' {
			return 0
		}
		return 1
	}
	if !unicode.IsPrint(r) || joins(r) {
		return 0
	}
	w := ansi.StringWidth(string(r))
	if w > 2 {
		return 0
	}
	return w
}

// joins reports whether r can change how its neighbours are drawn: combining
// marks, selectors, regional indicators, skin tones, conjoining Hangul, and
// right-to-left scripts, which reorder the cells of a row.
func joins(r rune) bool {
	switch {
	case r == utf8.RuneError:
		return true
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc, unicode.Cf, unicode.Sk) && r > 0xff:
		return true
	case unicode.In(r, unicode.Prepended_Concatenation_Mark, unicode.Regional_Indicator, unicode.Other_Grapheme_Extend):
		return true
	case r >= 0x1100 && r <= 0x11ff, r >= 0xa960 && r <= 0xa97f, r >= 0xd7b0 && r <= 0xd7ff:
		return true
	case r >= 0x1f3fb && r <= 0x1f3ff:
		return true
	case r == 0x0d4e, r == 0x0e33, r == 0x0eb3, r == 0x111c2, r == 0x111c3, r == 0x113d1, r == 0x1193f, r == 0x11941,
		r >= 0x11a84 && r <= 0x11a89, r == 0x11d46, r == 0x11f02:
		return true // letters that Unicode joins to a neighbour all the same
	case rightToLeft(r):
		return true
	}
	return false
}

// rightToLeft names the blocks of the scripts whose runes have bidi class R or
// AL.
func rightToLeft(r rune) bool {
	return r >= 0x0590 && r <= 0x08ff || r >= 0xfb1d && r <= 0xfdff || r >= 0xfe70 && r <= 0xfefe ||
		r >= 0x10800 && r <= 0x10fff || r >= 0x1e800 && r <= 0x1efff
}
