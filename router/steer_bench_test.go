package router

import (
	"fmt"
	"testing"

	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

// affine is a cluster in the shape of the index's own benchmarks: every rank
// holds the first quarter of each prompt, one rank all of it.
type affine struct {
	*bench
	reqs []model.Request
	in   model.StepInput
	out  model.StepOutput
	id   int64
}

func newAffine(t tester, mode model.RouterMode, targets, promptTokens int, record bool) *affine {
	a := &affine{bench: newBench(t, targets/8, 8, model.PolicyDefault, withBlocks, inMode(mode, fieldValue(noAffinity, "none")), func(c *Config) {
		c.Record = record
		for i := range c.Workers {
			c.Workers[i].MaxNumActiveRequests = 64
		}
	})}
	a.in.HardCap = 64
	for k := range 8 {
		a.in.States = append(a.in.States, model.RankState{Rank: k})
	}
	a.in.Requests = make([]model.StepRequest, 1)
	blocks := promptTokens / blockTokens
	for i := range max(2, min(16, (1<<17)/blocks)) {
		q := model.Request{PromptTokens: promptTokens + 7, BlockTokens: blockTokens, Conv: model.ConvKey{Tenant: "t", Model: "m", ID: fmt.Sprint("conv-", i)}}
		batch := prefix.Batch{Events: []prefix.Event{{Kind: prefix.Stored}}}
		for k := range blocks {
			local := uint64(i)<<32 | uint64(k)<<1 | 1
			q.Locals = append(q.Locals, local)
			batch.Events[0].Blocks = append(batch.Events[0].Blocks, prefix.Block{External: prefix.External(local), Local: prefix.Local(local)})
		}
		all := batch.Events[0].Blocks
		for slot := range targets {
			batch.Events[0].Blocks = all[:blocks/4]
			if slot == i%targets {
				batch.Events[0].Blocks = all
			}
			if _, err := a.know.index.Apply(prefix.ID(slot), &batch); err != nil {
				t.Fatalf("fill: %v", err)
			}
		}
		a.reqs = append(a.reqs, q)
	}
	for i := range 64 {
		a.one(t, i)
	}
	return a
}

// decide submits one request and routes it at its worker.
func (a *affine) decide(t tester, i int) model.Target {
	q := &a.reqs[i%len(a.reqs)]
	a.id++
	q.ID = a.id
	got, err := a.Submit(q)
	if err != nil {
		t.Fatalf("%v", err)
	}
	a.in.Requests[0].ID = a.id
	if err := a.Step(got.Worker, &a.in, &a.out); err != nil {
		t.Fatalf("%v", err)
	}
	return got
}

// one is a whole life.
func (a *affine) one(t tester, i int) {
	got := a.decide(t, i)
	a.FirstToken(a.id, model.Usage{Ran: got, CachedTokens: 64, TTFTMs: 20})
	a.Done(a.id, model.OutcomeOK)
}

// TestSteeringAllocatesNothing over a whole life of requests with recording off.
func TestSteeringAllocatesNothing(t *testing.T) {
	for _, mode := range []model.RouterMode{model.ModeKV, model.ModeLockstep} {
		a := newAffine(t, mode, 64, 4096, false)
		i := 0
		if n := testing.AllocsPerRun(200, func() { a.one(t, i); i++ }); n > 0 {
			t.Errorf("%s: %v allocations for a request", mode, n)
		}
	}
}

// BenchmarkSteer is the decision from block hashes to its booking and placing:
// Submit and Step of one request, with first token and end outside the timer's
// sense (they are counted: a whole life).
func BenchmarkSteer(b *testing.B) {
	for _, record := range []bool{false, true} {
		for _, targets := range []int{8, 64, 512} {
			for _, tokens := range []int{4 << 10, 32 << 10, 128 << 10} {
				b.Run(fmt.Sprintf("record=%v/R%d/%dk", record, targets, tokens>>10), func(b *testing.B) {
					a := newAffine(b, model.ModeKV, targets, tokens, record)
					b.ReportAllocs()
					b.ResetTimer()
					for i := range b.N {
						a.one(b, i)
					}
				})
			}
		}
	}
}

// BenchmarkEvents is bytes to index: one stored event of 16 blocks a batch.
func BenchmarkEvents(b *testing.B) {
	r := newBench(b, 1, 8, model.PolicyDefault, withBlocks)
	e := newEngine(r, 0)
	c := e.ranks[at("w0", 0)]
	payloads := make([][]byte, 0, 4096)
	for i := range cap(payloads) {
		var blocks []uint32
		for k := range 16 {
			blocks = append(blocks, uint32(i*16+k))
		}
		payloads = append(payloads, c.storedBatch(prompt(blocks...)))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		r.Events("w0", 0, uint64(i), payloads[i%len(payloads)])
	}
}
