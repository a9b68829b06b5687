package router

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"adpdeck/router/cluster"
	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

// knowledge is what the router knows of the ranks' caches. Look-ups take no
// lock; the guesses are replaced as a whole when a setting changes them.
type knowledge struct {
	index *prefix.Index // fed by events, nil where none is kept; an ID is a slot of the cluster tier
	room  int           // ranks that there may be, 0 for those of the start
	block atomic.Int32  // tokens in a block, 0 until an engine names it
	// gen counts the times that slots changed hands: what was looked up under
	// another count may be another rank's.
	gen     atomic.Uint64
	seats   atomic.Pointer[seats]
	mu      sync.RWMutex // written when a slot's blocks are wiped, read when a guess is written
	guess   atomic.Pointer[guesses]
	past    atomic.Uint64 // events of ranks that have left
	texts   atomic.Bool   // a request came whose hashes are of text
	spare   chan *lookup  // working spaces kept for reuse
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
	gen   uint64 // of the ranks that only is about
}

// guessRules are the settings that make guesses what they are.
type guessRules struct {
	events      bool
	ttl         float64
	policy      string
	predicted   float64
	predictions bool
	texts       bool
}

func rulesOf(c *model.ClusterConfig, texts bool) guessRules {
	g := guessRules{events: c.KVEvents, ttl: c.TTLSecs, policy: c.ApproximateCachePolicy, texts: texts}
	if c.PredictedTTLSecs != nil {
		g.predicted, g.predictions = *c.PredictedTTLSecs, true
	}
	return g
}

// lookup is the working space of one look-up and its answer.
type lookup struct {
	gen     uint64 // knowledge.gen before it began
	text    bool   // the hashes are of text: only guesses can match them
	lower   bool   // some rank holds blocks in a lower tier
	chain   []prefix.Chain
	blocks  []uint64 // the same, for the load
	matches prefix.Matches
	side    prefix.Matches
	guesses []bool // by slot: what it holds is a guess; empty for none
	known   *prefix.Matcher
	guessed *prefix.Matcher
	of      *prefix.Index // whose matcher guessed is
}

func newKnowledge(cfg *Config) (*knowledge, error) {
	k := &knowledge{room: cfg.MaxRanks}
	k.seats.Store(&seats{})
	ranks, block := 0, 0
	for i := range cfg.Workers {
		w := &cfg.Workers[i]
		if w.BlockTokens < 0 || w.BlockTokens > 0 && block > 0 && w.BlockTokens != block {
			return nil, fmt.Errorf("router: worker %q has blocks of %d tokens, others of %d: give all engines one block size", w.ID, w.BlockTokens, block)
		}
		block = max(block, w.BlockTokens)
		ranks += max(w.Ranks, 0)
	}
	k.block.Store(int32(block))
	if cfg.MaxRanks > cluster.MaxSlots || cfg.MaxRanks > 0 && ranks > cfg.MaxRanks {
		return nil, fmt.Errorf("router: Config.MaxRanks is %d and the workers have %d: give %d to %d", cfg.MaxRanks, ranks, ranks, cluster.MaxSlots)
	}
	if k.room == 0 {
		k.room = ranks
		if block == 0 {
			return k, nil // nothing can be hashed, so no index is kept
		}
	}
	var err error
	if k.index, err = prefix.New(prefix.Options{Targets: max(1, k.room)}); err != nil {
		return nil, fmt.Errorf("router: %w", err)
	}
	k.spare = make(chan *lookup, maxSpare)
	return k, nil
}

// blockTokens is the size of a block in tokens, 0 while nobody has named it.
func (k *knowledge) blockTokens() int { return int(k.block.Load()) }

// guessBy brings the guesses in line with the settings and the ranks that are
// there. What was guessed stays and goes by the new rules, but for ranks that are
// guessed for another reason than before: those begin with nothing.
func (k *knowledge) guessBy(workers []*worker, rules guessRules) error {
	old, gen := k.guess.Load(), k.gen.Load()
	if k.index == nil || old != nil && old.rules == rules && old.gen == gen {
		return nil
	}
	g := &guesses{side: rules.events && rules.predictions, rules: rules, gen: gen}
	any := g.side || rules.texts
	for _, w := range workers {
		only := !rules.events || !w.spec.KVEvents
		any = any || only
		for _, slot := range w.slots {
			for len(g.only) <= int(slot) {
				g.only = append(g.only, false)
			}
			g.only[slot] = only
		}
	}
	switch {
	case old != nil && old.rules == rules && old.index != nil:
		g.index = old.index // whose ranks come and go with the feeds
	case any:
		if old != nil {
			g.index = old.index
		}
		if g.index == nil {
			var err error
			if g.index, err = prefix.New(prefix.Options{Targets: max(1, k.room)}); err != nil {
				return err
			}
		}
		for _, w := range workers {
			for rank, slot := range w.slots {
				t := model.Target{Worker: w.spec.ID, Rank: rank}
				g.guess(int(slot), t, rules.approximation(&w.spec), old)
			}
		}
	}
	k.guess.Store(g)
	return nil
}

// guess sets the rule for one rank, which is new to the index or was in it for
// old. What stands at another place is about to be moved, and what stands at its
// place is about to go: seat does both.
func (g *guesses) guess(slot int, t model.Target, a prefix.Approximation, old *guesses) {
	id := prefix.ID(slot)
	switch at, known := g.index.Lookup(t); {
	case !known:
		_ = g.index.AddApproximateAt(id, t, a)
	case at == id:
		if old.guesses(slot) != g.guesses(slot) || !g.guesses(slot) && old.side != g.side {
			_ = g.index.Clear(id)
		}
		_ = g.index.Rule(id, a)
	}
}

// rule applies the rule anew for a worker that is there, whose capacity has
// changed: what is guessed of its ranks stays as far as there is room for it.
func (g *guesses) rule(w *worker) {
	if g == nil || g.index == nil {
		return
	}
	for rank, slot := range w.slots {
		// A rank that has just come, or is about to move, has its rule from seat.
		if at, known := g.index.Lookup(model.Target{Worker: w.spec.ID, Rank: rank}); known && at == prefix.ID(slot) {
			_ = g.index.Rule(at, g.rules.approximation(&w.spec))
		}
	}
}

// approximation says how long a rank of a worker is credited with a guess.
func (r *guessRules) approximation(w *model.WorkerSpec) prefix.Approximation {
	a := prefix.Approximation{TTL: seconds(r.ttl)}
	switch {
	case r.events && w.KVEvents && r.predictions:
		a.TTL = seconds(r.predicted)
	case r.events && w.KVEvents && !r.texts:
		a.TTL = time.Second // never routed to
	case r.policy == model.ApproxLRU && w.KVBlocks > 0:
		a = prefix.Approximation{Blocks: w.KVBlocks}
	}
	return a
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// look chains the prompt's blocks and finds what each rank holds of them. It
// runs without the router's lock; give the answer back with drop.
func (k *knowledge) look(req *model.Request, now time.Duration) (*lookup, error) {
	block := k.blockTokens()
	if k.index == nil || block == 0 || len(req.Locals) == 0 {
		return nil, nil
	}
	switch {
	case req.BlockTokens != 0 && req.BlockTokens != block:
		return nil, fmt.Errorf("request %d: %w: block hashes of %d tokens, the engines' blocks have %d: hash with their size",
			req.ID, ErrRequest, req.BlockTokens, block)
	case len(req.Locals) > max(req.PromptTokens, 0)/block && !req.Guessed:
		return nil, fmt.Errorf("request %d: %w: %d block hashes, a prompt of %d tokens has %d full blocks: hash full blocks only",
			req.ID, ErrRequest, len(req.Locals), req.PromptTokens, max(req.PromptTokens, 0)/block)
	}
	locals := req.Locals
	if req.Guessed { // how many tokens a block of text has is a guess too
		locals = locals[:min(len(locals), max(req.PromptTokens, 0)/block)]
		k.texts.Store(true)
	}
	if len(locals) == 0 {
		return nil, nil
	}
	l := k.take()
	l.text = req.Guessed
	l.chain, l.blocks = l.chain[:0], l.blocks[:0]
	prev := prefix.First(prefix.Local(locals[0]))
	l.chain, l.blocks = append(l.chain, prev), append(l.blocks, uint64(prev))
	for _, local := range locals[1:] {
		prev = prefix.Next(prev, prefix.Local(local))
		l.chain, l.blocks = append(l.chain, prev), append(l.blocks, uint64(prev))
	}
	l.match(k, now)
	return l, nil
}

// match finds what each rank holds of the chain.
func (l *lookup) match(k *knowledge, now time.Duration) {
	l.gen = k.gen.Load() // before, so that a change meanwhile shows
	l.guesses = l.guesses[:0]
	g := k.guess.Load()
	guessing := g != nil && g.index != nil
	if guessing {
		k.expire(g, now)
		if l.of != g.index {
			l.of, l.guessed = g.index, g.index.NewMatcher()
		}
	}
	switch {
	case l.text && guessing:
		l.guessed.Match(l.chain, &l.matches)
	case l.text:
		l.known.Match(nil, &l.matches)
	default:
		l.known.Match(l.chain, &l.matches)
		if guessing {
			l.guessed.Match(l.chain, &l.side)
			l.merge(g)
		}
	}
	l.lower = some(l.matches.Host) || some(l.matches.Disk)
}

// renew looks up again what was looked up before slots changed hands.
func (k *knowledge) renew(l *lookup, now time.Duration) {
	if l != nil && l.gen != k.gen.Load() {
		l.match(k, now)
	}
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
	l.guesses = append(l.guesses, make([]bool, len(m.Device))...)
	for i := range m.Device {
		switch {
		case i >= len(s.Device) || i >= len(g.only):
		case g.only[i], g.side && s.Device[i] > m.Device[i]+m.Host[i]+m.Disk[i]:
			m.Device[i], m.Host[i], m.Disk[i] = s.Device[i], 0, 0
			l.guesses[i] = true
		}
	}
}

// isGuess reports that what a slot is said to hold is a guess.
func (l *lookup) isGuess(slot int) bool { return l.text || slot < len(l.guesses) && l.guesses[slot] }

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
	if l != nil && slot >= 0 && k.guess.Load().remembers(slot, l.text) {
		k.remember(&note{chain: l.chain, slot: slot, gen: l.gen}, now)
	}
}

// remembers reports that what is routed to a slot is remembered.
func (g *guesses) remembers(slot int, text bool) bool {
	return g != nil && g.index != nil && slot < len(g.only) && (g.only[slot] || g.side || text)
}

// remember writes a guess, unless slots have changed hands since the choice.
func (k *knowledge) remember(n *note, now time.Duration) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if g := k.guess.Load(); g != nil && g.index != nil && n.gen == k.gen.Load() {
		// A rank that has no place in the guesses yet is not credited.
		_ = g.index.Routed(prefix.ID(n.slot), n.chain, now)
	}
}

// note is a prompt that the engine tier placed on a rank whose cache is guessed.
type note struct {
	chain []prefix.Chain
	slot  int
	gen   uint64
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

// guesses reports that what is known of a slot is guessed.
func (g *guesses) guesses(slot int) bool { return g != nil && slot < len(g.only) && g.only[slot] }

// held is how many tokens of a prompt the rank of slot holds, over all tiers.
func (l *lookup) held(slot, block int) int { return l.matches.Total(prefix.ID(slot)) * block }
