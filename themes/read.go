package themes

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Kind is the ground that a theme was made for.
type Kind string

// The kinds of theme.
const (
	Dark  Kind = "dark"
	Light Kind = "light"
	Mono  Kind = "mono" // attributes only
)

// File is a theme as it was read.
type File struct {
	Name   string
	Kind   Kind
	Styles [NumRoles]Style

	colours map[string]Colour
	ansi16  map[string]Colour
}

// Error is what is wrong with a theme file, and where.
type Error struct {
	File         string
	Line, Column int // from 1; 0 when the whole file is meant
	Message      string
}

// Error writes FILE:LINE:COLUMN: message.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
}

// Parse reads a theme. file names it in errors. It is strict: an unknown or
// doubled key, a missing role, a colour that is not defined, are all refused.
// Every error is an *Error.
func Parse(file string, b []byte) (*File, error) {
	r := reader{file: file}
	if len(b) > MaxFileBytes {
		return nil, r.fail(nil, "larger than %d bytes", MaxFileBytes)
	}
	doc, err := parser.ParseBytes(b, 0)
	if err != nil {
		var y yaml.Error
		if errors.As(err, &y) {
			return nil, r.fail(y.GetToken(), "%s", y.GetMessage())
		}
		return nil, r.fail(nil, "%s", err)
	}
	if len(doc.Docs) != 1 || doc.Docs[0].Body == nil {
		return nil, r.fail(nil, "want one YAML document with name, kind, color and role")
	}
	return r.theme(doc.Docs[0].Body)
}

type reader struct{ file string }

func (r reader) fail(t *token.Token, format string, args ...any) *Error {
	e := &Error{File: r.file, Message: fmt.Sprintf(format, args...)}
	if t != nil && t.Position != nil {
		e.Line, e.Column = t.Position.Line, t.Position.Column
	}
	return e
}

// entry is one key of a mapping and the text of its value.
type entry struct {
	key        string
	at         *token.Token // of the key
	value      ast.Node
	text       string
	isText     bool
	valueToken *token.Token
}

// entries returns the keys of a mapping in order and refuses doubled ones.
func (r reader) entries(n ast.Node, what string) ([]entry, error) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		return nil, r.fail(n.GetToken(), "%s: want lines of the form key: value", what)
	}
	var out []entry
	seen := map[string]bool{}
	for _, v := range values {
		at := v.Key.GetToken()
		e := entry{key: at.Value, at: at, value: v.Value, valueToken: at}
		if v.Value != nil && v.Value.GetToken() != nil {
			e.valueToken = v.Value.GetToken()
		}
		if s, ok := v.Value.(ast.ScalarNode); ok {
			e.text, e.isText = scalar(s), true
		}
		if seen[e.key] {
			return nil, r.fail(at, "%q is given twice", e.key)
		}
		seen[e.key] = true
		out = append(out, e)
	}
	return out, nil
}

func scalar(s ast.ScalarNode) string {
	if _, ok := s.(*ast.NullNode); ok {
		return ""
	}
	return strings.TrimSpace(s.GetToken().Value)
}

func (r reader) theme(body ast.Node) (*File, error) {
	f := &File{colours: map[string]Colour{}, ansi16: map[string]Colour{}}
	top, err := r.entries(body, "theme")
	if err != nil {
		return nil, err
	}
	roles := -1
	for i, e := range top {
		switch e.key {
		case "name":
			f.Name = e.text
		case "kind":
			f.Kind = Kind(e.text)
			if !slices.Contains([]Kind{Dark, Light, Mono}, f.Kind) {
				return nil, r.fail(e.valueToken, "kind %q: want dark, light or mono", e.text)
			}
		case "color":
			err = r.colours(e, f.colours)
		case "ansi16":
			err = r.colours(e, f.ansi16)
		case "role":
			roles = i
		default:
			return nil, r.fail(e.at, "unknown key %q; keys are name, kind, color, role, ansi16", e.key)
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case f.Name == "":
		return nil, r.fail(nil, "name is missing")
	case f.Kind == "":
		return nil, r.fail(nil, "kind is missing: dark, light or mono")
	case roles < 0:
		return nil, r.fail(nil, "role is missing: a line for each role")
	}
	return f, r.roles(top[roles], f)
}

func (r reader) colours(e entry, into map[string]Colour) error {
	list, err := r.entries(e.value, e.key)
	if err != nil {
		return err
	}
	for _, c := range list {
		if _, taken := attrNamed(c.key); taken || c.key == "on" {
			return r.fail(c.at, "%q is a word of the role lines: give the colour another name", c.key)
		}
		if !c.isText {
			return r.fail(c.valueToken, "%s: want one colour", c.key)
		}
		v, err := parseColour(c.text)
		if err != nil {
			return r.fail(c.valueToken, "%s: %s", c.key, err)
		}
		into[c.key] = v
	}
	return nil
}

func (r reader) roles(e entry, f *File) error {
	list, err := r.entries(e.value, e.key)
	if err != nil {
		return err
	}
	var given [NumRoles]bool
	for _, l := range list {
		role, ok := roleNamed(l.key)
		if !ok {
			return r.fail(l.at, "no such role %q; roles are %s", l.key, roleNames(func(Role) bool { return true }))
		}
		if !l.isText {
			return r.fail(l.valueToken, "%s: want a colour and attributes, like: ink on shade bold", l.key)
		}
		if f.Styles[role], err = f.style(l.text); err != nil {
			return r.fail(l.valueToken, "%s: %s", l.key, err)
		}
		given[role] = true
	}
	if missing := roleNames(func(r Role) bool { return !given[r] }); missing != "" {
		return r.fail(e.at, "missing roles: %s", missing)
	}
	return nil
}

func roleNames(keep func(Role) bool) string {
	var names []string
	for _, r := range Roles() {
		if keep(r) {
			names = append(names, r.String())
		}
	}
	return strings.Join(names, ", ")
}

// style reads "[COLOUR] [on COLOUR] [ATTRIBUTE…]".
func (f *File) style(text string) (Style, error) {
	var s Style
	words := strings.Fields(text)
	for i := 0; i < len(words); i++ {
		if a, ok := attrNamed(words[i]); ok {
			s.Attr |= a
			continue
		}
		fore, word := true, words[i]
		if word == "on" {
			if i++; i == len(words) {
				return s, errors.New("a colour must follow on")
			}
			fore, word = false, words[i]
		} else if i > 0 {
			return s, fmt.Errorf("%q: want COLOUR on COLOUR, then attributes out of bold, faint, italic, underline, reverse", word)
		}
		c, c16, err := f.colour(word)
		if err != nil {
			return s, err
		}
		if fore {
			s.Fore, s.fore16 = c, c16
		} else {
			s.Ground, s.ground16 = c, c16
		}
	}
	return s, nil
}

func (f *File) colour(word string) (Colour, *Colour, error) {
	if c, ok := f.colours[word]; ok {
		if r, ok := f.ansi16[word]; ok {
			return c, &r, nil
		}
		return c, nil, nil
	}
	c, err := parseColour(word)
	if err != nil {
		return c, nil, fmt.Errorf("%q is neither a name under color nor a colour", word)
	}
	return c, nil, nil
}
