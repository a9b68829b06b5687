package sim

import (
	"errors"
	"fmt"
	"math"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/trace"
)

// Config describes a simulated cluster. Start from DefaultConfig or
// ReplayConfig.
type Config struct {
	// Workers are named w0, w1, …, each of Ranks DP ranks.
	Workers, Ranks int
	// Blocks is the size of one rank's KV cache in blocks of BlockTokens.
	Blocks, BlockTokens int
	// HardCap is max_num_active_requests of one rank.
	HardCap int
	// ChunkTokens is how many prompt tokens a rank prefills in one step.
	ChunkTokens int
	// Seed chooses the request ids, which break ties in the KV-aware router.
	// With seed 0 they count from HardCap, as upstream's local counter does.
	Seed uint64
	// Speed divides the arrival times of the traffic: 2 sends it twice as fast.
	Speed float64
	// Start is the virtual time of the beginning.
	Start time.Time
	// Kind and Name describe the traffic, BadRows is what its reader left out.
	Kind, Name string
	BadRows    int
	Timing     Timing
	// KVEvents makes the ranks publish what their caches hold, and requests
	// bring the hashes of their blocks. It costs time; modes kv and lockstep of
	// the cluster tier need it.
	KVEvents bool
}

// Timing is how long a rank works: prefill(t) = Quad·t² + Lin·t + Base for t
// prompt tokens and 0 for none; decode(p) = max(Min, A·p² + B·p + C) when any
// request decodes, p being the active KV tokens over the capacity, at most 1.
// All in milliseconds.
type Timing struct {
	PrefillQuad, PrefillLin, PrefillBase   float64
	DecodeA, DecodeB, DecodeC, DecodeFloor float64
}

// DefaultTiming returns the timing that NVIDIA Dynamo's simulated engine uses
// unless it is given a profile.
func DefaultTiming() Timing {
	return Timing{
		PrefillQuad: 4.209989e-7, PrefillLin: 1.518344e-2, PrefillBase: 16.50142,
		DecodeA: -25.74, DecodeB: 54.01, DecodeC: 5.74, DecodeFloor: 1,
	}
}

// The products are rounded before they are added (no fused multiply-add), so
// that a run is the same on every processor.

// prefill is the time for t prompt tokens.
func (m *Timing) prefill(t int) time.Duration {
	if t == 0 {
		return 0
	}
	n := float64(t)
	return ms(float64(m.PrefillQuad*n*n) + float64(m.PrefillLin*n) + m.PrefillBase)
}

// decode is the time for one token of every decoding request, at occupancy p.
func (m *Timing) decode(p float64) time.Duration {
	p = min(p, 1)
	return ms(max(m.DecodeFloor, float64(m.DecodeA*p*p)+float64(m.DecodeB*p)+m.DecodeC))
}

func ms(v float64) time.Duration { return time.Duration(math.Round(v * float64(time.Millisecond))) }

// ReplayConfig returns the cluster that a trace is replayed on unless told
// otherwise: one worker of eight ranks with 20,000 blocks each, and slots enough
// that the hard cap does not bind.
func ReplayConfig() Config {
	return Config{
		Workers: 1, Ranks: 8, Blocks: 20_000, BlockTokens: 512, HardCap: 1024, ChunkTokens: 8192,
		Speed: 1, Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Kind: "trace", Timing: DefaultTiming(),
	}
}

// DefaultConfig returns the console's cluster: two workers of eight ranks,
// small caches and few slots, so that ranks differ and settings matter. It is
// made for the traffic of DefaultTraffic.
func DefaultConfig() Config {
	c := ReplayConfig()
	c.Workers, c.Blocks, c.HardCap, c.Seed = 2, 600, 16, 1
	c.Kind, c.Name = "simulated", "generated conversations"
	return c
}

// DefaultTraffic returns the console's traffic: as the Mooncake trace in its
// lengths, but with quicker turns and some long conversations, so that one can
// be watched through twenty turns, and enough of it to keep the ranks busy.
func DefaultTraffic() trace.GeneratorConfig {
	g := trace.DefaultGenerator()
	g.Rate, g.GapScale, g.LongShare, g.LongTurns = 9, .08, .06, 20
	g.PromptScale, g.Warm, g.Agents = .6, 15*time.Minute, 4
	g.Tenants = []trace.Tenant{
		{Name: "lumen", Model: "deepseek-v3", SystemTokens: 1536, Share: 36},
		{Name: "orbit", Model: "deepseek-r1", SystemTokens: 3072, Share: 24},
		{Name: "cobalt", Model: "deepseek-r1", SystemTokens: 6144, Share: 20},
		{Name: "harbor", Model: "deepseek-v3", SystemTokens: 4608, Share: 12},
		{Name: "meadow", Model: "deepseek-v3", SystemTokens: 1024, Share: 8},
	}
	return g
}

// HeldOut returns invented traffic for replays: the console's tenants and long
// conversations at the Mooncake trace's own rate and prompt lengths, turns twice
// as quick. No weight was tuned on it.
func HeldOut() trace.GeneratorConfig {
	g := DefaultTraffic()
	g.Rate, g.GapScale, g.PromptScale = 3.4, .5, 1
	return g
}

// DefaultSettings returns the settings that the console starts with: KV-aware
// routing with upstream's defaults, whole workers in turn.
func DefaultSettings() model.Settings {
	return model.Settings{
		RouterMode:        model.ModeRoundRobin,
		AttentionDpConfig: model.DefaultAttentionDpConfig().WithPolicy(model.PolicyKVAware),
		ClusterConfig:     model.DefaultClusterConfig(),
	}
}

// Bounds of a Config.
const (
	MaxWorkers = 256
	MaxRanks   = 1024
	MaxBlocks  = 8 << 20
)

// ErrConfig is wrapped by every error about a Config.
var ErrConfig = errors.New("cannot simulate")

func (c *Config) check() error {
	within := func(name string, v, lo, hi int) error {
		if v < lo || v > hi {
			return fmt.Errorf("%w: %s is %d, must be within %d and %d", ErrConfig, name, v, lo, hi)
		}
		return nil
	}
	if !(c.Speed > 0 && c.Speed <= 1e6) {
		return fmt.Errorf("%w: speed is %g, must be above 0 and at most a million", ErrConfig, c.Speed)
	}
	if t := c.Timing; !(t.PrefillBase > 0 && t.DecodeFloor > 0) {
		return fmt.Errorf("%w: prefill and decode must take time", ErrConfig)
	}
	return errors.Join(
		within("workers", c.Workers, 1, MaxWorkers),
		within("ranks", c.Ranks, 1, MaxRanks),
		within("blocks", c.Blocks, 1, MaxBlocks),
		within("tokens of a block", c.BlockTokens, 1, 65536),
		within("hard cap", c.HardCap, 1, 65536),
		within("chunk", c.ChunkTokens, 1, 1<<20),
		within("blocks of all ranks", c.Blocks*c.Ranks*c.Workers, 1, 64<<20),
	)
}

// Specs returns the workers as a live router must be told of them.
func (c *Config) Specs() []model.WorkerSpec {
	specs := make([]model.WorkerSpec, c.Workers)
	for i := range specs {
		specs[i] = model.WorkerSpec{
			ID: fmt.Sprintf("w%d", i), Ranks: c.Ranks, MaxNumActiveRequests: c.HardCap, Engine: "sim",
			KVEvents: c.KVEvents, BlockTokens: c.BlockTokens, KVBlocks: c.Blocks, MaxBatchedTokens: c.ChunkTokens,
		}
	}
	return specs
}
