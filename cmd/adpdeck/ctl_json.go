package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
)

// printJSON prints v as one line of JSON that is harmless on a terminal: what is
// not printable, which package json leaves as it is above the first 32 characters,
// is written as an escape that means the same.
func printJSON(out io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.Grow(len(text) + 1)
	for _, c := range string(text) {
		switch {
		case unicode.IsPrint(c):
			b.WriteRune(c)
		case c > 0xffff:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	b.WriteByte('\n')
	_, err = io.WriteString(out, b.String())
	return err
}
