package event

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"
)

// cache is the obvious index: the blocks of each rank.
type cache struct {
	held           map[int32]map[Hash]bool
	unsure         map[Hash]bool // of all ranks; tests with losses have one
	wipes, settled int
}

func (c *cache) apply(b *Batch) {
	if c.held == nil {
		c.held = map[int32]map[Hash]bool{}
	}
	for _, e := range b.Events {
		if c.held[e.Rank] == nil {
			c.held[e.Rank] = map[Hash]bool{}
		}
		switch e.Kind {
		case Stored:
			for _, h := range e.Hashes {
				c.held[e.Rank][h] = true
				delete(c.unsure, h)
			}
		case Removed:
			for _, h := range e.Hashes {
				delete(c.held[e.Rank], h)
			}
		case Cleared:
			if e.Synthetic {
				c.wipes++
			}
			clear(c.held[e.Rank])
			c.unsure = nil
		case Doubted:
			c.unsure = maps.Clone(c.held[e.Rank])
		case Settled:
			c.settled++
			for h := range c.unsure {
				delete(c.held[e.Rank], h)
			}
			c.unsure = nil
		}
	}
}

// engine publishes one rank's batches, keeps the newest for replay, and knows
// what it really holds.
type engine struct {
	rng     *rand.Rand
	truth   map[Hash]bool
	history [][]byte // by number
	keep    int      // batches that a replay can give, 0 = all
	conn    uint64
	clock   float64
	steady  bool // never empties its cache
}

func newEngine(seed uint64) *engine {
	return &engine{rng: rand.New(rand.NewPCG(seed, 7)), truth: map[Hash]bool{}, conn: 1}
}

func (g *engine) publish() (seq uint64, payload []byte) {
	g.clock++
	var es []Event
	for range 1 + g.rng.IntN(3) {
		h := Hash(g.rng.Uint64() % 500)
		switch n := g.rng.IntN(40); {
		case n == 0 && !g.steady:
			es = append(es, Event{Kind: Cleared})
			clear(g.truth)
		case n < 15 && g.truth[h]:
			es = append(es, Event{Kind: Removed, Group: NoGroup, Hashes: []Hash{h}})
			delete(g.truth, h)
		default:
			es = append(es, Event{Kind: Stored, Group: NoGroup, Hashes: []Hash{h}, Tokens: []uint32{1, 2, 3, 4}, BlockTokens: 4})
			g.truth[h] = true
		}
	}
	c := Encoder{Form: Form(g.rng.IntN(2))}
	payload = c.AppendBatch(nil, g.clock, 0, es)
	g.history = append(g.history, payload)
	return uint64(len(g.history) - 1), payload
}

func (g *engine) restart() {
	clear(g.truth)
	g.history = nil
	g.conn++
}

func (g *engine) replayFrom(from uint64) uint64 {
	if n := uint64(len(g.history)); g.keep > 0 && n > uint64(g.keep) {
		return max(from, n-uint64(g.keep))
	}
	return from
}

type rig struct {
	t   *testing.T
	g   *engine
	f   *Feed
	c   cache
	now time.Time
	// a replay under way
	at     uint64
	served bool
}

func newRig(t *testing.T, seed uint64, cfg Config) *rig {
	r := &rig{t: t, g: newEngine(seed), now: time.Unix(1000, 0)}
	cfg.BlockTokens = 4
	f, err := NewFeed(cfg, func(b *Batch) { r.c.apply(b) })
	if err != nil {
		t.Fatal(err)
	}
	r.f = f
	return r
}

func (r *rig) live(seq uint64, p []byte) {
	r.now = r.now.Add(10 * time.Millisecond)
	r.f.Live(r.now, r.g.conn, seq, p)
}

// step lets the replay bring up to n batches.
func (r *rig) step(n int) {
	r.now = r.now.Add(10 * time.Millisecond)
	if from, ok := r.f.Want(r.now); ok {
		r.at, r.served = r.g.replayFrom(from), true
	}
	for ; r.served && n > 0; n-- {
		if r.at >= uint64(len(r.g.history)) {
			r.served = false
			r.f.ReplayEnded(r.now)
			break
		}
		r.f.Replayed(r.now, r.at, r.g.history[r.at])
		r.at++
	}
	r.f.Tick(r.now)
}

func (r *rig) settle() {
	r.t.Helper()
	for i := 0; r.f.InDoubt(); i++ {
		if i > 5000 {
			r.t.Fatalf("still in doubt: %+v", r.f.Stats())
		}
		r.step(100)
	}
}

func (r *rig) equal() {
	r.t.Helper()
	if got := r.c.held[0]; !maps.Equal(got, r.g.truth) {
		r.t.Fatalf("index holds %d blocks, engine %d; %+v next %d highest %d joined %+v lost %+v began %v hist %d", len(got), len(r.g.truth), r.f.Stats(), r.f.next, r.f.highest, r.f.joined, r.f.lost, r.f.began, len(r.g.history))
	}
}

// Loss, duplicates, reordering, reconnects and restarts, seen and unseen: when
// the doubt is over, the index is the engine's truth.
func TestAnyNetworkEndsInTruth(t *testing.T) {
	for seed := range uint64(300) {
		r := newRig(t, seed, Config{Replay: true, MaxHeldBatches: 3 + int(seed%40)})
		rng := rand.New(rand.NewPCG(seed, 99))
		rate := 1 + rng.IntN(20) // percent
		hit := func() bool { return rng.IntN(100) < rate }
		var late []byte
		var lateSeq uint64
		for range 400 {
			seq, p := r.g.publish()
			switch {
			case hit(): // lost
			case late == nil && hit():
				late, lateSeq = p, seq
			default:
				r.live(seq, p)
				if hit() {
					r.live(seq, p)
				}
				if hit() && seq > 3 { // an old one again
					old := seq - rng.Uint64N(3)
					r.live(old, r.g.history[old])
				}
			}
			if late != nil && hit() {
				r.live(lateSeq, late)
				late = nil
			}
			switch n := rng.IntN(300); {
			case n == 0:
				r.g.restart()
				late, r.served = nil, false
				r.f.ReplayEnded(r.now)
				for range rng.IntN(60) { // unseen
					r.g.publish()
				}
			case n < 4:
				r.g.conn++
			}
			if rng.IntN(2) == 0 {
				r.step(rng.IntN(6))
			}
		}
		r.g.conn += rng.Uint64N(2)
		seq, p := r.g.publish()
		r.live(seq, p)
		r.settle()
		r.equal()
		if n, _ := r.f.Held(); n != 0 {
			t.Fatalf("seed %d: %d batches still held", seed, n)
		}
	}
}

// Without replay the index may know less than the engine holds, never more,
// and a restart leaves nothing of before.
func TestWithoutReplayNothingIsInvented(t *testing.T) {
	for seed := range uint64(300) {
		r := newRig(t, seed, Config{DoubtFor: time.Duration(1+seed%5) * time.Second})
		rng := rand.New(rand.NewPCG(seed, 5))
		checked := 0
		for range 600 {
			seq, p := r.g.publish()
			lost := rng.IntN(10) == 0
			if !lost {
				r.live(seq, p)
			}
			if rng.IntN(100) == 0 {
				r.g.restart()
				seq, p = r.g.publish()
				r.live(seq, p)
				lost = false
			}
			if rng.IntN(4) == 0 {
				r.now = r.now.Add(time.Second)
				r.f.Tick(r.now)
			}
			if rng.IntN(100) == 0 {
				r.f.Disproved()
			}
			if until, ok := r.f.DoubtUntil(); ok && until.Before(r.now.Add(-20*time.Millisecond)) {
				t.Fatalf("seed %d: in doubt for %s too long", seed, r.now.Sub(until))
			}
			if lost || r.f.InDoubt() {
				continue
			}
			if last, ok := r.f.Sequence(); ok && last != uint64(len(r.g.history)-1) {
				continue // the loss has not shown yet
			}
			checked++
			for h := range r.c.held[0] {
				if !r.g.truth[h] {
					t.Fatalf("seed %d: block %d is not there; %+v", seed, h, r.f.Stats())
				}
			}
		}
		if checked < 20 || r.c.settled == 0 {
			t.Fatalf("seed %d: checked %d times, %d doubts ended", seed, checked, r.c.settled)
		}
	}
}

// Report A2, over both framings: 4, 5, 6 are applied once, and 7 not twice.
func TestGapIsFilledInEitherFraming(t *testing.T) {
	for seed := range uint64(100) {
		r := newRig(t, seed, Config{Replay: true})
		rng := rand.New(rand.NewPCG(seed, 3))
		from, missing := 1+rng.IntN(20), 1+rng.IntN(30)
		for range from {
			seq, p := r.g.publish()
			r.live(seq, p)
		}
		for range missing {
			r.g.publish()
		}
		seq, p := r.g.publish()
		r.live(seq, p)
		if r.f.State(r.now) != Gap || !r.f.InDoubt() || r.c.wipes != 0 {
			t.Fatal("no doubt in a gap, or something wiped")
		}
		want, ok := r.f.Want(r.now)
		if !ok || want != uint64(from) {
			t.Fatalf("wants %d (%v), missing from %d", want, ok, from)
		}
		if _, twice := r.f.Want(r.now); twice {
			t.Fatal("asks twice")
		}
		for n := want; ; n++ {
			if n == uint64(len(r.g.history)) {
				r.f.ReplayEnded(r.now)
				break
			}
			r.f.Replayed(r.now, n, r.g.history[n])
		}
		r.equal()
		s := r.f.Stats()
		if r.f.InDoubt() || s.Replayed != uint64(missing) || s.Duplicates != 1 || s.Lost != 0 || r.c.wipes != 0 {
			t.Fatalf("%d missing: %+v, %d wipes", missing, s, r.c.wipes)
		}
	}
}

// Report A13.
func TestRestartDuplicateAndReorder(t *testing.T) {
	feed := func(r *rig, n int) {
		for range n {
			seq, p := r.g.publish()
			r.live(seq, p)
		}
	}
	cases := map[string]struct {
		play                   func(r *rig)
		restarts, wipes, dupes int
	}{
		"restart on a new connection": {func(r *rig) { r.g.restart(); feed(r, 1) }, 1, 1, 0},
		"restart behind a proxy": {func(r *rig) {
			r.g.restart()
			r.g.conn--
			feed(r, 1)
		}, 1, 1, 0},
		"late duplicate":         {func(r *rig) { r.live(3, r.g.history[3]) }, 0, 0, 1},
		"late duplicate of 0":    {func(r *rig) { r.live(0, r.g.history[0]) }, 0, 0, 1},
		"duplicate, reconnected": {func(r *rig) { r.g.conn++; r.live(0, r.g.history[0]); r.live(400, r.g.history[400]) }, 0, 0, 2},
		"reordered pair":         {func(r *rig) { a, p := r.g.publish(); b, q := r.g.publish(); r.live(b, q); r.live(a, p) }, 0, 0, 0},
		"restart, first ones lost": {func(r *rig) {
			r.g.restart()
			r.g.publish()
			r.g.publish()
			feed(r, 1)
			clear(r.g.truth)
			maps.Copy(r.g.truth, r.c.held[0]) // what was lost stays unknown
		}, 1, 1, 0},
		"restart, far behind what is remembered": {func(r *rig) {
			feed(r, 2000)
			r.g.restart()
			feed(r, 1)
		}, 1, 1, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, Config{})
			other := newRig(t, 2, Config{})
			feed(r, 501)
			feed(other, 10)
			c.play(r)
			r.now = r.now.Add(time.Second)
			r.f.Tick(r.now)
			r.equal()
			other.equal()
			s := r.f.Stats()
			if int(s.Restarts) != c.restarts || r.c.wipes != c.wipes || int(s.Duplicates) != c.dupes || s.Lost != 0 {
				t.Errorf("%+v, %d wipes", s, r.c.wipes)
			}
			if other.c.wipes != 0 {
				t.Error("another target was wiped")
			}
		})
	}
}

// A restart that hid in a disconnection: the first batch heard continues the
// old numbers by chance.
func TestRestartUnseenIsFoundByReplay(t *testing.T) {
	for _, ahead := range []int{0, 1, 40} {
		r := newRig(t, 4, Config{Replay: true})
		for range 100 {
			seq, p := r.g.publish()
			r.live(seq, p)
		}
		r.g.restart()
		for range 100 + ahead {
			r.g.publish()
		}
		for range 5 {
			seq, p := r.g.publish()
			r.live(seq, p)
		}
		r.settle()
		r.equal()
		if s := r.f.Stats(); s.Restarts != 1 {
			t.Errorf("%+v", s)
		}
	}
}

// An answer that starts above what was asked: what is lost is lost; the rank is
// in doubt for a while, or until all is asked for afresh.
func TestReplayTooShort(t *testing.T) {
	for _, wait := range []bool{false, true} {
		r := newRig(t, 9, Config{Replay: true, DoubtFor: 5 * time.Second})
		r.g.keep, r.g.steady = 20, true
		for i := range 200 {
			seq, p := r.g.publish()
			if i < 50 || i > 150 {
				r.live(seq, p)
			}
		}
		for range 50 {
			r.step(7)
		}
		s := r.f.Stats()
		if s.Lost != 130 || !r.f.InDoubt() || r.f.State(r.now) != Doubt || r.c.wipes != 0 || len(r.c.unsure) == 0 {
			t.Errorf("%+v, doubt %v, wipes %d", s, r.f.InDoubt(), r.c.wipes)
		}
		if last, _ := r.f.Sequence(); last != 199 {
			t.Errorf("went on to %d", last)
		}
		if wait {
			r.now = r.now.Add(5 * time.Second)
			r.f.Tick(r.now)
			if r.f.InDoubt() || r.c.settled != 1 || r.c.wipes != 0 || r.f.State(r.now) != Live {
				t.Errorf("after the doubt: %s, %+v", r.f.State(r.now), r.c)
			}
		}
		r.g.keep = 0
		r.f.Resync(r.now)
		wipes := r.c.wipes
		r.step(0)
		if !r.f.InDoubt() || r.c.wipes != wipes {
			t.Error("a resync must not wipe before it has something")
		}
		r.settle()
		r.equal()
	}
}

// A doubt ends when a request disproves what is known, and a new loss does not
// put its end off.
func TestDoubtEnds(t *testing.T) {
	lossy := func(p *patient) {
		p.seq++
		p.send(0, sixteen())
		p.wait(time.Second)
		p.f.Tick(p.now)
	}
	p := newPatient(t, Config{})
	p.f.Disproved() // of no account without a loss
	p.send(0, sixteen())
	lossy(p)
	until, ok := p.f.DoubtUntil()
	if !ok || until.Sub(p.now) != 2*time.Minute {
		t.Fatalf("until %s, now %s, %v", until, p.now, ok)
	}
	p.wait(time.Minute)
	lossy(p)
	if again, ok := p.f.DoubtUntil(); !ok || !again.Equal(until) {
		t.Errorf("a second loss puts the end off to %s", again)
	}
	p.f.Disproved()
	if p.f.InDoubt() || p.f.State(p.now) != Live {
		t.Error("disproved and still in doubt")
	}
	lossy(p)
	p.send(0, Event{Kind: Cleared})
	if p.f.InDoubt() {
		t.Error("an emptied cache leaves no doubt")
	}
}

func TestHeldIsBoundedAndFruitlessReplayEnds(t *testing.T) {
	r := newRig(t, 3, Config{Replay: true, MaxHeldBatches: 64, MaxHeldBytes: 2000, ReplayTries: 3, ReplayTimeout: 5 * time.Second})
	seq, p := r.g.publish()
	r.live(seq, p)
	r.g.publish()
	for range 500 {
		seq, p = r.g.publish()
		r.live(seq, p)
		if n, size := r.f.Held(); n > 64 || size > 2000 {
			t.Fatalf("holds %d batches, %d bytes", n, size)
		}
	}
	start := r.now
	for r.f.State(r.now) == Gap { // nobody answers
		r.f.Want(r.now)
		r.now = r.now.Add(100 * time.Millisecond)
		r.f.Tick(r.now)
		if r.now.Sub(start) > 5*time.Minute {
			t.Fatal("waits for ever")
		}
	}
	if s := r.f.Stats(); s.Lost == 0 || s.HeldOver == 0 || r.c.wipes != 0 || r.f.State(r.now) != Doubt {
		t.Errorf("%+v", s)
	}
}
