package list

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Filter is a parsed filter: alternatives, each a list of terms that must all
// hold. The zero value lets everything pass.
type Filter struct {
	text string
	any  [][]term
}

// term is one condition. field -1 looks at every text.
type term struct {
	not   bool
	field int
	op    byte // 0 text, ':' value, '>' and '<' numbers
	text  string
	num   float64
}

// Bounds of a filter's text.
const (
	MaxFilterBytes = 256
	maxTerms       = 32
)

// ErrTooLong is returned for a filter above MaxFilterBytes or 32 terms.
var ErrTooLong = errors.New("filter is too long")

// FieldInfo is what the filter needs to know of a column.
type FieldInfo struct {
	// Name is the word before : > or <, lower case.
	Name string
	// Number says that > and < apply; Exact that a value must be the whole text.
	Number, Exact bool
}

// ParseFilter reads the filter language:
//
//	text          some text field contains it, upper and lower case alike
//	key:value     the column contains value, or is value where columns are exact
//	key>n key<n   the column is a number above or below n: 12, 0.5, 48k, 1.2M, 80%, 30s, 5m, 2h, 183ms
//	!term         the term does not hold; an unknown figure is neither above nor below
//	a b           both hold
//	a | b         one of them holds; | binds weaker than the space
//	"a b:c"       text as it stands, with \" for a quote and \\ for a backslash
func ParseFilter(s string, fields []FieldInfo) (Filter, error) {
	f := Filter{text: s}
	if len(s) > MaxFilterBytes {
		return Filter{}, ErrTooLong
	}
	words, err := split(s)
	if err != nil {
		return Filter{}, err
	}
	if len(words) > maxTerms {
		return Filter{}, ErrTooLong
	}
	var all []term
	for _, w := range words {
		if w.bar {
			if len(all) == 0 {
				return Filter{}, errors.New("nothing stands before |")
			}
			f.any, all = append(f.any, all), nil
			continue
		}
		t, err := parseTerm(w, fields)
		if err != nil {
			return Filter{}, err
		}
		all = append(all, t)
	}
	if len(f.any) > 0 && len(all) == 0 {
		return Filter{}, errors.New("nothing stands after |")
	}
	if len(all) > 0 {
		f.any = append(f.any, all)
	}
	return f, nil
}

// String returns the filter as it was typed.
func (f Filter) String() string { return f.text }

// Empty reports whether everything passes.
func (f Filter) Empty() bool { return len(f.any) == 0 }

// word is a piece of the filter: text before an operator, which may be 0, and
// text after it.
type word struct {
	bar, not  bool
	key, text string
	op        byte
}

// split cuts the filter into words. Inside quotes nothing has a meaning but a
// backslash before a quote or another backslash.
func split(s string) ([]word, error) {
	var out []word
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case unicode.IsSpace(r):
			i += size
		case r == '|':
			out = append(out, word{bar: true})
			i++
		default:
			w, n, err := oneWord(s[i:])
			if err != nil {
				return nil, err
			}
			out = append(out, w)
			i += n
		}
	}
	return out, nil
}

func oneWord(s string) (w word, n int, err error) {
	var b strings.Builder
	i := 0
	if s[0] == '!' && len(s) > 1 && s[1] != '!' {
		w.not = true
		i = 1
	}
	quoted := false
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case quoted && r == '\\' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			b.WriteByte(s[i+1])
			size = 2
		case r == '"':
			quoted = !quoted
		case quoted:
			b.WriteString(s[i : i+size])
		case unicode.IsSpace(r) || r == '|':
			w.text = b.String()
			return w, i, nil
		case w.op == 0 && b.Len() > 0 && (r == ':' || r == '>' || r == '<'):
			w.op, w.key = byte(r), strings.ToLower(b.String())
			b.Reset()
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	if quoted {
		return w, i, errors.New(`a quote " is not closed`)
	}
	w.text = b.String()
	return w, i, nil
}

func parseTerm(w word, fields []FieldInfo) (term, error) {
	t := term{not: w.not, field: -1, op: w.op, text: strings.ToLower(w.text)}
	if w.op == 0 {
		return t, nil
	}
	for i, f := range fields {
		if f.Name == w.key {
			t.field = i
		}
	}
	if t.field < 0 {
		return t, fmt.Errorf("no column %s: columns are %s", w.key, columnNames(fields))
	}
	if w.text == "" {
		return t, fmt.Errorf("nothing stands after %s%c", w.key, w.op)
	}
	if w.op == ':' {
		return t, nil
	}
	if !fields[t.field].Number {
		return t, fmt.Errorf("%s is not a number: use %s:text", w.key, w.key)
	}
	n, err := parseNumber(w.text)
	t.num = n
	return t, err
}

func columnNames(fields []FieldInfo) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return strings.Join(names, " ")
}

// parseNumber reads a figure with a unit as the screen writes it. Times are in
// seconds but ms, which is in milliseconds, like the columns that show it.
func parseNumber(s string) (float64, error) {
	num := strings.TrimRight(strings.ReplaceAll(s, ",", ""), "kKMG%×xsmhd")
	unit := strings.ReplaceAll(s, ",", "")[len(num):]
	scale, ok := map[string]float64{
		"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "%": 0.01, "×": 1, "x": 1,
		"ms": 1, "s": 1, "m": 60, "h": 3600, "d": 86400,
	}[unit]
	v, err := strconv.ParseFloat(num, 64)
	if err != nil || !ok || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is not a number: write 12, 0.5, 48k, 80%%, 30s or 183ms", s)
	}
	return v * scale, nil
}

// match reports whether an item passes. text and number read its columns.
func (f Filter) match(fields []FieldInfo, text func(field int) string, number func(field int) float64) bool {
	if len(f.any) == 0 {
		return true
	}
	for _, all := range f.any {
		ok := true
		for _, t := range all {
			if t.holds(fields, text, number) == t.not {
				ok = false
				break
			}
		}
		if ok {
			return true
		}
	}
	return false
}

func (t term) holds(fields []FieldInfo, text func(int) string, number func(int) float64) bool {
	switch t.op {
	case '>':
		return number(t.field) > t.num
	case '<':
		return number(t.field) < t.num
	case ':':
		s := text(t.field)
		if fields[t.field].Exact {
			return strings.EqualFold(s, t.text)
		}
		return containsFold(s, t.text)
	}
	for i := range fields {
		if containsFold(text(i), t.text) {
			return true
		}
	}
	return false
}

// containsFold reports whether s contains the lower-case text low, letters of
// both cases alike.
func containsFold(s, low string) bool {
	if len(low) == 0 {
		return true
	}
	for i := 0; i+len(low) <= len(s); i++ {
		if lowerASCII(s[i]) == low[0] && equalFoldASCII(s[i:i+len(low)], low) {
			return true
		}
	}
	for i := 0; i < len(low); i++ {
		if low[i] >= 0x80 {
			return strings.Contains(strings.ToLower(s), low)
		}
	}
	return false
}

func equalFoldASCII(s, low string) bool {
	for i := range len(low) {
		if lowerASCII(s[i]) != low[i] {
			return false
		}
	}
	return true
}

func lowerASCII(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
