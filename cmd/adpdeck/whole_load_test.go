package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"adpdeck/router/engine/enginetest"
	"adpdeck/router/engine/enginetest/zmq"
	"adpdeck/router/model"
	"adpdeck/router/prefix"
	"adpdeck/router/prefix/event"
)

// quantiles says p50, p99 and the most of times.
func quantiles(all []time.Duration) string {
	if len(all) == 0 {
		return "nothing was measured"
	}
	slices.Sort(all)
	at := func(p int) time.Duration { return all[(len(all)-1)*p/1000] }
	return fmt.Sprintf("p50 %v, p99 %v, p99.9 %v, most %v of %d", at(500), at(990), at(999), all[len(all)-1], len(all))
}

// paced calls f rate times a second for a while, spread over a few goroutines: f
// gets the number of its caller and of the call.
func paced(callers, rate int, d time.Duration, f func(caller, i int)) {
	var wg sync.WaitGroup
	began := time.Now()
	total := int(float64(rate) * d.Seconds())
	for c := range callers {
		wg.Go(func() {
			for i := c; i < total; i += callers {
				due := began.Add(time.Duration(float64(i) / float64(rate) * float64(time.Second)))
				if wait := time.Until(due); wait > 0 {
					time.Sleep(wait)
				}
				f(c, i)
			}
		})
	}
	wg.Wait()
}

// chains are prompts of some blocks each, all different.
func chain(seed uint64, blocks int) []uint32 {
	r := rand.New(rand.NewPCG(seed, 1))
	p := make([]uint32, blocks*16)
	for i := range p {
		p[i] = r.Uint32N(100_000)
	}
	return p
}

// stored is the event of a rank that has computed a chain.
func stored(seed uint64, tokens []uint32) event.Event {
	e := event.Event{Kind: event.Stored, Tokens: tokens, BlockTokens: 16}
	for b := range len(tokens) / 16 {
		e.Hashes = append(e.Hashes, event.Hash(seed<<16+uint64(b)+1))
	}
	return e
}

// TestDecisions is safety 3.5, 15: 64 targets, a full index, and decisions made at
// a pace while engines are asked for their loads. Long: 5,000 a second for a
// minute over a million blocks.
func TestDecisions(t *testing.T) {
	rate, d, chains := 2000, time.Second, 16
	if long() {
		rate, d, chains = 5000, time.Minute, 244
	}
	const workers, ranks, blocks = 8, 8, 64
	cfgs := make([]enginetest.Config, workers)
	for i := range cfgs {
		cfgs[i].Ranks = ranks
	}
	w := stand(t, nil, cfgs...)
	r := w.h.live
	enc := event.Encoder{Form: event.MapForm}
	seed := uint64(0)
	for k := range workers * ranks {
		var list []event.Event
		for range chains {
			seed++
			list = append(list, stored(seed, chain(seed, blocks)))
		}
		r.EventsOn(fmt.Sprint("w", k/ranks), k%ranks, 1<<60, 0, enc.AppendBatch(nil, 1, k%ranks, list))
	}
	want := workers * ranks * chains * blocks
	w.until("the index is full", func(s *model.State) bool { return s.IndexTotals != nil && s.IndexTotals.Blocks == want })
	totals := w.h.live.Snapshot().IndexTotals
	t.Logf("%d blocks, %d bytes for each owner of a block", totals.Blocks, totals.Bytes/int64(totals.Owned))

	hasher, err := prefix.NewHasher(16, prefix.Seed("", ""))
	if err != nil {
		t.Fatal(err)
	}
	const callers, open = 4, 32
	took := make([][]time.Duration, callers)
	held := make([][]int64, callers)
	errs := make([]error, callers)
	matched := make([]int, callers)
	paced(callers, rate, d, func(c, i int) {
		rng := rand.New(rand.NewPCG(7, uint64(i)))
		p := append(chain(1+rng.Uint64N(seed), blocks), chain(1<<40+uint64(i), 4)...)
		req := &model.Request{ID: 1<<50 + int64(i), PromptTokens: len(p), BlockTokens: 16, Conv: model.ConvKey{ID: fmt.Sprint("c", i%20000)}}
		for _, l := range hasher.Locals(nil, p) {
			req.Locals = append(req.Locals, uint64(l))
		}
		began := time.Now()
		dec, err := r.RouteWait(context.Background(), req, nil)
		took[c] = append(took[c], time.Since(began))
		if err != nil {
			errs[c] = err
			return
		}
		if dec.Placement.MatchTokens > 0 {
			matched[c]++
		}
		r.FirstToken(req.ID, model.Usage{Ran: dec.Target, CachedUnknown: true})
		held[c] = append(held[c], req.ID)
		if len(held[c]) > open {
			r.Done(held[c][0], model.OutcomeOK)
			held[c] = held[c][1:]
		}
	})
	var all []time.Duration
	found := 0
	for c := range callers {
		if errs[c] != nil {
			t.Error(errs[c])
		}
		for _, id := range held[c] {
			r.Done(id, model.OutcomeOK)
		}
		all = append(all, took[c]...)
		found += matched[c]
	}
	t.Logf("a decision at %d a second: %s; %d found a prefix (bars: p50 200 µs, p99 2 ms)", rate, quantiles(all), found)
	if s := r.Snapshot(); s.Totals.Decisions != uint64(len(all)) || s.Totals.Refused.Sum() != 0 || found == 0 {
		t.Errorf("%d decisions of %d, %+v", s.Totals.Decisions, len(all), s.Totals.Refused)
	}
	w.closed()
}

// TestEventStorm is safety 3.5, 16: KV events over real sockets at a pace, none
// lost, and what a link swallows is asked for again. Long: 50,000 events a second
// for a minute.
func TestEventStorm(t *testing.T) {
	rate, d := 20_000, time.Second
	if long() {
		rate, d = 50_000, time.Minute
	}
	const ranks, each = 8, 10 // events to a batch
	e := fake(t, enginetest.Config{Ranks: ranks, Events: enginetest.EventsConfig{Endpoint: anyPort}})
	var pubs []*zmq.Publisher
	for range ranks {
		p, err := zmq.Listen(zmq.Options{Endpoint: anyPort, Replay: anyPort, TopicInReplay: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		pubs = append(pubs, p)
	}
	first := linkTo(t, pubs[0].Endpoint())
	w := before(t, func(p *plan) {
		s := &p.serve.Workers[0]
		s.Events.RankEndpoints, s.Events.RankReplays = []string{"tcp://" + first.Addr()}, nil
		for i, pub := range pubs {
			if i > 0 {
				s.Events.RankEndpoints = append(s.Events.RankEndpoints, pub.Endpoint())
			}
			s.Events.RankReplays = append(s.Events.RankReplays, pub.ReplayEndpoint())
		}
	}, e)
	w.ready()
	heard := func() bool {
		return !slices.ContainsFunc(pubs, func(p *zmq.Publisher) bool { return p.Subscribers() == 0 })
	}
	w.until("all are heard", func(*model.State) bool { return heard() })

	enc := event.Encoder{Form: event.MapForm}
	const callers = 4
	seqs := make([]uint64, ranks)
	lag := newProbe(w, pubs, &enc)
	publish := func(c, i int) {
		rank := i % ranks // each rank is one caller's
		var list []event.Event
		for k := range each {
			seed := uint64(i*each+k) % 200_000 // blocks come again and go: a cache is bounded
			ev := stored(seed, []uint32{uint32(seed), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
			if (i*each+k)/200_000%2 == 1 {
				ev = event.Event{Kind: event.Removed, Hashes: ev.Hashes}
			}
			list = append(list, ev)
		}
		seqs[rank] = pubs[rank].Publish(enc.AppendBatch(nil, 1, rank, list))
		if i%200 == 0 && rank == 0 {
			lag.ask(ranks - 1 - c%2)
		}
	}
	paced(callers, rate/each, d, publish)
	caughtUp := func(s *model.State) bool {
		for rank, pub := range pubs {
			if row := indexOf(s, "w0", rank); row.Seq+1 != pub.Figures().Published || row.Feed != model.FeedLive {
				return false
			}
		}
		return true
	}
	took := w.until("every batch has arrived", caughtUp)
	t.Logf("events at %d a second, told late by: %s; all there %v after the last (bar: p99 100 ms)", rate, quantiles(lag.all()), took)
	s := w.h.live.Snapshot()
	for rank, pub := range pubs {
		if row := indexOf(s, "w0", rank); row.Gaps != 0 || row.Refused != 0 || pub.Figures().BeyondHWM != 0 {
			t.Errorf("%+v", row)
		}
	}

	first.HalfOpen(true) // what is sent to rank 0's subscriber is gone
	paced(callers, 200, 500*time.Millisecond, publish)
	if row := indexOf(w.h.live.Snapshot(), "w0", 0); row.Seq+1 >= pubs[0].Figures().Published {
		t.Error("nothing was swallowed")
	}
	first.HalfOpen(false)
	first.Cut()
	next := time.Now()
	took = w.until("what was swallowed is there", func(s *model.State) bool {
		if pubs[0].Subscribers() > 0 && time.Now().After(next) {
			publish(0, 8) // the next batch shows what was lost before it
			next = time.Now().Add(200 * time.Millisecond)
		}
		return indexOf(s, "w0", 0).Seq >= seqs[0]
	})
	t.Logf("a gap was closed within %v", took)
	w.closed()
}

// probe measures how late events are known: blocks that nobody else has are
// published, and looked for.
type probe struct {
	w    *whole
	pubs []*zmq.Publisher
	enc  *event.Encoder
	h    prefix.Hasher
	wg   sync.WaitGroup

	mu    sync.Mutex // guards what follows
	times []time.Duration
	n     uint64
}

func newProbe(w *whole, pubs []*zmq.Publisher, enc *event.Encoder) *probe {
	h, err := prefix.NewHasher(16, prefix.Seed("", ""))
	if err != nil {
		w.t.Fatal(err)
	}
	return &probe{w: w, pubs: pubs, enc: enc, h: h}
}

// ask publishes a block of a rank and has it looked for.
func (p *probe) ask(rank int) {
	p.mu.Lock()
	p.n++
	seed := 1<<40 + p.n
	p.mu.Unlock()
	tokens := chain(seed, 1)
	batch := p.enc.AppendBatch(nil, 1, rank, []event.Event{stored(seed, tokens)})
	locals := []uint64{uint64(p.h.Locals(nil, tokens)[0])}
	began := time.Now()
	p.pubs[rank].Publish(batch)
	p.wg.Go(func() {
		for time.Since(began) < 20*time.Second {
			for _, m := range p.w.h.live.Matches(&model.Request{Locals: locals, BlockTokens: 16, PromptTokens: 16}) {
				if m.Target.Rank == rank && m.Device > 0 {
					took := time.Since(began)
					p.mu.Lock()
					defer p.mu.Unlock()
					p.times = append(p.times, took)
					return
				}
			}
			time.Sleep(time.Millisecond)
		}
		p.w.t.Error("an event was never known")
	})
}

// all waits for the answers.
func (p *probe) all() []time.Duration {
	p.wg.Wait()
	return p.times
}
