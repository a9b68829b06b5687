package settings

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"

	"adpdeck/router/model"
)

// Bounds of a list.
const (
	MaxItems     = 256
	MaxNameBytes = 64
)

// keyName names an item of a list.
const keyName = "name"

// Item is one entry of a list of settings.
type Item struct {
	Name string
	// Settings is what the item says, and the base where it says nothing.
	Settings model.Settings
	// Extra holds the values of the caller's own keys, as they were written.
	Extra map[string]string
	// Line and Column are where the item begins, from 1.
	Line, Column int
}

// ParseList reads a list of settings, each a mapping with a name and the keys
// of a settings file:
//
//   - name: dynamo, P 16
//     router_mode: kv
//     cluster_config: {router_prefill_load_scale: 16}
//     ranks: 32
//
// What an item does not mention is as in base. extra are further keys that an
// item may have, whole numbers, numbers or choices; their bounds are checked.
// Reading is as strict as a settings file's. Errors are of type *Error.
func ParseList(name string, text []byte, base model.Settings, extra []model.Field) ([]Item, error) {
	r, body, err := newReader(name, text)
	if err != nil {
		return nil, err
	}
	root, err := r.root(body)
	if err != nil {
		return nil, err
	}
	if root == nil {
		return nil, &Error{name, 1, 1, "the list is empty; give at least one entry, for example - name: as it is"}
	}
	seq, ok := root.(*ast.SequenceNode)
	if !ok {
		return nil, r.fail(root.GetToken(), "want a list of settings, each with a name, not %s", describe(root))
	}
	if len(seq.Values) > MaxItems {
		return nil, r.fail(root.GetToken(), "the list has %d entries; at most %d are read", len(seq.Values), MaxItems)
	}
	items := make([]Item, 0, len(seq.Values))
	seen := map[string]int{}
	for _, n := range seq.Values {
		it, err := r.item(n, base, extra)
		if err != nil {
			return nil, err
		}
		if line, ok := seen[it.Name]; ok {
			return nil, &Error{name, it.Line, it.Column, fmt.Sprintf("the name %q stands at line %d too; give each entry its own", it.Name, line)}
		}
		seen[it.Name] = it.Line
		items = append(items, it)
	}
	return items, nil
}

// item reads one entry into a document of its own.
func (r *reader) item(n ast.Node, base model.Settings, extra []model.Field) (Item, error) {
	r.doc.values, r.doc.layout = base, layout{scalars: map[string]span{}, blocks: map[string]block{}}
	it := Item{Extra: map[string]string{}, Line: 1, Column: 1}
	entries, err := r.entries(n, "", "a mapping with a name and settings")
	if err != nil {
		return it, err
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		it.Line, it.Column = t.Position.Line, t.Position.Column
	}
	if len(entries) > 0 {
		it.Line, it.Column = entries[0].at.Position.Line, entries[0].at.Position.Column
	}
	allowed := []string{keyName}
	for _, f := range extra {
		allowed = append(allowed, f.Name)
	}
	for _, e := range entries {
		if e.key == keyName {
			it.Name, err = r.itemName(e)
		} else if f := fieldNamed(extra, e.key); f != nil {
			it.Extra[e.key], err = r.extra(e, f)
		} else {
			err = r.key(e, append(allowed, topKeys()...))
		}
		if err != nil {
			return it, err
		}
	}
	if it.Name == "" {
		return it, &Error{r.name, it.Line, it.Column, "this entry has no name; add name: and a word for the table"}
	}
	if !r.doc.enabled {
		return it, &Error{r.name, it.Line, it.Column, keyEnable + " is false: there would be no DP ranks to route to; set it to true"}
	}
	if err := r.doc.check(); err != nil {
		return it, err
	}
	it.Settings = r.doc.values
	return it, nil
}

func fieldNamed(fields []model.Field, name string) *model.Field {
	for i := range fields {
		if fields[i].Name == name {
			return &fields[i]
		}
	}
	return nil
}

func (r *reader) itemName(e entry) (string, error) {
	text, ok := scalarText(e.value)
	text = strings.TrimSpace(text)
	switch {
	case !ok || text == "":
		return "", r.fail(e.value.GetToken(), "name: want a word or two for the table, not %s", describe(e.value))
	case len(text) > MaxNameBytes:
		return "", r.fail(e.value.GetToken(), "name is %d bytes long; at most %d are shown", len(text), MaxNameBytes)
	case strings.ContainsFunc(text, unprintable):
		return "", r.fail(e.value.GetToken(), "name holds a control character; write it on one line")
	}
	return text, nil
}

func unprintable(c rune) bool {
	return c < ' ' || c >= 0x7f && c < 0xa0 || c == utf8.RuneError || c == '\u2028' || c == '\u2029'
}

// extra reads one of the caller's keys and holds it to its bounds.
func (r *reader) extra(e entry, f *model.Field) (string, error) {
	var low, high bool
	var text string
	at := &field{kind: f.Kind, options: f.Options}
	at.setInt = func(v int) { low, high, text = float64(v) < f.Min, float64(v) > f.Max, fmt.Sprint(v) }
	at.setFloat = func(v float64) { low, high, text = !(v >= f.Min), !(v <= f.Max), fmt.Sprint(v) }
	at.setChoice = func(v string) { text = v }
	if err := r.scalar(e, "", at); err != nil {
		return "", err
	}
	if low || high {
		return "", r.fail(e.value.GetToken(), "%s is %s; want %s", e.key, text, f.Allowed())
	}
	return text, nil
}
