package event

import (
	"testing"
	"time"
)

// sound checks what every consumer of a batch relies on.
func sound(t *testing.T, b *Batch) {
	t.Helper()
	if b.Seen < 0 || len(b.Events) > b.Seen+MaxHashes {
		t.Fatalf("%d events of %d seen", len(b.Events), b.Seen)
	}
	for i := range b.Events {
		e := &b.Events[i]
		switch e.Kind {
		case Stored, Removed, Cleared, Moved, Created, Doubted, Settled:
		default:
			t.Fatalf("event of kind %d", e.Kind)
		}
		if e.Tier > External || len(e.Hashes) > MaxHashes || len(e.LoRA) > MaxNameBytes || len(e.Salt) > MaxNameBytes {
			t.Fatalf("beyond its limits: %+v", e)
		}
		if e.Local != nil && len(e.Local) != len(e.Hashes) {
			t.Fatalf("%d local hashes for %d blocks", len(e.Local), len(e.Hashes))
		}
		if want := len(e.Hashes) * int(e.BlockTokens); e.Kind == Stored && len(e.Tokens) > 0 && len(e.Tokens) < want {
			t.Fatalf("%d tokens for %d blocks of %d", len(e.Tokens), len(e.Hashes), e.BlockTokens)
		}
		for _, m := range e.Media {
			if m.Block < 0 || int(m.Block) >= len(e.Hashes) {
				t.Fatalf("media in block %d of %d", m.Block, len(e.Hashes))
			}
		}
	}
	_ = b.Refused.LastError()
}

func FuzzBatch(f *testing.F) {
	for _, e := range goldenEvents() {
		for _, c := range []Encoder{{}, {Form: MapForm, Extra: true}, {Hash: BytesHash}, {Fields: 4}} {
			f.Add(c.AppendBatch(nil, 1, 3, []Event{e, e}))
		}
	}
	for _, form := range []Form{ArrayForm, MapForm} { // a copy below by hash alone, its device block gone, the copy gone
		e := goldenEvents()["copied"]
		e.BlockTokens = 0
		gone, below := e, e
		gone.Kind, gone.Tier, below.Kind = Removed, Device, Removed
		f.Add((&Encoder{Form: form, Hash: BytesHash}).AppendBatch(nil, 1, 0, []Event{goldenEvents()["stored"], e, gone, below}))
	}
	for name, p := range hostileMsgpack() {
		if len(p) < 500 || name == "deep lists" {
			f.Add(p[:min(len(p), 2000)])
		}
	}
	var d Decoder
	var b Batch
	f.Fuzz(func(t *testing.T, p []byte) {
		if err := d.Batch(p, &b); (err != nil) != (b.Refused.Count(BadMessage) > 0) {
			t.Fatalf("error %v, refused %s", err, b.Refused.LastError())
		}
		sound(t, &b)
	})
}

func FuzzTRT(f *testing.F) {
	for _, e := range goldenEvents() {
		f.Add(AppendTRT(nil, &e))
	}
	f.Add([]byte(`{"event_id":1,"data":{"type":"updated","block_hash":1,"cache_level":{"new_value":1,"old_value":0}}}`))
	f.Add([]byte(`{"event_id":1,"data":{"type":"updated","block_hash":1,"cache_level":{"new_value":null,"old_value":0},"priority":null}}`))
	f.Add([]byte(`{"event_id":0,"window_size":1,"data":{"type":"created","num_blocks_per_cache_level":[1,2]}}`))
	var d Decoder
	var b Batch
	f.Fuzz(func(t *testing.T, p []byte) {
		if err := d.TRT(p, &b); err != nil {
			t.Fatal(err)
		}
		sound(t, &b)
	})
}

func FuzzRouterEvents(f *testing.F) {
	f.Add([]byte(`[{"worker_id":1,"event":{"event_id":2,"data":{"stored":{"parent_hash":1,"blocks":[{"block_hash":5,"tokens_hash":6}]}}}}]`))
	f.Add([]byte(`{"worker_id":1,"storage_tier":"disk","event":{"event_id":2,"dp_rank":1,"data":{"removed":{"block_hashes":[5,6]}}}}`))
	f.Add([]byte(`[{"event":{"data":"cleared"}},7,{]`))
	var d Decoder
	var b Batch
	f.Fuzz(func(t *testing.T, p []byte) {
		_ = d.RouterEvents(p, &b)
		sound(t, &b)
	})
}

func FuzzDrain(f *testing.F) {
	f.Add([]byte(`[{"event_id":1,"attention_dp_rank":3,"data":{}},{"worker_id":1,"event":{"event_id":2,"dp_rank":1}}]`))
	f.Add([]byte(`{"event_id":1`))
	f.Fuzz(func(t *testing.T, p []byte) {
		var refused Tally
		ps, err := Drain(p, nil, &refused)
		if err != nil && refused.Total() == 0 {
			t.Fatal("an error that was not counted")
		}
		for _, x := range ps {
			if len(x.Raw) < 2 || x.Raw[0] != '{' || x.Raw[len(x.Raw)-1] != '}' || x.Rank < 0 {
				t.Fatalf("piece %+v", x)
			}
		}
	})
}

// Any order of calls, with payloads that are batches or are not.
func FuzzFeed(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 1, 2, 1, 3, 4, 1, 5, 0, 2, 2, 2, 3, 3, 0, 4, 9})
	good := (&Encoder{}).AppendBatch(nil, 1, 0, []Event{goldenEvents()["stored"]})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) == 0 {
			return
		}
		feed, err := NewFeed(Config{
			Replay: script[0]&1 == 1, DoubtFor: time.Duration(script[0]&2) * time.Second, BlockTokens: 16,
			MaxHeldBatches: 8, MaxHeldBytes: 4096, Format: Format(script[0] >> 2 % 3),
		}, func(b *Batch) { sound(t, b) })
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(1, 0)
		for i := 1; i+2 < len(script); i += 3 {
			op, seq, x := script[i], uint64(script[i+1]), script[i+2]
			payload := good
			if x > 128 {
				payload = script[i:]
			}
			now = now.Add(time.Duration(x) * time.Millisecond)
			switch op % 7 {
			case 0, 1:
				feed.Live(now, uint64(x%3), seq, payload)
			case 2:
				feed.Replayed(now, seq, payload)
			case 3:
				feed.ReplayEnded(now)
			case 4:
				feed.Want(now)
			case 5:
				feed.Tick(now.Add(time.Duration(x) * time.Second))
			case 6:
				feed.Routed(now, int(x))
				switch x {
				case 7:
					feed.Resync(now)
				case 8:
					feed.Disproved()
				}
			}
			if n, size := feed.Held(); n > 8 || size > 4096 || size < 0 {
				t.Fatalf("holds %d batches, %d bytes", n, size)
			}
			for _, x := range feed.Findings(now) {
				if x.Text == "" || x.Next == "" {
					t.Fatalf("a finding without words: %+v", x)
				}
			}
		}
	})
}
