package event

import (
	"testing"
	"time"
)

// sixteen is the shape of performance.md: one event of 16 blocks of 16 tokens,
// about 1.2 kB.
func sixteen() Event {
	e := Event{Kind: Stored, Rank: NoRank, Group: 0, Spec: SpecMain, Position: -1, HasParent: true, Parent: 1<<63 + 5, BlockTokens: 16}
	for i := range 16 {
		e.Hashes = append(e.Hashes, Hash(0x9E3779B97F4A7C15*uint64(i+1)))
	}
	for i := range 256 {
		e.Tokens = append(e.Tokens, uint32(i*7919%151_000))
	}
	return e
}

func BenchmarkDecode(b *testing.B) {
	for name, c := range map[string]Encoder{
		"array": {}, "map": {Form: MapForm}, "bytes": {Hash: BytesHash}, "unknown": {Form: MapForm, Extra: true},
	} {
		b.Run(name, func(b *testing.B) {
			p := c.AppendBatch(nil, 1, 0, []Event{sixteen()})
			var d Decoder
			var batch Batch
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Batch(p, &batch); err != nil || len(batch.Events) != 1 {
					b.Fatal(err, batch.Refused.LastError())
				}
			}
		})
	}
}

func BenchmarkDecodeTRT(b *testing.B) {
	e := sixteen()
	p := AppendTRT(nil, &e)
	var d Decoder
	var batch Batch
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		if err := d.TRT(p, &batch); err != nil || len(batch.Events) != 1 {
			b.Fatal(err, batch.Refused.LastError())
		}
	}
}

// One live batch through the whole feed: sequence, decoding, filter, accounts.
func BenchmarkFeed(b *testing.B) {
	e := sixteen()
	p := (&Encoder{Form: MapForm}).AppendBatch(nil, 1, 0, []Event{e})
	f, err := NewFeed(Config{BlockTokens: 16}, func(*Batch) {})
	if err != nil {
		b.Fatal(err)
	}
	now := time.Unix(1, 0)
	var seq uint64
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		f.Live(now, 1, seq, p)
		seq++
	}
	if s := f.Stats(); s.Stored != 16*seq {
		b.Fatal(s)
	}
}

func BenchmarkEncode(b *testing.B) {
	for name, c := range map[string]Encoder{"array": {}, "map": {Form: MapForm}} {
		b.Run(name, func(b *testing.B) {
			es := []Event{sixteen()}
			var p []byte
			b.ReportAllocs()
			for b.Loop() {
				p = c.AppendBatch(p[:0], 1, 0, es)
			}
		})
	}
}

func TestDecodingAllocatesNothing(t *testing.T) {
	salted := sixteen()
	salted.Salt, salted.LoRA, salted.HasParent = "tenant-a", "sql", false
	es := []Event{sixteen(), salted, {Kind: Removed, Group: 0, Hashes: sixteen().Hashes}, {Kind: Cleared}}
	var d Decoder
	var b Batch
	for _, c := range []Encoder{{}, {Form: MapForm}, {Form: MapForm, Hash: BytesHash, Extra: true}} {
		p := c.AppendBatch(nil, 1, 0, es)
		if n := testing.AllocsPerRun(100, func() { _ = d.Batch(p, &b) }); n != 0 || len(b.Events) != len(es) {
			t.Errorf("%+v: %v allocations, %d events, %s", c, n, len(b.Events), b.Refused.LastError())
		}
	}
	f, err := NewFeed(Config{BlockTokens: 16}, func(*Batch) {})
	if err != nil {
		t.Fatal(err)
	}
	p := (&Encoder{}).AppendBatch(nil, 1, 0, es)
	var seq uint64
	if n := testing.AllocsPerRun(100, func() { f.Live(time.Unix(1, 0), 1, seq, p); seq++ }); n != 0 {
		t.Errorf("a feed's batch: %v allocations", n)
	}
	one := sixteen()
	p = AppendTRT(nil, &one)
	if n := testing.AllocsPerRun(100, func() { _ = d.TRT(p, &b) }); n > 0 {
		t.Errorf("TensorRT-LLM's event: %v allocations", n)
	}
}
