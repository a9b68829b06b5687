package trace

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"time"

	"adpdeck/router/model"
)

// What an agent does: it takes a turn every few seconds, adds little each time,
// and starts over with a short context when the old one has grown long.
const (
	agentFirst     = 6_000  // tokens of a fresh context beyond the system prompt
	agentCompact   = 28_000 // tokens at which the context is cut back
	agentGapMin    = 4 * time.Second
	agentGapSpread = 8 * time.Second
)

// startAgents puts cfg.Agents conversations that never end into the stream.
// They draw from a source of their own: the rest of the stream is the same with
// and without them.
func (g *Generator) startAgents() {
	g.agents = rand.New(rand.NewPCG(g.cfg.Seed, 0xbb67ae8584caa73b))
	for i := range g.cfg.Agents {
		t := g.cfg.Tenants[i%len(g.cfg.Tenants)]
		c := &genConv{
			at: time.Duration(g.agents.Int64N(int64(agentGapSpread))), order: g.order,
			tenant: i % len(g.cfg.Tenants), number: g.agentContext(), turn: 1, agent: true,
			key:    model.ConvKey{Tenant: t.Name, Model: t.Model, ID: fmt.Sprintf("run-%d/agent-%d", 2291+g.cfg.Seed%1000, i+1)},
			prompt: t.SystemTokens + agentFirst,
		}
		g.order++
		heap.Push(&g.open, c)
	}
}

// agentContext numbers the contexts of agents apart from conversations.
func (g *Generator) agentContext() uint32 {
	g.contexts++
	return 1<<31 + g.contexts
}

// agentOutput is the length of an agent's answer, mostly a tool call.
func (g *Generator) agentOutput() int { return 40 + g.agents.IntN(260) }

// agentOn puts the next turn of an agent into the future.
func (g *Generator) agentOn(c *genConv, output int) {
	c.at += agentGapMin + time.Duration(g.agents.Int64N(int64(agentGapSpread))) + time.Duration(output)*answerTime
	c.prompt += output + 60 + g.agents.IntN(400)
	if c.prompt > g.cfg.Tenants[c.tenant].SystemTokens+agentCompact {
		// A new context: nothing of the old one but the system prompt returns.
		c.prompt = g.cfg.Tenants[c.tenant].SystemTokens + agentFirst
		c.blocks, c.number = nil, g.agentContext()
	}
	c.turn++
	c.order = g.order
	g.order++
	heap.Push(&g.open, c)
}
