package prefix

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/zeebo/xxh3"

	"adpdeck/router/model"
)

// bed is an index with a million blocks resident, in chains of one length.
type bed struct {
	ix     *Index
	ids    []ID
	chains [][]Chain
	blocks [][]Block
	next   uint64 // for names and hashes never used before
}

const bedBlocks = 1_000_000

func newBed(tb testing.TB, ranks int, opt Options) *bed {
	ix, err := New(opt)
	if err != nil {
		tb.Fatal(err)
	}
	b := &bed{ix: ix, next: 1}
	for k := range ranks {
		id, err := ix.Add(model.Target{Worker: fmt.Sprint("w", k/8), Rank: k % 8})
		if err != nil {
			tb.Fatal(err)
		}
		b.ids = append(b.ids, id)
	}
	return b
}

// fresh is a chain of n blocks that nobody has stored.
func (b *bed) fresh(n int) []Block {
	out := make([]Block, n)
	for i := range out {
		b.next++
		out[i] = Block{External(b.next * 0x9e3779b97f4a7c15), Local(b.next * 0xc2b2ae3d27d4eb4f)}
	}
	return out
}

func locals(blocks []Block) []Local {
	out := make([]Local, len(blocks))
	for i := range blocks {
		out[i] = blocks[i].Local
	}
	return out
}

// store stores blocks in events of 16.
func (b *bed) store(id ID, blocks []Block) {
	for i := 0; i < len(blocks); i += 16 {
		e := Event{Kind: Stored, Blocks: blocks[i:min(i+16, len(blocks))]}
		if i > 0 {
			e.HasParent, e.Parent = true, blocks[i-1].External
		}
		_, _ = b.ix.Apply(id, &Batch{Events: []Event{e}})
	}
}

// fill makes chains of n blocks until a million are resident. Affine: every
// rank holds the first quarter, one holds all; else every rank holds all.
func (b *bed) fill(n int, affine bool) {
	for total, c := 0, 0; total < bedBlocks; total, c = total+n, c+1 {
		blocks := b.fresh(n)
		for k, id := range b.ids {
			part := n
			if affine && c%len(b.ids) != k {
				part = n / 4
			}
			b.store(id, blocks[:part])
		}
		b.chains = append(b.chains, chainLocals(nil, locals(blocks)))
		b.blocks = append(b.blocks, blocks)
	}
}

func BenchmarkMatch(b *testing.B) {
	cases := []struct {
		ranks, tokens int
		affine        bool
	}{
		{8, 4096, true},
		{64, 4096, true},
		{64, 32768, true},
		{64, 32768, false},
		{64, 131072, true},
		{64, 131072, false},
		{512, 4096, true},
		{512, 32768, true},
	}
	for _, c := range cases {
		shape := "all"
		if c.affine {
			shape = "affine"
		}
		b.Run(fmt.Sprintf("R%d/%dk/%s", c.ranks, c.tokens/1024, shape), func(b *testing.B) {
			bd := newBed(b, c.ranks, Options{})
			bd.fill(c.tokens/16, c.affine)
			m := bd.ix.NewMatcher()
			var out Matches
			rng := rand.New(rand.NewPCG(1, 2))
			m.Match(bd.chains[0], &out)
			runtime.GC()
			cpu := newCPUMeter()
			b.ReportAllocs()
			b.ResetTimer()
			cpu.start()
			for range b.N {
				m.Match(bd.chains[rng.IntN(len(bd.chains))], &out)
			}
			cpu.stop()
			cpu.report(b)
		})
	}
}

// Each stored event is 16 blocks that nobody holds; with the clock stopped they
// are removed again, so that a million stay resident.
func BenchmarkStored16(b *testing.B) {
	bd := newBed(b, 1, Options{MaxBlocks: 1 << 22})
	bd.fill(256, true)
	const lot = 512
	fresh := make([][]Block, lot)
	events := make([]Event, 1)
	batch := &Batch{Events: events}
	cpu := newCPUMeter()
	b.ReportAllocs()
	b.ResetTimer()
	cpu.start()
	for i := range b.N {
		if i%lot == 0 {
			b.StopTimer()
			cpu.stop()
			for j, gone := range removals(fresh) {
				events[0] = Event{Kind: Removed, Hashes: gone}
				_, _ = bd.ix.Apply(bd.ids[0], batch)
				fresh[j] = bd.fresh(16)
			}
			b.StartTimer()
			cpu.start()
		}
		events[0] = Event{Kind: Stored, Blocks: fresh[i%lot]}
		_, _ = bd.ix.Apply(bd.ids[0], batch)
	}
	cpu.stop()
	cpu.report(b)
}

// Churn is the steady state: a million blocks resident, each event stored is
// followed by one removed.
func BenchmarkChurn16(b *testing.B) {
	bd := newBed(b, 1, Options{MaxBlocks: 1 << 22})
	bd.fill(16, true)
	removed := removals(bd.blocks)
	order := rand.New(rand.NewPCG(3, 4)).Perm(len(removed))
	stored, gone := make([]Event, 1), make([]Event, 1)
	sb, rb := &Batch{Events: stored}, &Batch{Events: gone}
	runtime.GC()
	cpu := newCPUMeter()
	b.ReportAllocs()
	b.ResetTimer()
	cpu.start()
	for i := range b.N {
		k := order[i%len(order)]
		gone[0] = Event{Kind: Removed, Hashes: removed[k]}
		_, _ = bd.ix.Apply(bd.ids[0], rb)
		stored[0] = Event{Kind: Stored, Blocks: bd.blocks[k]}
		_, _ = bd.ix.Apply(bd.ids[0], sb)
	}
	cpu.stop()
	cpu.report(b)
}

// removals is each chain's names in the order in which an engine evicts them.
func removals(chains [][]Block) [][]External {
	out := make([][]External, len(chains))
	for i, c := range chains {
		for j := len(c) - 1; j >= 0; j-- {
			out[i] = append(out[i], c[j].External)
		}
	}
	return out
}

func BenchmarkRemoved16(b *testing.B) {
	bd := newBed(b, 1, Options{MaxBlocks: 1 << 22})
	bd.fill(16, true)
	removed := removals(bd.blocks)
	order := rand.New(rand.NewPCG(3, 4)).Perm(len(removed))
	gone := make([]Event, 1)
	rb := &Batch{Events: gone}
	const lot = 4096 // removed, then stored again with the clock stopped
	runtime.GC()
	cpu := newCPUMeter()
	b.ReportAllocs()
	b.ResetTimer()
	cpu.start()
	for i := range b.N {
		if i%lot == 0 && i > 0 {
			b.StopTimer()
			cpu.stop()
			for j := i - lot; j < i; j++ {
				bd.store(bd.ids[0], bd.blocks[order[j%len(order)]])
			}
			b.StartTimer()
			cpu.start()
		}
		gone[0] = Event{Kind: Removed, Hashes: removed[order[i%len(order)]]}
		_, _ = bd.ix.Apply(bd.ids[0], rb)
	}
	cpu.stop()
	cpu.report(b)
}

// Once is one XXH3 over all bytes of each block and nothing else, whole one
// over the prompt at once, which gives no block hashes.
func BenchmarkChains(b *testing.B) {
	for _, n := range []int{4096, 32768, 131072} {
		tokens := make([]uint32, n)
		for i := range tokens {
			tokens[i] = uint32(i * 7919)
		}
		raw := tokenBytes(tokens)
		h, _ := NewHasher(16, Seed("", ""))
		var dst []Chain
		sum := uint64(0)
		for name, f := range map[string]func(){
			"chains": func() { dst = h.Chains(dst[:0], tokens) },
			"once": func() {
				for i := 0; i < len(raw); i += 64 {
					sum += xxh3.HashSeed(raw[i:i+64], baseSeed)
				}
			},
			"whole": func() { sum += xxh3.HashSeed(raw, baseSeed) },
		} {
			b.Run(fmt.Sprintf("%dk/%s", n/1024, name), func(b *testing.B) {
				f()
				cpu := newCPUMeter()
				b.ReportAllocs()
				b.ResetTimer()
				cpu.start()
				for range b.N {
					f()
				}
				cpu.stop()
				cpu.report(b)
			})
		}
	}
}
