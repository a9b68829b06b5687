// Package keymap reads the operator's console file, which says which key starts
// which command:
//
//	keys: plain              # vim (default) or plain
//	bind:
//	  freeze: f9
//	  copy: [c, f11]         # the first one is shown
//	  slower: []             # by name only
//
// It is strict: an unknown or doubled key, a command or a key that does not
// exist, and a key that the rules of the command table forbid are all refused
// with their line. Two commands on one key are no error: the keys of the set are
// kept, and the clash is told.
package keymap

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"adpdeck/tui/command"
)

// MaxFileBytes bounds a console file.
const MaxFileBytes = 64 << 10

// Error is what is wrong with a console file, and where.
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

// Keys is what a console file asks for.
type Keys struct {
	// Table has the keys in force.
	Table *command.Table
	// Clash says why what the file binds is not in force, with its line, as one
	// sentence for the screen; empty when it is.
	Clash string
}

// DefaultPath is adpdeck/console.yaml in the user's configuration directory;
// empty where none is known.
func DefaultPath() string {
	dir, err := os.UserConfigDir() // $XDG_CONFIG_HOME where there is one
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "adpdeck", "console.yaml")
}

// Load reads the console file at path.
func Load(path string) (*Keys, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("console file: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("console file: %w", err)
	}
	return Parse(path, b)
}

// Parse reads a console file. file names it in errors, which are all *Error. An
// empty file asks for nothing.
func Parse(file string, b []byte) (*Keys, error) {
	r := reader{file: file, set: command.Vim, binds: map[command.ID][]string{}, at: map[command.ID]*token.Token{}}
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
	if len(doc.Docs) > 1 {
		return nil, r.fail(nil, "want one YAML document with keys and bind")
	}
	if len(doc.Docs) == 1 && doc.Docs[0].Body != nil {
		if err := r.top(doc.Docs[0].Body); err != nil {
			return nil, err
		}
	}
	return r.keys(), nil
}

type reader struct {
	file  string
	set   command.Set
	binds map[command.ID][]string
	at    map[command.ID]*token.Token
}

func (r *reader) fail(t *token.Token, format string, args ...any) *Error {
	e := &Error{File: r.file, Message: fmt.Sprintf(format, args...)}
	if t != nil && t.Position != nil {
		e.Line, e.Column = t.Position.Line, t.Position.Column
	}
	return e
}

// keys puts what was read in force, or keeps the set's keys and says why.
func (r *reader) keys() *Keys {
	base := command.NewSet(r.set)
	table, err := base.Rebind(r.binds)
	var clash *command.Clash
	if !errors.As(err, &clash) {
		return &Keys{Table: table}
	}
	at := r.at[clash.First]
	if t, bound := r.at[clash.Then]; bound {
		at = t
	}
	where := filepath.Base(r.file)
	if at != nil && at.Position != nil {
		where = fmt.Sprintf("%s:%d", where, at.Position.Line)
	}
	return &Keys{Table: base, Clash: fmt.Sprintf("%s: %s: %s keys kept", where, clash.Error(), r.set)}
}

// pairs returns the lines of a mapping and refuses doubled keys.
func (r *reader) pairs(n ast.Node, what string) ([]*ast.MappingValueNode, error) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		return nil, r.fail(n.GetToken(), "%s: want lines of the form name: value", what)
	}
	seen := map[string]bool{}
	for _, v := range values {
		t := v.Key.GetToken()
		if seen[t.Value] {
			return nil, r.fail(t, "%q is given twice", t.Value)
		}
		seen[t.Value] = true
	}
	return values, nil
}

func (r *reader) top(body ast.Node) error {
	lines, err := r.pairs(body, "console file")
	if err != nil {
		return err
	}
	for _, v := range lines {
		switch t := v.Key.GetToken(); t.Value {
		case "keys":
			r.set = command.Set(text(v.Value))
			if !slices.Contains(command.Sets(), r.set) {
				return r.fail(v.Value.GetToken(), "keys %q: want vim or plain", text(v.Value))
			}
		case "bind":
			if err := r.bind(v.Value); err != nil {
				return err
			}
		default:
			return r.fail(t, "unknown name %q; names are keys and bind", t.Value)
		}
	}
	return nil
}

// bind reads the lines of COMMAND: KEY or COMMAND: [KEY, …].
func (r *reader) bind(n ast.Node) error {
	lines, err := r.pairs(n, "bind")
	if err != nil {
		return err
	}
	table := command.New()
	for _, l := range lines {
		t := l.Key.GetToken()
		id := command.ID(t.Value)
		if table.Get(id) == nil {
			return r.fail(t, "no command %q; the page of keys and : in the console list their names", t.Value)
		}
		keys, err := r.keysOf(l.Value)
		if err != nil {
			return err
		}
		if why := command.Forbids(id, keys); why != "" {
			return r.fail(l.Value.GetToken(), "%s", why)
		}
		r.binds[id], r.at[id] = keys, t
	}
	return nil
}

func (r *reader) keysOf(n ast.Node) ([]string, error) {
	nodes := []ast.Node{n}
	if list, ok := n.(*ast.SequenceNode); ok {
		nodes = list.Values
	}
	keys := make([]string, 0, len(nodes))
	for _, n := range nodes {
		if _, ok := n.(ast.ScalarNode); !ok {
			return nil, r.fail(n.GetToken(), "want a key, or keys in brackets")
		}
		key, err := command.ParseKey(text(n))
		if err != nil {
			return nil, r.fail(n.GetToken(), "%s", err)
		}
		if slices.Contains(keys, key) {
			return nil, r.fail(n.GetToken(), "key %s is given twice", command.KeyName(key))
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// text is a scalar as it stands in the file, so that n and 1 are keys and not
// truth and number. Nothing at all is empty.
func text(n ast.Node) string {
	if _, scalar := n.(ast.ScalarNode); !scalar {
		return ""
	}
	if t := n.GetToken(); t != nil && t.Type != token.NullType && t.Type != token.ImplicitNullType {
		return strings.TrimSpace(t.Value)
	}
	return ""
}
