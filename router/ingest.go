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
	slot int32
	base int32 // slot of the worker's rank 0
	k    *knowledge
	owed atomic.Int64 // new blocks its rank was made to compute, not told to the feed yet
	from atomic.Int64 // when the first of them was, on the clock, in nanoseconds
	came atomic.Uint64
	// disproved says that a request found less than the rank was known to hold.
	disproved atomic.Bool
	resync    atomic.Bool // an operator wants its cache learned afresh

	mu      sync.Mutex // guards what follows; never taken under the router's lock
	feed    *event.Feed
	now     time.Time
	out     prefix.Batch
	blocks  []prefix.Block
	hashes  []prefix.External
	locals  []prefix.Local
	hasher  prefix.Hasher
	lora    string
	salt    string
	refused uint64 // events that the index called contradictory
}

func (k *knowledge) newSources(specs []*worker) ([][]*source, error) {
	if k.index == nil {
		return make([][]*source, len(specs)), nil
	}
	all := make([][]*source, len(specs))
	slot := int32(0)
	for i, w := range specs {
		base := slot
		for rank := range w.ranks {
			s := &source{slot: slot, base: base, k: k}
			slot++
			var err error
			if s.hasher, err = prefix.NewHasher(k.block, prefix.Seed("", "")); err != nil {
				return nil, fmt.Errorf("router: %w", err)
			}
			s.feed, err = event.NewFeed(event.Config{
				Rank: rank, StartRank: w.spec.StartRank, Ranks: len(w.ranks), BlockTokens: k.block,
			}, s.apply)
			if err != nil {
				return nil, fmt.Errorf("router: %w", err)
			}
			all[i] = append(all[i], s)
		}
	}
	return all, nil
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
	at, ok := r.byID[worker]
	if !ok || rank < 0 || rank >= len(r.sources[at]) {
		return
	}
	now := r.clock.Now()
	s := r.sources[at][rank]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(now)
	s.feed.Live(s.now, conn, seq, payload)
	s.noteDoubt()
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
	if s.disproved.Load() && s.disproved.Swap(false) {
		s.feed.Disproved()
	}
}

// apply is the sink of the feed.
func (s *source) apply(b *event.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		slot := s.base + e.Rank
		if e.Rank < 0 || int(slot) >= len(s.k.targets) {
			continue
		}
		s.came.Add(1)
		id := prefix.ID(slot)
		switch { // the target is there for the router's life: no errors
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
	at, ok := r.byID[t.Worker]
	if ok && blocks > 0 && t.Rank >= 0 && t.Rank < len(r.sources[at]) {
		s := r.sources[at][t.Rank]
		s.from.CompareAndSwap(0, now.UnixNano())
		s.owed.Add(int64(blocks))
	}
}
