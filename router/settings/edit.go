package settings

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"adpdeck/router/model"
)

// span is a piece of the text, and the place of it for people.
type span struct {
	from, to     int // bytes; to < from when the piece cannot be replaced
	line, column int
}

// block is where a mapping lies.
type block struct {
	flow   bool
	end    int // of a flow mapping: the offset of its closing brace
	indent int // of its keys, in columns
	last   int // offset of the last entry's value
	count  int
	null   *span // the mapping is null: its text, empty when nothing is written
}

// layout is where everything lies. Scalars are keyed by section, a slash and
// the key.
type layout struct {
	scalars map[string]span
	blocks  map[string]block
}

// note remembers where the scalar of e lies in the text.
func (r *reader) note(section string, e entry) {
	t := e.value.GetToken()
	from := r.offset(t.Position)
	s := span{from: from, to: -1, line: t.Position.Line, column: t.Position.Column}
	rest := r.text[max(from, 0):]
	switch {
	case from < 0:
	case quoted(t):
		s.to = from + quotedLen(rest)
	case t.Value != "" && bytes.HasPrefix(rest, []byte(t.Value)):
		s.to = from + len(t.Value)
	}
	r.doc.layout.scalars[section+"/"+e.key] = s
}

// quotedLen is the length of the quoted scalar at the start of s, -1 when
// there is none.
func quotedLen(s []byte) int {
	if len(s) == 0 || s[0] != '"' && s[0] != '\'' {
		return -1
	}
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && s[0] == '"':
			i++
		case s[i] == s[0] && s[0] == '\'' && i+1 < len(s) && s[i+1] == '\'':
			i++
		case s[i] == s[0]:
			return i + 1
		}
	}
	return -1
}

// noteNull remembers a mapping that is null.
func (r *reader) noteNull(section string, e entry) {
	t := e.value.(*ast.NullNode).GetToken()
	s := span{line: t.Position.Line, column: t.Position.Column}
	// The value follows the key; where it is not written its place is the end
	// of the key's line.
	key := r.offset(e.at.Position)
	s.from = key + bytes.IndexByte(r.text[key:], ':') + 1
	s.to = s.from
	if at := r.offset(t.Position); at >= 0 && t.Value != "" && bytes.HasPrefix(r.text[at:], []byte(t.Value)) {
		s.to = at + len(t.Value)
	}
	r.doc.layout.blocks[section] = block{null: &s}
}

// edit returns text with one value replaced or added.
func (l *layout) edit(text []byte, section, key, value string) ([]byte, error) {
	if s, ok := l.scalars[section+"/"+key]; ok {
		if s.to < s.from {
			return nil, fmt.Errorf("%s at line %d, column %d cannot be replaced; write it on one line", key, s.line, s.column)
		}
		return slices.Concat(text[:s.from], []byte(value), text[s.to:]), nil
	}
	if section == keyWeights {
		key = quoteKey(key)
	}
	pair := key + ": " + value
	b, ok := l.blocks[section]
	switch {
	case !ok && section == "":
		return appendLine(text, pair), nil
	case !ok && l.blocks[""].flow:
		return l.insertFlow(text, l.blocks[""], section+": {"+pair+"}"), nil
	case !ok:
		indent := strings.Repeat(" ", l.blocks[""].indent)
		return appendLine(appendLine(text, indent+section+":"), indent+"  "+pair), nil
	case b.null != nil && l.blocks[""].flow:
		return slices.Concat(text[:b.null.from], []byte(" {"+pair+"}"), text[b.null.to:]), nil
	case b.null != nil:
		text = slices.Concat(text[:b.null.from], text[b.null.to:])
		return insertAfterLine(text, b.null.from, strings.Repeat(" ", l.blocks[""].indent+2)+pair), nil
	case b.flow:
		return l.insertFlow(text, b, pair), nil
	case section == "":
		return appendLine(text, strings.Repeat(" ", b.indent)+pair), nil
	}
	return insertAfterLine(text, b.last, strings.Repeat(" ", b.indent)+pair), nil
}

// insertFlow adds a pair before a flow mapping's closing brace.
func (l *layout) insertFlow(text []byte, b block, pair string) []byte {
	end := b.end
	for end > 0 && (text[end-1] == ' ' || text[end-1] == '\n' || text[end-1] == '\r') {
		end--
	}
	if b.count > 0 {
		if text[end-1] == ',' {
			pair = " " + pair
		} else {
			pair = ", " + pair
		}
	}
	return slices.Concat(text[:end], []byte(pair), text[end:])
}

// insertAfterLine adds a line behind the one that holds the offset at.
func insertAfterLine(text []byte, at int, line string) []byte {
	end := bytes.IndexByte(text[at:], '\n')
	if end < 0 {
		return appendLine(text, line)
	}
	end += at + 1
	return slices.Concat(text[:end], []byte(line+newline(text)), text[end:])
}

// appendLine adds a line at the end of the text.
func appendLine(text []byte, line string) []byte {
	nl := newline(text)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = slices.Concat(text, []byte(nl))
	}
	return slices.Concat(text, []byte(line+nl))
}

// newline is how the text ends its lines.
func newline(text []byte) string {
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// check applies the rules that span fields and points at the value that
// breaks one.
func (d *Document) check() error {
	ref := d.values.Check()
	if ref == nil {
		return nil
	}
	e := &Error{File: d.name, Line: 1, Column: 1, Message: ref.Message}
	name, _, _ := strings.Cut(ref.Message, " ")
	name = strings.TrimSuffix(name, ":")
	for _, key := range []string{keyConfig + "/" + name, "/" + name, keyCluster + "/" + name, keyConfig + "/" + model.FieldEnableBalance} {
		if s, ok := d.layout.scalars[key]; ok {
			e.Line, e.Column = s.line, s.column
			break
		}
	}
	return e
}
