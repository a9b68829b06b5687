package trace

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"adpdeck/router/model"
)

// Tenant is one user of the generated cluster. All its conversations begin
// with the same system prompt.
type Tenant struct {
	Name string
	// Model is what its conversations ask for, empty for none.
	Model        string
	SystemTokens int
	// Share is the tenant's part of the conversations, relative to the others.
	Share float64
}

// GeneratorConfig says what a Generator invents. Start from DefaultGenerator.
type GeneratorConfig struct {
	// Seed chooses the stream: the same configuration gives the same rows.
	Seed uint64
	// Rate is the mean arrival rate in the long run, in requests per second.
	Rate float64
	// GapScale multiplies the time between two turns; 1 is as in the Mooncake
	// trace (half of the gaps above two minutes).
	GapScale float64
	// PromptScale multiplies the lengths of first prompts and of what a turn
	// adds; answers keep their lengths.
	PromptScale float64
	// LongShare is the share of conversations that go on for LongTurns turns
	// and more, up to three times as many; the trace has next to none.
	LongShare float64
	LongTurns int
	// Agents is how many conversations never end: turns every few seconds that
	// add little, and a fresh context when the old one has grown long. They come
	// on top of Rate, about a request in ten seconds each.
	Agents int
	// Warm is how long the stream has been running when its first row comes:
	// conversations are then in all stages from the start.
	Warm time.Duration
	// BlockTokens is the size of a KV-cache block.
	BlockTokens int
	Tenants     []Tenant
}

// DefaultGenerator returns the configuration that resembles the Mooncake
// conversation trace, at its own mean rate of 3.4 requests a second.
func DefaultGenerator() GeneratorConfig {
	return GeneratorConfig{
		Seed: 1, Rate: 3.4, GapScale: 1, PromptScale: 1, LongTurns: 24, BlockTokens: mooncakeBlockTokens,
		Tenants: []Tenant{
			{Name: "lumen", SystemTokens: 512, Share: 40},
			{Name: "orbit", SystemTokens: 512, Share: 25},
			{Name: "harbor", SystemTokens: 768, Share: 15},
			{Name: "cobalt", SystemTokens: 640, Share: 12},
			{Name: "meadow", SystemTokens: 512, Share: 8},
		},
	}
}

// ErrGenerator is wrapped by every error of NewGenerator.
var ErrGenerator = errors.New("cannot generate traffic")

func (c *GeneratorConfig) check() error {
	switch {
	case !(c.Rate > 0 && c.Rate <= 1e6):
		return fmt.Errorf("%w: rate %g must be above 0 and at most a million requests a second", ErrGenerator, c.Rate)
	case !(c.GapScale > 0 && c.GapScale <= 1000):
		return fmt.Errorf("%w: gap scale %g must be above 0 and at most 1000", ErrGenerator, c.GapScale)
	case !(c.PromptScale > 0 && c.PromptScale <= 10):
		return fmt.Errorf("%w: prompt scale %g must be above 0 and at most 10", ErrGenerator, c.PromptScale)
	case !(c.LongShare >= 0 && c.LongShare <= 1) || c.LongShare > 0 && (c.LongTurns < 1 || c.LongTurns > 1000):
		return fmt.Errorf("%w: long share %g must be within 0 and 1, long turns %d within 1 and 1000", ErrGenerator, c.LongShare, c.LongTurns)
	case c.Agents < 0 || c.Agents > 10_000:
		return fmt.Errorf("%w: agents %d must be within 0 and 10,000", ErrGenerator, c.Agents)
	case c.Warm < 0 || c.Warm > 24*time.Hour:
		return fmt.Errorf("%w: warm %s must be within 0 and a day", ErrGenerator, c.Warm)
	case c.BlockTokens < 1 || c.BlockTokens > 65536:
		return fmt.Errorf("%w: block size %d must be within 1 and 65536 tokens", ErrGenerator, c.BlockTokens)
	case len(c.Tenants) == 0:
		return fmt.Errorf("%w: no tenant is named", ErrGenerator)
	}
	for _, t := range c.Tenants {
		if t.SystemTokens < 0 || t.SystemTokens > maxPrompt/2 || !(t.Share > 0) {
			return fmt.Errorf("%w: tenant %q needs a share above 0 and a system prompt of 0 to %d tokens", ErrGenerator, t.Name, maxPrompt/2)
		}
	}
	return nil
}

const (
	minPrompt = 891    // shortest prompt, as in the trace
	maxPrompt = 126195 // longest prompt; a conversation ends before it
	// maxOpen bounds the conversations that have turns to come.
	maxOpen = 100_000
	// answerTime is the least time that a reader gives an answer token before
	// the next turn, so that scaled gaps do not overtake the answer.
	answerTime = 25 * time.Millisecond
)

// Generator invents rows without end. It is not safe for concurrent use.
type Generator struct {
	cfg    GeneratorConfig
	shapes shapes
	rng    *rand.Rand
	agents *rand.Rand // what agents draw from

	contexts uint32     // agents' contexts so far
	system   [][]uint64 // raw block ids of each tenant's system prompt
	shares   float64
	perSec   float64 // conversations started per second
	open     convHeap
	started  uint32        // conversations so far
	start    time.Duration // when the next conversation starts
	offset   time.Duration // subtracted from all times: the warm-up
	order    uint64
}

// genConv is a conversation with a turn to come.
type genConv struct {
	at     time.Duration // when the turn arrives
	order  uint64        // breaks ties of at
	key    model.ConvKey
	tenant int
	number uint32
	turn   int // the turn to come
	left   int // turns after it
	long   bool
	agent  bool
	prompt int // tokens of its prompt
	blocks []uint64
}

// NewGenerator returns a generator at its first row. Its errors wrap
// ErrGenerator and name the value that is out of bounds.
func NewGenerator(cfg GeneratorConfig) (*Generator, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	g := &Generator{
		cfg: cfg, shapes: mooncakeShapes(),
		rng: rand.New(rand.NewPCG(cfg.Seed, 0x6a09e667f3bcc908)), offset: cfg.Warm,
	}
	for i, t := range cfg.Tenants {
		ids := make([]uint64, t.SystemTokens/cfg.BlockTokens)
		for j := range ids {
			ids[j] = mix(mix(cfg.Seed+uint64(i)<<32) + uint64(j) + 1)
		}
		g.system = append(g.system, ids)
		g.shares += t.Share
	}
	// A long conversation has 2·LongTurns turns on average.
	mean := (1-cfg.LongShare)*g.shapes.meanTurns() + cfg.LongShare*2*float64(cfg.LongTurns)
	g.perSec = cfg.Rate / mean
	g.start = g.untilStart()
	g.startAgents()
	return g, nil
}

// Total is 0: the stream has no end.
func (g *Generator) Total() int { return 0 }

// Next fills row with the next request; it always returns true. The blocks of
// a row stay valid and are never written again.
func (g *Generator) Next(row *Row) bool {
	for {
		c := g.pop()
		g.fill(c, row)
		if c.agent {
			g.agentOn(c, row.OutputTokens)
		} else {
			g.goOn(c, row.OutputTokens)
		}
		if row.At -= g.offset; row.At >= 0 {
			return true
		}
	}
}

// pop takes the conversation whose turn is next, starting new ones on the way.
func (g *Generator) pop() *genConv {
	for len(g.open) == 0 || g.start < g.open[0].at {
		at := g.start
		g.start += g.untilStart()
		if len(g.open) < maxOpen {
			heap.Push(&g.open, g.begin(at))
		}
	}
	return heap.Pop(&g.open).(*genConv)
}

func (g *Generator) untilStart() time.Duration {
	return time.Duration(g.rng.ExpFloat64() / g.perSec * float64(time.Second))
}

// begin makes a new conversation whose first turn arrives at at.
func (g *Generator) begin(at time.Duration) *genConv {
	tenant, pick := 0, g.rng.Float64()*g.shares
	for tenant < len(g.cfg.Tenants)-1 && pick >= g.cfg.Tenants[tenant].Share {
		pick -= g.cfg.Tenants[tenant].Share
		tenant++
	}
	long := g.rng.Float64() < g.cfg.LongShare
	turns := g.shapes.turnCount(g.rng)
	if long {
		turns = g.cfg.LongTurns + g.rng.IntN(2*g.cfg.LongTurns+1)
	}
	first := g.shapes.first.draw(g.rng)
	if long { // leave room to grow
		first = g.shapes.first.at(g.rng.Float64() * .6)
	}
	t := g.cfg.Tenants[tenant]
	c := &genConv{
		at: at, order: g.order, tenant: tenant, number: g.started, turn: 1, left: turns - 1, long: long,
		key:    model.ConvKey{Tenant: t.Name, Model: t.Model, ID: convName(g.started ^ uint32(g.cfg.Seed*2654435769))},
		prompt: g.length(max(minPrompt, first*g.cfg.PromptScale), t.SystemTokens+64),
	}
	g.order++
	g.started++
	return c
}

func (g *Generator) length(tokens float64, atLeast int) int {
	return min(maxPrompt, max(atLeast, int(tokens+.5)))
}

// fill writes the turn of c that has come.
func (g *Generator) fill(c *genConv, row *Row) {
	prev, system := uint64(0), g.system[c.tenant]
	if n := len(c.blocks); n > 0 {
		prev = c.blocks[n-1]
	}
	for i := len(c.blocks); i < c.prompt/g.cfg.BlockTokens; i++ {
		id := mix(g.cfg.Seed<<32+uint64(c.number)) + uint64(i)
		if i < len(system) {
			id = system[i]
		}
		prev = Chain(prev, id)
		c.blocks = append(c.blocks, prev)
	}
	output := 0
	if c.agent {
		output = g.agentOutput()
	} else {
		output = max(1, int(g.shapes.output.draw(g.rng)+.5))
	}
	*row = Row{
		At: c.at, Conv: c.key, Turn: c.turn, PromptTokens: c.prompt, OutputTokens: output,
		Blocks: c.blocks[:len(c.blocks):len(c.blocks)], BlockTokens: g.cfg.BlockTokens,
	}
}

// goOn puts the next turn of c into the future, if there is one.
func (g *Generator) goOn(c *genConv, output int) {
	grow := g.shapes.growth.draw(g.rng)
	if c.long { // half of the usual additions and none of the huge ones
		grow = g.shapes.growth.at(g.rng.Float64() * .85)
	}
	gap := time.Duration(g.shapes.gap.draw(g.rng) * g.cfg.GapScale * float64(time.Second))
	next := c.prompt + output + int(grow*g.cfg.PromptScale+.5)
	if c.left == 0 || next > maxPrompt {
		return
	}
	c.at += max(gap, time.Duration(output)*answerTime)
	c.prompt = next
	c.turn++
	c.left--
	c.order = g.order
	g.order++
	heap.Push(&g.open, c)
}

// convHeap orders conversations by their next turn.
type convHeap []*genConv

func (h convHeap) Len() int { return len(h) }
func (h convHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].order < h[j].order
}
func (h convHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *convHeap) Push(x any)   { *h = append(*h, x.(*genConv)) }
func (h *convHeap) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return c
}
