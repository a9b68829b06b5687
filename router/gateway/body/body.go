// Package body reads the top-level fields of a JSON request body where they
// stand, without decoding the rest.
//
// It refuses what two readers could understand differently: text that is not
// JSON, a top level that is not an object, a field that is given twice, and
// nesting that is deep enough to exhaust a reader's stack.
package body

import (
	"bytes"
	"errors"
	"fmt"
	"unsafe"

	"github.com/tidwall/gjson"
)

// Bounds of what is read.
const (
	MaxNesting = 512 // braces and brackets open at one place
	MaxFields  = 512 // at the top level
)

// ErrBody is returned, wrapped with what is wrong, for a body that is refused.
var ErrBody = errors.New("request body")

// Doc is a body that was read. Its bytes must not be written any more.
type Doc struct {
	raw    []byte
	fields []field
}

type field struct {
	name  string
	value gjson.Result
}

// Parse reads a body. The document keeps raw. The error wraps ErrBody.
func Parse(raw []byte) (*Doc, error) {
	if depth(raw) > MaxNesting {
		return nil, fmt.Errorf("%w is nested deeper than %d levels: flatten it", ErrBody, MaxNesting)
	}
	if !gjson.ValidBytes(raw) {
		return nil, fmt.Errorf("%w is not valid JSON: send one JSON object", ErrBody)
	}
	start := bytes.IndexByte(raw, '{')
	if start < 0 || len(bytes.TrimLeft(raw[:start], " \t\r\n")) > 0 {
		return nil, fmt.Errorf("%w is not a JSON object: send one, for example {\"model\": …}", ErrBody)
	}
	d := &Doc{raw: raw, fields: make([]field, 0, 16)}
	// raw is not written any more, so that it may be viewed as a string.
	text := unsafe.String(unsafe.SliceData(raw), len(raw))
	var err error
	gjson.Parse(text[start:]).ForEach(func(key, value gjson.Result) bool {
		if _, ok := d.find(key.Str); ok {
			err = fmt.Errorf("%w gives the field %.64q twice: give it once", ErrBody, key.Str)
			return false
		}
		if len(d.fields) == MaxFields {
			err = fmt.Errorf("%w has more than %d fields: give fewer", ErrBody, MaxFields)
			return false
		}
		d.fields = append(d.fields, field{key.Str, value})
		return true
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Bytes is the body as it came.
func (d *Doc) Bytes() []byte { return d.raw }

// Get returns the value of a top-level field. One that is not there, and one
// that is null, does not exist.
func (d *Doc) Get(name string) gjson.Result {
	i, ok := d.find(name)
	if !ok || d.fields[i].value.Type == gjson.Null {
		return gjson.Result{}
	}
	return d.fields[i].value
}

// find looks through the fields: there are few, and a map would cost more.
func (d *Doc) find(name string) (int, bool) {
	for i := range d.fields {
		if d.fields[i].name == name {
			return i, true
		}
	}
	return 0, false
}

// depth is the deepest nesting of the text, read as JSON; of other text it is
// some number that bounds how deep a JSON reader would go before it gives up.
func depth(raw []byte) int {
	deepest, open := 0, 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '{', '[':
			open++
			deepest = max(deepest, open)
		case '}', ']':
			open--
		case '"':
			i = closing(raw, i+1)
		}
	}
	return deepest
}

// closing is the place of the quote that ends a string which begins at i.
func closing(raw []byte, i int) int {
	for i < len(raw) {
		k := bytes.IndexByte(raw[i:], '"')
		if k < 0 {
			return len(raw)
		}
		i += k
		slashes := 0
		for j := i - 1; j >= 0 && raw[j] == '\\'; j-- {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
		i++
	}
	return i
}
