package router

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"adpdeck/router/cluster"
	"adpdeck/router/model"
)

// maxWeights bounds the weights that are kept, those of ranks that have left
// included.
const maxWeights = 2 * cluster.MaxSlots

// planSet plans a set of fields and weights, all or nothing.
func (r *Router) planSet(cmd *model.Command) plan {
	if len(cmd.Set) == 0 {
		return refuse(model.RefusedMalformed, "name at least one field and its value", "set: nothing to set")
	}
	seen := map[object]bool{}
	for _, v := range cmd.Set {
		o := object{kind: fieldObject, field: v.Field}
		if v.Target != nil {
			o.target = *v.Target
			if r.rank(o.target) == nil && r.settings.WeightOf(o.target) == model.DefaultWeight { // that of one that has left may be set back
				return refuse(model.RefusedTarget, r.ranksAre(o.target.Worker), "set %s of %s: no such rank", v.Field, v.Target)
			}
		}
		if seen[o] {
			return refuse(model.RefusedMalformed, "give each field one value", "set %s: it is there twice", v.Field)
		}
		seen[o] = true
	}
	next := *r.settings
	p, befores := r.planValues(cmd, cmd.Set, &next)
	if p.refusal != nil {
		return p
	}
	var parts []string
	for i, v := range cmd.Set {
		text := r.settingText(v.Field, v.Target, befores[i], model.FieldText(&next, v.Field, targetOf(v)))
		if v.Target != nil && r.picksRank(v.Target.Worker) {
			text += fmt.Sprintf(" (the engine of %s picks the rank and may use this one all the same)", v.Target.Worker)
		}
		parts = append(parts, text)
	}
	p.what = list(parts)
	return p
}

// planValues plans to set values in next, which are the settings in force, and
// returns what they were.
func (r *Router) planValues(cmd *model.Command, values []model.FieldValue, next *model.Settings) (p plan, befores []string) {
	befores, err := model.SetFields(next, values)
	if err != nil {
		var ref *model.Refusal
		if !errors.As(err, &ref) {
			ref = refusal(model.RefusedBounds, "", "%s: %v", cmd.Verb, err)
		}
		return plan{refusal: ref}, nil
	}
	if n := len(next.Weights); n > maxWeights && n > len(r.settings.Weights) {
		return refuse(model.RefusedFull, "set those of ranks that are gone for good back to 1", "%s: weights of %d ranks, at most %d are kept", cmd.Verb, n, maxWeights), nil
	}
	if ref := r.checkEligible(string(cmd.Verb), next, nil); ref != nil {
		return plan{refusal: ref}, nil
	}
	return plan{changes: r.diff(r.settings, next)}, befores
}

// Reload sets what a settings file says now, as one version under the command's
// id; it is Apply for who has a file. differ lists the values in which the file
// is not what is in force, and is called with the lock at most once: not where the id was
// answered before, or the command is refused for its own sake. Weights may be of
// ranks that have not joined yet, as at the start. What is written down as done is what
// told says of so many values.
func (r *Router) Reload(cmd model.Command, differ func(model.Settings) []model.FieldValue, told func(values int) string) model.Reply {
	return r.applyAt(r.clock.Now(), &cmd, func(cmd *model.Command) plan {
		next := *r.settings
		values := differ(next)
		p, _ := r.planValues(cmd, values, &next)
		p.what = told(len(values))
		return p
	})
}

func targetOf(v model.FieldValue) model.Target {
	if v.Target == nil {
		return model.Target{}
	}
	return *v.Target
}

// diff lists the fields and weights in which next differs from old.
func (r *Router) diff(old, next *model.Settings) []change {
	var out []change
	fields := r.fields
	if old.ClusterConfig == next.ClusterConfig {
		fields = fields[:len(fields)-r.tierFields]
	}
	for i := range fields {
		f := &fields[i]
		if f.Name == model.FieldPolicy || f.PerTarget {
			continue
		}
		if model.FieldText(old, f.Name, model.Target{}) != model.FieldText(next, f.Name, model.Target{}) {
			out = append(out, change{object: object{kind: fieldObject, field: f.Name}, after: value{settings: next}})
		}
	}
	weigh := func(t model.Target) {
		if w := next.WeightOf(t); w != old.WeightOf(t) {
			o := object{kind: weightObject, target: t}
			if !slices.ContainsFunc(out, func(c change) bool { return c.object == o }) {
				out = append(out, change{object: o, after: value{weight: w}})
			}
		}
	}
	for _, w := range next.Weights {
		weigh(w.Target)
	}
	for _, w := range old.Weights {
		weigh(w.Target)
	}
	return out
}

// settingText writes one setting with before and after: "load balance β 1.00 →
// 4.00", "w0/5 weight 0.80 → 1.00".
func (r *Router) settingText(name string, target *model.Target, before, after string) string {
	label := name
	for i := range r.fields {
		f := &r.fields[i]
		if f.Name != name {
			continue
		}
		label = f.Label
		if f.Kind == model.KindFloat {
			before, after = twoDigits(before), twoDigits(after)
		}
	}
	if target != nil {
		label = target.String() + " " + label
	}
	if before == after {
		return label + " stays " + after
	}
	return label + " " + before + " → " + after
}

// twoDigits shows a number with two decimals where that is exact.
func twoDigits(text string) string {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	short := strconv.FormatFloat(x, 'f', 2, 64)
	if y, err := strconv.ParseFloat(short, 64); err != nil || y != x {
		return text
	}
	return short
}

// list joins what was done, the first six in full.
func list(parts []string) string {
	const most = 6
	if len(parts) > most {
		return strings.Join(parts[:most], ", ") + fmt.Sprintf(" and %d more", len(parts)-most)
	}
	return strings.Join(parts, ", ")
}

// copyField copies one field as it is, in or out of an operator's bounds.
func copyField(dst, src *model.Settings, name string) {
	d, s := &dst.AttentionDpConfig, &src.AttentionDpConfig
	switch name {
	case model.FieldRouterMode:
		dst.RouterMode = src.RouterMode
	case model.FieldMinGenerationRequests:
		dst.MinGenerationRequests = src.MinGenerationRequests
	case model.FieldLowOccupancyTimeoutIters:
		dst.LowOccupancyTimeoutIters = src.LowOccupancyTimeoutIters
	case model.FieldEnableBalance:
		d.EnableBalance = s.EnableBalance
	case model.FieldTimeoutIters:
		d.TimeoutIters = s.TimeoutIters
	case model.FieldBatchingWaitIters:
		d.BatchingWaitIters = s.BatchingWaitIters
	case model.FieldKVCacheAware:
		d.EnableKVCacheAwareRouting = s.EnableKVCacheAwareRouting
	case model.FieldLoadBalanceWeight:
		d.KVCacheRoutingLoadBalanceWeight = s.KVCacheRoutingLoadBalanceWeight
	case model.FieldMatchRateThreshold:
		d.KVCacheRoutingMatchRateThreshold = s.KVCacheRoutingMatchRateThreshold
	case model.FieldFairShareMultiplier:
		d.KVCacheRoutingFairShareMultiplier = s.KVCacheRoutingFairShareMultiplier
	case model.FieldColdStartWarmup:
		d.KVCacheRoutingColdStartWarmup = s.KVCacheRoutingColdStartWarmup
	case model.FieldAccountForInTransfer:
		d.KVCacheRoutingAccountForInTransfer = s.KVCacheRoutingAccountForInTransfer
	case model.FieldConversationAffinity:
		d.KVCacheRoutingConversationAffinity = s.KVCacheRoutingConversationAffinity
	case model.FieldMaxSessions:
		d.KVCacheRoutingMaxSessions = s.KVCacheRoutingMaxSessions
	case model.FieldNewConvPlacement:
		d.KVCacheRoutingNewConvPlacement = s.KVCacheRoutingNewConvPlacement
	default:
		model.CopyClusterField(&dst.ClusterConfig, &src.ClusterConfig, name)
	}
}
