package model

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// clusterField is one row of the table: the field, and where its value lives.
type clusterField struct {
	Field
	at func(*ClusterConfig) any // *bool, *int, *float64, *string, **int or **float64
}

// clusterTable is the table, built once: a screen looks fields up by the hundred.
// Nobody writes to it.
var clusterTable = sync.OnceValue(clusterRows)

// ClusterFields returns every field of ClusterConfig in the order in which a
// screen lists them: what steers a choice first. The slice is new at each call.
func ClusterFields() []Field {
	rows := clusterTable()
	out := make([]Field, len(rows))
	for i := range rows {
		out[i] = rows[i].Field
	}
	return out
}

// ClusterFieldText returns the named value of c as text, in the form that
// SetClusterFields reads; none for an unset one, empty for an unknown field.
func ClusterFieldText(c *ClusterConfig, name string) string {
	r, ok := clusterRow(name)
	if !ok {
		return ""
	}
	return r.text(c)
}

// clusterRow is the row called name.
func clusterRow(name string) (row clusterField, ok bool) {
	for _, r := range clusterTable() {
		if r.Name == name {
			return r, true
		}
	}
	return clusterField{}, false
}

func (r *clusterField) text(c *ClusterConfig) string {
	switch p := r.at(c).(type) {
	case *bool:
		return strconv.FormatBool(*p)
	case *int:
		return strconv.Itoa(*p)
	case *float64:
		return formatFloat(*p)
	case *string:
		return *p
	case **int:
		if *p != nil {
			return strconv.Itoa(**p)
		}
	case **float64:
		if *p != nil {
			return formatFloat(**p)
		}
	}
	return unsetText
}

// CopyClusterField gives dst the value that src has in the field called name,
// as it is, in or out of its bounds; false when there is no such field.
// Pointers are replaced, never written through.
func CopyClusterField(dst, src *ClusterConfig, name string) bool {
	r, ok := clusterRow(name)
	if !ok {
		return false
	}
	switch p := r.at(dst).(type) {
	case *bool:
		*p = *r.at(src).(*bool)
	case *int:
		*p = *r.at(src).(*int)
	case *float64:
		*p = *r.at(src).(*float64)
	case *string:
		*p = *r.at(src).(*string)
	case **int:
		*p = *r.at(src).(**int)
	case **float64:
		*p = *r.at(src).(**float64)
	}
	return true
}

const unsetText = "none"

// ClusterField returns the field of ClusterConfig called name.
func ClusterField(name string) (Field, bool) {
	r, ok := clusterRow(name)
	return r.Field, ok
}

// PutClusterField sets one field from its text, checking its own bounds but not
// the rules across fields, which Check has; false when text is not allowed or
// there is no such field. Pointers are replaced, never written through.
func PutClusterField(c *ClusterConfig, name, text string) bool {
	r, ok := clusterRow(name)
	return ok && r.assign(c, strings.TrimSpace(text))
}

// SetClusterFields sets several values, all or nothing: the bounds of each and
// the rules that span fields are checked. befores are the old values as text.
// The error is a *Refusal that names what is allowed. Pointers in c are
// replaced, never written through, so that a published copy stays as it was.
func SetClusterFields(c *ClusterConfig, vs []FieldValue) (befores []string, err error) {
	next, rows := *c, clusterTable()
	befores = make([]string, len(vs))
	for i, v := range vs {
		at := slices.IndexFunc(rows, func(r clusterField) bool { return r.Name == v.Field })
		if at < 0 {
			return nil, &Refusal{
				Code: RefusedField, Message: fmt.Sprintf("set %q: no such field of the cluster tier", v.Field),
				Next: "choose one that the tuning view lists",
			}
		}
		befores[i] = ClusterFieldText(&next, v.Field)
		if !rows[at].assign(&next, strings.TrimSpace(v.Value)) {
			return nil, &Refusal{
				Code: RefusedBounds, Message: fmt.Sprintf("set %s to %q: out of bounds", v.Field, v.Value),
				Next: "give " + rows[at].Allowed(),
			}
		}
	}
	if ref := next.Check(); ref != nil {
		return nil, ref
	}
	*c = next
	return befores, nil
}

func (r *clusterField) assign(c *ClusterConfig, text string) bool {
	if r.Optional && (text == unsetText || text == "null" || text == "") {
		switch p := r.at(c).(type) {
		case **int:
			*p = nil
		case **float64:
			*p = nil
		}
		return true
	}
	switch p := r.at(c).(type) {
	case *bool:
		v, ok := parseBool(text)
		if ok {
			*p = v
		}
		return ok
	case *string:
		if !slices.Contains(r.Options, text) {
			return false
		}
		*p = text
	case *int:
		v, ok := r.parseInt(text)
		if ok {
			*p = v
		}
		return ok
	case **int:
		v, ok := r.parseInt(text)
		if ok {
			*p = &v
		}
		return ok
	case *float64:
		v, ok := r.parseFloat(text)
		if ok {
			*p = v
		}
		return ok
	case **float64:
		v, ok := r.parseFloat(text)
		if ok {
			*p = &v
		}
		return ok
	}
	return true
}

func (f *Field) parseInt(text string) (int, bool) {
	v, err := strconv.Atoi(text)
	return v, err == nil && float64(v) >= f.Min && float64(v) <= f.Max
}

func (f *Field) parseFloat(text string) (float64, bool) {
	v, err := strconv.ParseFloat(text, 64)
	return v + 0, err == nil && f.inBounds(v)
}

func (f *Field) inBounds(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && v >= f.Min && v <= f.Max
}

// Check reports the first value of c that is outside its bounds, or the first
// rule across fields that is broken; nil when all is well.
func (c *ClusterConfig) Check() *Refusal {
	for _, r := range clusterTable() {
		if !r.holds(c) {
			return &Refusal{
				Code:    RefusedBounds,
				Message: fmt.Sprintf("%s %s: out of bounds", r.Name, ClusterFieldText(c, r.Name)),
				Next:    "give " + r.Allowed(),
			}
		}
	}
	if c.TrackOutputBlocks && !c.TrackActiveBlocks {
		return &Refusal{
			Code: RefusedBounds, Message: "router_track_output_blocks true: needs router_track_active_blocks",
			Next: "set router_track_active_blocks true too, or leave output blocks off",
		}
	}
	if (c.QueueThreshold != nil || c.QueueThresholdTokens != nil) && !c.TrackPrefillTokens {
		return &Refusal{
			Code: RefusedBounds, Message: "router_queue_threshold: needs router_track_prefill_tokens",
			Next: "set router_track_prefill_tokens true too, or unset the threshold with none",
		}
	}
	if c.BookingExpirySecs < c.PhantomAfterSecs {
		return &Refusal{
			Code: RefusedBounds, Message: "booking_expiry_secs: below phantom_after_secs",
			Next: "give at least phantom_after_secs, so that lost load is seen before it is dropped",
		}
	}
	return nil
}

func (r *clusterField) holds(c *ClusterConfig) bool {
	switch p := r.at(c).(type) {
	case *string:
		return slices.Contains(r.Options, *p)
	case *int:
		return float64(*p) >= r.Min && float64(*p) <= r.Max
	case *float64:
		return r.inBounds(*p)
	case **int:
		return *p == nil || float64(**p) >= r.Min && float64(**p) <= r.Max
	case **float64:
		return *p == nil || r.inBounds(**p)
	}
	return true
}
