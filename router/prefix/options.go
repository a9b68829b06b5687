package prefix

import (
	"errors"
	"fmt"
)

// ID is a target's place in an index: small and dense, the position of its
// figures in Matches. An ID is free for another target once its target was
// dropped.
type ID uint16

// MaxTargets is the most targets an index can be made for.
const MaxTargets = 4096

// Options bound an index. Zero fields take their defaults.
type Options struct {
	// Targets is the most targets at a time (default 512, at most MaxTargets).
	Targets int
	// MaxBlocks is the most distinct blocks in all (default 8,388,608,
	// at most 59,000,000).
	MaxBlocks int
	// MaxTargetBlocks is the most blocks one target is credited with, over all
	// tiers (default MaxBlocks).
	MaxTargetBlocks int
	// MaxBytes bounds the memory of the index, in bytes (default: as many as
	// MaxBlocks need).
	MaxBytes int64
	// MaxTargetBytes bounds what one target is charged, BytesPerBlock for each
	// of its blocks (default: no bound beside MaxTargetBlocks).
	MaxTargetBytes int64
	// MaxWaiting is the most blocks of one target that may wait for their
	// parent (default 4,096); MaxWaitingAll that of all targets together
	// (default 65,536). The oldest are dropped first.
	MaxWaiting    int
	MaxWaitingAll int
}

// BytesPerBlock is what one block of one target is charged against
// MaxTargetBytes, in bytes.
const BytesPerBlock = 64

// Errors that callers branch on.
var (
	// ErrTargets is returned by Add when the index is full of targets.
	ErrTargets = errors.New("the index has no room for another target: raise Options.Targets")
	// ErrNoTarget is returned for an ID or a target that the index does not know.
	ErrNoTarget = errors.New("the index does not know this target: add it first")
	// ErrApproximate is returned by Apply for a target that was added as
	// approximate, and by Routed for one that was not.
	ErrApproximate = errors.New("a target is fed either by events or by what was routed: drop it and add it the other way")
)

// maxBlocks leaves room for slots that wait beside the blocks in use.
const maxBlocks = 59_000_000

func (o Options) withDefaults() (Options, error) {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&o.Targets, 512)
	def(&o.MaxBlocks, 1<<23)
	def(&o.MaxTargetBlocks, o.MaxBlocks)
	def(&o.MaxWaiting, 4096)
	def(&o.MaxWaitingAll, 65536)
	switch {
	case o.Targets < 1 || o.Targets > MaxTargets:
		return o, fmt.Errorf("prefix index: %d targets: want 1 to %d", o.Targets, MaxTargets)
	case o.MaxBlocks < 1 || o.MaxBlocks > maxBlocks:
		return o, fmt.Errorf("prefix index: at most %d blocks: want 1 to %d", o.MaxBlocks, maxBlocks)
	case o.MaxTargetBlocks < 1, o.MaxWaiting < 0, o.MaxWaitingAll < 0, o.MaxBytes < 0, o.MaxTargetBytes < 0:
		return o, errors.New("prefix index: a bound is negative: leave it 0 for the default")
	}
	return o, nil
}
