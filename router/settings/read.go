package settings

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"adpdeck/router/model"
)

// reader walks one file.
type reader struct {
	name  string
	text  []byte
	lines []int // byte offset at which each line begins
	doc   *Document
}

const byteOrderMark = "\ufeff"

// newReader checks the text as a whole and returns a reader of it and the text
// without its byte order mark.
func newReader(name string, text []byte) (r *reader, body []byte, err error) {
	if len(text) > MaxBytes {
		return nil, nil, &Error{name, 1, 1, fmt.Sprintf("the file has %d bytes; at most %d are read", len(text), MaxBytes)}
	}
	if !utf8.Valid(text) {
		return nil, nil, &Error{name, 1, 1, "the file is not UTF-8"}
	}
	if n := bytes.Count(text, []byte("[")) + bytes.Count(text, []byte("{")) + bytes.Count(text, []byte("- ")); n > MaxNesting {
		return nil, nil, &Error{name, 1, 1, fmt.Sprintf("the file has %d brackets, braces and list dashes; at most %d are read", n, MaxNesting)}
	}
	d := &Document{name: name, text: bytes.Clone(text), enabled: true, serve: DefaultServe()}
	d.values = model.DefaultSettings()
	body = bytes.TrimPrefix(d.text, []byte(byteOrderMark))
	r = &reader{name: name, text: d.text, doc: d}
	r.lines = append(r.lines, len(d.text)-len(body))
	for i := r.lines[0]; i < len(d.text); i++ {
		if d.text[i] == '\n' {
			r.lines = append(r.lines, i+1)
		}
	}
	d.layout = layout{scalars: map[string]span{}, blocks: map[string]block{}}
	return r, body, nil
}

// parse reads a file without the rules that span fields.
func parse(name string, text []byte) (*Document, error) {
	r, body, err := newReader(name, text)
	if err != nil {
		return nil, err
	}
	root, err := r.root(body)
	if err != nil {
		return nil, err
	}
	if root == nil {
		return r.doc, nil
	}
	return r.doc, r.top(root)
}

// root parses the text and returns its one document, nil when it is empty.
func (r *reader) root(body []byte) (n ast.Node, err error) {
	defer func() {
		if p := recover(); p != nil { // the parser gives up on some malformed text this way
			n, err = nil, &Error{r.name, 1, 1, "not YAML"}
		}
	}()
	file, err := parser.ParseBytes(body, 0)
	if err != nil {
		var ye yaml.Error
		if errors.As(err, &ye) && ye.GetToken() != nil {
			return nil, r.fail(ye.GetToken(), "not YAML: %s", ye.GetMessage())
		}
		return nil, &Error{r.name, 1, 1, "not YAML: " + firstLine(err.Error())}
	}
	for _, d := range file.Docs {
		if d.Body == nil {
			continue
		}
		if n != nil {
			return nil, r.fail(d.Body.GetToken(), "a second document; one file holds one")
		}
		n = d.Body
	}
	if _, empty := n.(*ast.CommentGroupNode); empty {
		return nil, nil
	}
	return n, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func (r *reader) fail(t *token.Token, format string, args ...any) error {
	e := &Error{File: r.name, Line: 1, Column: 1, Message: fmt.Sprintf(format, args...)}
	if t != nil && t.Position != nil {
		e.Line, e.Column = max(t.Position.Line, 1), max(t.Position.Column, 1)
	}
	return e
}

// engineKey reports that a key is one of TensorRT-LLM's own file that often stands
// beside attention_dp_config.
func engineKey(key string) bool {
	return slices.Contains([]string{
		"backend", "cuda_graph_config", "disable_overlap_scheduler", "enable_chunked_prefill", "enable_iter_perf_stats", "kv_cache_config", "max_batch_size",
		"max_num_tokens", "max_seq_len", "moe_config", "moe_expert_parallel_size", "return_perf_metrics", "speculative_config", "tensor_parallel_size",
	}, key)
}

// top reads the document's own keys.
func (r *reader) top(root ast.Node) error {
	allowed := append(topKeys(), keyWorkers, keyGateway, keyFeed)
	entries, err := r.entries(root, "", "a mapping with "+strings.Join(allowed, ", "))
	if err != nil {
		return err
	}
	for _, e := range entries {
		known, err := r.serving(e)
		if !known {
			err = r.key(e, allowed)
		}
		if at := (*Error)(nil); errors.As(err, &at) && engineKey(e.key) {
			at.Message += "; of TensorRT-LLM's own file copy enable_attention_dp and attention_dp_config alone, or give all of it to adpdeck serve as --extra-engine-args"
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// topKeys are the document's own keys.
func topKeys() []string {
	return append([]string{keyEnable, keyConfig}, append(ownKeys(), keyCluster, keyWeights)...)
}

// key reads one of the document's own keys; allowed stands in the error for
// any other.
func (r *reader) key(e entry, allowed []string) error {
	switch key := e.key; {
	case key == keyEnable:
		return r.scalar(e, "", &field{kind: model.KindBool, setBool: func(v bool) { r.doc.enabled = v }})
	case key == keyConfig:
		return r.config(e)
	case key == keyCluster:
		return r.cluster(e)
	case key == keyWeights:
		return r.weights(e)
	case isOwn(key):
		return r.scalar(e, "", fieldOf(&r.doc.values, key))
	}
	return r.fail(e.at, "no such key %q; allowed are %s", e.key, strings.Join(allowed, ", "))
}

// config reads attention_dp_config; null stands for all defaults.
func (r *reader) config(e entry) error {
	if _, null := e.value.(*ast.NullNode); null {
		r.noteNull(keyConfig, e)
		return nil
	}
	entries, err := r.entries(e.value, keyConfig, "a mapping of attention_dp_config's fields")
	if err != nil {
		return err
	}
	for _, e := range entries {
		f := fieldOf(&r.doc.values, e.key)
		if f == nil || isOwn(e.key) {
			return r.fail(e.at, "attention_dp_config has no field %q; allowed are %s", e.key, strings.Join(configKeys(), ", "))
		}
		if err := r.scalar(e, keyConfig, f); err != nil {
			return err
		}
	}
	return nil
}

// cluster reads cluster_config; null stands for all defaults.
func (r *reader) cluster(e entry) error {
	if _, null := e.value.(*ast.NullNode); null {
		r.noteNull(keyCluster, e)
		return nil
	}
	entries, err := r.entries(e.value, keyCluster, "a mapping of the cluster tier's fields")
	if err != nil {
		return err
	}
	for _, e := range entries {
		f, ok := model.ClusterField(e.key)
		if !ok {
			return r.fail(e.at, "cluster_config has no field %q; allowed are %s", e.key, strings.Join(clusterKeys(), ", "))
		}
		if err := r.clusterScalar(e, &f); err != nil {
			return err
		}
	}
	return nil
}

// weights reads the map from target to weight.
func (r *reader) weights(e entry) error {
	if _, null := e.value.(*ast.NullNode); null {
		r.noteNull(keyWeights, e)
		return nil
	}
	entries, err := r.entries(e.value, keyWeights, "a mapping from WORKER/RANK to a weight, for example w0/3: 0.8")
	if err != nil {
		return err
	}
	seen := map[model.Target]bool{}
	for _, e := range entries {
		target, err := model.ParseTarget(e.key)
		if err != nil {
			return r.fail(e.at, "weights: %v", err)
		}
		if seen[target] {
			return r.fail(e.at, "weights: %s stands here twice", target)
		}
		seen[target] = true
		e.key = target.String()
		var weight float64
		if err := r.scalar(e, keyWeights, &field{kind: model.KindFloat, setFloat: func(v float64) { weight = v }}); err != nil {
			return err
		}
		if !(weight >= model.MinWeight && weight <= model.MaxWeight) {
			return r.fail(e.value.GetToken(), "weight of %s is %v; want %v to %v", target, weight, model.MinWeight, model.MaxWeight)
		}
		r.doc.values.SetWeight(target, weight+0)
	}
	return nil
}

// entry is one key of a mapping with its value.
type entry struct {
	key   string
	at    *token.Token
	value ast.Node
}

// entries lists a mapping and notes where it lies.
func (r *reader) entries(n ast.Node, section, want string) ([]entry, error) {
	var list []*ast.MappingValueNode
	b := block{}
	switch m := n.(type) {
	case *ast.MappingNode:
		list = m.Values
		if m.IsFlowStyle && m.End != nil {
			b.flow, b.end = true, r.offset(m.End.Position)
		}
	case *ast.MappingValueNode:
		list = []*ast.MappingValueNode{m}
	default:
		return nil, r.fail(n.GetToken(), "want %s, not %s", want, describe(n))
	}
	seen := map[string]bool{}
	out := make([]entry, 0, len(list))
	for _, v := range list {
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			return nil, r.fail(v.Key.GetToken(), "want a plain key here, not %s", describe(v.Key))
		}
		e := entry{key.Value, key.GetToken(), v.Value}
		if seen[e.key] {
			return nil, r.fail(e.at, "%s stands here twice", e.key)
		}
		seen[e.key] = true
		b.count++
		if b.count == 1 {
			b.indent = e.at.Position.Column - 1
		}
		if t := v.Value.GetToken(); t != nil {
			b.last = r.offset(t.Position)
		}
		out = append(out, e)
	}
	r.doc.layout.blocks[section] = b
	return out, nil
}

// offset turns a position (line and column in characters, from 1) into a byte
// offset in the text; -1 when it is not there.
func (r *reader) offset(p *token.Position) int {
	if p == nil || p.Line < 1 || p.Line > len(r.lines) {
		return -1
	}
	at := r.lines[p.Line-1]
	for range p.Column - 1 {
		if at >= len(r.text) || r.text[at] == '\n' {
			break
		}
		_, n := utf8.DecodeRune(r.text[at:])
		at += n
	}
	return at
}

// describe names a node for an error.
func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.NullNode:
		return "nothing"
	case *ast.SequenceNode:
		return "a list"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return "an anchor, alias or merge key (write the value out)"
	case *ast.TagNode, *ast.DirectiveNode:
		return "a tag or directive"
	case *ast.LiteralNode:
		return "a block of text"
	}
	if t := n.GetToken(); t != nil {
		return fmt.Sprintf("%q", t.Value)
	}
	return "this"
}
