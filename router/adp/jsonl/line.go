package jsonl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"adpdeck/router/adp"
	"adpdeck/router/model"
)

// envelope is what all kinds of line have, steps still unread.
type envelope struct {
	N       *int64            `json:"n"`
	Router  *string           `json:"router"`
	TP      *int              `json:"tp_size"`
	HardCap *int              `json:"max_num_active_requests"`
	Config  json.RawMessage   `json:"config"`
	Steps   []json.RawMessage `json:"steps"`
}

// answerLine returns the answer to one line with its newline. A line without
// "n" is numbered by its place, from 0.
func answerLine(number int, text []byte, opt Options) ([]byte, error) {
	var e envelope
	if err := decode(text, &e); err != nil {
		return nil, err
	}
	n := int64(number - 1)
	if e.N != nil {
		n = *e.N
	}
	var step func(out []byte, raw json.RawMessage) ([]byte, error)
	var err error
	switch {
	case e.Router != nil:
		step, err = routerSteps(&e, opt)
	case e.HardCap != nil:
		step, err = admissionSteps(&e, opt)
	case len(e.Config) > 0:
		step, err = balanceSteps(&e)
	default:
		err = errors.New(`neither a router line ("router"), an admission line ("max_num_active_requests") nor a balance line ("config")`)
	}
	if err != nil {
		return nil, err
	}
	out := append(strconv.AppendInt([]byte(`{"n":`), n, 10), `,"steps":[`...)
	for i, raw := range e.Steps {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = step(out, raw); err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
	}
	return append(out, "]}\n"...), nil
}

// decode reads exactly one JSON value and says in plain words what is wrong.
func decode(text []byte, into any) error {
	err := json.Unmarshal(text, into)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON at byte %d: %s", syntax.Offset, syntax.Error())
	case errors.As(err, &kind):
		if kind.Field == "" {
			return fmt.Errorf("%s where %s is wanted", aThing(kind.Value), wanted(kind.Type))
		}
		return fmt.Errorf("%q is %s where %s is wanted", kind.Field, aThing(kind.Value), wanted(kind.Type))
	}
	return err
}

func aThing(name string) string {
	if name == "array" || name == "object" {
		return "an " + name
	}
	return "a " + name
}

// wanted names what JSON would have fitted a Go type.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// ranksOf checks tp_size.
func ranksOf(e *envelope) (int, error) {
	if e.TP == nil {
		return 0, errors.New(`"tp_size" is missing`)
	}
	if *e.TP < 1 || *e.TP > MaxRanks {
		return 0, fmt.Errorf(`"tp_size" is %d; want 1 to %d`, *e.TP, MaxRanks)
	}
	return *e.TP, nil
}

type wireParams struct {
	Rank     *int   `json:"attention_dp_rank"`
	Relax    *bool  `json:"attention_dp_relax"`
	Affinity string `json:"subagent_affinity_id"`
}

func (p *wireParams) params() *adp.Params {
	if p == nil {
		return nil
	}
	return &adp.Params{Rank: p.Rank, Relax: p.Relax, SubagentAffinityID: p.Affinity}
}

// routerConfig holds the raw values of all three routers; the clamps are
// package adp's.
type routerConfig struct {
	Beta      *float64        `json:"load_balance_weight"`
	Threshold *float64        `json:"match_rate_threshold"`
	Share     *float64        `json:"fair_share_multiplier"`
	Warmup    bool            `json:"cold_start_warmup"`
	Sessions  *float64        `json:"max_sessions"`
	Placement json.RawMessage `json:"new_conv_placement"`
}

func (e *envelope) routerConfig() (model.AttentionDpConfig, error) {
	c := model.DefaultAttentionDpConfig()
	switch *e.Router {
	case "default", "kv_aware", "conversation":
		c = c.WithPolicy(model.Policy(*e.Router))
	default:
		return c, fmt.Errorf(`"router" is %q; want default, kv_aware or conversation`, *e.Router)
	}
	var w routerConfig
	if len(e.Config) > 0 {
		if err := decode(e.Config, &w); err != nil {
			return c, fmt.Errorf("config: %w", err)
		}
	}
	set := func(dst *float64, v *float64) {
		if v != nil {
			*dst = *v
		}
	}
	set(&c.KVCacheRoutingLoadBalanceWeight, w.Beta)
	set(&c.KVCacheRoutingMatchRateThreshold, w.Threshold)
	set(&c.KVCacheRoutingFairShareMultiplier, w.Share)
	c.KVCacheRoutingColdStartWarmup = w.Warmup
	if w.Sessions != nil {
		c.KVCacheRoutingMaxSessions = int(max(1, min(*w.Sessions, 1<<30)))
	}
	// Upstream's constructor takes any value and falls back to round_robin.
	var place string
	if json.Unmarshal(w.Placement, &place) == nil && place != "" {
		c.KVCacheRoutingNewConvPlacement = place
	}
	return c, nil
}

// appendString writes s as a JSON string.
func appendString(out []byte, s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return append(out, bytes.TrimRight(b.Bytes(), "\n")...)
}
