package body

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParseRefuses(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"empty":         {"", "not valid JSON"},
		"not JSON":      {"{model: 1}", "not valid JSON"},
		"cut short":     {`{"model": "m"`, "not valid JSON"},
		"two documents": {`{} {}`, "not valid JSON"},
		"an array":      {`[{"model": "m"}]`, "not a JSON object"},
		"a string":      {`"{"`, "not a JSON object"},
		"twice":         {`{"model": "a", "model": "b"}`, `"model" twice`},
		"twice, escape": {`{"model": "a", "mod\u0065l": "b"}`, `"model" twice`},
		"deep":          {`{"a":` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + `}`, "nested deeper than 512"},
		"deep, unshut":  {strings.Repeat("[", 1<<20), "nested deeper than 512"},
		"wide":          {wide(600), "more than 512 fields"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tt.text))
			if !errors.Is(err, ErrBody) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want ErrBody with %q", err, tt.want)
			}
		})
	}
}

func wide(n int) string {
	m := map[string]int{}
	for i := range n {
		m[strings.Repeat("k", i+1)] = i
	}
	b, _ := json.Marshal(m)
	return string(b)
}

func TestGet(t *testing.T) {
	d, err := Parse([]byte(` {"model":"m\n", "n": 18446744073709551615, "none": null, "stream_options": {"a": true}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Get("model").String(); got != "m\n" {
		t.Errorf("model %q", got)
	}
	if got := d.Get("n").Raw; got != "18446744073709551615" {
		t.Errorf("a large number lost digits: %s", got)
	}
	if d.Get("none").Exists() || d.Get("other").Exists() {
		t.Error("null and missing fields do not exist")
	}
	if !d.Get("stream_options").Get("a").Bool() {
		t.Error("no nested field")
	}
}

// FuzzParse holds what is read to the standard library.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"a": 1, "b": [1,2,{"c":"\"}"}]}`))
	f.Add([]byte(" {\"\\u0061\" :\"\\\\\",\"b\":null} "))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Parse(bytes.Clone(text))
		if err != nil {
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(text, &want); err != nil {
			t.Skip("the standard library is stricter")
		}
		for name, value := range want {
			if !utf8.ValidString(name) || strings.ContainsRune(name, utf8.RuneError) {
				continue // the two replace what is not UTF-8 differently
			}
			if got := d.Get(name); got.Raw != string(value) && (got.Exists() || string(value) != "null") {
				t.Fatalf("%q: field %q is %s, want %s", text, name, got.Raw, value)
			}
		}
	})
}
