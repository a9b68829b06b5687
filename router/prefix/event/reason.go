package event

import (
	"fmt"
	"strconv"
)

// Reason says why an event, or a whole message, was left out. The values are
// few and fixed, so that they can label a metric.
type Reason uint8

// The reasons. Those that Dynamo counts too bear its names in String.
const (
	_ Reason = iota
	// BadMessage: the message is no batch at all; everything in it is lost.
	BadMessage
	// CutShort: the message ends inside an event.
	CutShort
	// NotAnEvent: neither a tagged array nor a tagged map.
	NotAnEvent
	// UnknownTag: an event of a kind this program does not know.
	UnknownTag
	// MissingField: a field without which the event says nothing.
	MissingField
	// BadField: a field of the wrong type or out of its range.
	BadField
	// TooLarge: more blocks, tokens or bytes than the package's limits.
	TooLarge
	// TokenCount: fewer tokens than block size times hashes.
	TokenCount
	// BlockSize: the engine's block size is not the router's.
	BlockSize
	// SelfReference: a block that would be its own ancestor.
	SelfReference
	// RepeatedHash: a store that names a block twice.
	RepeatedHash
	// UnknownMedium: a storage medium this program does not know.
	UnknownMedium
	// Remote: blocks that lie with another worker, or nobody knows where.
	Remote
	// AmbiguousNamespace: two different salts claim the same blocks.
	AmbiguousNamespace
	// OtherAttention: a cache that holds no whole prefixes.
	OtherAttention
	// UnknownSpec: an attention kind this program does not know.
	UnknownSpec
	// OtherGroup: a KV-cache group that is not the main one.
	OtherGroup
	// UnlearnedGroup: a group number before the main group is known.
	UnlearnedGroup
	// OtherWindow: an attention window that is not the widest.
	OtherWindow
	// PartialBlock: a block that is not full, or the removal of one.
	PartialBlock
	// UnknownRank: a rank that the worker does not have.
	UnknownRank
	// Informal: an event that changes no block (a priority, a capacity).
	Informal
	reasons
)

// String names the reason as a metric's label does.
func (r Reason) String() string {
	return nameOf([]string{
		"none", "bad_message", "cut_short", "not_an_event", "ignored_event", "missing_field", "bad_field", "too_large",
		"token_count", "block_size", "self_reference", "repeated_hash", "unknown_medium", "remote_locality",
		"ambiguous_cache_namespace", "non_main_attention_kind", "unknown_kind", "non_main_attention_group",
		"unlearned_group_idx", "non_main_window", "partial_block", "unknown_rank", "informal",
	}, int(r))
}

// Reasons lists every reason, for a screen or a metric that shows them all.
func Reasons() []Reason {
	rs := make([]Reason, 0, reasons-1)
	for r := BadMessage; r < reasons; r++ {
		rs = append(rs, r)
	}
	return rs
}

// Expected reports whether healthy engines send such events all day: they are
// counted, and nobody needs to be told.
func (r Reason) Expected() bool {
	switch r {
	case OtherAttention, OtherGroup, OtherWindow, PartialBlock, Informal, Remote:
		return true
	}
	return false
}

// Unreadable reports whether the bytes themselves could not be understood, as
// against events that were understood and do not fit.
func (r Reason) Unreadable() bool {
	return r >= BadMessage && r <= BadField
}

// Refusal is one event left out: why, and which part of it.
type Refusal struct {
	Reason Reason
	// Field is the field at fault, "" for the event as a whole.
	Field string
	// Got is what was found there, in a few words, "" if the reason says it.
	Got string
	// Want is what was expected, 0 if a number does not tell.
	Want int64
	// Value is the number found, when Want tells.
	Value int64
	// Index is the event's place in its message, from 0.
	Index int
}

// Error says what was wrong, for a person: bad_field token_ids: a string, in
// event 3.
func (r *Refusal) Error() string {
	s := r.Reason.String()
	if r.Field != "" {
		s += " " + r.Field
	}
	if r.Got != "" {
		s += ": " + r.Got
	}
	if r.Want != 0 {
		s += ": " + strconv.FormatInt(r.Value, 10) + ", want " + strconv.FormatInt(r.Want, 10)
	}
	return fmt.Sprintf("%s (event %d of its message)", s, r.Index)
}

// Tally counts refusals by reason and keeps the last of each. It is a plain
// value of fixed size; the zero Tally is ready for use.
type Tally struct {
	counts [reasons]uint64
	last   [reasons]Refusal
	newest Reason
	told   Reason // the newest that is not Expected
}

// Add counts one refusal.
func (t *Tally) Add(r Refusal) {
	if r.Reason == 0 || r.Reason >= reasons {
		r.Reason = BadField
	}
	t.counts[r.Reason]++
	t.last[r.Reason] = r
	t.newest = r.Reason
	if !r.Reason.Expected() {
		t.told = r.Reason
	}
}

// Merge adds all of o, as the newer.
func (t *Tally) Merge(o *Tally) {
	if o.newest == 0 {
		return
	}
	for i, n := range o.counts {
		if n > 0 {
			t.counts[i] += n
			t.last[i] = o.last[i]
		}
	}
	t.newest = o.newest
	if o.told != 0 {
		t.told = o.told
	}
}

// Reset forgets everything.
func (t *Tally) Reset() {
	if t.newest != 0 {
		*t = Tally{}
	}
}

// Count is how often events were refused for reason r.
func (t *Tally) Count(r Reason) uint64 {
	if r >= reasons {
		return 0
	}
	return t.counts[r]
}

// Total counts all refusals.
func (t *Tally) Total() uint64 {
	var n uint64
	for _, c := range t.counts {
		n += c
	}
	return n
}

// Last is the last refusal for reason r; ok is false if there was none.
func (t *Tally) Last(r Reason) (last Refusal, ok bool) {
	if r >= reasons || t.counts[r] == 0 {
		return Refusal{}, false
	}
	return t.last[r], true
}

// LastError is the text of the newest refusal, "" if there was none.
func (t *Tally) LastError() string { return t.text(t.newest) }

// LastFault is the text of the newest refusal that healthy engines do not cause
// all day (Expected), "" if there was none.
func (t *Tally) LastFault() string { return t.text(t.told) }

func (t *Tally) text(r Reason) string {
	if r == 0 {
		return ""
	}
	return t.last[r].Error()
}
