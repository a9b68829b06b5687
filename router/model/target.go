package model

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// NoRank says that a rank has not been chosen (yet).
const NoRank = -1

// Target is one place a request can land: a DP rank of a worker. Rank counts
// from 0 inside the worker (dp_rank, TensorRT-LLM's attention_dp_rank).
type Target struct {
	Worker string `json:"worker"`
	Rank   int    `json:"rank"`
}

// ErrTarget is returned by ParseTarget for text that is not WORKER/RANK.
var ErrTarget = errors.New("not a target: want WORKER/RANK, for example w0/3")

// String writes the target as operators type it: w0/3, or w0/- before a rank
// is chosen.
func (t Target) String() string {
	if t.Rank < 0 {
		return t.Worker + "/-"
	}
	return t.Worker + "/" + strconv.Itoa(t.Rank)
}

// Less orders targets by worker name, then by rank. Numbers in names count as
// numbers, so that w10 follows w9.
func (t Target) Less(o Target) bool {
	if t.Worker != o.Worker {
		return lessNatural(t.Worker, o.Worker)
	}
	return t.Rank < o.Rank
}

// Compare is Less for slices.SortFunc: -1, 0 or 1.
func (t Target) Compare(o Target) int {
	switch {
	case t.Less(o):
		return -1
	case o.Less(t):
		return 1
	}
	return 0
}

// ParseTarget reads the form that String writes. It returns ErrTarget, wrapped
// with the text, when the worker is empty or the rank is not a whole number
// from 0 up.
func ParseTarget(s string) (Target, error) {
	worker, rank, ok := strings.Cut(s, "/")
	n, err := strconv.Atoi(rank)
	if !ok || worker == "" || err != nil || n < 0 {
		return Target{}, fmt.Errorf("%q: %w", s, ErrTarget)
	}
	return Target{Worker: worker, Rank: n}, nil
}

// lessNatural compares names part by part: runs of digits as numbers, the rest
// as text. Names that are equal by that (w1, w01) are ordered as text, so that
// the order is total.
func lessNatural(a, b string) bool {
	for x, y := a, b; x != "" && y != ""; {
		var px, py string
		px, x = firstPart(x)
		py, y = firstPart(y)
		if c := compareParts(px, py); c != 0 {
			return c < 0
		}
		if (x == "") != (y == "") {
			return x == ""
		}
	}
	return a < b
}

// firstPart cuts off the leading run of digits or of other bytes.
func firstPart(s string) (part, rest string) {
	i := 1
	for i < len(s) && digit(s[i]) == digit(s[0]) {
		i++
	}
	return s[:i], s[i:]
}

func compareParts(a, b string) int {
	if !digit(a[0]) || !digit(b[0]) {
		return strings.Compare(a, b)
	}
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// ConvKey names a conversation. The same client-chosen ID under another tenant
// or another model is another conversation. The raw bytes are the key; they
// are escaped only where they are drawn.
type ConvKey struct {
	Tenant string `json:"tenant,omitempty"`
	Model  string `json:"model,omitempty"`
	ID     string `json:"id,omitempty"`
}

// Keyless reports whether the request named no conversation.
func (k ConvKey) Keyless() bool { return k.ID == "" }

// MaxIDBytes is the longest conversation id that is admitted, in bytes.
const MaxIDBytes = 256
