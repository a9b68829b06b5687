package model

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// FieldKind is the type of a settings field.
type FieldKind string

// The kinds of field.
const (
	KindBool   FieldKind = "bool"
	KindInt    FieldKind = "int"
	KindFloat  FieldKind = "float"
	KindChoice FieldKind = "choice" // one of Field.Options
)

// Field describes one settings field: what an operator may set and how a
// screen shows it. The bounds are the console's own; upstream has none, and a
// value that a file brought from outside them is kept until it is set.
type Field struct {
	// Name is upstream's attention_dp_config name, or one of the Field…
	// constants.
	Name string
	// Label is at most 17 columns wide.
	Label string
	Kind  FieldKind
	// Min and Max bound an int or float, both inclusive.
	Min, Max float64
	// Default is upstream's default as text.
	Default string
	// StepSmall and StepLarge are what one key press adds. Where StepSmall is 0
	// for a float, Step gives the amount that fits the value.
	StepSmall, StepLarge float64
	// Options are the values of a KindChoice.
	Options []string
	// Policies are those that read the field; empty means all.
	Policies []Policy
	// Modes are the cluster tier's modes that read the field; empty means all.
	Modes []RouterMode
	// Optional says that the field can be unset with the word none.
	Optional bool
	// Needs names the switch without which the field does nothing, empty for
	// none.
	Needs string
	// PerTarget says that the field belongs to one rank, not to the cluster.
	PerTarget bool
	// Help says in one line what the field does.
	Help string
}

// UsedBy reports whether policy p reads the field.
func (f *Field) UsedBy(p Policy) bool {
	if len(f.Policies) == 0 {
		return true
	}
	for _, q := range f.Policies {
		if q == p {
			return true
		}
	}
	return false
}

// UsedIn reports whether router mode m reads the field.
func (f *Field) UsedIn(m RouterMode) bool { return len(f.Modes) == 0 || slices.Contains(f.Modes, m) }

// Step returns how far one small (or large) key press moves the value v.
// Floats without a fixed step move by 0.05 below 2, 0.25 below 10 and 1
// beyond, and ten times that for a large step.
func (f *Field) Step(v float64, large bool) float64 {
	small, big := f.StepSmall, f.StepLarge
	if small == 0 && f.Kind == KindFloat {
		switch {
		case math.Abs(v) < 2:
			small = 0.05
		case math.Abs(v) < 10:
			small = 0.25
		default:
			small = 1
		}
		big = 10 * small
	}
	if large {
		return big
	}
	return small
}

// Allowed says in words which values may be set: "0 to 16", "true or false",
// "one of round_robin, least_queued, least_tokens", "a number from 0 to 1, or
// none".
func (f *Field) Allowed() string {
	if f.Optional {
		return f.allowed() + ", or none"
	}
	return f.allowed()
}

func (f *Field) allowed() string {
	switch f.Kind {
	case KindBool:
		return "true or false"
	case KindChoice:
		return "one of " + strings.Join(f.Options, ", ")
	case KindInt:
		return fmt.Sprintf("a whole number from %.0f to %.0f", f.Min, f.Max)
	default:
		return "a number from " + formatFloat(f.Min) + " to " + formatFloat(f.Max)
	}
}

// Upstream's names of the fields of attention_dp_config.
const (
	FieldEnableBalance        = "enable_balance"
	FieldTimeoutIters         = "timeout_iters"
	FieldBatchingWaitIters    = "batching_wait_iters"
	FieldKVCacheAware         = "enable_kv_cache_aware_routing"
	FieldLoadBalanceWeight    = "kv_cache_routing_load_balance_weight"
	FieldMatchRateThreshold   = "kv_cache_routing_match_rate_threshold"
	FieldFairShareMultiplier  = "kv_cache_routing_fair_share_multiplier"
	FieldColdStartWarmup      = "kv_cache_routing_cold_start_warmup"
	FieldAccountForInTransfer = "kv_cache_routing_account_for_in_transfer"
	FieldConversationAffinity = "kv_cache_routing_conversation_affinity"
	FieldMaxSessions          = "kv_cache_routing_max_sessions"
	FieldNewConvPlacement     = "kv_cache_routing_new_conv_placement"
)

// Fields returns every field of Settings in the order in which a screen lists
// them: what steers placement first, then the balance gate, then the cluster
// tier's own (ClusterFields). The slice is new at each call; what its elements
// list is shared and not to be written.
func Fields() []Field { return slices.Clone(fieldTable()) }

// fieldTable is what Fields copies, built once.
var fieldTable = sync.OnceValue(allFields)

func allFields() []Field {
	kv := []Policy{PolicyKVAware}
	conv := []Policy{PolicyConversation}
	both := []Policy{PolicyKVAware, PolicyConversation}
	rows := []Field{
		{
			Name: FieldPolicy, Label: "policy", Kind: KindChoice, Default: string(PolicyDefault),
			Options: []string{string(PolicyDefault), string(PolicyKVAware), string(PolicyConversation)},
			Help:    "which of TensorRT-LLM's rank routers decides; sets its two switches",
		},
		{
			Name: FieldLoadBalanceWeight, Label: "load balance β", Kind: KindFloat, Min: 0, Max: 16, Default: "1",
			Policies: kv, Help: "how much a rank's load weighs against tokens found in its cache",
		},
		{
			Name: FieldMatchRateThreshold, Label: "match threshold", Kind: KindFloat, Min: 0, Max: 1, Default: "0.1",
			StepSmall: 0.01, StepLarge: 0.1, Policies: kv, Help: "share of the prompt that must be cached somewhere before the cache counts",
		},
		{
			Name: FieldFairShareMultiplier, Label: "fair share ×", Kind: KindFloat, Min: 1, Max: 8, Default: "2",
			Policies: both, Help: "soft cap of a rank as a multiple of its fair share of requests",
		},
		{
			Name: FieldNewConvPlacement, Label: "new placement", Kind: KindChoice, Default: PlaceRoundRobin,
			Options:  []string{PlaceRoundRobin, PlaceLeastQueued, PlaceLeastTokens},
			Policies: conv, Help: "where a conversation that is not bound yet goes",
		},
		{
			Name: FieldMaxSessions, Label: "max sessions", Kind: KindInt, Min: 1, Max: 1 << 20, Default: "65536",
			StepSmall: 1024, StepLarge: 16384, Policies: conv, Help: "bindings that are remembered, oldest forgotten first",
		},
		{
			Name: FieldColdStartWarmup, Label: "warm-up", Kind: KindBool, Default: "false",
			Policies: kv, Help: "send each cold rank one request before scores decide",
		},
		{
			Name: FieldAccountForInTransfer, Label: "count in transfer", Kind: KindBool, Default: "false",
			Policies: kv, Help: "count requests that still send their KV cache as load",
		},
		{
			Name: FieldKVCacheAware, Label: "kv-aware switch", Kind: KindBool, Default: "false",
			Help: "upstream's own switch behind policy kv_aware",
		},
		{
			Name: FieldConversationAffinity, Label: "affinity switch", Kind: KindBool, Default: "false",
			Help: "upstream's own switch behind policy conversation; it wins over kv-aware",
		},
		{
			Name: FieldRouterMode, Label: "router mode", Kind: KindChoice, Default: string(ModeRoundRobin),
			Options: modeNames(),
			Help:    "how the cluster tier picks a worker; kv and lockstep pick its rank too",
		},
		{
			Name: FieldWeight, Label: "weight", Kind: KindFloat, Min: MinWeight, Max: MaxWeight, Default: "1", PerTarget: true,
			StepSmall: 0.05, StepLarge: 0.5, Help: "a rank's load is divided by its weight; 0 takes no new work",
		},
	}
	return slices.Concat(rows, gateFields(), ClusterFields())
}

// gateFields are those of the context-balance gate.
func gateFields() []Field {
	return []Field{
		{
			Name: FieldEnableBalance, Label: "balance gate", Kind: KindBool, Default: "false",
			Help: "hold prefill back until every rank has some",
		},
		{
			Name: FieldTimeoutIters, Label: "gate timeout", Kind: KindInt, Min: 0, Max: 10000, Default: "50",
			StepSmall: 1, StepLarge: 10, Needs: FieldEnableBalance, Help: "steps that the gate may hold prefill while a rank has none",
		},
		{
			Name: FieldBatchingWaitIters, Label: "batching wait", Kind: KindInt, Min: 0, Max: 10000, Default: "10",
			StepSmall: 1, StepLarge: 10, Needs: FieldEnableBalance, Help: "steps that the gate waits for a fuller batch once every rank has prefill",
		},
		{
			Name: FieldMinGenerationRequests, Label: "min generation", Kind: KindInt, Min: 0, Max: 10000, Default: "0",
			StepSmall: 1, StepLarge: 10, Needs: FieldEnableBalance, Help: "below this many generations on a rank the low-occupancy timeout holds",
		},
		{
			Name: FieldLowOccupancyTimeoutIters, Label: "low-occ. timeout", Kind: KindInt, Min: 0, Max: 10000, Default: "0",
			StepSmall: 1, StepLarge: 10, Needs: FieldEnableBalance, Help: "gate timeout while a rank generates little; at most the gate timeout",
		},
	}
}

// modeNames are the router modes, those first that need no knowledge of caches.
func modeNames() []string {
	return []string{
		string(ModeRoundRobin), string(ModeLeastLoaded), string(ModeKV), string(ModeLockstep),
		string(ModeRandom), string(ModePowerOfTwo), string(ModeDirect),
	}
}

// FieldByName returns the field called name.
func FieldByName(name string) (Field, bool) {
	all := fieldTable()
	for i := range all {
		if all[i].Name == name {
			return all[i], true
		}
	}
	return Field{}, false
}

// formatFloat writes v exactly and as short as can be, without an exponent
// where that stays readable.
func formatFloat(v float64) string {
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e15) {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
