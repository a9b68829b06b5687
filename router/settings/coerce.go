package settings

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"adpdeck/router/model"
)

// field is where a scalar goes and what it may be.
type field struct {
	kind      model.FieldKind
	options   []string
	setBool   func(bool)
	setInt    func(int)
	setFloat  func(float64)
	setChoice func(string)
}

// fieldOf returns the field called name in s, nil for none.
func fieldOf(s *model.Settings, name string) *field {
	c := &s.AttentionDpConfig
	boolean := func(p *bool) *field {
		return &field{kind: model.KindBool, setBool: func(v bool) { *p = v }}
	}
	integer := func(p *int) *field {
		return &field{kind: model.KindInt, setInt: func(v int) { *p = v }}
	}
	float := func(p *float64) *field {
		return &field{kind: model.KindFloat, setFloat: func(v float64) { *p = v }}
	}
	choice := func(set func(string)) *field {
		f, _ := model.FieldByName(name)
		return &field{kind: model.KindChoice, options: f.Options, setChoice: set}
	}
	switch name {
	case model.FieldEnableBalance:
		return boolean(&c.EnableBalance)
	case model.FieldTimeoutIters:
		return integer(&c.TimeoutIters)
	case model.FieldBatchingWaitIters:
		return integer(&c.BatchingWaitIters)
	case model.FieldKVCacheAware:
		return boolean(&c.EnableKVCacheAwareRouting)
	case model.FieldLoadBalanceWeight:
		return float(&c.KVCacheRoutingLoadBalanceWeight)
	case model.FieldMatchRateThreshold:
		return float(&c.KVCacheRoutingMatchRateThreshold)
	case model.FieldFairShareMultiplier:
		return float(&c.KVCacheRoutingFairShareMultiplier)
	case model.FieldColdStartWarmup:
		return boolean(&c.KVCacheRoutingColdStartWarmup)
	case model.FieldAccountForInTransfer:
		return boolean(&c.KVCacheRoutingAccountForInTransfer)
	case model.FieldConversationAffinity:
		return boolean(&c.KVCacheRoutingConversationAffinity)
	case model.FieldMaxSessions:
		return integer(&c.KVCacheRoutingMaxSessions)
	case model.FieldNewConvPlacement:
		return choice(func(v string) { c.KVCacheRoutingNewConvPlacement = v })
	case model.FieldRouterMode:
		return choice(func(v string) { s.RouterMode = model.RouterMode(v) })
	case model.FieldMinGenerationRequests:
		return integer(&s.MinGenerationRequests)
	case model.FieldLowOccupancyTimeoutIters:
		return integer(&s.LowOccupancyTimeoutIters)
	}
	return nil
}

// scalar reads one value into f and notes where it lies.
func (r *reader) scalar(e entry, section string, f *field) error {
	text, ok := scalarText(e.value)
	t := e.value.GetToken()
	if !ok {
		return r.fail(t, "%s: want %s, not %s", e.key, f.allowed(), describe(e.value))
	}
	r.note(section, e)
	switch f.kind {
	case model.KindBool:
		v, ok := boolOf(text)
		if ok {
			f.setBool(v)
			return nil
		}
	case model.KindInt:
		_, plain := e.value.(*ast.IntegerNode)
		v, ok := intOf(text, plain)
		if ok {
			f.setInt(v)
			return nil
		}
	case model.KindFloat:
		_, plain := e.value.(*ast.IntegerNode)
		v, ok := floatOf(text, plain)
		if ok {
			f.setFloat(v)
			return nil
		}
	case model.KindChoice:
		if slices.Contains(f.options, text) {
			f.setChoice(text)
			return nil
		}
	}
	return r.fail(t, "%s is %q; want %s", e.key, text, f.allowed())
}

// clusterScalar reads one field of cluster_config within its bounds, and notes
// where it lies. null or none unsets an optional one.
func (r *reader) clusterScalar(e entry, f *model.Field) error {
	var text string
	if _, null := e.value.(*ast.NullNode); null {
		if !f.Optional {
			return r.fail(e.at, "%s is nothing; want %s", e.key, f.Allowed())
		}
		r.note(keyCluster, e)
		if s := r.doc.layout.scalars[keyCluster+"/"+e.key]; s.to < s.from {
			return r.fail(e.at, "%s: nothing is written; write null to unset it", e.key)
		}
		text = unset
	} else {
		fd := &field{kind: f.Kind, options: f.Options}
		fd.setBool = func(v bool) { text = strconv.FormatBool(v) }
		fd.setInt = func(v int) { text = strconv.Itoa(v) }
		fd.setFloat = func(v float64) { text = strconv.FormatFloat(v, 'g', -1, 64) }
		fd.setChoice = func(v string) { text = v }
		if word, ok := scalarText(e.value); ok && f.Optional && word == unset {
			text = unset
			r.note(keyCluster, e)
		} else if err := r.scalar(e, keyCluster, fd); err != nil {
			return err
		}
	}
	if !model.PutClusterField(&r.doc.values.ClusterConfig, e.key, text) {
		return r.fail(e.value.GetToken(), "%s is %s; want %s", e.key, text, f.Allowed())
	}
	return nil
}

func (f *field) allowed() string {
	switch f.kind {
	case model.KindBool:
		return "true or false"
	case model.KindInt:
		return "a whole number"
	case model.KindFloat:
		return "a number"
	}
	return "one of " + strings.Join(f.options, ", ")
}

// scalarText is the text of a scalar; false for everything else.
func scalarText(n ast.Node) (string, bool) {
	switch v := n.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// quoted reports whether a token is a quoted string.
func quoted(t *token.Token) bool {
	return t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
}

// boolOf takes what pydantic's lax mode takes.
func boolOf(s string) (v, ok bool) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true", "t", "yes", "y", "on", "1", "1.0":
		return true, true
	case "false", "f", "no", "n", "off", "0", "0.0":
		return false, true
	}
	return false, false
}

// intOf takes whole numbers in any notation of YAML, whole floats, and both as
// text.
func intOf(s string, plain bool) (int, bool) {
	s = strings.TrimSpace(s)
	base := 10
	if plain {
		base = 0
	} else {
		s = strings.ReplaceAll(s, "_", "")
	}
	if v, err := strconv.ParseInt(s, base, 64); err == nil {
		return int(v), true
	}
	if v, ok := truth(s); ok {
		return int(v), true
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v != math.Trunc(v) || math.Abs(v) >= 1<<63 || strings.ContainsAny(s, "xXpP") {
		return 0, false
	}
	return int(v), true
}

// floatOf takes any number, infinity and NaN too: upstream sets no bounds.
func floatOf(s string, plain bool) (float64, bool) {
	s = strings.TrimSpace(s)
	if plain {
		if v, err := strconv.ParseInt(s, 0, 64); err == nil {
			return float64(v), true
		}
	}
	if v, ok := truth(s); ok {
		return v, true
	}
	sign, word := "", s
	if word != "" && (word[0] == '-' || word[0] == '+') {
		sign, word = word[:1], word[1:]
	}
	switch strings.ToLower(word) {
	case ".inf":
		s = sign + "inf"
	case ".nan":
		s = "nan"
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil || strings.ContainsAny(s, "xXpP") {
		return 0, false
	}
	return v, true
}

// truth is true and false as the numbers 1 and 0.
func truth(s string) (float64, bool) {
	switch strings.ToLower(s) {
	case "true":
		return 1, true
	case "false":
		return 0, true
	}
	return 0, false
}
