package tap

import (
	"bytes"
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"
)

// How the words look in JSON: inside a string their quotes would be escaped.
var (
	errorWord     = []byte(`"error"`)
	responseWords = []byte(`"response.`)
)

// judge says whether an event's data carries a token, as a rule one, and whether
// it is an error in place of tokens.
//
//	chat, completions  {"choices": …} a token; {"error": {…}} or {"object": "error"} an error
//	responses          {"type": "response.….delta"} a token; "error" and "response.failed"
//	                   an error; other types tell how far it is, the first before the prefill
func judge(data []byte) (token, failed bool) {
	fails, typed := bytes.Contains(data, errorWord), bytes.Contains(data, responseWords)
	if !fails && !typed {
		return true, false
	}
	// The text is not written while it is read.
	text := unsafe.String(unsafe.SliceData(data), len(data))
	kind := gjson.Get(text, "type").Str
	switch {
	case kind == "error", kind == "response.failed", fails && kind == "" && isError(text):
		return false, true
	case strings.HasPrefix(kind, "response."):
		return strings.HasSuffix(kind, ".delta"), false
	}
	return true, false
}

func isError(text string) bool {
	e := gjson.Get(text, "error")
	return e.Exists() && e.Type != gjson.Null || gjson.Get(text, "object").Str == "error"
}
