package cluster

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func testLoad(slots int) *Load {
	l := NewLoad(16, 1)
	l.grow(slots, 1)
	return l
}

func book(t *testing.T, l *Load, b Booking) {
	t.Helper()
	if err := l.Book(0, &b); err != nil {
		t.Fatal(err)
	}
}

func TestSharedBlocksCountOnce(t *testing.T) {
	l := testLoad(2)
	a := chain(1, 10)
	fork := append(slices.Clone(a[:6]), chain(2, 4)...)
	book(t, l, Booking{ID: 1, Slot: 0, PromptTokens: 160, PrefillTokens: 160, Blocks: a})
	book(t, l, Booking{ID: 2, Slot: 0, PromptTokens: 160, PrefillTokens: 64, Blocks: fork})
	book(t, l, Booking{ID: 3, Slot: 1, PromptTokens: 160, PrefillTokens: 160, Blocks: a[:3]})
	if f := l.Figures(0, 0); f.ActiveBlocks != 14 || f.ActiveTokens != 224 || f.Requests != 2 {
		t.Errorf("slot 0: %+v, want 14 blocks, 224 tokens, 2 requests", f)
	}
	depth := make([]int32, 2)
	for name, c := range map[string]struct {
		chain []uint64
		want  [2]int32
	}{
		"the whole chain":     {a, [2]int32{10, 3}},
		"a part of it":        {a[:2], [2]int32{2, 2}},
		"the fork":            {fork[:8], [2]int32{8, 3}},
		"another prompt":      {chain(9, 5), [2]int32{0, 0}},
		"beyond what is held": {append(slices.Clone(a), chain(8, 2)...), [2]int32{10, 3}},
	} {
		clear(depth)
		if l.tree.depths(c.chain, depth); [2]int32(depth) != c.want {
			t.Errorf("%s: depths %v, want %v", name, depth, c.want)
		}
	}
	l.FirstToken(0, 1)
	l.FirstToken(0, 1)
	if f := l.Figures(0, 0); f.ActiveTokens != 64 {
		t.Errorf("after the first token: %d active tokens, want 64", f.ActiveTokens)
	}
	if !l.Free(0, 1) || l.Free(0, 1) || l.Counters().Strays != 1 {
		t.Error("a request is freed once, and the second time counts as a stray")
	}
	if f := l.Figures(0, 0); f.ActiveBlocks != 10 || f.Requests != 1 {
		t.Errorf("slot 0: %+v, want the fork's 10 blocks", f)
	}
	l.Free(0, 2)
	l.Free(0, 3)
	if l.tree.blocks != 0 || l.tree.byFirst.n != 0 || l.tree.bufs.held != 0 || len(l.tree.free) != len(l.tree.nodes)-1 {
		t.Errorf("%d blocks, %d nodes left", l.tree.blocks, l.tree.byFirst.n)
	}
}

func TestOutputBlocksAndTheirFraction(t *testing.T) {
	l := testLoad(1)
	a := chain(1, 4)
	book(t, l, Booking{ID: 1, PromptTokens: 64, Blocks: a, ExpectedOutput: 64})
	book(t, l, Booking{ID: 2, PromptTokens: 40, Blocks: a[:2]}) // 2.5 blocks
	for _, c := range []struct {
		id              int64
		generated, want int
	}{
		{1, 0, 4},
		{1, 1, 5},   // a fifth block: 2 shared + (2 own + 1 output)·63/64
		{1, 16, 5},  // no growth
		{1, 32, 4},  // 2 + (2 + 2)·0.5
		{1, 48, 3},  // 2 + (2 + 3)·0.25
		{1, 47, 3},  // fewer than before: nothing
		{2, 8, 3},   // 48 tokens are 3 blocks still
		{2, 9, 4},   // one more, whole: no expected output. 3.25 + 1
		{1, 640, 3}, // far beyond what was expected: 2 + 0 + 1
	} {
		l.Output(0, c.id, c.generated)
		if got := l.Figures(0, 0).ActiveBlocks; got != c.want {
			t.Errorf("request %d after %d tokens: %d blocks, want %d", c.id, c.generated, got, c.want)
		}
	}
	// Blocks that are shared again are whole again.
	book(t, l, Booking{ID: 3, PromptTokens: 64, Blocks: a})
	if got := l.Figures(0, 0).ActiveBlocks; got != 5 {
		t.Errorf("shared again: %d blocks, want 4 + 1", got)
	}
}

func TestPrefillDecay(t *testing.T) {
	l := testLoad(1)
	s := time.Second
	book(t, l, Booking{ID: 1, PrefillTokens: 1000, ExpectedPrefill: 10 * s})
	book(t, l, Booking{ID: 2, PrefillTokens: 500, ExpectedPrefill: 2 * s})
	active := func(at time.Duration) int { return l.Figures(0, at).ActiveTokens }
	for at, want := range map[time.Duration]int{0: 1500, 1 * s: 1400, 10 * s: 500, 12 * s: 300, 100 * s: 0} {
		if got := active(at); got != want {
			t.Errorf("all modelled, at %v: %d, want %d", at, got, want)
		}
	}
	book(t, l, Booking{ID: 3, PrefillTokens: 70}) // without a model: only the oldest decays
	for at, want := range map[time.Duration]int{0: 1570, 1 * s: 1470, 10 * s: 570, 100 * s: 570} {
		if got := active(at); got != want {
			t.Errorf("one without a model, at %v: %d, want %d", at, got, want)
		}
	}
	l.FirstToken(4*s, 1) // the second is the oldest from here
	if got := active(5 * s); got != 320 {
		t.Errorf("after the first token: %d, want 70 + half of 500", got)
	}
	l.Free(5*s, 2)
	if got := active(50 * s); got != 70 {
		t.Errorf("no model left: %d, want 70", got)
	}
}

func TestPendingIsAReportPlusWhatItCannotKnow(t *testing.T) {
	l := testLoad(1)
	add := func(at time.Duration, id int64, tokens int) {
		t.Helper()
		if err := l.Book(at, &Booking{ID: id, PromptTokens: tokens + 100, PrefillTokens: tokens}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, tokens int64) {
		t.Helper()
		if got := l.Pending(0); got != tokens {
			t.Errorf("%s: %d pending, want %d", what, got, tokens)
		}
	}
	add(1, 1, 1000)
	add(2, 2, 500)
	want("booked", 1500)
	l.ReportPending(0, 700, 2)
	want("reported", 700) // 500 of the second, 200 of the first
	add(3, 3, 300)
	want("booked after it", 1000)
	l.ReportPending(0, 600, 2)
	want("an older report again", 900) // the third is added still
	l.FirstToken(4, 1)
	want("first token of the first", 800)
	l.ReportPending(0, 2000, 3)
	// 500 and 300 are ours; the second's match may have missed 100; 1,100 are not ours.
	want("more than ours", 2000)
	l.FirstToken(5, 2)
	want("its first token takes all of its own", 1400)
	l.Progress(6, 3, 120)
	want("progress of one request", 1220)
	l.ReportPending(0, 0, 6)
	want("nothing left", 0)
	if f := l.Figures(0, 7); f.ActiveTokens != 300 {
		t.Errorf("Dynamo's A is %d, want 300: it does not see progress", f.ActiveTokens)
	}
}

func TestMoveKeepsTheBooks(t *testing.T) {
	l := testLoad(3)
	a := chain(1, 8)
	book(t, l, Booking{ID: 1, Slot: NoRankSlot(0), PromptTokens: 128, PrefillTokens: 128, Blocks: a})
	l.Move(1, 1, 2, 48)
	if f := l.Figures(2, 1); f.Requests != 1 || f.ActiveBlocks != 8 || f.ActiveTokens != 48 {
		t.Errorf("moved to: %+v", f)
	}
	if f := l.Figures(NoRankSlot(0), 1); f.Requests != 0 || f.ActiveBlocks != 0 || f.ActiveTokens != 0 {
		t.Errorf("moved from: %+v", f)
	}
	l.FirstToken(2, 1)
	l.Move(3, 1, 0, 48)
	if f := l.Figures(0, 3); f.ActiveTokens != 0 || f.ActiveBlocks != 8 {
		t.Errorf("moved after its first token: %+v", f)
	}
}

func TestPhantomLoad(t *testing.T) {
	l := testLoad(2)
	s := time.Second
	for i := range int64(6) {
		b := Booking{ID: i, Slot: int32(i % 2), PromptTokens: 160, PrefillTokens: 100, Blocks: chain(uint64(i), 10)}
		if err := l.Book(time.Duration(i)*s, &b); err != nil {
			t.Fatal(err)
		}
	}
	l.FirstToken(100*s, 0) // a sign of life
	got := l.Phantoms(103*s, 100*s, nil)
	if len(got) != 2 || got[0] != (Phantom{Slot: 1, Requests: 1, PendingTokens: 100, PromptTokens: 160, Oldest: s, OldestID: 1}) || got[1].Slot != 0 || got[1].OldestID != 2 {
		t.Errorf("phantoms %+v", got)
	}
	if n := l.ClearPhantoms(1, 110*s, 100*s); n != 3 {
		t.Errorf("cleared %d, want 3", n)
	}
	if f := l.Figures(1, 110*s); f.Requests != 0 || f.ActiveBlocks != 0 || f.PendingTokens != 0 {
		t.Errorf("cleared slot: %+v", f)
	}
	if l.Free(111*s, 1) {
		t.Error("a cleared booking was freed")
	}
	if n := l.Expire(150*s, 100*s); n != 2 {
		t.Errorf("expired %d, want 2 and 4", n)
	}
	if c := l.Counters(); c.Open != 1 || c.Cleared != 3 || c.Expired != 2 || c.Strays != 1 {
		t.Errorf("counters %+v", c)
	}
}

func TestLoadIsBounded(t *testing.T) {
	l := testLoad(1)
	l.tree.limit = 64
	book(t, l, Booking{ID: 1, PromptTokens: 16 * 60, Blocks: chain(1, 60)})
	book(t, l, Booking{ID: 2, PromptTokens: 16 * 60, Blocks: chain(2, 60)})
	if c := l.Counters(); c.Untracked != 1 || c.Tracked != 60 {
		t.Errorf("counters %+v", c)
	}
	if f := l.Figures(0, 0); f.ActiveBlocks != 120 {
		t.Errorf("%d blocks, want 120: what is not tracked counts as unshared", f.ActiveBlocks)
	}
	l.Free(0, 2)
	l.Free(0, 1)
	if f := l.Figures(0, 0); f.ActiveBlocks != 0 {
		t.Errorf("%d blocks left", f.ActiveBlocks)
	}
	if err := l.Book(0, &Booking{ID: 3}); err != nil {
		t.Fatal(err)
	}
	if err := l.Book(0, &Booking{ID: 3}); !errors.Is(err, ErrDuplicate) {
		t.Errorf("duplicate: %v", err)
	}
	l.counters.Open = MaxBookings
	if err := l.Book(0, &Booking{ID: 4}); !errors.Is(err, ErrBooked) {
		t.Errorf("full: %v", err)
	}
}

// slow is the obvious model: each booking keeps its blocks, all is recounted.
type slow struct {
	chain    []uint64
	slot     int32
	prefill  int64
	done     bool
	unshared int
}

func TestLoadEqualsTheObviousModel(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 7))
		const slots = 4
		l := testLoad(slots)
		open := map[int64]*slow{}
		base := [][]uint64{chain(1, 40), chain(2, 40), append(slices.Clone(chain(1, 12)), chain(3, 30)...), append(slices.Clone(chain(1, 25)), chain(4, 9)...)}
		for i := range int64(600) {
			switch id := rng.Int64N(i + 1); rng.IntN(5) {
			case 0, 1:
				c := base[rng.IntN(len(base))]
				b := &slow{chain: c[:rng.IntN(len(c)+1)], slot: rng.Int32N(slots), prefill: rng.Int64N(900), unshared: rng.IntN(3)}
				open[i] = b
				book(t, l, Booking{ID: i, Slot: b.slot, PromptTokens: 2000, PrefillTokens: int(b.prefill), Blocks: b.chain, Unshared: b.unshared})
			case 2:
				_, ok := open[id]
				if l.Free(0, id) != ok {
					t.Fatalf("seed %d: free of %d", seed, id)
				}
				delete(open, id)
			case 3:
				if b := open[id]; b != nil {
					b.done = true
				}
				l.FirstToken(0, id)
			default:
				if b := open[id]; b != nil {
					b.slot = rng.Int32N(slots)
					if !b.done {
						b.prefill = rng.Int64N(900)
					}
					l.Move(0, id, b.slot, int(b.prefill))
				}
			}
			compare(t, l, open, base[rng.IntN(len(base))], slots, seed)
		}
		for id := range open {
			l.Free(0, id)
		}
		if l.tree.blocks != 0 || l.tree.bufs.held != 0 || l.byID.n != 0 || len(l.free) != len(l.bookings) {
			t.Fatalf("seed %d: %d blocks left in the tree", seed, l.tree.blocks)
		}
	}
}

func compare(t *testing.T, l *Load, open map[int64]*slow, probe []uint64, slots int, seed uint64) {
	t.Helper()
	depth := make([]int32, slots)
	l.tree.depths(probe, depth)
	for s := range int32(slots) {
		unique := map[uint64]bool{}
		requests, unshared, prefill := 0, 0, int64(0)
		for _, b := range open {
			if b.slot != s {
				continue
			}
			requests++
			unshared += b.unshared
			for _, h := range b.chain {
				unique[h] = true
			}
			if !b.done {
				prefill += b.prefill
			}
		}
		want := 0
		for want < len(probe) && unique[probe[want]] {
			want++
		}
		f := l.Figures(s, 0)
		if f.Requests != requests || f.ActiveBlocks != len(unique)+unshared || int64(f.ActiveTokens) != prefill || int64(f.PendingTokens) != prefill || int(depth[s]) != want {
			t.Fatalf("seed %d, slot %d: %+v depth %d, want %d requests, %d blocks, %d tokens, depth %d", seed, s, f, depth[s], requests, len(unique)+unshared, prefill, want)
		}
	}
}

func TestRoundUnits(t *testing.T) {
	for blocks, want := range map[float64]int{0: 0, 0.49: 0, 0.5: 1, 4.5: 5, 3.25: 3, 7: 7, 12.75: 13} {
		if got := roundUnits(int64(math.Round(blocks * float64(wholeBlock)))); got != want {
			t.Errorf("%v blocks round to %d, want %d", blocks, got, want)
		}
	}
}

func TestTableEqualsAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	tab, want := newTable(3), map[uint64]int32{}
	for range 200_000 {
		k := rng.Uint64N(500) << 40
		if rng.IntN(2) == 0 {
			v := rng.Int32N(1 << 20)
			tab.put(k, v)
			want[k] = v
		} else {
			tab.del(k)
			delete(want, k)
		}
		k = rng.Uint64N(500) << 40
		got, ok := tab.get(k)
		if w, there := want[k]; ok != there || ok && got != w || tab.n != len(want) {
			t.Fatalf("get %d: %d %v, want %d %v", k, got, ok, w, there)
		}
	}
}
