package enginetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"adpdeck/router/model"
)

// ErrConfig is wrapped by every error about a Config.
var ErrConfig = errors.New("cannot fake this engine")

// Bounds of a Config.
const (
	MaxRanks  = 256 // over all workers of a frontend
	MaxBlocks = 1 << 20
)

// Config describes a fake engine. Kind is needed; what else is zero takes the
// default that its comment names.
type Config struct {
	Kind model.EngineKind
	// Models are the names served (default fake-model); the first is the base
	// model of Adapters, LoRA adapters that are asked for by name as models.
	Models, Adapters []string
	// Ranks is the number of DP ranks (default 1), of each worker behind a Dynamo
	// frontend; StartRank the global number of the first.
	Ranks, StartRank int
	// Workers is the number of workers behind a Dynamo frontend (default 1), their
	// instance ids count from InstanceBase (default above 2^53) in steps of 1.
	Workers      int
	InstanceBase uint64
	// Backend is what the workers behind a Dynamo frontend run, for what becomes
	// of a rank out of range (default vllm).
	Backend model.EngineKind
	// Numbers is how ranks are counted in requests: from 0 inside the engine, or
	// globally (default local, global behind Dynamo).
	Numbers model.RankNumbers
	// Blocks is one rank's KV cache (default 4,096), BlockTokens the size of a
	// block (default 16, 32 for trtllm).
	Blocks, BlockTokens int
	// MaxActive is how many requests run at once on a rank (default 256); more
	// wait. MaxWaiting is how many may wait in all (default 65,536).
	MaxActive, MaxWaiting int
	// MaxModelLen is the longest prompt and answer together in tokens (default
	// 131,072, or what one rank's cache holds if that is less).
	MaxModelLen int
	// OutputTokens is about how long answers are of which a request does not say
	// (default 64).
	OutputTokens int
	Timing       Timing
	// Balance are TensorRT-LLM's settings of its rank router (default upstream's).
	Balance *model.AttentionDpConfig
	// SessionAffinity makes a Dynamo frontend keep sessions on their target.
	SessionAffinity bool
	// Seed chooses answers, block hashes and instance ids.
	Seed   uint64
	Events EventsConfig
	Habits Habits
	// Clock is the engine's time (default the machine's).
	Clock Clock
}

// Timing is how long steps take.
type Timing struct {
	// Instant makes every step take no time; the rest is then not used.
	Instant bool
	// PrefillTokensPerSecond of one rank (default 8,000), DecodeBase of a step with
	// answers under way (default 6 ms), DecodePerRequest more for each (default
	// 350 µs).
	PrefillTokensPerSecond       float64
	DecodeBase, DecodePerRequest time.Duration
	// ChunkTokens is how much of prompts a rank computes in one step (default
	// 8,192).
	ChunkTokens int
	// Barrier makes the ranks of a worker step together, at the pace of the
	// slowest, as attention data parallelism does. TensorRT-LLM always does.
	Barrier bool
}

// EventsConfig is where KV events go.
type EventsConfig struct {
	// Endpoint is where rank 0 of all (global) publishes over ZMQ, for example
	// tcp://127.0.0.1:5557; further ranks count the port up, and port 0 gives each
	// a free one. Replay is the same for lost batches. Empty: no ZMQ, no replay.
	// A Dynamo frontend has one publisher for each worker, and no replay.
	Endpoint, Replay string
	// Connect makes the publishers connect to Endpoint instead of binding it, as
	// vLLM's and SGLang's do where it has no wildcard (* or ::); a replay binds all
	// the same.
	Connect bool
	// Loads is where loads are published: of Dynamo's workers one socket each, with
	// the topics kv_metrics and forward-pass-metrics of the event plane; of vLLM the
	// forward passes of each rank, ports counted up. Empty: nowhere.
	Loads string
	// Topic is the first frame of batches.
	Topic string
	// BufferSteps is how many batches a replay can bring back (default 10,000, and
	// 16 MiB of them).
	BufferSteps int
	// JSONEvents bounds the events that TensorRT-LLM keeps for /kv_cache_events
	// (default 65,536): the oldest are lost.
	JSONEvents int
	// OnBatch, if set, is told of each batch that leaves the engine, in order for
	// each rank, over the wire or not. It must not wait for the engine.
	OnBatch func(Batch)
	// OnLoad is the same for loads; of a Dynamo worker with the envelope.
	OnLoad func(Batch)
}

// Batch is one batch of KV events as it leaves an engine.
type Batch struct {
	// Publisher is the rank, counted from 0 over all workers, or the worker of a
	// Dynamo frontend.
	Publisher int
	Topic     string
	Seq       uint64
	// Payload is the msgpack batch; of a Dynamo worker the bare envelope, as NATS
	// carries it.
	Payload []byte
}

// defaultInstance is above what a float64 holds exactly, as Dynamo's ids are.
const defaultInstance = 7_587_888_160_958_628_001

// fill checks the configuration and completes it.
func (c *Config) fill() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...))
	}
	kinds := []model.EngineKind{model.EngineVLLM, model.EngineSGLang, model.EngineTRTLLM, model.EngineDynamo}
	if !slices.Contains(kinds, c.Kind) {
		return fail("kind %q: want vllm, sglang, trtllm or dynamo", c.Kind)
	}
	c.defaults()
	switch {
	case c.Ranks < 1 || c.Workers < 1 || c.Ranks*c.Workers > MaxRanks:
		return fail("%d workers of %d ranks: want 1 to %d in all", c.Workers, c.Ranks, MaxRanks)
	case c.Workers > 1 && c.Kind != model.EngineDynamo:
		return fail("%d workers: only a Dynamo frontend has more than one", c.Workers)
	case !slices.Contains(kinds[:3], c.Backend):
		return fail("backend %q: want one of %v", c.Backend, kinds[:3])
	case (c.Events.Loads != "" || c.Events.OnLoad != nil) && c.Kind != model.EngineDynamo && c.Kind != model.EngineVLLM:
		return fail("%s publishes no loads: only vllm and dynamo do", c.Kind)
	case c.Numbers != model.NumbersLocal && c.Numbers != model.NumbersGlobal:
		return fail("rank numbers %q: want local or global", c.Numbers)
	case c.StartRank < 0:
		return fail("start rank %d is below 0", c.StartRank)
	case c.Blocks < 2 || c.Blocks > MaxBlocks || c.Blocks*c.Ranks*c.Workers > 8*MaxBlocks:
		return fail("%d blocks on %d ranks: want 2 to %d each and at most %d in all", c.Blocks, c.Ranks*c.Workers, MaxBlocks, 8*MaxBlocks)
	case c.BlockTokens < 1 || c.BlockTokens > 4096:
		return fail("blocks of %d tokens: want 1 to 4096", c.BlockTokens)
	case c.MaxActive < 1 || c.MaxWaiting < 1 || c.OutputTokens < 1 || c.MaxModelLen < 2:
		return fail("max active, max waiting, output tokens and max model length must be above 0")
	case c.Timing.PrefillTokensPerSecond <= 0 || c.Timing.DecodeBase < 0 || c.Timing.DecodePerRequest < 0 || c.Timing.ChunkTokens < 1:
		return fail("timings must be above 0")
	case slices.Contains(c.Models, "") || slices.Contains(c.Adapters, ""):
		return fail("a model has no name")
	case c.Events.Replay != "" && (c.Events.Endpoint == "" || c.Kind == model.EngineDynamo):
		return fail("replay needs the endpoint of an engine's own ZMQ publisher")
	}
	c.MaxModelLen = min(c.MaxModelLen, c.Blocks*c.BlockTokens)
	if err := c.Habits.check(); err != nil {
		return fail("%v", err)
	}
	return nil
}

func (c *Config) defaults() {
	set(&c.Ranks, 1)
	set(&c.Workers, 1)
	set(&c.InstanceBase, defaultInstance)
	set(&c.Backend, model.EngineVLLM)
	set(&c.Blocks, 4096)
	set(&c.MaxActive, 256)
	set(&c.MaxWaiting, 1<<16)
	set(&c.MaxModelLen, 1<<17)
	set(&c.OutputTokens, 64)
	set(&c.Timing.PrefillTokensPerSecond, 8000)
	set(&c.Timing.DecodeBase, 6*time.Millisecond)
	set(&c.Timing.DecodePerRequest, 350*time.Microsecond)
	set(&c.Timing.ChunkTokens, 8192)
	set(&c.Events.BufferSteps, 10_000)
	set(&c.Events.JSONEvents, 1<<16)
	if len(c.Models) == 0 {
		c.Models = []string{"fake-model"}
	}
	switch c.Kind {
	case model.EngineDynamo:
		set(&c.Numbers, model.NumbersGlobal)
	case model.EngineTRTLLM:
		set(&c.BlockTokens, 32)
		c.Timing.Barrier = true
	}
	set(&c.Numbers, model.NumbersLocal)
	set(&c.BlockTokens, 16)
	if c.Balance == nil {
		b := model.DefaultAttentionDpConfig()
		c.Balance = &b
	}
	if c.Clock == nil {
		c.Clock = wall{}
	}
}

func set[T comparable](field *T, v T) {
	var zero T
	if *field == zero {
		*field = v
	}
}

// prefill is the time that a rank needs for so many prompt tokens.
func (t *Timing) prefill(tokens int) time.Duration {
	if t.Instant || tokens == 0 {
		return 0
	}
	return time.Duration(float64(tokens) / t.PrefillTokensPerSecond * float64(time.Second))
}

// decode is the time that one token takes for each of so many requests.
func (t *Timing) decode(requests int) time.Duration {
	if t.Instant || requests == 0 {
		return 0
	}
	return t.DecodeBase + time.Duration(requests)*t.DecodePerRequest
}
