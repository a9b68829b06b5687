package router

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"adpdeck/router/model"
	"adpdeck/router/prefix"
	"adpdeck/router/prefix/event"
)

const blockTokens = 16

// fakeEngine stands in for the ranks of a cluster: each keeps blocks, evicts
// the oldest beyond its capacity, and publishes what it stores and drops.
type fakeEngine struct {
	b     *bench
	ranks map[model.Target]*fakeCache
	mute  bool
	// wire carries what is published, nil straight to the router.
	wire func(t model.Target, seq uint64, payload []byte)
}

type fakeCache struct {
	enc    event.Encoder
	seq    uint64
	order  []event.Hash // oldest first
	holds  map[event.Hash]bool
	blocks int // capacity, 0 for none
	salt   event.Hash
}

// withBlocks makes the workers of a bench publish events.
func withBlocks(c *Config) {
	for i := range c.Workers {
		w := &c.Workers[i]
		w.KVEvents, w.BlockTokens, w.KVBlocks, w.MaxBatchedTokens = true, blockTokens, 64, 8192
	}
}

func inMode(m model.RouterMode, set ...model.FieldValue) func(*Config) {
	return func(c *Config) {
		c.Settings.RouterMode = m
		if _, err := model.SetFields(&c.Settings, set); err != nil {
			panic(err)
		}
	}
}

func newEngine(b *bench, capacity int) *fakeEngine {
	e := &fakeEngine{b: b, ranks: map[model.Target]*fakeCache{}}
	for i, t := range b.targets() {
		c := &fakeCache{holds: map[event.Hash]bool{}, blocks: capacity, salt: event.Hash(i) * 0x9e3779b97f4a7c15}
		c.enc.Form = event.Form(i % 2)
		e.ranks[t] = c
	}
	return e
}

// prompt makes a request out of groups of blocks: each number is one block.
func prompt(blocks ...uint32) []uint32 {
	var out []uint32
	for _, b := range blocks {
		for k := range uint32(blockTokens) {
			out = append(out, b*1000+k)
		}
	}
	return out
}

func localsOf(tokens []uint32) (out []uint64) {
	h, _ := prefix.NewHasher(blockTokens, prefix.Seed("", ""))
	for _, l := range h.Locals(nil, tokens) {
		out = append(out, uint64(l))
	}
	return out
}

func of(tokens []uint32) func(*model.Request) {
	return func(q *model.Request) {
		q.PromptTokens, q.Locals, q.BlockTokens = len(tokens), localsOf(tokens), blockTokens
	}
}

// serve runs a prompt on a rank and publishes: it returns the tokens that were
// cached.
func (e *fakeEngine) serve(t model.Target, tokens []uint32) int {
	c := e.ranks[t]
	h, _ := prefix.NewHasher(blockTokens, prefix.Seed("", ""))
	var names []event.Hash
	for _, x := range h.Chains(nil, tokens) {
		names = append(names, event.Hash(x)^c.salt)
	}
	held := 0
	for held < len(names) && c.holds[names[held]] {
		held++
	}
	var events []event.Event
	if fresh := names[held:]; len(fresh) > 0 {
		ev := event.Event{Kind: event.Stored, BlockTokens: blockTokens, Hashes: fresh, Tokens: tokens[held*blockTokens : len(names)*blockTokens], Group: event.NoGroup}
		if held > 0 {
			ev.HasParent, ev.Parent = true, names[held-1]
		}
		for _, n := range fresh {
			if !c.holds[n] {
				c.holds[n] = true
			}
			c.order = append(c.order, n)
		}
		events = append(events, ev)
	}
	if over := len(c.order) - c.blocks; c.blocks > 0 && over > 0 {
		gone := c.order[:over]
		c.order = c.order[over:]
		left := map[event.Hash]bool{}
		for _, n := range c.order {
			left[n] = true
		}
		for _, n := range gone {
			c.holds[n] = left[n]
		}
		events = append(events, event.Event{Kind: event.Removed, Hashes: gone, Group: event.NoGroup})
	}
	e.publish(t, events)
	return held * blockTokens
}

func (e *fakeEngine) publish(t model.Target, events []event.Event) {
	if len(events) == 0 || e.mute {
		return
	}
	c := e.ranks[t]
	seq, payload := c.seq, c.enc.AppendBatch(nil, float64(e.b.clock.ns.Load()), t.Rank, events)
	c.seq++
	if e.wire != nil {
		e.wire(t, seq, payload)
		return
	}
	e.b.Events(t.Worker, t.Rank, seq, payload)
}

// restart empties a rank's cache and begins its numbers anew.
func (e *fakeEngine) restart(t model.Target) {
	c := e.ranks[t]
	c.seq, c.order, c.holds = 0, nil, map[event.Hash]bool{}
	c.salt += 17
}

// turn runs one whole request and returns where it ran and what was cached.
func (e *fakeEngine) turn(t tester, conv string, tokens []uint32, change ...func(*model.Request)) (model.Target, int) {
	t.Helper()
	id, target := e.b.place(t, conv, nil, append(change, of(tokens))...)
	cached := e.serve(target, tokens)
	e.b.FirstToken(id, model.Usage{Ran: target, CachedTokens: cached, TTFTMs: 5})
	e.b.Done(id, model.OutcomeOK)
	return target, cached
}

func indexOf(t *testing.T, b *bench, target model.Target) model.IndexRank {
	t.Helper()
	for _, row := range b.Snapshot().Index {
		if row.Target == target {
			return row
		}
	}
	t.Fatalf("no row of %s", target)
	return model.IndexRank{}
}

// story is a random conversation: its prompt grows by one to four blocks.
type story struct {
	conv   string
	blocks []uint32
}

func stories(rng *rand.Rand, n int) []*story {
	var out []*story
	for i := range n {
		s := &story{conv: fmt.Sprint("c", i)}
		for k := range 4 { // one of three system prompts
			s.blocks = append(s.blocks, uint32(1+4*(i%3)+k))
		}
		s.blocks = append(s.blocks, uint32(100+rng.IntN(1000)))
		out = append(out, s)
	}
	return out
}

func (s *story) grow(rng *rand.Rand) []uint32 {
	for range 1 + rng.IntN(4) {
		s.blocks = append(s.blocks, uint32(2000+rng.IntN(1<<20)))
	}
	if len(s.blocks) > 30 {
		s.blocks = s.blocks[:6]
	}
	return append(prompt(s.blocks...), 1, 2, 3) // and the begin of another block
}

// storedBatch is one batch that stores a whole prompt.
func (c *fakeCache) storedBatch(tokens []uint32) []byte {
	h, _ := prefix.NewHasher(blockTokens, prefix.Seed("", ""))
	ev := event.Event{Kind: event.Stored, BlockTokens: blockTokens, Tokens: tokens, Group: event.NoGroup}
	for _, x := range h.Chains(nil, tokens) {
		ev.Hashes = append(ev.Hashes, event.Hash(x)^c.salt)
	}
	return c.enc.AppendBatch(nil, 1, 0, []event.Event{ev})
}

// holds is how many tokens of a prompt a rank holds.
func (e *fakeEngine) holds(t model.Target, tokens []uint32) int {
	c := e.ranks[t]
	h, _ := prefix.NewHasher(blockTokens, prefix.Seed("", ""))
	n := 0
	for _, x := range h.Chains(nil, tokens) {
		if !c.holds[event.Hash(x)^c.salt] {
			break
		}
		n += blockTokens
	}
	return n
}
