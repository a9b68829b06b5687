package prefix

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkMemory reports what a block costs in memory, index and nothing
// else, for one rank and for eight that hold the same blocks.
func BenchmarkMemory(b *testing.B) {
	for _, c := range []struct{ blocks, ranks int }{{1_000_000, 1}, {1_000_000, 8}, {10_000_000, 1}, {10_000_000, 8}} {
		b.Run(fmt.Sprintf("%dM/R%d", c.blocks/1_000_000, c.ranks), func(b *testing.B) {
			for range b.N {
				before := heap()
				bd := newBed(b, c.ranks, Options{MaxBlocks: 12_000_000})
				for n := 0; n < c.blocks; n += 2000 {
					blocks := bd.fresh(2000)
					for _, id := range bd.ids {
						bd.store(id, blocks)
					}
				}
				grown := heap() - before
				b.ReportMetric(float64(grown)/float64(c.blocks), "B/block")
				b.ReportMetric(float64(bd.ix.Stats().Bytes)/float64(c.blocks), "booked-B/block")
				runtime.KeepAlive(bd)
			}
		})
	}
}

// BenchmarkDecision is hashing and looking up, the parts of a decision that
// are done here, from tokens and with a remembered conversation.
func BenchmarkDecision(b *testing.B) {
	for _, ranks := range []int{8, 64, 512} {
		for _, tokens := range []int{4096, 32768, 131072} {
			bd := newBed(b, ranks, Options{})
			h, _ := NewHasher(16, Seed("", ""))
			prompt := make([]uint32, tokens)
			for i := range prompt {
				prompt[i] = uint32(i*2654435761) % 150_000
			}
			known := bd.fresh(tokens / 16)
			for i, l := range h.Locals(nil, prompt) {
				known[i].Local = l
			}
			for k, id := range bd.ids {
				if k == 0 {
					bd.store(id, known)
				} else {
					bd.store(id, known[:len(known)/4])
				}
			}
			m := bd.ix.NewMatcher()
			var out Matches
			var chain []Chain
			run := func(name string, f func()) {
				b.Run(fmt.Sprintf("%s/R%d/%dk", name, ranks, tokens/1024), func(b *testing.B) {
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
			run("tokens", func() {
				chain = h.Chains(chain[:0], prompt)
				m.Match(chain, &out)
			})
		}
	}
}

// BenchmarkUnderLoad applies 50,000 events of 16 blocks a second, half stored
// and half removed, while 5,000 look-ups a second run: 64 ranks, a million
// blocks. It reports the look-ups' and the events' lag at the 99th percentile,
// the drain included. One iteration is one second.
func BenchmarkUnderLoad(b *testing.B) {
	bd := newBed(b, 64, Options{})
	bd.fill(2048, true)
	spare := make([][]Block, 4000)
	for i := range spare {
		spare[i] = bd.fresh(16)
	}
	gone := removals(spare)
	b.ResetTimer()
	var stop atomic.Bool
	looks := make(chan []time.Duration)
	go func() {
		m, rng := bd.ix.NewMatcher(), rand.New(rand.NewPCG(1, 2))
		var out Matches
		took := []time.Duration{}
		for begin, n := time.Now(), 0; !stop.Load(); n++ {
			for time.Since(begin) < time.Duration(n)*time.Second/5000 {
				runtime.Gosched()
			}
			chain := bd.chains[rng.IntN(len(bd.chains))]
			at := time.Now()
			m.Match(chain, &out)
			took = append(took, time.Since(at))
		}
		looks <- took
	}()
	const rate = 50_000
	lag := make([]time.Duration, 0, rate*b.N)
	begin := time.Now()
	events := make([]Event, 1)
	batch := &Batch{Events: events}
	for i := range rate * b.N {
		due := time.Duration(i) * time.Second / rate
		for time.Since(begin) < due {
			runtime.Gosched()
		}
		k := i / 2 % len(spare)
		if i%2 == 0 {
			events[0] = Event{Kind: Stored, Blocks: spare[k]}
		} else {
			events[0] = Event{Kind: Removed, Hashes: gone[k]}
		}
		_, _ = bd.ix.Apply(bd.ids[k%64], batch)
		lag = append(lag, time.Since(begin)-due)
	}
	total := time.Since(begin)
	stop.Store(true)
	took := <-looks
	p99 := func(d []time.Duration) float64 {
		slices.Sort(d)
		return float64(d[len(d)*99/100].Nanoseconds()) / 1000
	}
	b.ReportMetric(p99(took), "match-p99-µs")
	b.ReportMetric(p99(lag), "lag-p99-µs")
	b.ReportMetric(float64(len(lag))/total.Seconds(), "events/s")
	b.ReportMetric(float64(len(took))/total.Seconds(), "look-ups/s")
}

// BenchmarkRestart wipes one of 64 targets in an index of a million blocks and
// stores its blocks again with the clock stopped.
func BenchmarkRestart(b *testing.B) {
	bd := newBed(b, 64, Options{})
	bd.fill(2048, true)
	b.ResetTimer()
	for i := range b.N {
		k := i % 64
		_ = bd.ix.Restart(bd.ids[k])
		b.StopTimer()
		for c, blocks := range bd.blocks {
			if c%64 != k {
				blocks = blocks[:len(blocks)/4]
			}
			bd.store(bd.ids[k], blocks)
		}
		b.StartTimer()
	}
}
