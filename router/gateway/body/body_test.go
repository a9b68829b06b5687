package body

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

func TestWith(t *testing.T) {
	tests := map[string]struct {
		text string
		set  []Field
		want string
	}{
		"nothing":         {` {"a": 1}`, nil, ` {"a": 1}`},
		"add":             {`{"a": 1}`, []Field{{"b", []byte("2")}}, `{"b":2,"a": 1}`},
		"add to none":     {` { } `, []Field{{"b", []byte("2")}}, ` {"b":2 } `},
		"replace":         {"{\n\"a\" : [1, {\"a\": 3}], \"z\": 1.50}", []Field{{"a", []byte("2")}}, "{\n\"a\" : 2, \"z\": 1.50}"},
		"replace, escape": {`{"\u0061": "x", "z": {}}`, []Field{{"a", []byte("2")}}, `{"\u0061": 2, "z": {}}`},
		"replace null":    {`{"a": null}`, []Field{{"a", []byte("2")}}, `{"a": 2}`},
		"both":            {`{"a": 1, "c": "é"}`, []Field{{"c", []byte(`{"x":1}`)}, {"b", []byte("2")}}, `{"b":2,"a": 1, "c": {"x":1}}`},
		"named twice":     {`{"a": 1}`, []Field{{"a", []byte("2")}, {"b", []byte("3")}, {"a", []byte("4")}, {"b", []byte("5")}}, `{"b":5,"a": 4}`},
		"odd name":        {`{}`, []Field{{`a.b"c`, []byte("2")}}, `{"a.b\"c":2}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before := strings.Clone(tt.text)
			d, err := Parse([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(d.With(tt.set...))); diff != "" {
				t.Error(diff)
			}
			if string(d.Bytes()) != before {
				t.Error("the body itself was changed")
			}
		})
	}
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

// FuzzWith holds With to the standard library: the same fields but those set.
func FuzzWith(f *testing.F) {
	f.Add([]byte(`{"a": 1, "b": [1,2,{"c":"\"}"}]}`), "a", []byte("7"))
	f.Add([]byte(`{}`), "x", []byte(`{"y":"z"}`))
	f.Add([]byte(" {\"\\u0061\" :\"\\\\\",\"b\":null} "), "a", []byte("null"))
	f.Fuzz(func(t *testing.T, text []byte, name string, value []byte) {
		d, err := Parse(bytes.Clone(text))
		if err != nil || !json.Valid(value) {
			return
		}
		var want, got map[string]json.RawMessage
		if err := json.Unmarshal(text, &want); err != nil {
			t.Skip("the standard library is stricter") // bytes that are not UTF-8 in names
		}
		out := d.With(Field{name, value})
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		key, _ := json.Marshal(name)
		var decoded string
		_ = json.Unmarshal(key, &decoded)
		if decoded != name {
			return // not UTF-8: the name is not kept
		}
		want[name] = bytes.TrimSpace(value)
		for k := range got {
			if !bytes.Equal(bytes.TrimSpace(got[k]), bytes.TrimSpace(want[k])) {
				t.Fatalf("%q with %q=%s: field %q is %s, want %s", text, name, value, k, got[k], want[k])
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%q: %d fields, want %d", out, len(got), len(want))
		}
	})
}
