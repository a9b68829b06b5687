package steer

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// Field is a change of a request's body.
type Field struct {
	// Name is the field's name; a dot leads into an object: nvext.dp_rank.
	Name string
	// JSON is its new value; nil takes the field out.
	JSON []byte
	// Add puts JSON at the end of the list that the field holds, unless it is in
	// there already, and leaves a value that is no list alone.
	Add bool
}

// ErrBody is returned by Edit for a body that is no JSON object.
var ErrBody = errors.New("the request's body is not a JSON object; send one, as the OpenAI API asks for")

// Edit returns body with the fields changed. All else stays byte for byte, in
// its order: numbers above 2^53 are not rounded, and keys that a decoder would
// see twice, or that are spelt with escapes, are changed all the same. The body
// must be valid JSON. It is not written to; without fields it is returned.
func Edit(body []byte, fields []Field) ([]byte, error) {
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return nil, ErrBody
	}
	if len(fields) == 0 {
		return body, nil
	}
	extra := 2
	for _, f := range fields {
		extra += len(f.Name) + len(f.JSON) + 8
	}
	return appendObject(make([]byte, 0, len(body)+extra), gjson.ParseBytes(body), fields), nil
}

// appendObject appends object with its fields changed to dst.
func appendObject(dst []byte, object gjson.Result, fields []Field) []byte {
	dst = append(dst, '{')
	empty := true
	entry := func(key string) {
		if !empty {
			dst = append(dst, ',')
		}
		empty = false
		dst = append(append(dst, key...), ':')
	}
	var done []string // names that need not be put in any more
	object.ForEach(func(key, value gjson.Result) bool {
		f, inner, found := pick(fields, key.Str)
		switch {
		case !found:
			entry(key.Raw)
			dst = append(dst, value.Raw...)
		case len(inner) > 0 && value.IsObject():
			done = append(done, key.Str)
			entry(key.Raw)
			dst = appendObject(dst, value, inner)
		case len(inner) > 0 && !sets(inner):
			entry(key.Raw)
			dst = append(dst, value.Raw...)
		case f.Add && value.Type != gjson.Null:
			done = append(done, key.Str)
			entry(key.Raw)
			dst = appendAdded(dst, value, f.JSON)
		}
		return true
	})
	for i, f := range fields {
		name, _, nested := strings.Cut(f.Name, ".")
		if slices.Contains(done, name) || !nested && f.JSON == nil {
			continue
		}
		done = append(done, name)
		_, inner, _ := pick(fields[i:], name)
		switch {
		case nested && sets(inner):
			entry(quote(name))
			dst = appendObject(dst, gjson.Result{}, inner)
		case nested:
		case f.Add:
			entry(quote(name))
			dst = append(append(append(dst, '['), f.JSON...), ']')
		default:
			entry(quote(name))
			dst = append(dst, f.JSON...)
		}
	}
	return append(dst, '}')
}

// quote writes a field's name as a key: names are plain words.
func quote(name string) string { return `"` + name + `"` }

// pick finds what changes the key name: the field itself, or the fields inside
// the object that it holds.
func pick(fields []Field, name string) (f Field, inner []Field, found bool) {
	for _, c := range fields {
		head, rest, nested := strings.Cut(c.Name, ".")
		if head != name {
			continue
		}
		found = true
		if !nested {
			return c, nil, true
		}
		c.Name = rest
		inner = append(inner, c)
	}
	return Field{}, inner, found
}

// sets reports whether one of the fields puts something in.
func sets(fields []Field) bool {
	return slices.ContainsFunc(fields, func(f Field) bool { return f.JSON != nil })
}

func appendAdded(dst []byte, list gjson.Result, item []byte) []byte {
	if !list.IsArray() {
		return append(dst, list.Raw...)
	}
	there, empty := false, true
	list.ForEach(func(_, v gjson.Result) bool {
		empty = false
		there = there || v.Raw == string(item)
		return true
	})
	raw := strings.TrimRight(list.Raw, " \t\r\n")
	if there {
		return append(dst, raw...)
	}
	dst = append(dst, raw[:len(raw)-1]...)
	if !empty {
		dst = append(dst, ',')
	}
	return append(append(dst, item...), ']')
}

// set puts f in the place of the field of the same name, or at the end.
func set(fields []Field, f Field) []Field {
	for i := range fields {
		if fields[i].Name == f.Name {
			fields[i] = f
			return fields
		}
	}
	return append(fields, f)
}
