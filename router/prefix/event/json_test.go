package event

import (
	"errors"
	"strings"
	"testing"
)

func trtTokens(ids ...string) string {
	for i, id := range ids {
		ids[i] = `{"type":"unique_token","token_id":` + id + `,"token_extra_id":0}`
	}
	return "[" + strings.Join(ids, ",") + "]"
}

func TestTRTRoundTrip(t *testing.T) {
	base := Event{Rank: 3, Group: NoGroup, Position: -1, Window: 4096, ID: 1<<53 + 1}
	created := base
	created.Kind, created.Levels = Created, []uint64{1 << 60, 12}
	stored := base
	stored.Kind, stored.Hashes, stored.Tokens, stored.BlockTokens = Stored, goldenHashes(), []uint32{1, 2, 3, 4, 5, 1<<32 - 1}, 2
	child := stored
	child.HasParent, child.Parent, child.Tier, child.Group, child.Rank = true, 1<<64-1, Host, 1, 0
	child.Media = []Media{{Block: 1, Offset: 4, Hash: 1<<63 + 5}}
	removed := base
	removed.Kind, removed.Hashes, removed.AnyTier, removed.Rank = Removed, goldenHashes(), true, NoRank
	moved := base
	moved.Kind, moved.Hashes, moved.Tier = Moved, []Hash{12460730416951841444}, Host
	for name, e := range map[string]Event{"created": created, "stored": stored, "child": child, "removed": removed, "moved": moved} {
		t.Run(name, func(t *testing.T) {
			var d Decoder
			var b Batch
			for range 2 {
				if err := d.TRT(AppendTRT(nil, &e), &b); err != nil || b.Refused.Total() != 0 {
					t.Fatal(err, b.Refused.LastError())
				}
				sameEvents(t, b.Events, []Event{e})
			}
		})
	}
}

func TestTRTOddities(t *testing.T) {
	cases := map[string]struct {
		in     string
		events int
		reason Reason
		check  func(es []Event) bool
	}{
		"type last, unknown fields": {
			`{"data":{"future":[{}],"block_hashes":[18446744073709551615],"type":"removed"},"event_id":1,"hash_algo":"v1_block_key"}`, 1, 0,
			func(es []Event) bool { return es[0].Hashes[0] == 1<<64-1 && es[0].Rank == NoRank },
		},
		"hash as hex string": {
			`{"event_id":1,"data":{"type":"removed","block_hashes":["` + strings.Repeat("0", 48) + `acedbeefacedbeef","17"]}}`, 1, 0,
			func(es []Event) bool { return es[0].Hashes[0] == 0xacedbeefacedbeef && es[0].Hashes[1] == 17 },
		},
		"negative hash":  {`{"event_id":1,"data":{"type":"removed","block_hashes":[-1]}}`, 1, 0, func(es []Event) bool { return es[0].Hashes[0] == 1<<64-1 }},
		"hash as float":  {`{"event_id":1,"data":{"type":"removed","block_hashes":[1.2e19]}}`, 0, BadField, nil},
		"hash too large": {`{"event_id":1,"data":{"type":"removed","block_hashes":[18446744073709551616]}}`, 0, BadField, nil},
		"partial block ends the list": {
			`{"event_id":1,"data":{"type":"stored","parent_hash":null,"blocks":[{"block_hash":1,"tokens":` + trtTokens("1", "2") +
				`},{"block_hash":2,"tokens":` + trtTokens("3") + `}]}}`, 2, 0,
			func(es []Event) bool {
				return es[0].BlockTokens == 2 && es[1].BlockTokens == 1 && es[1].HasParent && es[1].Parent == 1 && !es[0].HasParent
			},
		},
		"two tiers": {
			`{"event_id":1,"data":{"blocks":[{"cache_level":1,"block_hash":1,"tokens":[7]},{"block_hash":2,"tokens":[8]}],"parent_hash":9,"type":"stored"}}`, 2, 0,
			func(es []Event) bool { return es[0].Tier == Host && es[0].Parent == 9 && es[1].Tier == Device },
		},
		"priority only":      {`{"event_id":1,"data":{"type":"updated","block_hash":1,"cache_level":null,"priority":{"new_value":1,"old_value":2}}}`, 0, Informal, nil},
		"level from null":    {`{"event_id":1,"data":{"type":"updated","block_hash":1,"cache_level":{"type":"event_diff","new_value":1,"old_value":null}}}`, 0, Informal, nil},
		"level to null":      {`{"event_id":1,"data":{"type":"updated","block_hash":1,"cache_level":{"type":"event_diff","new_value":null,"old_value":0}}}`, 0, Informal, nil},
		"level of a word":    {`{"event_id":1,"data":{"type":"updated","block_hash":1,"cache_level":{"new_value":"host","old_value":0}}}`, 0, BadField, nil},
		"levels of one tier": {`{"event_id":1,"data":{"type":"updated","block_hash":1,"cache_level":{"new_value":1,"old_value":1}}}`, 0, Informal, nil},
		"moved up": {
			`{"event_id":1,"data":{"type":"updated","cache_level":{"old_value":1,"new_value":0},"priority":null,"block_hash":12460730416951841444}}`, 1, 0,
			func(es []Event) bool {
				return es[0].Kind == Moved && es[0].From == Host && es[0].Tier == Device && es[0].Hashes[0] == 12460730416951841444
			},
		},
		"unknown type":    {`{"event_id":1,"data":{"type":"promoted"}}`, 0, UnknownTag, nil},
		"no data":         {`{"event_id":1}`, 0, MissingField, nil},
		"cut":             {`{"event_id":1,"data":{"type":"removed","block_hashes":[1,`, 0, CutShort, nil},
		"a hash twice":    {`{"event_id":1,"data":{"type":"stored","blocks":[{"block_hash":1,"tokens":[7]},{"block_hash":1,"tokens":[8]}]}}`, 0, RepeatedHash, nil},
		"its own parent":  {`{"event_id":1,"data":{"type":"stored","parent_hash":1,"blocks":[{"block_hash":1,"tokens":[7]}]}}`, 0, SelfReference, nil},
		"two adapters":    {`{"event_id":1,"data":{"type":"stored","blocks":[{"block_hash":1,"lora_id":1,"tokens":[7]},{"block_hash":2,"tokens":[8]}]}}`, 0, AmbiguousNamespace, nil},
		"adapter by id":   {`{"event_id":1,"data":{"type":"stored","blocks":[{"block_hash":1,"lora_id":1,"tokens":[7]}]}}`, 1, 0, func(es []Event) bool { return es[0].LoRA == "#1" }},
		"escaped key":     {`{"event_id":1,"d\u0061ta":{"type":"removed","block_hashes":[1]}}`, 1, 0, nil},
		"prompt table id": {`{"event_id":1,"data":{"type":"stored","blocks":[{"block_hash":1,"tokens":[{"token_id":1,"token_extra_id":5}]}]}}`, 1, 0, func(es []Event) bool { return len(es[0].Media) == 1 }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var d Decoder
			var b Batch
			if err := d.TRT([]byte(c.in), &b); err != nil {
				t.Fatal(err)
			}
			if len(b.Events) != c.events || c.reason != 0 && b.Refused.Count(c.reason) != 1 || c.reason == 0 && b.Refused.Total() != 0 {
				t.Fatalf("%d events, refused: %s", len(b.Events), b.Refused.LastError())
			}
			if c.check != nil && !c.check(b.Events) {
				t.Errorf("got %+v", b.Events)
			}
		})
	}
}

func TestDrainOrdersByRankAndNumber(t *testing.T) {
	ev := func(rank, id string) string {
		return `{"event_id":` + id + `,"attention_dp_rank":` + rank + `,"data":{"type":"removed","block_hashes":[` + id + `]}}`
	}
	list := "[" + strings.Join([]string{ev("1", "8"), ev("0", "7"), `{"data":{}}`, ev("1", "7"), `17`, ev("0", "6")}, ", ") + "]"
	var refused Tally
	ps, err := Drain([]byte(list), nil, &refused)
	if err != nil || refused.Total() != 2 {
		t.Fatal(err, refused.Total(), refused.LastError())
	}
	var got []string
	for _, p := range ps {
		got = append(got, string(rune('0'+p.Rank))+"/"+string(rune('0'+p.ID)))
	}
	if strings.Join(got, " ") != "0/6 0/7 1/7 1/8" {
		t.Errorf("got %v", got)
	}
	ps, err = Drain([]byte(list[:len(list)-30]), ps, &refused)
	if !errors.Is(err, ErrMessage) || len(ps) != 3 {
		t.Errorf("a cut list: %d pieces, %v", len(ps), err)
	}
	for _, bad := range []string{"", "null", "{}x", "[1", `"x"`, "{"} {
		if _, err := Drain([]byte(bad), nil, &refused); err == nil && bad != "{}x" {
			t.Errorf("%q is a list?", bad)
		}
	}
}

func TestRouterEvents(t *testing.T) {
	in := `[{"worker_id":18446744073709551615,"storage_tier":"host_pinned","event":{"event_id":9007199254740993,"dp_rank":5,"data":
	 {"stored":{"parent_hash":12460730416951841444,"start_position":4,"blocks":[{"block_hash":5,"tokens_hash":14643705804678351452,"mm_extra_info":null},{"tokens_hash":7,"block_hash":6}]}}}},
	 {"worker_id":1,"event":{"event_id":2,"data":{"removed":{"block_hashes":[5,6]}}}},
	 {"worker_id":1,"event":{"event_id":3,"data":{"stored":{"blocks":[{"block_hash":5}]}}}},
	 {"worker_id":1,"event":{"event_id":4,"data":{"exploded":{}}}},
	 7,
	 {"residency_domain":"worker","worker_id":1,"event":{"event_id":5,"dp_rank":2,"data":"cleared"}}]`
	want := []Event{
		{
			Kind: Stored, Tier: Host, Rank: 5, Group: NoGroup, Worker: 1<<64 - 1, ID: 1<<53 + 1, HasParent: true, Parent: 12460730416951841444,
			Position: 4, Hashes: []Hash{5, 6}, Local: []uint64{14643705804678351452, 7},
		},
		{Kind: Removed, Group: NoGroup, Worker: 1, ID: 2, Position: -1, Hashes: []Hash{5, 6}},
		{Kind: Cleared, Rank: 2, Group: NoGroup, Worker: 1, ID: 5, Position: -1},
	}
	var d Decoder
	var b Batch
	if err := d.RouterEvents([]byte(in), &b); err != nil {
		t.Fatal(err)
	}
	sameEvents(t, b.Events, want)
	if b.Seen != 6 || b.Refused.Total() != 3 || b.Refused.Count(MissingField) != 1 || b.Refused.Count(UnknownTag) != 1 {
		t.Errorf("seen %d, refused %d: %s", b.Seen, b.Refused.Total(), b.Refused.LastError())
	}
	var refused Tally
	ps, err := Drain([]byte(in), nil, &refused)
	if err != nil || len(ps) != 5 || ps[4].Worker != 1<<64-1 || ps[4].Rank != 5 || ps[4].ID != 1<<53+1 {
		t.Errorf("drained %d, %v", len(ps), err)
	}
	if err := d.RouterEvents(ps[4].Raw, &b); err != nil || len(b.Events) != 1 {
		t.Errorf("one alone: %v", err)
	}
	if err := d.RouterEvents([]byte("true"), &b); !errors.Is(err, ErrMessage) {
		t.Errorf("got %v", err)
	}
}
