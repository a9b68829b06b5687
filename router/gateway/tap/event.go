package tap

import (
	"bytes"
	"slices"
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"
)

// How the words look in JSON: inside a string their quotes would be escaped.
var (
	errorWord     = []byte(`"error"`)
	responseWords = []byte(`"response.`)
)

// kindError is the name of an event that is an error.
const kindError = "error"

// endings are the events with which a response ends.
var endings = [...]string{"response.completed", "response.incomplete", "response.failed"}

// named is an event's name as far as it matters beside the data.
func named(name []byte) string {
	if string(name) == kindError {
		return kindError
	}
	for _, e := range endings {
		if string(name) == e {
			return e
		}
	}
	return ""
}

// verdict is what an event's data is.
type verdict struct {
	token  bool // it carries a token, as a rule one
	failed bool // it is an error in place of tokens
	ends   bool // it is a response's last
}

// judge says what an event's data is.
//
//	chat, completions  {"choices": …} a token; {"error": {…}} or {"object": "error"} an error
//	responses          {"type": "response.….delta"} a token; "error" and "response.failed"
//	                   an error; other types tell how far it is, the first before the prefill
func judge(data []byte) verdict {
	fails, typed := bytes.Contains(data, errorWord), bytes.Contains(data, responseWords)
	if !fails && !typed {
		return verdict{token: true}
	}
	// The text is not written while it is read.
	text := unsafe.String(unsafe.SliceData(data), len(data))
	kind := gjson.Get(text, "type").Str
	switch {
	case kind == kindError, fails && kind == "" && isError(text):
		return verdict{failed: true}
	case strings.HasPrefix(kind, "response."):
		return ofKind(kind)
	}
	return verdict{token: true}
}

func ofKind(kind string) verdict {
	return verdict{
		token: strings.HasSuffix(kind, ".delta"), failed: kind == "response.failed",
		ends: slices.Contains(endings[:], kind),
	}
}

// judgeCut judges an event that was too long to be kept whole, as the last of a
// response is, which repeats all of it: by the event's name, else by the type that
// stands at the beginning or the end of its data.
func (b *Body) judgeCut(tail []byte) verdict {
	switch {
	case b.event == kindError:
		return verdict{failed: true}
	case b.event != "":
		return ofKind(b.event)
	}
	for _, part := range [...][]byte{b.lines.head, tail[max(0, len(tail)-keepHead):]} {
		for _, e := range endings {
			for _, sep := range [...]string{`"type":"`, `"type": "`} {
				if bytes.Contains(part, []byte(sep+e+`"`)) {
					return ofKind(e)
				}
			}
		}
	}
	return verdict{token: true}
}

func isError(text string) bool {
	e := gjson.Get(text, "error")
	return e.Exists() && e.Type != gjson.Null || gjson.Get(text, "object").Str == "error"
}

// isErrorDocument reports that a whole answer is an error, whatever its status
// says: {"error": {…}} or {"object": "error"}.
func isErrorDocument(doc []byte) bool {
	if !bytes.Contains(doc, errorWord) || !nests(doc) {
		return false
	}
	text := unsafe.String(unsafe.SliceData(doc), len(doc))
	return gjson.Valid(text) && gjson.Parse(text).IsObject() && isError(text)
}
