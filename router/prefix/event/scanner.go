package event

import (
	"encoding/json"
	"math"
)

// maxDepth is how deep JSON values may nest.
const maxDepth = 256

// scanner reads JSON from left to right without building values: whole numbers
// stay 64 bits wide, and nothing is allocated. It checks what it reads; what it
// passes over, it checks for balance only.
type scanner struct {
	b   []byte
	i   int
	bad Refusal
}

func (s *scanner) fail(r Reason, field, got string) bool {
	s.bad = Refusal{Reason: r, Field: field, Got: got}
	return false
}

// peek gives the next byte that is no white space, 0 at the end.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) miss(field string) bool {
	switch c := s.peek(); {
	case c == 0 && s.i >= len(s.b):
		return s.fail(CutShort, field, "")
	case c == '"':
		return s.fail(BadField, field, "a string")
	case c == '{':
		return s.fail(BadField, field, "an object")
	case c == '[':
		return s.fail(BadField, field, "a list")
	case c == 'n':
		return s.fail(BadField, field, "null")
	case c == '-' || c >= '0' && c <= '9':
		return s.fail(BadField, field, "not a whole number of 64 bits")
	}
	return s.fail(BadField, field, "no JSON value")
}

// take takes the byte c, if it is next.
func (s *scanner) take(c byte) bool {
	if s.peek() != c || s.i >= len(s.b) {
		return false
	}
	s.i++
	return true
}

// isNull takes a null, if it is next.
func (s *scanner) isNull() bool {
	if s.peek() != 'n' || len(s.b)-s.i < 4 || string(s.b[s.i:s.i+4]) != "null" {
		return false
	}
	s.i += 4
	return true
}

// more steps through a list or an object: it takes the comma between members,
// or the closing byte. first says that no member was read yet.
func (s *scanner) more(closing byte, first bool, field string) (another, ok bool) {
	if s.take(closing) {
		return false, true
	}
	if first || s.take(',') {
		if s.i >= len(s.b) || s.peek() == 0 {
			return false, s.fail(CutShort, field, "")
		}
		return true, true
	}
	if s.peek() == 0 {
		return false, s.fail(CutShort, field, "")
	}
	return false, s.fail(BadField, field, "no comma where one must be")
}

// object walks the members of an object; member must read the value.
func (s *scanner) object(field string, member func(key []byte) bool) bool {
	if !s.take('{') {
		return s.miss(field)
	}
	for first := true; ; first = false {
		another, ok := s.more('}', first, field)
		if !another {
			return ok
		}
		key, ok := s.str(field)
		if !ok {
			return false
		}
		if !s.take(':') {
			return s.miss(field)
		}
		if !member(key) {
			return false
		}
	}
}

// list walks the elements of a list; element must read the value.
func (s *scanner) list(field string, element func() bool) bool {
	if !s.take('[') {
		return s.miss(field)
	}
	for first := true; ; first = false {
		another, ok := s.more(']', first, field)
		if !another {
			return ok
		}
		if !element() {
			return false
		}
	}
}

// str reads a string; without escapes it points into the input.
func (s *scanner) str(field string) ([]byte, bool) {
	if s.peek() != '"' {
		return nil, s.miss(field)
	}
	from, escaped := s.i, false
	for i := s.i + 1; i < len(s.b); i++ {
		switch s.b[i] {
		case '\\':
			escaped = true
			i++
		case '"':
			s.i = i + 1
			if !escaped {
				return s.b[from+1 : i], true
			}
			var text string
			if json.Unmarshal(s.b[from:i+1], &text) != nil {
				return nil, s.fail(BadField, field, "a malformed string")
			}
			return []byte(text), true
		}
	}
	s.i = len(s.b)
	return nil, s.fail(CutShort, field, "")
}

// bits reads a whole number; a negative one gives its 64 bits. A fraction or an
// exponent is refused: nothing here goes through a float.
func (s *scanner) bits(field string) (u uint64, negative, ok bool) {
	s.peek()
	i := s.i
	if i < len(s.b) && s.b[i] == '-' {
		negative = true
		i++
	}
	from := i
	for ; i < len(s.b) && s.b[i] >= '0' && s.b[i] <= '9'; i++ {
		d := uint64(s.b[i] - '0')
		if u > (math.MaxUint64-d)/10 {
			return 0, false, s.miss(field)
		}
		u = u*10 + d
	}
	if i == from || i < len(s.b) && (s.b[i] == '.' || s.b[i] == 'e' || s.b[i] == 'E') || negative && u > 1<<63 {
		return 0, false, s.miss(field)
	}
	s.i = i
	if negative {
		return -u, true, true
	}
	return u, false, true
}

func (s *scanner) count(field string, limit uint64) (int64, bool) {
	u, negative, ok := s.bits(field)
	if ok && (negative || u > limit) {
		return 0, s.fail(BadField, field, "out of range")
	}
	return int64(u), ok
}

// hash reads a block hash: a whole number, or a string, as hash algorithms
// wider than 64 bits may need. 64 hex digits keep their last 8 bytes as msgpack
// digests do; decimal digits are the number; anything else is taken by name.
func (s *scanner) hash(field string) (Hash, bool) {
	if s.peek() != '"' {
		u, _, ok := s.bits(field)
		return Hash(u), ok
	}
	text, ok := s.str(field)
	if !ok {
		return 0, false
	}
	if len(text) == 0 {
		return 0, s.fail(BadField, field, "an empty hash")
	}
	if len(text) == 64 {
		if u, ok := hex64(text); ok {
			return Hash(u), true
		}
	}
	digits := scanner{b: text}
	if u, _, ok := digits.bits(field); ok && digits.i == len(text) {
		return Hash(u), true
	}
	return Hash(MediaHash(text)), true
}

// skip passes over one value, however it is made, to a depth of maxDepth.
func (s *scanner) skip() bool {
	var open [maxDepth]byte // what closes each container
	depth := 0
	for {
		switch c := s.peek(); {
		case s.i >= len(s.b):
			return s.fail(CutShort, "", "")
		case c == '"':
			if _, ok := s.pass(); !ok {
				return s.fail(CutShort, "", "")
			}
		case c == '{' || c == '[':
			if depth == maxDepth {
				return s.fail(TooLarge, "", "values nested too deep")
			}
			open[depth] = c + 2 // '}' and ']' follow their openers by two
			depth++
			s.i++
			continue
		case depth > 0 && (c == '}' || c == ']'):
			if c != open[depth-1] {
				return s.fail(BadField, "", "brackets that do not match")
			}
			depth--
			s.i++
		case depth > 0 && (c == ',' || c == ':'):
			s.i++
			continue
		case c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z':
			for s.i < len(s.b) && isWord(s.b[s.i]) {
				s.i++
			}
		default:
			return s.fail(BadField, "", "no JSON value")
		}
		if depth == 0 {
			return true
		}
	}
}

// pass passes over a string without reading it.
func (s *scanner) pass() (end int, ok bool) {
	for i := s.i + 1; i < len(s.b); i++ {
		switch s.b[i] {
		case '\\':
			i++
		case '"':
			s.i = i + 1
			return s.i, true
		}
	}
	return 0, false
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '-' || c == '+' || c == '.' || c == 'E'
}
