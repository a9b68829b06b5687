package tap

import (
	"bytes"
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"
)

// Usage is what an engine says that a request used. Tokens are -1 where it does
// not say.
type Usage struct {
	Prompt, Cached, Output int
	// JSON is the document that said so, whole where it was short enough and
	// otherwise the usage object alone; nil without one.
	JSON []byte
}

// NoUsage is the Usage of an engine that says nothing.
func NoUsage() Usage { return Usage{Prompt: -1, Cached: -1, Output: -1} }

// Known reports whether the engine said anything.
func (u Usage) Known() bool { return u.Prompt >= 0 || u.Cached >= 0 || u.Output >= 0 }

// usageKey is how the field looks in JSON: inside a string its quotes would be
// escaped.
var usageKey = []byte(`"usage"`)

// maxTokens bounds what is believed.
const maxTokens = 1 << 31

// readUsage reads the usage of a document: at the top level, inside the response
// of an event of the responses API, or, where the beginning of the document was
// not kept, in what looks like its last usage field. The result may hold doc.
func readUsage(doc []byte, whole bool) (Usage, bool) {
	none := NoUsage()
	if !bytes.Contains(doc, usageKey) {
		return none, false
	}
	// The text is not written while it is read.
	text := unsafe.String(unsafe.SliceData(doc), len(doc))
	var found gjson.Result
	if whole {
		if !nests(doc) || !gjson.Valid(text) {
			return none, false
		}
		if found = gjson.Get(text, "usage"); !found.IsObject() {
			found = gjson.Get(text, "response.usage")
		}
	} else {
		found = lastUsage(text)
	}
	if !found.IsObject() {
		return none, false
	}
	u := Usage{
		Prompt: first(found, "prompt_tokens", "input_tokens"),
		Cached: first(found, "prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens"),
		Output: first(found, "completion_tokens", "output_tokens"),
	}
	if u.Prompt >= 0 && u.Cached > u.Prompt {
		u.Cached = -1 // contradicts itself
	}
	if !u.Known() {
		return none, false
	}
	if u.JSON = doc; !whole {
		u.JSON = []byte(found.Raw)
	}
	return u, true
}

// lastUsage finds the object after the last usage key of text that may begin in
// the middle of a document.
func lastUsage(text string) gjson.Result {
	i := strings.LastIndex(text, string(usageKey))
	if i > 0 && text[i-1] == '\\' {
		return gjson.Result{}
	}
	rest := text[i+len(usageKey):]
	at := 0
	for at < len(rest) && (rest[at] == ':' || rest[at] == ' ' || rest[at] == '\n' || rest[at] == '\t' || rest[at] == '\r') {
		at++
	}
	end, depth := -1, 0
	for k := at; k < len(rest) && end < 0; k++ {
		switch rest[k] {
		case '{':
			depth++
		case '}':
			if depth--; depth <= 0 {
				end = k + 1
			}
		case '"':
			// Names of a usage object hold no braces and no escapes; one that
			// does is not one.
			n := strings.IndexByte(rest[k+1:], '"')
			if n < 0 {
				return gjson.Result{}
			}
			k += n + 1
		}
		if depth == 0 && end < 0 || depth > 8 {
			return gjson.Result{}
		}
	}
	if end < 0 || !gjson.Valid(rest[at:end]) {
		return gjson.Result{}
	}
	return gjson.Parse(rest[at:end])
}

// first is the first of the fields that is a whole number of tokens, or -1.
func first(v gjson.Result, paths ...string) int {
	for _, p := range paths {
		n := v.Get(p)
		if n.Type == gjson.Number && n.Num >= 0 && n.Num < maxTokens && n.Num == float64(int(n.Num)) {
			return int(n.Num)
		}
	}
	return -1
}

// nests reports that a document is not nested deeper than a recursive reader
// can bear.
func nests(doc []byte) bool {
	const most = 512
	open := 0
	for _, c := range doc {
		switch c {
		case '{', '[': // those in strings count too: they only make it careful
			if open++; open > most {
				return false
			}
		case '}', ']':
			open = max(open-1, 0)
		}
	}
	return true
}
