package router

import (
	"math/rand/v2"
	"testing"
	"time"

	"adpdeck/router/model"
)

// parcel is a batch on its way.
type parcel struct {
	to      model.Target
	seq     uint64
	payload []byte
}

// badWire loses, delays and repeats batches, but no restarted rank's first.
type badWire struct {
	b    *bench
	rng  *rand.Rand
	late []parcel
	old  []parcel
	lost int
	top  map[model.Target]uint64 // the highest number that came
}

func (w *badWire) carry(t model.Target, seq uint64, payload []byte) {
	p := parcel{t, seq, payload}
	switch k := w.rng.IntN(40); {
	case k == 0 && seq > 0:
		w.lost++
	case k == 1 && seq > 0:
		w.late = append(w.late, p)
	case k == 2 && len(w.old) > 0:
		w.give(w.old[w.rng.IntN(len(w.old))])
		fallthrough
	default:
		w.give(p)
	}
	if len(w.late) > 0 && w.rng.IntN(3) == 0 {
		w.give(w.late[0])
		w.late = w.late[1:]
	}
}

func (w *badWire) give(p parcel) {
	w.b.Events(p.to.Worker, p.to.Rank, p.seq, p.payload)
	w.top[p.to] = max(w.top[p.to], p.seq)
	if w.old = append(w.old, p); len(w.old) > 12 {
		w.old = w.old[1:]
	}
}

// forget drops what is on its way from a rank whose process has ended.
func (w *badWire) forget(t model.Target) {
	keep := func(list []parcel) (out []parcel) {
		for _, p := range list {
			if p.to != t {
				out = append(out, p)
			}
		}
		return out
	}
	w.late, w.old = keep(w.late), keep(w.old)
	delete(w.top, t)
}

// TestBadWireNeverOvercounts: batches are lost, late and repeated, and ranks
// restart. Whenever a rank's feed is live and its newest batch has come, the router
// believes it to hold no more of any prompt than it does.
func TestBadWireNeverOvercounts(t *testing.T) {
	for seed := range uint64(8) {
		b := newBench(t, 2, 3, model.PolicyKVAware, withBlocks, inMode(model.ModeKV, fieldValue(noAffinity, "none")))
		e := newEngine(b, 60)
		rng := rand.New(rand.NewPCG(seed, 7))
		w := &badWire{b: b, rng: rng, top: map[model.Target]uint64{}}
		e.wire = w.carry
		convs := stories(rng, 10)
		checked, held, live := 0, 0, 0
		for i := range 500 {
			s := convs[rng.IntN(len(convs))]
			text := s.grow(rng)
			e.turn(t, s.conv, text)
			if rng.IntN(60) == 0 {
				rank := b.targets()[rng.IntN(6)]
				w.forget(rank)
				e.restart(rank)
				e.serve(rank, prompt(uint32(5000+i), 2, 3)) // the new process speaks
			}
			b.clock.advance(300 * time.Millisecond) // as long as a late batch is waited for
			q := model.Request{ID: 1 << 40}
			of(text)(&q)
			rows := b.Snapshot().Index
			l, err := b.know.look(&q, b.elapsed())
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				if row.Feed != model.FeedLive || w.top[row.Target]+1 < e.ranks[row.Target].seq {
					continue // in doubt, or nobody can know yet that something is missing
				}
				live++
				said, real := l.held(b.slot(row.Target), blockTokens), e.holds(row.Target, text)
				if said > real {
					t.Fatalf("seed %d, turn %d: %s holds %d tokens, the index says %d", seed, i, row.Target, real, said)
				}
				checked, held = checked+real, held+said
			}
			b.know.drop(l)
		}
		if w.lost == 0 || held*10 < checked || live < 2000 {
			t.Errorf("seed %d: %d lost, %d of %d tokens known, %d live", seed, w.lost, held, checked, live)
		}
	}
}
