package event

import (
	"errors"
	"fmt"
	"time"
)

// Format is the encoding that a publisher uses.
type Format uint8

// The formats.
const (
	Msgpack    Format = iota // batches of vLLM, SGLang, TensorRT-LLM's publisher
	TRTJSON                  // TensorRT-LLM's drained JSON, one event a message
	RouterJSON               // Dynamo's RouterEvent, one or a list a message
)

// Config describes one publisher. Zero durations and limits take their
// defaults.
type Config struct {
	Format Format
	// Rank is the router's rank of this publisher, for batches that name none.
	Rank int
	// StartRank is subtracted from the ranks that batches name: engines count
	// ranks over all nodes, the router inside a worker. Ranks is how many the
	// worker has; a batch that names another is refused. 0: not checked.
	StartRank, Ranks int
	// BlockTokens is the block size that the router hashes with, in tokens. An
	// engine with another one is found out. 0: not checked.
	BlockTokens int
	// Replay says that missed batches can be asked for (see Feed.Want).
	Replay bool
	// DoubtFor is how long a rank of which batches were lost for good may go on
	// being credited with what it held before (default 2 min).
	DoubtFor time.Duration
	// ReorderWait is how long a feed without replay waits for a missing batch
	// that may be late (default 250 ms; TensorRT-LLM's JSON is never late: 0).
	ReorderWait time.Duration
	// ReplayTimeout is how long a replay may say nothing (default 30 s), and
	// ReplayTries how many in a row may bring nothing (default 8).
	ReplayTimeout time.Duration
	ReplayTries   int
	// MaxHeldBatches and MaxHeldBytes bound the live batches that wait during a
	// gap (default 4,096 and 8 MiB). What exceeds them is fetched by replay.
	MaxHeldBatches, MaxHeldBytes int
}

// check fills the defaults in. Its error names the field and what is allowed.
func (c *Config) check() error {
	switch {
	case c.Rank < 0 || c.StartRank < 0 || c.Ranks < 0:
		return errors.New("kv event feed: rank, start rank and ranks must not be negative")
	case c.Ranks > 0 && c.Rank >= c.Ranks:
		return fmt.Errorf("kv event feed: rank %d of a worker with %d ranks: count ranks from 0 inside the worker", c.Rank, c.Ranks)
	case c.BlockTokens < 0 || c.BlockTokens > MaxBlockTokens:
		return fmt.Errorf("kv event feed: block size %d: want 0 to %d tokens", c.BlockTokens, MaxBlockTokens)
	case c.Format > RouterJSON:
		return fmt.Errorf("kv event feed: unknown format %d", c.Format)
	}
	if c.ReorderWait <= 0 {
		c.ReorderWait = 250 * time.Millisecond
	}
	if c.Format == TRTJSON {
		c.ReorderWait = 0
	}
	if c.DoubtFor <= 0 {
		c.DoubtFor = 2 * time.Minute
	}
	if c.ReplayTimeout <= 0 {
		c.ReplayTimeout = 30 * time.Second
	}
	if c.ReplayTries <= 0 {
		c.ReplayTries = 8
	}
	if c.MaxHeldBatches <= 0 {
		c.MaxHeldBatches = 4096
	}
	if c.MaxHeldBytes <= 0 {
		c.MaxHeldBytes = 8 << 20
	}
	return nil
}
