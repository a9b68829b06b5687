package prefix

import (
	"sync"
	"time"

	"adpdeck/router/model"
)

// Index knows which target holds which blocks. Any number of goroutines may
// use it at once: look-ups run without a lock, changes one at a time.
type Index struct {
	opt Options
	mu  sync.Mutex // guards everything that changes
}

// New makes an index. It fails when an option is outside its limits.
func New(opt Options) (*Index, error) {
	opt, err := opt.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Index{opt: opt}, nil
}

// Add makes a target known that is fed by events, and returns its ID; a target
// that is known already keeps its ID and its blocks. It fails with ErrTargets
// when the index is full, and with ErrApproximate when the target was added by
// AddApproximate.
func (ix *Index) Add(t model.Target) (ID, error) { return 0, nil }

// Approximation says how long a target without events is credited with what
// was routed to it. At least one of the two must be set; with both, both hold.
type Approximation struct {
	// TTL is how long a prompt is credited after it was last routed.
	TTL time.Duration
	// Blocks is the rank's advertised KV-cache capacity: beyond it the blocks
	// routed longest ago are forgotten.
	Blocks int
}

// AddApproximate makes a target known whose engine publishes no events. What
// is told with Routed stands in for them, and every figure is marked.
func (ix *Index) AddApproximate(t model.Target, a Approximation) (ID, error) { return 0, nil }

// Drop forgets a target and all its blocks; its ID becomes free.
func (ix *Index) Drop(t model.Target) error { return nil }

// Lookup returns the ID of a target.
func (ix *Index) Lookup(t model.Target) (ID, bool) { return 0, false }

// Targets returns the targets by ID; an unused ID holds the zero Target. The
// slice is shared and must not be written.
func (ix *Index) Targets() []model.Target { return nil }

// Apply applies a batch of a target's events, in order. What is wrong with an
// event is counted and costs that event only; the error is ErrNoTarget or
// ErrApproximate.
func (ix *Index) Apply(id ID, b *Batch) (Applied, error) { return Applied{}, nil }

// Clear wipes one target in all tiers, as a Cleared event does; its batch
// numbers go on.
func (ix *Index) Clear(id ID) error { return nil }

// Restart wipes one target in all tiers and forgets its last batch number: a
// new process, with an empty cache, counts from its own start.
func (ix *Index) Restart(id ID) error { return nil }

// Routed tells that a prompt with this chain was sent to an approximate
// target. Now is on a monotonic clock of the caller's, the same for all calls.
func (ix *Index) Routed(id ID, chain []Chain, now time.Duration) error { return nil }

// Expire forgets what approximate targets were credited with longer than their
// TTL before now.
func (ix *Index) Expire(now time.Duration) {}

// Matcher looks chains up. It holds the scratch space of a look-up: one
// goroutine at a time may use it, any number of matchers may run at once.
type Matcher struct{ ix *Index }

// NewMatcher returns a matcher of the index. It needs no closing.
func (ix *Index) NewMatcher() *Matcher { return &Matcher{ix: ix} }

// Match fills out with how much of the chain every target holds.
func (m *Matcher) Match(chain []Chain, out *Matches) {}

// TargetStats is what the index knows of one target, blocks unless said
// otherwise. Counters count from when the target was added.
type TargetStats struct {
	Target      model.Target
	Approximate bool
	Blocks      [Tiers]int // held now, by tier
	Bytes       int64      // charged against MaxTargetBytes
	Waiting     int        // put aside now, their parent unknown
	Holes       int        // missing blocks under blocks that are held
	LastSeq     uint64     // number of the last batch, where Numbered
	Numbered    bool

	Stored, Removed  uint64
	Duplicates       uint64 // stored again while held
	Unknown          uint64 // removals of blocks that were not held
	Evicted          uint64 // dropped to keep a bound
	WaitingDropped   uint64 // dropped while waiting, to keep the bound
	Expired          uint64 // dropped because an approximation's TTL ran out
	Refused          uint64 // events that contradict themselves
	Replayed         uint64 // batches seen before
	Clears, Restarts uint64
}

// Stats is what the index holds in all.
type Stats struct {
	Blocks  int    // distinct blocks
	Owned   int    // blocks times the targets that hold them
	Waiting int    // put aside, of all targets
	Bytes   int64  // memory of the index
	Evicted uint64 // blocks of targets dropped to keep a bound
	Dropped uint64 // blocks that found no room while a bound held
	Targets int
}

// TargetStats returns the figures of one target.
func (ix *Index) TargetStats(id ID) (TargetStats, error) { return TargetStats{}, nil }

// Stats returns the figures of the whole index.
func (ix *Index) Stats() Stats { return Stats{} }
