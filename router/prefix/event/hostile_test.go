package event

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"
)

const mib = 1 << 20

func fill(head []byte, unit []byte) []byte {
	p := append([]byte{}, head...)
	for len(p)+len(unit) <= mib {
		p = append(p, unit...)
	}
	return p
}

// open is a batch of very many events, its elements to follow.
func open() []byte {
	return append(msgp.AppendFloat64(msgp.AppendArrayHeader(nil, 3), 1), 0xdd, 0, 0x0f, 0xff, 0xff)
}

// stored is a map event up to one field's value, to follow.
func openStored(field string, head ...byte) []byte {
	p := msgp.AppendArrayHeader(msgp.AppendFloat64(msgp.AppendArrayHeader(nil, 2), 1), 1)
	p = msgp.AppendMapHeader(p, 6)
	p = msgp.AppendString(msgp.AppendString(p, "type"), tagStored)
	return append(msgp.AppendString(p, field), head...)
}

func hostileMsgpack() map[string][]byte {
	collide := openStored("block_hashes", 0xdd, 0, 0, 0xff, 0xff)
	for i := range uint64(0xffff) { // all in one slot of the table that looks for repeats
		collide = msgp.AppendUint64(collide, (i<<7|1)*0xF1DE83E19937733D)
	}
	distinct := openStored("block_hashes", 0xdd, 0, 1, 0, 0)
	for i := range uint64(1 << 16) {
		distinct = msgp.AppendUint64(distinct, i)
	}
	tags := open()
	for i := 0; len(tags) < mib-20; i++ {
		tags = msgp.AppendString(msgp.AppendArrayHeader(tags, 1), fmt.Sprintf("tag%d", i))
	}
	return map[string][]byte{
		"huge list":           append([]byte{0x93, 1, 0xdd, 0xff, 0xff, 0xff, 0xff}, make([]byte, 100)...),
		"huge map":            append([]byte{0xdf, 0xff, 0xff, 0xff, 0xff}, make([]byte, 100)...),
		"huge string":         append(openStored("x"), 0xdb, 0xff, 0xff, 0xff, 0xff),
		"huge hashes":         openStored("block_hashes", 0xdd, 0xff, 0xff, 0xff, 0xff),
		"huge tokens":         openStored(fieldTokens, 0xdd, 0xff, 0xff, 0xff, 0xff),
		"many tokens":         fill(openStored(fieldTokens, 0xdd, 0, 0x0f, 0xff, 0x00), []byte{1}),
		"many pairs":          fill(openStored(fieldTokens, 0xdd, 0, 0x05, 0, 0), []byte{0x92, 1, 1}),
		"many hashes":         fill(openStored("block_hashes", 0xdd, 0, 0, 0xff, 0xff), []byte{1}),
		"distinct hashes":     distinct,
		"colliding hashes":    collide,
		"deep lists":          fill([]byte{0x93, 1, 0xdd, 0, 0x0f, 0xff, 0xf0}, []byte{0x91}),
		"deep maps":           fill(openStored("x"), []byte{0x81, 1}),
		"deep keys":           fill(openStored("extra_keys"), []byte{0x91}),
		"many media":          fill(openStored("extra_keys", 0x91, 0xdd, 0, 0x05, 0, 0), []byte{0xa1, 'a'}),
		"many cleared":        fill(open(), (&Encoder{}).appendEvent(nil, &Event{Kind: Cleared})),
		"many removed":        fill(open(), (&Encoder{Fields: 1}).appendEvent(nil, &Event{Kind: Removed, Hashes: []Hash{1}})),
		"many bad":            fill(open(), []byte{0x91, 0xa1, 'x'}),
		"many nil":            fill(open(), []byte{0xc0}),
		"distinct tags":       tags,
		"invalid lead bytes":  bytes.Repeat([]byte{0xc1}, mib),
		"extensions":          fill(open(), []byte{0xd4, 1, 1}),
		"key that is a list":  fill(openStored("x", 1), []byte{0x91, 1, 1}),
		"complete many media": completeMedia(),
	}
}

// completeMedia is a whole, valid event whose blocks carry as much media as fits.
func completeMedia() []byte {
	e := sixteen()
	e.Group = NoGroup
	for range 14_000 {
		e.Media = append(e.Media, Media{Block: 3, Offset: -1, Hash: 1})
	}
	return (&Encoder{}).AppendBatch(nil, 1, 0, []Event{e})
}

func hostileJSON() map[string][]byte {
	one := `{"event_id":1,"attention_dp_rank":1,"data":{"type":"stored","blocks":[`
	return map[string][]byte{
		"deep lists":     bytes.Repeat([]byte("["), mib),
		"deep objects":   bytes.Repeat([]byte(`{"a":`), mib/5),
		"deep data":      append([]byte(`{"event_id":1,"data":`), bytes.Repeat([]byte("["), mib-30)...),
		"many blocks":    []byte(one + strings.Repeat(`{"block_hash":1,"tokens":[]},`, 36_000) + `{}]}}`),
		"runs of blocks": []byte(one + strings.Repeat(`{"block_hash":1,"tokens":[]},{"block_hash":2,"tokens":[1]},`, 17_000) + `{}]}}`),
		"many tokens":    []byte(one + `{"block_hash":1,"tokens":[` + strings.Repeat("1,", 520_000) + `1]}]}}`),
		"extra ids":      []byte(one + `{"block_hash":1,"tokens":[` + strings.Repeat(`{"token_id":1,"token_extra_id":1},{"token_id":1,"token_extra_id":2},`, 15_000) + `1]}]}}`),
		"many hashes":    []byte(`{"event_id":1,"data":{"type":"removed","block_hashes":[` + strings.Repeat("1,", 500_000) + `1]}}`),
		"many events":    []byte("[" + strings.Repeat(`{"event_id":1},`, 69_000) + "{}]"),
		"many cleared":   []byte("[" + strings.Repeat(`{"worker_id":1,"event":{"data":"cleared"}},`, 24_000) + "{}]"),
		"many bad":       []byte("[" + strings.Repeat(`1,`, 500_000) + "1]"),
		"escapes":        []byte("[" + strings.Repeat(`{"\u0061":1},`, 78_000) + "1]"),
		"long string":    []byte(`{"event_id":1,"data":{"type":"` + strings.Repeat("x", mib-100) + `"}}`),
		"long escaped":   []byte(`{"event_id":1,"data":{"type":"` + strings.Repeat(`\n`, mib/2-50) + `"}}`),
		"long number":    []byte(`{"event_id":` + strings.Repeat("9", mib-20) + `}`),
		"wrong brackets": []byte(strings.Repeat("[}", mib/2)),
		"commas":         []byte("[" + strings.Repeat(",", mib-1)),
	}
}

// Whatever a megabyte holds, decoding it allocates less than 64 MiB in all.
func TestHostileInputStaysSmall(t *testing.T) {
	decoders := map[string]func(p []byte){
		"msgpack": func(p []byte) { _ = new(Decoder).Batch(p, new(Batch)) },
		"trt":     func(p []byte) { _ = new(Decoder).TRT(p, new(Batch)) },
		"router":  func(p []byte) { _ = new(Decoder).RouterEvents(p, new(Batch)) },
		"drain":   func(p []byte) { _, _ = Drain(p, nil, new(Tally)) },
		"feed": func(p []byte) {
			f, err := NewFeed(Config{BlockTokens: 16}, func(*Batch) {})
			if err != nil {
				t.Fatal(err)
			}
			f.Live(time.Unix(1, 0), 1, 0, p)
			f.Live(time.Unix(1, 0), 1, 2, p)
		},
		"trt feed": func(p []byte) {
			f, err := NewFeed(Config{BlockTokens: 16, Format: TRTJSON}, func(*Batch) {})
			if err != nil {
				t.Fatal(err)
			}
			f.Live(time.Unix(1, 0), 1, 0, p)
		},
	}
	var worst uint64
	var slowest time.Duration
	for _, inputs := range []map[string][]byte{hostileMsgpack(), hostileJSON()} {
		for name, p := range inputs {
			if len(p) > mib {
				t.Fatalf("%s: %d bytes", name, len(p))
			}
			for by, decode := range decoders {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				start := time.Now()
				decode(p)
				took := time.Since(start)
				runtime.ReadMemStats(&after)
				n := after.TotalAlloc - before.TotalAlloc
				if n > 64*mib {
					t.Errorf("%s by %s: %d MiB allocated", name, by, n/mib)
				}
				if took > 40*time.Millisecond {
					t.Logf("%s by %s: %v", name, by, took)
				}
				worst, slowest = max(worst, n), max(slowest, took)
			}
		}
	}
	t.Logf("worst case: %d MiB allocated in all, slowest %v", worst/mib, slowest)
}
