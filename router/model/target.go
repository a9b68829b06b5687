package model

import (
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

// Less orders targets by worker name, then by rank. Worker names that end in
// digits are compared by that number, so that w10 follows w9.
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

func lessNatural(a, b string) bool {
	pa, na, oka := trailingNumber(a)
	pb, nb, okb := trailingNumber(b)
	if oka && okb && pa == pb && na != nb {
		return na < nb
	}
	return a < b
}

func trailingNumber(s string) (prefix string, n uint64, ok bool) {
	i := len(s)
	for i > 0 && s[i-1] >= '0' && s[i-1] <= '9' {
		i--
	}
	n, err := strconv.ParseUint(s[i:], 10, 64)
	return s[:i], n, err == nil
}

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
