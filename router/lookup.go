package router

import (
	"fmt"
	"sync/atomic"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

// knowledge is what the router knows of the ranks' caches. Look-ups take no
// lock; the guesses are replaced as a whole when a setting changes them.
type knowledge struct {
	block   int           // tokens in a block
	index   *prefix.Index // fed by events; an ID is a slot of the cluster tier
	targets []model.Target
	events  []bool // by slot: the rank publishes events
	guess   atomic.Pointer[guesses]
	spare   chan *lookup // working spaces kept for reuse
	expired atomic.Int64
	doubts  atomic.Int64 // when some rank's doubt ends, in Unix nanoseconds, 0 for none
}

// guesses are what was routed to ranks whose events are missing or not
// believed yet.
type guesses struct {
	index *prefix.Index
	only  []bool // by slot: nothing else is known of the rank
	side  bool   // for the others: the longer of both counts
	rules guessRules
}

// guessRules are the settings that make guesses what they are.
type guessRules struct {
	events      bool
	ttl         float64
	policy      string
	predicted   float64
	predictions bool
}

func rulesOf(c *model.ClusterConfig) guessRules {
	g := guessRules{events: c.KVEvents, ttl: c.TTLSecs, policy: c.ApproximateCachePolicy}
	if c.PredictedTTLSecs != nil {
		g.predicted, g.predictions = *c.PredictedTTLSecs, true
	}
	return g
}

// lookup is the working space of one look-up and its answer.
type lookup struct {
	lower   bool // some rank holds blocks in a lower tier
	chain   []prefix.Chain
	blocks  []uint64 // the same, for the load
	matches prefix.Matches
	side    prefix.Matches
	known   *prefix.Matcher
	guessed *prefix.Matcher
	of      *guesses // whose matcher guessed is
}

func newKnowledge(specs []model.WorkerSpec) (*knowledge, error) {
	k := &knowledge{}
	for _, w := range specs {
		if w.BlockTokens < 0 || w.BlockTokens > 0 && k.block > 0 && w.BlockTokens != k.block {
			return nil, fmt.Errorf("router: worker %q has blocks of %d tokens, others of %d: give all engines one block size", w.ID, w.BlockTokens, k.block)
		}
		k.block = max(k.block, w.BlockTokens)
		for rank := range w.Ranks {
			k.targets = append(k.targets, model.Target{Worker: w.ID, Rank: rank})
			k.events = append(k.events, w.KVEvents)
		}
	}
	if k.block == 0 {
		return k, nil // nothing can be hashed, so no index is kept
	}
	var err error
	if k.index, err = prefix.New(prefix.Options{Targets: len(k.targets)}); err != nil {
		return nil, fmt.Errorf("router: %w", err)
	}
	for slot, t := range k.targets {
		id, err := k.index.Add(t)
		if err != nil || int(id) != slot {
			return nil, fmt.Errorf("router: index target %s: got place %d, want %d: %w", t, id, slot, err)
		}
	}
	k.spare = make(chan *lookup, maxSpare)
	return k, nil
}

// guessBy brings the guesses in line with the settings. What was guessed stays
// and goes by the new rules, but for ranks that are guessed for another reason
// than before: those begin with nothing.
func (k *knowledge) guessBy(specs []*worker, rules guessRules) error {
	old := k.guess.Load()
	if k.index == nil || old != nil && old.rules == rules {
		return nil
	}
	g := &guesses{only: make([]bool, len(k.targets)), side: rules.events && rules.predictions, rules: rules}
	any := g.side
	for slot := range g.only {
		g.only[slot] = !rules.events || !k.events[slot]
		any = any || g.only[slot]
	}
	if any {
		if old != nil {
			g.index = old.index
		}
		if g.index == nil {
			var err error
			if g.index, err = prefix.New(prefix.Options{Targets: len(k.targets)}); err != nil {
				return err
			}
		}
		slot := 0
		for _, w := range specs {
			for range w.ranks {
				a := prefix.Approximation{TTL: seconds(rules.ttl)}
				switch {
				case !g.only[slot]:
					a.TTL = seconds(rules.predicted)
					if !rules.predictions {
						a.TTL = time.Second // never routed to
					}
				case rules.policy == model.ApproxLRU && w.spec.KVBlocks > 0:
					a = prefix.Approximation{Blocks: w.spec.KVBlocks}
				}
				if err := g.guess(slot, k.targets[slot], a, old); err != nil {
					return err
				}
				slot++
			}
		}
	}
	k.guess.Store(g)
	return nil
}

// guess sets the rule for one rank, which is new to the index or was in it for
// old.
func (g *guesses) guess(slot int, t model.Target, a prefix.Approximation, old *guesses) error {
	if _, known := g.index.Lookup(t); !known {
		id, err := g.index.AddApproximate(t, a)
		if err != nil || int(id) != slot {
			return fmt.Errorf("guess for %s: got place %d, want %d: %w", t, id, slot, err)
		}
		return nil
	}
	id := prefix.ID(slot)
	if old.only[slot] != g.only[slot] || !g.only[slot] && old.side != g.side {
		if err := g.index.Clear(id); err != nil {
			return fmt.Errorf("guess for %s: %w", t, err)
		}
	}
	if err := g.index.Rule(id, a); err != nil {
		return fmt.Errorf("guess for %s: %w", t, err)
	}
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// look chains the prompt's blocks and finds what each rank holds of them. It
// runs without the router's lock; give the answer back with drop.
func (k *knowledge) look(req *model.Request, now time.Duration) (*lookup, error) {
	if k.index == nil || len(req.Locals) == 0 {
		return nil, nil
	}
	switch {
	case req.BlockTokens != 0 && req.BlockTokens != k.block:
		return nil, fmt.Errorf("request %d: %w: block hashes of %d tokens, the engines' blocks have %d: hash with their size",
			req.ID, ErrRequest, req.BlockTokens, k.block)
	case len(req.Locals) > max(req.PromptTokens, 0)/k.block:
		return nil, fmt.Errorf("request %d: %w: %d block hashes, a prompt of %d tokens has %d full blocks: hash full blocks only",
			req.ID, ErrRequest, len(req.Locals), req.PromptTokens, max(req.PromptTokens, 0)/k.block)
	}
	l := k.take()
	l.chain, l.blocks = l.chain[:0], l.blocks[:0]
	prev := prefix.First(prefix.Local(req.Locals[0]))
	l.chain, l.blocks = append(l.chain, prev), append(l.blocks, uint64(prev))
	for _, local := range req.Locals[1:] {
		prev = prefix.Next(prev, prefix.Local(local))
		l.chain, l.blocks = append(l.chain, prev), append(l.blocks, uint64(prev))
	}
	l.match(k, now)
	return l, nil
}

// match finds what each rank holds of the chain.
func (l *lookup) match(k *knowledge, now time.Duration) {
	l.known.Match(l.chain, &l.matches)
	if g := k.guess.Load(); g != nil && g.index != nil {
		k.expire(g, now)
		if l.of != g {
			l.of, l.guessed = g, g.index.NewMatcher()
		}
		l.guessed.Match(l.chain, &l.side)
		l.merge(g)
	}
	l.lower = some(l.matches.Host) || some(l.matches.Disk)
}

func some(blocks []int32) bool {
	for _, n := range blocks {
		if n != 0 {
			return true
		}
	}
	return false
}

// merge lets guesses stand where nothing is known, or where they are longer.
func (l *lookup) merge(g *guesses) {
	m, s := &l.matches, &l.side
	for i := range m.Device {
		switch {
		case i >= len(s.Device):
		case g.only[i]:
			m.Device[i], m.Host[i], m.Disk[i] = s.Device[i], 0, 0
		case g.side && s.Device[i] > m.Device[i]+m.Host[i]+m.Disk[i]:
			m.Device[i], m.Host[i], m.Disk[i] = s.Device[i], 0, 0
		}
	}
}

// expire lets guesses run out, at most ten times a second of router time.
func (k *knowledge) expire(g *guesses, now time.Duration) {
	last := k.expired.Load()
	if int64(now)-last >= int64(100*time.Millisecond) && k.expired.CompareAndSwap(last, int64(now)) {
		g.index.Expire(now)
	}
}

// routed notes where a prompt goes, for ranks that are guessed. It runs
// without the router's lock.
func (k *knowledge) routed(l *lookup, slot int, now time.Duration) {
	if l != nil && slot >= 0 {
		k.remember(l.chain, slot, now)
	}
}

// remembers reports that what is routed to a slot is remembered.
func (g *guesses) remembers(slot int) bool {
	return g != nil && g.index != nil && (g.only[slot] || g.side)
}

func (k *knowledge) remember(chain []prefix.Chain, slot int, now time.Duration) {
	if g := k.guess.Load(); g.remembers(slot) {
		// A slot is always a target of the guesses, so there is nothing to refuse.
		_ = g.index.Routed(prefix.ID(slot), chain, now)
	}
}

// note is a prompt that the engine tier placed on a rank whose cache is guessed.
type note struct {
	chain []prefix.Chain
	slot  int
}

// maxSpare is how many working spaces of look-ups are kept: as many as run at
// one time as a rule.
const maxSpare = 32

func (k *knowledge) take() *lookup {
	select {
	case l := <-k.spare:
		return l
	default:
		return &lookup{known: k.index.NewMatcher()}
	}
}

func (k *knowledge) drop(l *lookup) {
	if l == nil {
		return
	}
	select {
	case k.spare <- l:
	default: // enough are kept
	}
}

// approximate reports that what is known of a slot is guessed.
func (k *knowledge) approximate(slot int) bool {
	g := k.guess.Load()
	return g != nil && g.only[slot]
}

// held is how many tokens of a prompt the rank of slot holds, over all tiers.
func (l *lookup) held(slot, block int) int { return l.matches.Total(prefix.ID(slot)) * block }
