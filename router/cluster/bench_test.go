package cluster

import (
	"fmt"
	"testing"
	"time"

	"adpdeck/router/model"
)

// fleet returns a router of workers × ranks targets with blocks of 16 tokens.
func fleet(tb testing.TB, mode model.RouterMode, cfg Config, workers, ranks int) *Router {
	tb.Helper()
	r, err := New(mode, cfg, Options{BlockTokens: 16, Seed: 1})
	if err != nil {
		tb.Fatal(err)
	}
	for w := range workers {
		if _, err := r.AddWorker(Worker{ID: fmt.Sprintf("w%d", w), Ranks: ranks, KVBlocks: 20000, MaxBatchedTokens: 8192}); err != nil {
			tb.Fatal(err)
		}
	}
	return r
}

// chain makes n chain hashes that begin like those of the same seed.
func chain(seed uint64, n int) []uint64 {
	out := make([]uint64, n)
	h := seed*0x9e3779b97f4a7c15 + 1
	for i := range out {
		h ^= h >> 29
		h *= 0xbf58476d1ce4e5b9
		h ^= h >> 32
		out[i] = h
	}
	return out
}

// steady is a router in its steady state: 4 open requests a slot.
type steady struct {
	r      *Router
	open   []int64
	next   int64
	chains [][]uint64
	match  []int32
	now    time.Duration
	c      Choice
	req    Request
}

func newSteady(tb testing.TB, mode model.RouterMode, cfg Config, workers, ranks, blocks int) *steady {
	s := &steady{r: fleet(tb, mode, cfg, workers, ranks), match: make([]int32, workers*ranks)}
	for i := range 256 {
		s.chains = append(s.chains, chain(uint64(i), blocks))
	}
	for i := range s.match {
		s.match[i] = int32(i % (blocks + 1) / 4)
	}
	for range 4 * workers * ranks {
		s.turn(tb, false)
	}
	for range 20 * workers * ranks {
		s.turn(tb, true)
	}
	return s
}

func (s *steady) turn(tb testing.TB, end bool) {
	s.now += time.Millisecond
	s.next++
	blocks := s.chains[int(s.next*7919)%len(s.chains)]
	s.req = Request{ID: s.next, PromptTokens: 16*len(blocks) + 5, Blocks: blocks, Matches: Matches{Device: s.match}}
	if err := s.r.Choose(s.now, &s.req, &s.c, nil); err != nil {
		tb.Fatal(err)
	}
	if err := s.r.Book(s.now, &s.req, &s.c); err != nil {
		tb.Fatal(err)
	}
	if !end {
		s.open = append(s.open, s.next)
		return
	}
	at := int(s.next) % len(s.open)
	s.r.FirstToken(s.now, s.next)
	s.r.Free(s.now, s.open[at])
	s.open[at] = s.next
}

func shapes() map[string][3]int {
	return map[string][3]int{"8": {1, 8, 256}, "64": {8, 8, 256}, "512": {64, 8, 256}, "64_128k": {8, 8, 8192}, "512_128k": {64, 8, 8192}}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	for _, mode := range []model.RouterMode{
		model.ModeKV, model.ModeLockstep, model.ModeRoundRobin, model.ModeRandom, model.ModeLeastLoaded, model.ModePowerOfTwo,
	} {
		for _, temperature := range []float64{0, 0.5} {
			for _, size := range [][3]int{{8, 8, 256}, {64, 8, 256}} {
				cfg := model.DefaultClusterConfig()
				cfg.Temperature = temperature
				s := newSteady(t, mode, cfg, size[0], size[1], size[2])
				if n := testing.AllocsPerRun(300, func() { s.turn(t, true) }); n != 0 {
					t.Errorf("%s, temperature %v, %d targets: %v allocations for choose, book, first token and free", mode, temperature, size[0]*size[1], n)
				}
			}
		}
	}
}

func BenchmarkTurn(b *testing.B) {
	for _, mode := range []model.RouterMode{model.ModeKV, model.ModeLockstep, model.ModeRoundRobin} {
		for name, size := range shapes() {
			b.Run(string(mode)+"/"+name, func(b *testing.B) {
				s := newSteady(b, mode, model.DefaultClusterConfig(), size[0], size[1], size[2])
				b.ReportAllocs()
				for b.Loop() {
					s.turn(b, true)
				}
			})
		}
	}
}

func BenchmarkChoose(b *testing.B) {
	for _, mode := range []model.RouterMode{model.ModeKV, model.ModeLockstep} {
		for name, size := range shapes() {
			b.Run(string(mode)+"/"+name, func(b *testing.B) {
				s := newSteady(b, mode, model.DefaultClusterConfig(), size[0], size[1], size[2])
				b.ReportAllocs()
				for b.Loop() {
					if err := s.r.Choose(s.now, &s.req, &s.c, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkRecord(b *testing.B) {
	s := newSteady(b, model.ModeKV, model.DefaultClusterConfig(), 8, 8, 256)
	var rec model.Selection
	b.ReportAllocs()
	for b.Loop() {
		if err := s.r.Choose(s.now, &s.req, &s.c, &rec); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRescore64(b *testing.B) {
	s := newSteady(b, model.ModeKV, model.DefaultClusterConfig(), 8, 8, 256)
	var rec model.Selection
	if err := s.r.Choose(s.now, &s.req, &s.c, &rec); err != nil {
		b.Fatal(err)
	}
	terms, cfg := make([]model.ScoreTerms, 64), model.DefaultClusterConfig()
	b.ReportAllocs()
	for b.Loop() {
		Rescore(&rec, model.ModeLockstep, &cfg, terms)
	}
}

func BenchmarkQueue(b *testing.B) {
	cfg := model.DefaultClusterConfig()
	q := NewQueue[int]()
	for i := range int64(1000) {
		if err := q.Push(time.Duration(i), &cfg, 1, Waiting[int]{ID: i, Slot: -1}); err != nil {
			b.Fatal(err)
		}
	}
	ready := func(int32) bool { return true }
	b.ReportAllocs()
	for i := int64(1000); b.Loop(); i++ {
		q.Pop(time.Duration(i), &cfg, ready)
		if err := q.Push(time.Duration(i), &cfg, 1, Waiting[int]{ID: i, Slot: -1}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBookNew books and frees a prompt of 8,192 blocks that shares nothing.
func BenchmarkBookNew(b *testing.B) {
	l := testLoad(1)
	var k [4][]uint64
	for i := range k {
		k[i] = chain(uint64(i), 8192)
	}
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		if err := l.Book(0, &Booking{ID: i, Blocks: k[i%4]}); err != nil {
			b.Fatal(err)
		}
		l.Free(0, i)
	}
}
