package cluster

import (
	"errors"
	"fmt"
)

// What a *Refusal may be (errors.Is).
var (
	// ErrNoTargets is returned when there is no worker at all.
	ErrNoTargets = errors.New("no workers")
	// ErrFiltered is returned when draining, blocking, taints or the request's
	// own demands leave no target.
	ErrFiltered = errors.New("all targets are filtered")
	// ErrOverloaded is returned when every target left is overloaded.
	ErrOverloaded = errors.New("all targets are overloaded")
	// ErrFull is returned when every target left is at its hard cap: wait.
	ErrFull = errors.New("all targets are at their cap")
	// ErrNoWorker and ErrNoRank are returned for a demand that does not exist.
	ErrNoWorker = errors.New("no such worker")
	ErrNoRank   = errors.New("no such rank")
	// ErrNotAllowed is returned when the demanded worker is not allowed.
	ErrNotAllowed = errors.New("worker is not allowed")
	// ErrWorkerNeeded is returned in mode direct when no worker is named.
	ErrWorkerNeeded = errors.New("mode direct needs a worker")
	// ErrRequest is returned for a request that makes no sense.
	ErrRequest = errors.New("malformed request")
)

// Refusal says why a request could not be placed, and what to do about it.
type Refusal struct {
	Err     error // one of the errors above
	Request int64
	Detail  string
	Next    string
	// Status is the HTTP status that fits.
	Status int
}

// Error names the request, the cause and the next step.
func (r *Refusal) Error() string {
	s := fmt.Sprintf("route request %d: %v", r.Request, r.Err)
	if r.Detail != "" {
		s += " (" + r.Detail + ")"
	}
	if r.Next != "" {
		s += "; " + r.Next
	}
	return s
}

// Unwrap returns the sentinel.
func (r *Refusal) Unwrap() error { return r.Err }

// exclusion is why a slot cannot be chosen, in the order in which the rules
// are looked at.
type exclusion uint8

const (
	eligible exclusion = iota
	exGone
	exNotAllowed
	exOtherWorker
	exOtherRank
	exTaint
	exTried
	exWeight
	exBlocked
	exDraining
	exCap
	exPrefill
	exBlocks
	exclusions
)

// word is the exclusion as a screen shows it.
func (e exclusion) word() string {
	return [exclusions]string{
		"", "gone", "not allowed", "other worker", "other rank", "taint missing", "just tried", "weight 0", "blocked", "draining",
		"hard cap", "overloaded: prefill tokens", "overloaded: KV blocks",
	}[e]
}

// refuse turns the counts of exclusions into the error that fits.
func refuse(req *Request, counts *[exclusions]int) error {
	r := &Refusal{Request: req.ID, Status: 503}
	total := 0
	for e := exNotAllowed; e < exclusions; e++ {
		if n := counts[e]; n > 0 && e != exOtherWorker && e != exOtherRank {
			if r.Detail != "" {
				r.Detail += ", "
			}
			word := e.word()
			if e == exBlocked { // the router above blocks those whose engine is dead, too
				word = "blocked or not answering"
			}
			r.Detail += fmt.Sprintf("%d %s", n, word)
			total += n
		}
	}
	switch {
	case total == 0:
		r.Err, r.Next = ErrNoTargets, "add a worker"
	case counts[exCap] > 0:
		r.Err, r.Status, r.Next = ErrFull, 529, "let it queue, or raise the hard cap"
	case counts[exPrefill]+counts[exBlocks] > 0:
		r.Err, r.Status, r.Next = ErrOverloaded, 529, "retry later, or raise or unset the overload thresholds"
	default:
		r.Err, r.Next = ErrFiltered, "make a rank ready, or ask for less"
	}
	return r
}
