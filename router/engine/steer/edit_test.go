package steer

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestEdit(t *testing.T) {
	t.Parallel()
	put := func(name, json string) Field { return Field{Name: name, JSON: []byte(json)} }
	add := func(name, json string) Field { return Field{Name: name, JSON: []byte(json), Add: true} }
	tests := map[string]struct {
		body   string
		fields []Field
		want   string
	}{
		"nothing":               {` {"a":1}`, nil, ` {"a":1}`},
		"set":                   {`{}`, []Field{put("a", "1")}, `{"a":1}`},
		"set again":             {`{"a":0,"b":2}`, []Field{put("a", "1")}, `{"b":2,"a":1}`},
		"set over duplicates":   {`{"a":0,"a":7}`, []Field{put("a", "1")}, `{"a":1}`},
		"set over escapes":      {`{"\u0061":0}`, []Field{put("a", "1")}, `{"a":1}`},
		"take out":              {`{"a":0,"b":12345678901234567890}`, []Field{{Name: "a"}}, `{"b":12345678901234567890}`},
		"take out what is not":  {`{"b":2.50}`, []Field{{Name: "a"}, {Name: "x.y"}}, `{"b":2.50}`},
		"nested set":            {`{"n":{"x":1}}`, []Field{put("n.y", "2"), {Name: "n.x"}}, `{"n":{"y":2}}`},
		"nested in none":        {`{}`, []Field{put("n.y", "2"), put("n.z", "3")}, `{"n":{"y":2,"z":3}}`},
		"nested in null":        {`{"n":null}`, []Field{put("n.y", "2")}, `{"n":{"y":2}}`},
		"taken out of null":     {`{"n":null}`, []Field{{Name: "n.y"}}, `{"n":null}`},
		"three deep":            {`{"n":{"c":{"s":1,"k":2}}}`, []Field{{Name: "n.c.s"}}, `{"n":{"c":{"k":2}}}`},
		"a dot in a key":        {`{"n.y":1}`, []Field{{Name: "n.y"}}, `{"n.y":1}`},
		"add to none":           {`{}`, []Field{add("n.l", `"w"`)}, `{"n":{"l":["w"]}}`},
		"add to null":           {`{"l":null}`, []Field{add("l", `"w"`)}, `{"l":["w"]}`},
		"add to a list":         {`{"l":["t" ]}`, []Field{add("l", `"w"`)}, `{"l":["t" ,"w"]}`},
		"add to an empty list":  {`{"l":[]}`, []Field{add("l", `"w"`)}, `{"l":["w"]}`},
		"add what is there":     {`{"l":["w"]}`, []Field{add("l", `"w"`)}, `{"l":["w"]}`},
		"add to what is none":   {`{"l":"t"}`, []Field{add("l", `"w"`)}, `{"l":"t"}`},
		"other values verbatim": {`{"a": [1e400, "\ud800"], "b":0}`, []Field{{Name: "b"}}, `{"a":[1e400, "\ud800"]}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Edit([]byte(tc.body), tc.fields)
			if err != nil || string(got) != tc.want {
				t.Errorf("got %s (%v), want %s", got, err, tc.want)
			}
		})
	}
	for _, bad := range []string{"", " ", "[]", "1", "null"} {
		if _, err := Edit([]byte(bad), nil); !errors.Is(err, ErrBody) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestEditIsWhatADecoderWouldSee compares Edit with setting and deleting in the
// decoded form.
func TestEditIsWhatADecoderWouldSee(t *testing.T) {
	t.Parallel()
	names := rapid.SampledFrom([]string{"a", "b", "n.a", "n.b", "m.a.b"})
	rapid.Check(t, func(t *rapid.T) {
		leaf := rapid.OneOf(rapid.Just[any](nil), rapid.Map(rapid.String(), func(s string) any { return s }), rapid.Just[any](true))
		flat := rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c"}), leaf)
		deep := rapid.MapOf(rapid.SampledFrom([]string{"a", "n", "m", "z"}), rapid.OneOf(leaf, rapid.Map(flat, func(m map[string]any) any { return m })))
		doc := deep.Draw(t, "doc")
		raw, _ := json.Marshal(doc)
		var fields []Field
		for i, n := range rapid.SliceOfNDistinct(names, 0, 3, rapid.ID[string]).Draw(t, "fields") {
			f := Field{Name: n}
			if rapid.Bool().Draw(t, "put") {
				f.JSON = []byte{byte('0' + i)}
			}
			fields = append(fields, f)
			change(doc, strings.Split(n, "."), f.JSON)
		}
		got, err := Edit(raw, fields)
		if err != nil {
			t.Fatal(err)
		}
		var back map[string]any
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		if d := cmp.Diff(doc, back); d != "" {
			t.Fatalf("%s by %v: %s", raw, fields, d)
		}
	})
}

func change(doc map[string]any, path []string, raw []byte) {
	if len(path) == 1 {
		if raw == nil {
			delete(doc, path[0])
			return
		}
		doc[path[0]] = float64(raw[0] - '0')
		return
	}
	inner, ok := doc[path[0]].(map[string]any)
	if !ok {
		if raw == nil {
			return
		}
		inner = map[string]any{}
		doc[path[0]] = inner
	}
	change(inner, path[1:], raw)
}

func FuzzEdit(f *testing.F) {
	f.Add([]byte(`{"routed_dp_rank":1,"nvext":{"dp_rank":2,"extra_fields":["timing"]}}`))
	f.Add([]byte(`{"a":`))
	fields := []Field{{Name: "routed_dp_rank", JSON: []byte("5")}, {Name: "nvext.dp_rank"}, {Name: "nvext.extra_fields", JSON: []byte(`"worker_id"`), Add: true}}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := Edit(body, fields)
		if err != nil || !json.Valid(body) {
			return
		}
		if !json.Valid(got) {
			t.Fatalf("%s became %s", body, got)
		}
		var out struct {
			Rank  int                        `json:"routed_dp_rank"`
			Nvext map[string]json.RawMessage `json:"nvext"`
		}
		if json.Unmarshal(got, &out) == nil && (out.Rank != 5 || out.Nvext["dp_rank"] != nil) {
			t.Fatalf("%s became %s", body, got)
		}
	})
}
