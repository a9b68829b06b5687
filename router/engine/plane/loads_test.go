package plane

import (
	"testing"

	"github.com/tinylib/msgp/msgp"

	"adpdeck/router/model"
)

func figures(running, waiting, tokens, pending, used model.Maybe) model.RankReport {
	u := model.Unknown()
	return model.RankReport{Running: running, Waiting: waiting, Tokens: tokens, PendingTokens: pending, KVUsedBlocks: used, KVTotalBlocks: u, CacheHit: u}
}

func step(prefills, prefill, prefillKV, decodes, decodeKV int) raw {
	return raw(obj("num_prefill_requests", prefills, "sum_prefill_tokens", prefill, "var_prefill_length", 100.0, "sum_prefill_kv_tokens", prefillKV,
		"num_decode_requests", decodes, "sum_decode_kv_tokens", decodeKV, "var_decode_kv_tokens", 50.0, "sum_of_tomorrow", 1))
}

func queue(prefills, prefill, decodes, decodeKV int) raw {
	return raw(obj("num_prefill_requests", prefills, "sum_prefill_tokens", prefill, "var_prefill_length", 0.0,
		"num_decode_requests", decodes, "sum_decode_kv_tokens", decodeKV, "var_decode_kv_tokens", 0.0))
}

func pass(version int, worker any, wall float64, scheduled, queued raw) []byte {
	return obj("version", version, "worker_id", worker, "dp_rank", 2, "counter_id", 42, "wall_time", wall,
		"scheduled_requests", scheduled, "queued_requests", queued, "new", raw(obj("a", 1)))
}

func TestForwardPass(t *testing.T) {
	u := model.Unknown()
	for name, c := range map[string]struct {
		payload []byte
		want    Load
	}{
		"prefill and a queue": {
			pass(1, "7587889683284143912", 0.025, step(2, 256, 64, 3, 1024), queue(1, 128, 1, 32)),
			Load{Worker: "7587889683284143912", RankReport: figures(5, 2, 256+64+1024+128+32, u, u), BookedBlocks: u},
		},
		"decode alone": {pass(1, "w", 0.025, step(0, 0, 0, 3, 1024), queue(0, 0, 0, 0)), Load{Worker: "w", RankReport: figures(3, 0, 1024, 0, u), BookedBlocks: u}},
		// A heartbeat comes also while a step takes longer than a second.
		"heartbeat": {pass(1, "w", 0, step(0, 0, 0, 0, 0), queue(0, 0, 0, 0)), Load{Worker: "w", RankReport: figures(0, 0, 0, u, u), BookedBlocks: u, Idle: true}},
		"no queue":  {obj("scheduled_requests", step(0, 0, 0, 1, 10), "wall_time", 1), Load{RankReport: figures(1, u, u, u, u), BookedBlocks: u}},
		"nil":       {obj("dp_rank", nil, "worker_id", "w", "wall_time", 0.5, "scheduled_requests", step(0, 0, 0, 1, 10), "queued_requests", raw(obj("num_prefill_requests", nil))), Load{Worker: "w", RankReport: figures(1, u, u, u, u), BookedBlocks: u}},
	} {
		if name == "no queue" || name == "nil" {
			c.want.Rank = 0
		} else {
			c.want.Rank = 2
		}
		got, err := ForwardPass(c.payload)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		same(t, name, got, c.want)
	}
}

func TestActiveLoad(t *testing.T) {
	u := model.Unknown()
	for name, c := range map[string]struct {
		payload []byte
		want    Load
	}{
		"of a worker":  {obj("worker_id", uint64(worker2), "dp_rank", 3, "active_decode_blocks", 90, "active_prefill_tokens", nil, "kv_used_blocks", 100), Load{Worker: "18446744073709551615", RankReport: figures(u, u, u, u, 100), BookedBlocks: 90}},
		"of a router":  {obj("worker_id", 7, "dp_rank", 3, "active_decode_blocks", 90, "active_prefill_tokens", 4096, "scheduler_load_scope", "local"), Load{Worker: "7", RankReport: figures(u, u, u, u, u), BookedBlocks: 90}},
		"without rank": {obj("worker_id", 7, "kv_used_blocks", 0), Load{Worker: "7", RankReport: figures(u, u, u, u, 0), BookedBlocks: u}},
	} {
		if name != "without rank" {
			c.want.Rank = 3
		}
		got, err := ActiveLoad(c.payload)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		same(t, name, got, c.want)
	}
}

func TestBadLoads(t *testing.T) {
	good := step(0, 0, 0, 1, 10)
	whole := pass(1, "w", 0.5, good, queue(0, 0, 0, 0))
	for name, c := range map[string]struct {
		payload []byte
		want    Reason
	}{
		"empty":          {nil, BadMsgpack},
		"positional":     {enc([]raw{raw(enc(1)), raw(enc("w"))}), BadMsgpack},
		"cut":            {whole[:len(whole)-2], BadMsgpack},
		"longer":         {append(whole[:len(whole):len(whole)], 0xc0), BadMsgpack},
		"version":        {pass(2, "w", 0.5, good, queue(0, 0, 0, 0)), BadVersion},
		"worker number":  {pass(1, 7, 0.5, good, queue(0, 0, 0, 0)), BadField},
		"no step":        {obj("worker_id", "w"), BadField},
		"a step of text": {obj("scheduled_requests", "w"), BadMsgpack},
		"counts of text": {obj("scheduled_requests", raw(obj("num_decode_requests", "1"))), BadField},
		"below zero":     {obj("scheduled_requests", raw(obj("num_decode_requests", -1))), BadField},
		"beyond floats":  {obj("scheduled_requests", raw(obj("num_decode_requests", uint64(1)<<63))), BadField},
		"rank":           {obj("dp_rank", 1<<20, "scheduled_requests", good), BadField},
	} {
		_, err := ForwardPass(c.payload)
		refusedAs(t, name, err, c.want)
	}
	for name, c := range map[string]struct {
		payload []byte
		want    Reason
	}{
		"no worker":   {obj("dp_rank", 1), BadField},
		"worker text": {obj("worker_id", "7"), BadField},
		"blocks":      {obj("worker_id", 7, "kv_used_blocks", 1.5), BadField},
		"a list":      {enc([]raw{}), BadMsgpack},
		"longer":      {append(obj("worker_id", 7), 0xc0), BadMsgpack},
	} {
		_, err := ActiveLoad(c.payload)
		refusedAs(t, name, err, c.want)
	}
}

func TestBatchRank(t *testing.T) {
	events := raw(enc([]raw{raw(obj("type", "AllBlocksCleared"))}))
	for name, c := range map[string]struct {
		payload []byte
		want    int
	}{
		"third":    {enc([]raw{raw(enc(1.5)), events, raw(enc(3))}), 3},
		"more":     {enc([]raw{raw(enc(1.5)), events, raw(enc(3)), raw(enc("x"))}), 3},
		"nil":      {enc([]raw{raw(enc(1.5)), events, raw(enc(nil))}), NoRank},
		"short":    {enc([]raw{raw(enc(1.5)), events}), NoRank},
		"map":      {obj("ts", 1.5, "events", events, "data_parallel_rank", 5), 5},
		"map none": {obj("ts", 1.5, "events", events), NoRank},
		"text":     {enc([]raw{raw(enc(1.5)), events, raw(enc("3"))}), NoRank},
		"huge":     {enc([]raw{raw(enc(1.5)), events, raw(enc(1 << 20))}), NoRank},
		"below":    {enc([]raw{raw(enc(1.5)), events, raw(enc(-1))}), NoRank},
		"cut":      {enc([]raw{raw(enc(1.5)), events, raw(enc(3))})[:5], NoRank},
		"none":     {nil, NoRank},
		"bomb":     {msgp.AppendArrayHeader(nil, 1<<31), NoRank},
	} {
		if got := BatchRank(c.payload); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func FuzzLoads(f *testing.F) {
	f.Add(pass(1, "w", 0.5, step(1, 2, 3, 4, 5), queue(1, 2, 3, 4)))
	f.Add(obj("worker_id", uint64(worker2), "dp_rank", 3, "kv_used_blocks", 100))
	f.Add(enc([]raw{raw(enc(1.5)), raw(enc([]raw{})), raw(enc(3))}))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, read := range []func([]byte) (Load, error){ForwardPass, ActiveLoad} {
			l, err := read(data)
			if err != nil {
				asRefusal(err)
				continue
			}
			for _, n := range []model.Maybe{l.Running, l.Waiting, l.Tokens, l.PendingTokens, l.KVUsedBlocks, l.BookedBlocks} {
				if n < 0 {
					t.Fatalf("%+v", l)
				}
			}
			if l.Rank < 0 || l.Rank > 1<<16 {
				t.Fatalf("rank %d", l.Rank)
			}
		}
		if r := BatchRank(data); r < NoRank || r > 1<<16 {
			t.Fatalf("rank %d", r)
		}
	})
}
