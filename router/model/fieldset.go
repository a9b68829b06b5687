package model

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// FieldText returns the value of the named field in s as text, in the form
// that SetField reads. target names the rank of a per-rank field and is not
// read otherwise. The text of an unknown field is empty.
func FieldText(s *Settings, name string, target Target) string {
	c := &s.AttentionDpConfig
	if b := boolField(c, name); b != nil {
		return strconv.FormatBool(*b)
	}
	if i := intField(s, name); i != nil {
		return strconv.Itoa(*i)
	}
	if f := floatField(c, name); f != nil {
		return formatFloat(*f)
	}
	switch name {
	case FieldPolicy:
		return string(c.Policy())
	case FieldRouterMode:
		return string(s.RouterMode)
	case FieldNewConvPlacement:
		return c.KVCacheRoutingNewConvPlacement
	case FieldWeight:
		return formatFloat(s.WeightOf(target))
	}
	cluster := s.Cluster()
	return ClusterFieldText(&cluster, name)
}

// SetField parses one value, checks it against the operator's bounds and the
// document's own rules, and sets it in s. before is the old value as text. On
// an error s is unchanged and err is a *Refusal that names what is allowed.
// s.Weights is replaced, never written in place, so that a published copy of
// s stays as it was. Whether a target exists is the caller's to check.
func SetField(s *Settings, v FieldValue) (before string, err error) {
	befores, err := SetFields(s, []FieldValue{v})
	if err != nil {
		return "", err
	}
	return befores[0], nil
}

// SetFields sets several values, all or nothing: the rules that span fields
// are checked once at the end. befores are the old values as text.
func SetFields(s *Settings, vs []FieldValue) (befores []string, err error) {
	next := *s
	befores = make([]string, len(vs))
	for i, v := range vs {
		var ref *Refusal
		if befores[i], ref = setOne(&next, v); ref != nil {
			return nil, ref
		}
	}
	if ref := next.Check(); ref != nil {
		return nil, ref
	}
	*s = next
	return befores, nil
}

// Check applies the rules that span fields, upstream's own: with
// enable_balance on, both iteration counts are 0 or more (batching first),
// and the two low-occupancy knobs stay in range; then those of the cluster
// tier. It returns nil when all hold.
func (s *Settings) Check() *Refusal {
	c := &s.AttentionDpConfig
	cluster := s.Cluster()
	if !c.EnableBalance {
		return cluster.Check()
	}
	bad := func(field string, value int, allowed string) *Refusal {
		return &Refusal{
			Code:    RefusedBounds,
			Message: fmt.Sprintf("%s %d: must be %s when enable_balance is true", field, value, allowed),
			Next:    "set " + field + " too, or leave enable_balance off",
		}
	}
	switch {
	case c.BatchingWaitIters < 0:
		return bad(FieldBatchingWaitIters, c.BatchingWaitIters, "greater or equal to 0")
	case c.TimeoutIters < 0:
		return bad(FieldTimeoutIters, c.TimeoutIters, "greater or equal to 0")
	case s.MinGenerationRequests < 0:
		return bad(FieldMinGenerationRequests, s.MinGenerationRequests, "greater or equal to 0")
	case s.LowOccupancyTimeoutIters < 0 || s.LowOccupancyTimeoutIters > c.TimeoutIters:
		return bad(FieldLowOccupancyTimeoutIters, s.LowOccupancyTimeoutIters,
			fmt.Sprintf("from 0 to timeout_iters (%d)", c.TimeoutIters))
	}
	return cluster.Check()
}

func setOne(s *Settings, v FieldValue) (before string, ref *Refusal) {
	f, ok := FieldByName(v.Field)
	if !ok {
		return "", &Refusal{
			Code: RefusedField, Message: fmt.Sprintf("set %q: no such field", v.Field),
			Next: "choose one of " + fieldNames(),
		}
	}
	var target Target
	if v.Target != nil {
		target = *v.Target
	}
	if f.PerTarget && (v.Target == nil || target.Worker == "" || target.Rank < 0) {
		return "", &Refusal{
			Code: RefusedTarget, Message: "set " + f.Name + ": it belongs to a rank and none is named",
			Next: "name a rank, for example w0/3",
		}
	}
	if !f.PerTarget && v.Target != nil {
		return "", &Refusal{
			Code: RefusedTarget, Message: "set " + f.Name + ": it belongs to the whole cluster, not to " + target.String(),
			Next: "leave the rank out",
		}
	}
	before = FieldText(s, f.Name, target)
	text := strings.TrimSpace(v.Value)
	if !f.assign(s, target, text) {
		return "", &Refusal{
			Code: RefusedBounds, Message: fmt.Sprintf("set %s to %q: out of bounds", f.Name, v.Value),
			Next: "give " + f.Allowed(),
		}
	}
	return before, nil
}

// assign parses text, checks the bounds and sets the field; false when text
// is not an allowed value.
func (f *Field) assign(s *Settings, target Target, text string) bool {
	if row, ok := clusterRow(f.Name); ok {
		s.ClusterConfig = s.Cluster()
		return row.assign(&s.ClusterConfig, text)
	}
	c := &s.AttentionDpConfig
	switch f.Kind {
	case KindBool:
		b, ok := parseBool(text)
		if ok {
			*boolField(c, f.Name) = b
		}
		return ok
	case KindInt:
		i, err := strconv.Atoi(text)
		if err != nil || float64(i) < f.Min || float64(i) > f.Max {
			return false
		}
		*intField(s, f.Name) = i
		return true
	case KindChoice:
		if !slices.Contains(f.Options, text) {
			return false
		}
		switch f.Name {
		case FieldPolicy:
			*c = c.WithPolicy(Policy(text))
		case FieldRouterMode:
			s.RouterMode = RouterMode(text)
		case FieldNewConvPlacement:
			c.KVCacheRoutingNewConvPlacement = text
		}
		return true
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || x < f.Min || x > f.Max {
		return false
	}
	x += 0 // no negative zero
	if f.Name == FieldWeight {
		s.SetWeight(target, x)
	} else {
		*floatField(c, f.Name) = x
	}
	return true
}

// SetWeight gives target the weight w. The list is replaced, never written in
// place; a weight of DefaultWeight takes the target off it.
func (s *Settings) SetWeight(target Target, w float64) { s.Weights = withWeight(s.Weights, target, w) }

// withWeight returns a new, ordered list in which t has weight w.
func withWeight(ws []Weight, t Target, w float64) []Weight {
	out := make([]Weight, 0, len(ws)+1)
	for _, o := range ws {
		if o.Target != t {
			out = append(out, o)
		}
	}
	if w != DefaultWeight {
		out = append(out, Weight{Target: t, Weight: w})
	}
	slices.SortFunc(out, func(a, b Weight) int { return a.Target.Compare(b.Target) })
	if len(out) == 0 {
		return nil
	}
	return out
}

func parseBool(s string) (v, ok bool) {
	switch strings.ToLower(s) {
	case "true", "on", "yes", "1":
		return true, true
	case "false", "off", "no", "0":
		return false, true
	}
	return false, false
}

func fieldNames() string {
	var names []string
	for _, f := range fieldTable() {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

func boolField(c *AttentionDpConfig, name string) *bool {
	switch name {
	case FieldEnableBalance:
		return &c.EnableBalance
	case FieldKVCacheAware:
		return &c.EnableKVCacheAwareRouting
	case FieldColdStartWarmup:
		return &c.KVCacheRoutingColdStartWarmup
	case FieldAccountForInTransfer:
		return &c.KVCacheRoutingAccountForInTransfer
	case FieldConversationAffinity:
		return &c.KVCacheRoutingConversationAffinity
	}
	return nil
}

func intField(s *Settings, name string) *int {
	switch name {
	case FieldTimeoutIters:
		return &s.AttentionDpConfig.TimeoutIters
	case FieldBatchingWaitIters:
		return &s.AttentionDpConfig.BatchingWaitIters
	case FieldMaxSessions:
		return &s.AttentionDpConfig.KVCacheRoutingMaxSessions
	case FieldMinGenerationRequests:
		return &s.MinGenerationRequests
	case FieldLowOccupancyTimeoutIters:
		return &s.LowOccupancyTimeoutIters
	}
	return nil
}

func floatField(c *AttentionDpConfig, name string) *float64 {
	switch name {
	case FieldLoadBalanceWeight:
		return &c.KVCacheRoutingLoadBalanceWeight
	case FieldMatchRateThreshold:
		return &c.KVCacheRoutingMatchRateThreshold
	case FieldFairShareMultiplier:
		return &c.KVCacheRoutingFairShareMultiplier
	}
	return nil
}
