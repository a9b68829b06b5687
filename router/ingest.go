package router

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/prefix"
	"adpdeck/router/prefix/event"
)

// source is one rank's publisher of KV events: its feed, and what turns events
// into the index's form.
type source struct {
	target model.Target
	slot   int32
	w      *worker // whose it is; only its identity is looked at
	events bool
	replay bool
	k      *knowledge
	owed   atomic.Int64 // new blocks its rank was made to compute, not told to the feed yet
	from   atomic.Int64 // when the first of them was, on the clock, in nanoseconds
	came   atomic.Uint64
	resync atomic.Bool // an operator wants its cache learned afresh

	mu    sync.Mutex // guards what follows; never taken under the router's lock
	gone  bool       // the rank has left: nothing is taken any more
	slots []int32    // of its worker's ranks, for events that name another rank
	feed  *event.Feed
	cfg   event.Config // of feed
	// replayErr is why the newest replay failed, bad what was wrong with the newest
	// message that could not be read whole; empty for nothing.
	replayErr, bad string
	now            time.Time
	out            prefix.Batch
	blocks         []prefix.Block
	hashes         []prefix.External
	locals         []prefix.Local
	hasher         prefix.Hasher
	lora           string
	salt           string
	// restarts are those that the feed has shown, wiped how many of them were
	// known at the last Restarted; awaited says that the next was told before.
	restarts, wiped uint64
	awaited         bool
	refused         uint64    // events that the index called contradictory
	suspects        []suspect // oldest first
	matcher         *prefix.Matcher
	matches         prefix.Matches
}

func (k *knowledge) newSource(c *chair, block int) *source {
	s := &source{
		target: c.target, slot: c.slots[c.target.Rank], w: c.w, k: k, slots: c.slots,
		events: c.spec.KVEvents, replay: c.spec.KVReplay,
	}
	var err, bad error
	s.hasher, err = prefix.NewHasher(block, prefix.Seed("", ""))
	s.cfg = event.Config{
		Rank: c.target.Rank, StartRank: c.spec.StartRank, Ranks: len(c.slots), BlockTokens: block, Replay: c.spec.KVReplay,
	}
	s.feed, bad = event.NewFeed(s.cfg, s.apply)
	s.gone = err != nil || bad != nil // checkSpec has let in nothing that they refuse
	return s
}

// regroup tells a feed that its worker has other ranks now. It returns when no
// batch is being taken that knows the old ones.
func (s *source) regroup(c *chair) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slots = c.slots
	s.cfg.StartRank, s.cfg.Ranks = c.spec.StartRank, len(c.slots)
	s.feed.SetRanks(c.spec.StartRank, len(c.slots))
}

// Events takes one batch that a rank's engine published about its KV cache:
// payload is the msgpack message, seq its number. Bad events cost themselves
// and are counted; what is wrong shows in State.Index and State.Findings. A
// worker or rank that is not there is ignored, as are all when no worker names
// its block size. The payload is copied where it is kept.
//
// Decoding and the update of the index run without the router's lock: requests
// are routed meanwhile. Batches of one rank are taken one at a time.
func (r *Router) Events(worker string, rank int, seq uint64, payload []byte) {
	r.EventsOn(worker, rank, onlyConn, seq, payload)
}

// onlyConn is the connection of a caller that does not tell them apart.
const onlyConn = 1

// EventsOn is Events for a caller that knows which connection brought the
// batch: conn changes with every reconnect. A number that goes back on a new
// connection is then a restart, whatever its bytes.
func (r *Router) EventsOn(worker string, rank int, conn, seq uint64, payload []byte) {
	r.onFeed(model.Target{Worker: worker, Rank: rank}, func(s *source) {
		if s.speaks(event.Msgpack) {
			s.feed.Live(s.now, conn, seq, payload)
		}
	})
}

// EventsJSON takes one answer of TensorRT-LLM's /kv_cache_events: a list of the
// events of all ranks, each with its rank and number. Events of ranks that are
// not there, and what is no event, are counted at rank 0 of the worker.
func (r *Router) EventsJSON(worker string, payload []byte) {
	r.drained(worker, payload, event.TRTJSON)
}

// RouterEvents takes Dynamo's RouterEvents of a worker, one or a list, as JSON
// or, with json false, as msgpack with named fields. Each names its rank and
// number.
func (r *Router) RouterEvents(worker string, payload []byte, json bool) {
	if !json {
		text, err := event.JSON(payload)
		if err != nil {
			r.onFeed(model.Target{Worker: worker}, func(s *source) { s.badMessage(err) })
			return
		}
		payload = text
	}
	r.drained(worker, payload, event.RouterJSON)
}

// drained takes a list apart and passes each event to its rank's feed.
func (r *Router) drained(worker string, payload []byte, format event.Format) {
	all := r.know.seats.Load().byWorker[worker]
	if len(all) == 0 {
		return
	}
	var refused event.Tally
	pieces, err := event.Drain(payload, nil, &refused)
	start := all[0].startRank()
	strange := 0
	for i := range pieces {
		p := &pieces[i]
		if rank := p.Rank - start; rank >= 0 && rank < len(all) {
			r.onFeed(all[rank].target, func(s *source) {
				if s.speaks(format) {
					s.feed.Live(s.now, onlyConn, p.ID, p.Raw)
				}
			})
			continue
		}
		strange++
	}
	if last := refused.LastError(); err == nil && last != "" {
		err = fmt.Errorf("%s", last)
	}
	if err == nil && strange > 0 {
		err = fmt.Errorf("%d events name ranks that %s does not have", strange, worker)
	}
	if err != nil {
		r.onFeed(all[0].target, func(s *source) { s.badMessage(err) })
	}
}

func (s *source) startRank() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.StartRank
}

// badMessage counts a message that no event could be taken from, or not all.
func (s *source) badMessage(err error) {
	s.refused++
	s.bad = cut(err.Error(), maxWhyBytes)
}

// speaks makes the feed one of a format. A publisher that changes its format is
// another one: what it said before is wiped.
func (s *source) speaks(f event.Format) bool {
	if s.cfg.Format == f {
		return true
	}
	cfg := s.cfg
	cfg.Format = f
	if f != event.Msgpack {
		cfg.Replay = false // these cannot be asked again
	}
	feed, err := event.NewFeed(cfg, s.apply)
	if err != nil {
		return false
	}
	if !s.feed.Heard().IsZero() {
		_ = s.k.index.Restart(prefix.ID(s.slot))
	}
	s.feed, s.cfg.Format, s.restarts, s.wiped, s.suspects = feed, f, 0, 0, nil
	return true
}

// tell brings the feed's time and traffic up to date.
func (s *source) tell(now time.Time) {
	if n := s.owed.Swap(0); n > 0 {
		if from := now.Add(time.Duration(s.from.Swap(0) - now.UnixNano())); from.After(s.now) && !from.After(now) {
			s.now = from
		}
		s.feed.Routed(s.now, int(n))
	}
	if now.After(s.now) {
		s.now = now
	}
	s.judge(now)
}

// apply is the sink of the feed.
func (s *source) apply(b *event.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		if e.Rank < 0 || int(e.Rank) >= len(s.slots) {
			continue
		}
		s.came.Add(1)
		id := prefix.ID(s.slots[e.Rank])
		switch { // the target is there for the router's life: no errors
		case id == prefix.ID(s.slot) && (e.Kind == event.Cleared || e.Kind == event.Doubted || e.Kind == event.Settled):
			s.suspects = nil
		}
		switch {
		case e.Kind == event.Cleared && e.Restart:
			_ = s.k.index.Restart(id)
			continue
		case e.Kind == event.Doubted:
			_ = s.k.index.Doubt(id)
			continue
		case e.Kind == event.Settled:
			for more := true; more; {
				more, _ = s.k.index.Settle(id)
			}
			continue
		}
		s.out.Events = s.out.Events[:0]
		s.translate(e)
		if len(s.out.Events) == 0 {
			continue
		}
		if done, err := s.k.index.Apply(id, &s.out); err == nil {
			s.refused += uint64(done.Refused)
		}
		if e.Kind == event.Removed || e.Kind == event.Moved {
			s.explain()
		}
	}
}

// translate writes an event in the index's form.
func (s *source) translate(e *event.Event) {
	switch e.Kind {
	case event.Cleared:
		s.out.Events = append(s.out.Events, prefix.Event{Kind: prefix.Cleared})
	case event.Removed:
		s.byName(e, prefix.Event{Kind: prefix.Removed, Tier: tierOf(e.Tier)})
		if e.AnyTier {
			for t := prefix.Device; t < prefix.Tiers; t++ {
				if t != tierOf(e.Tier) {
					s.byName(e, prefix.Event{Kind: prefix.Removed, Tier: t})
				}
			}
		}
	case event.Moved:
		if from, to := tierOf(e.From), tierOf(e.Tier); from != to {
			s.byName(e, prefix.Event{Kind: prefix.Moved, From: from, Tier: to})
		}
	case event.Stored:
		if e.ByName() {
			s.byName(e, prefix.Event{Kind: prefix.Placed, Tier: tierOf(e.Tier)})
		} else {
			s.store(e)
		}
	}
}

// byName adds an event that names blocks by the engine's hashes alone.
func (s *source) byName(e *event.Event, out prefix.Event) {
	s.hashes = s.hashes[:0]
	for _, h := range e.Hashes {
		s.hashes = append(s.hashes, prefix.ExternalUint(uint64(h)))
	}
	out.Hashes = s.hashes
	s.out.Events = append(s.out.Events, out)
}

func (s *source) store(e *event.Event) {
	s.locals = s.locals[:0]
	switch {
	case len(e.Local) == len(e.Hashes):
		for _, l := range e.Local {
			s.locals = append(s.locals, prefix.Local(l))
		}
	case len(e.Tokens) > 0:
		if e.LoRA != s.lora || e.Salt != s.salt {
			s.lora, s.salt = e.LoRA, e.Salt
			s.hasher = s.hasher.WithSeed(prefix.Seed(e.LoRA, e.Salt))
		}
		h := s.hasher
		if e.Bigram {
			h = h.Bigram()
		}
		s.locals = h.Locals(s.locals, e.Tokens)
	}
	if len(s.locals) != len(e.Hashes) || len(s.locals) == 0 {
		return
	}
	for _, m := range e.Media { // equal placeholders of other media must not match
		if int(m.Block) >= 0 && int(m.Block) < len(s.locals) {
			s.locals[m.Block] = prefix.Local(prefix.Next(prefix.Chain(m.Hash), s.locals[m.Block]))
		}
	}
	s.blocks = s.blocks[:0]
	for i, h := range e.Hashes {
		s.blocks = append(s.blocks, prefix.Block{External: prefix.ExternalUint(uint64(h)), Local: s.locals[i]})
	}
	s.out.Events = append(s.out.Events, prefix.Event{
		Kind: prefix.Stored, Tier: tierOf(e.Tier), Parent: prefix.ExternalUint(uint64(e.Parent)), HasParent: e.HasParent, Blocks: s.blocks,
	})
}

func tierOf(t event.Tier) prefix.Tier {
	switch t {
	case event.Device:
		return prefix.Device
	case event.Host:
		return prefix.Host
	}
	return prefix.Disk
}

// computed notes that a rank was made to compute so many full new blocks, of
// which its events should speak.
func (r *Router) computed(now time.Time, t model.Target, blocks int) {
	if blocks <= 0 {
		return
	}
	if s := r.know.seats.Load().of(t); s != nil {
		s.from.CompareAndSwap(0, now.UnixNano())
		s.owed.Add(int64(blocks))
	}
}
