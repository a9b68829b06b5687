package settings

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"adpdeck/router/model"
)

// Bounds of what is read. The second one keeps the YAML parser, whose time
// grows with the square of the nesting, quick on hostile text.
const (
	MaxBytes   = 256 << 10
	MaxNesting = 4096 // brackets, braces and list dashes in all
)

// The document's own keys.
const (
	keyEnable  = "enable_attention_dp"
	keyConfig  = "attention_dp_config"
	keyWeights = "weights"
	keyCluster = "cluster_config"
)

// Document is a settings file: its text and what it says.
type Document struct {
	name    string
	text    []byte
	values  model.Settings
	enabled bool
	serve   model.ServeSpec
	layout  layout
}

// Parse reads a file's text; name stands in errors. What the text does not
// mention has upstream's default. Errors are of type *Error.
func Parse(name string, text []byte) (*Document, error) {
	d, err := parse(name, text)
	if err != nil {
		return nil, err
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	return d, nil
}

// New returns a document that says everything in s, upstream's fields in
// upstream's order, the cluster tier's in the screen's.
func New(s model.Settings) (*Document, error) {
	var b strings.Builder
	b.WriteString(keyEnable + ": true\n" + keyConfig + ":\n")
	for _, name := range configKeys() {
		fmt.Fprintf(&b, "  %s: %s\n", name, textOf(&s, name))
	}
	for _, name := range ownKeys() {
		fmt.Fprintf(&b, "%s: %s\n", name, textOf(&s, name))
	}
	b.WriteString(keyCluster + ":\n")
	for _, name := range clusterKeys() {
		fmt.Fprintf(&b, "  %s: %s\n", name, textOf(&s, name))
	}
	for i, w := range s.Weights {
		if i == 0 {
			b.WriteString(keyWeights + ":\n")
		}
		fmt.Fprintf(&b, "  %s: %s\n", quoteKey(w.Target.String()), yamlFloat(w.Weight))
	}
	d, err := Parse("settings", []byte(b.String()))
	if err != nil {
		return nil, fmt.Errorf("write settings: %w", err)
	}
	return d, nil
}

// Settings is what the document says.
func (d *Document) Settings() model.Settings { return d.values }

// Enabled is enable_attention_dp, true where the file does not say.
func (d *Document) Enabled() bool { return d.enabled }

// Bytes is the text, the same bytes that were read until Update changes them.
func (d *Document) Bytes() []byte { return bytes.Clone(d.text) }

// Update makes the document say s. Each value that differs replaces its own
// scalar, or is added at the end of its block where the file did not mention
// it; nothing else in the text changes. On an error the document is as it was.
func (d *Document) Update(s model.Settings) error {
	next := d
	put := func(section, key, text string) error {
		edited, err := next.layout.edit(next.text, section, key, text)
		if err != nil {
			return fmt.Errorf("update %s: %w", d.name, err)
		}
		if next, err = parse(d.name, edited); err != nil {
			return fmt.Errorf("update %s: set %s: %w", d.name, key, err)
		}
		return nil
	}
	for _, name := range allKeys() {
		if text := textOf(&s, name); text != textOf(&d.values, name) {
			if err := put(sectionOf(name), name, text); err != nil {
				return err
			}
		}
	}
	for _, w := range append(append([]model.Weight(nil), d.values.Weights...), s.Weights...) {
		if is := s.WeightOf(w.Target); is != next.values.WeightOf(w.Target) {
			if err := put(keyWeights, w.Target.String(), yamlFloat(is)); err != nil {
				return err
			}
		}
	}
	if err := next.check(); err != nil {
		return err
	}
	if !same(&next.values, &s) {
		return fmt.Errorf("update %s: the edited text says something else; write these values by hand", d.name)
	}
	*d = *next
	return nil
}

// same reports whether two settings say the same.
func same(a, b *model.Settings) bool {
	for _, name := range allKeys() {
		if textOf(a, name) != textOf(b, name) {
			return false
		}
	}
	return slices.Equal(a.Weights, b.Weights)
}

// configKeys are the fields of attention_dp_config in upstream's order.
func configKeys() []string {
	return []string{
		model.FieldEnableBalance, model.FieldTimeoutIters, model.FieldBatchingWaitIters,
		model.FieldKVCacheAware, model.FieldLoadBalanceWeight, model.FieldMatchRateThreshold,
		model.FieldFairShareMultiplier, model.FieldColdStartWarmup, model.FieldAccountForInTransfer,
		model.FieldConversationAffinity, model.FieldMaxSessions, model.FieldNewConvPlacement,
	}
}

// ownKeys are the scalar keys that are adpdeck's own.
func ownKeys() []string {
	return []string{model.FieldRouterMode, model.FieldMinGenerationRequests, model.FieldLowOccupancyTimeoutIters}
}

// clusterKeys are the fields of cluster_config in the order of a screen.
func clusterKeys() []string {
	var names []string
	for _, f := range model.ClusterFields() {
		names = append(names, f.Name)
	}
	return names
}

// allKeys are the scalar fields of the whole document.
func allKeys() []string { return append(append(configKeys(), ownKeys()...), clusterKeys()...) }

// sectionOf names the mapping in which a field stands, empty for the top.
func sectionOf(name string) string {
	switch {
	case isOwn(name):
		return ""
	case slices.Contains(configKeys(), name):
		return keyConfig
	}
	return keyCluster
}

func isOwn(name string) bool { return slices.Contains(ownKeys(), name) }

// textOf writes a field's value as YAML that reads back as the same value.
func textOf(s *model.Settings, name string) string {
	f, _ := model.FieldByName(name)
	text := model.FieldText(s, name, model.Target{})
	if f.Optional && text == unset {
		return "null"
	}
	if f.Kind == model.KindFloat {
		v, err := strconv.ParseFloat(text, 64)
		if err == nil {
			return yamlFloat(v)
		}
	}
	return text
}

// unset is the word of an optional field without a value.
const unset = "none"

func yamlFloat(v float64) string {
	switch {
	case math.IsNaN(v):
		return ".nan"
	case math.IsInf(v, 1):
		return ".inf"
	case math.IsInf(v, -1):
		return "-.inf"
	}
	text := strconv.FormatFloat(v, 'g', -1, 64)
	if strings.ContainsAny(text, "e") {
		if !strings.Contains(text, ".") { // YAML 1.1 wants a point before the exponent
			text = strings.Replace(text, "e", ".0e", 1)
		}
		return text
	}
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// quoteKey quotes a target that YAML could take for something else.
func quoteKey(s string) string {
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '/', r == '_', r == '-', r == '.':
		default:
			return strconv.Quote(s)
		}
	}
	if s[0] == '-' || s[0] == '.' {
		return strconv.Quote(s)
	}
	return s
}
