package event

import (
	"errors"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"
)

func pack(t *testing.T, v any) []byte {
	t.Helper()
	p, err := msgp.AppendIntf(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// One bad event of each kind between two good ones: the good ones count, and
// the bad one is counted by its reason.
func TestOneBadEventNeverCostsTheBatch(t *testing.T) {
	ids := []any{1, 2, 3, 4}
	stored := func(fields ...any) []any { return append([]any{tagStored}, fields...) }
	named := func(change map[string]any) map[string]any {
		m := map[string]any{"type": tagStored, "block_hashes": []any{9}, "parent_block_hash": nil, "token_ids": ids, "block_size": 4}
		for k, v := range change {
			if v == "drop" {
				delete(m, k)
			} else {
				m[k] = v
			}
		}
		return m
	}
	cases := map[string]struct {
		event  any
		reason Reason
		text   string
	}{
		"nil":                     {nil, NotAnEvent, "nil"},
		"a number":                {7, NotAnEvent, "a whole number"},
		"a string":                {"BlockStored", NotAnEvent, "a string"},
		"empty list":              {[]any{}, NotAnEvent, "empty"},
		"empty map":               {map[string]any{}, MissingField, "type"},
		"tag is a number":         {[]any{3}, BadField, "tag"},
		"unknown tag":             {[]any{"BlockPromoted", 1}, UnknownTag, "BlockPromoted"},
		"unknown tag, map":        {map[string]any{"type": "BlockPromoted"}, UnknownTag, "BlockPromoted"},
		"too few fields":          {stored([]any{9}, nil, ids), MissingField, "block_size"},
		"removed without hashes":  {[]any{tagRemoved}, MissingField, "block_hashes"},
		"hash is a float":         {stored([]any{1.5}, nil, ids, 4), BadField, "block_hashes: a float"},
		"hashes are a string":     {stored("x", nil, ids, 4), BadField, "block_hashes: a string"},
		"empty hash":              {stored([]any{""}, nil, ids, 4), BadField, "empty hash"},
		"parent is a list":        {stored([]any{9}, []any{}, ids, 4), BadField, "parent_block_hash"},
		"negative token":          {stored([]any{9}, nil, []any{1, 2, 3, -4}, 4), BadField, "32 bits"},
		"token beyond 32 bits":    {stored([]any{9}, nil, []any{1, 2, 3, 1 << 32}, 4), BadField, "32 bits"},
		"a pair of three":         {stored([]any{9}, nil, []any{[]any{1, 2, 3}}, 1), BadField, "two ids"},
		"block size negative":     {stored([]any{9}, nil, ids, -4), BadField, "block_size"},
		"block size zero":         {stored([]any{9}, nil, ids, 0), MissingField, "block_size"},
		"block size absurd":       {stored([]any{9}, nil, ids, 1<<40), BadField, "block_size"},
		"too few tokens":          {stored([]any{9, 8}, nil, ids, 4), TokenCount, "4, want 8"},
		"no tokens on the device": {stored([]any{9}, nil, []any{}, 4), MissingField, "token_ids"},
		"its own parent":          {stored([]any{9}, 9, ids, 4), SelfReference, "parent"},
		"a hash twice":            {stored([]any{9, 9}, nil, ids, 2), RepeatedHash, "block_hashes"},
		"unknown medium":          {named(map[string]any{"medium": "TAPE"}), UnknownMedium, "TAPE"},
		"remote":                  {named(map[string]any{"locality": "REMOTE"}), Remote, "REMOTE"},
		"unknown locality":        {named(map[string]any{"locality": "next door"}), Remote, "next door"},
		"long salt":               {named(map[string]any{"cache_salt": strings.Repeat("s", MaxNameBytes+1)}), TooLarge, "cache_salt"},
		"two salts":               {named(map[string]any{"cache_salt": "a", "extra_keys": []any{[]any{"b"}}}), AmbiguousNamespace, "salt"},
		"two plain root keys":     {named(map[string]any{"extra_keys": []any{[]any{"a", "b"}}}), AmbiguousNamespace, "salt"},
		"keys too deep":           {named(map[string]any{"mm_keys": []any{[]any{[]any{[]any{[]any{[]any{[]any{"x"}}}}}}}}), BadField, "deep"},
		"keys are a number":       {named(map[string]any{"extra_keys": 5}), BadField, "extra_keys"},
		"no tokens, map":          {named(map[string]any{"token_ids": "drop"}), MissingField, "token_ids"},
		"no size, map":            {named(map[string]any{"block_size": "drop"}), MissingField, "block_size"},
		"no hashes, map":          {named(map[string]any{"block_hashes": "drop"}), MissingField, "block_hashes"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			good := stored([]any{1}, nil, ids, 4)
			p := pack(t, []any{1.0, []any{good, c.event, map[string]any{"type": tagCleared}}, 5})
			var d Decoder
			var b Batch
			if err := d.Batch(p, &b); err != nil {
				t.Fatal(err)
			}
			if len(b.Events) != 2 || b.Events[0].Kind != Stored || b.Events[1].Kind != Cleared || b.Rank != 5 || b.Seen != 3 {
				t.Fatalf("%d events, rank %d, seen %d", len(b.Events), b.Rank, b.Seen)
			}
			if b.Refused.Total() != 1 || b.Refused.Count(c.reason) != 1 || !strings.Contains(b.Refused.LastError(), c.text) {
				t.Errorf("refused %d: %s; want %s with %q", b.Refused.Total(), b.Refused.LastError(), c.reason, c.text)
			}
			if last, ok := b.Refused.Last(c.reason); !ok || last.Index != 1 {
				t.Errorf("event %d, want 1", last.Index)
			}
		})
	}
}

func TestCutMessagesGiveWhatCameBefore(t *testing.T) {
	es := []Event{goldenEvents()["stored"], goldenEvents()["removed"], goldenEvents()["child"]}
	p := (&Encoder{}).AppendBatch(nil, 1, 3, es)
	var d Decoder
	var b Batch
	most := 0
	for n := range len(p) {
		err := d.Batch(p[:n], &b)
		if len(b.Events) < most {
			t.Fatalf("%d bytes give %d events, fewer bytes gave %d", n, len(b.Events), most)
		}
		most = len(b.Events)
		if most > 0 && err != nil || b.Refused.Total() == 0 && n < len(p)-1 {
			t.Fatalf("%d bytes: %d events, %v, refused %d", n, most, err, b.Refused.Total())
		}
		sameEvents(t, b.Events, es[:most])
	}
	if most != 3 {
		t.Errorf("the whole gives %d events", most)
	}
}

func TestNoBatchAtAll(t *testing.T) {
	for name, p := range map[string][]byte{
		"nothing": {}, "nil": {0xc0}, "text": []byte("HTTP/1.1 404 Not Found"), "one element": {0x91, 1},
		"events are a number": {0x92, 1, 1}, "map without events": {0x81, 0xa1, 'x', 1}, "too long": make([]byte, MaxBatchBytes+1),
	} {
		var d Decoder
		var b Batch
		if err := d.Batch(p, &b); !errors.Is(err, ErrMessage) || b.Refused.Count(BadMessage) != 1 || len(b.Events) != 0 {
			t.Errorf("%s: %v, refused %d", name, err, b.Refused.Total())
		}
	}
}

func TestBatchAsMap(t *testing.T) {
	e := map[string]any{"type": tagRemoved, "block_hashes": []any{1}}
	for name, v := range map[string]map[string]any{
		"short names":   {"ts": 2.5, "events": []any{e}, "dp_rank": 3},
		"sglang's name": {"ts": 2.5, "events": []any{e}, "attn_dp_rank": 3},
		"long names":    {"timestamp": 2.5, "events": []any{e}, "data_parallel_rank": 3, "more": []any{nil, 1}},
	} {
		var d Decoder
		var b Batch
		decode(t, &d, &b, pack(t, v))
		if len(b.Events) != 1 || b.Time != 2.5 || b.Rank != 3 {
			t.Errorf("%s: %d events, time %v, rank %d", name, len(b.Events), b.Time, b.Rank)
		}
	}
}

func TestForeignKeysAndSalts(t *testing.T) {
	hex := strings.Repeat("0123456789abcdef", 4)
	ids := []any{1, 2, 3, 4}
	event := func(tail ...any) []any { return append([]any{tagStored, []any{1, 2}, nil, ids, 2}, tail...) }
	cases := map[string]struct {
		event      []any
		lora, salt string
		media      []Media
	}{
		"SGLang's salt map":      {event(nil, "GPU", map[string]any{"cache_salt": "t1", "other": 1}), "", "t1", nil},
		"adapter by number":      {event(3), "#3", "", nil},
		"adapter name wins":      {event(3, nil, "sql"), "sql", "", nil},
		"name among the keys":    {event(3, nil, "sql", []any{[]any{"sql"}, []any{"sql"}}), "sql", "", nil},
		"marked salt":            {event(nil, nil, nil, []any{[]any{"dynamo-cache-salt:t1"}, nil}), "", "t1", nil},
		"plain salt at the root": {event(nil, nil, nil, []any{[]any{"t1"}, nil}), "", "t1", nil},
		"picture":                {event(nil, nil, nil, []any{[]any{hex}, nil}), "", "", []Media{{0, -1, 0x0123456789abcdef}}},
		"picture with offset":    {event(nil, nil, nil, []any{nil, []any{[]any{hex, -7}}}), "", "", []Media{{1, -7, 0x0123456789abcdef}}},
		"legacy media":           {event(nil, nil, nil, nil, []any{map[string]any{"mm_objects": []any{map[string]any{"mm_hash": 5, "offsets": []any{}}}}, nil}), "", "", []Media{{0, -1, 5}}},
		"text as media token":    {[]any{tagStored, []any{1, 2}, nil, []any{1, hex, 3, 4}, 2}, "", "", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var d Decoder
			var b Batch
			decode(t, &d, &b, pack(t, []any{1, []any{c.event}}))
			if len(b.Events) != 1 {
				t.Fatal("no event")
			}
			e := b.Events[0]
			if e.LoRA != c.lora || e.Salt != c.salt || len(e.Media) != len(c.media) {
				t.Fatalf("adapter %q salt %q media %v", e.LoRA, e.Salt, e.Media)
			}
			for i, m := range c.media {
				if e.Media[i] != m {
					t.Errorf("media %v, want %v", e.Media[i], m)
				}
			}
		})
	}
}

func TestReasonsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Reasons() {
		if s := r.String(); s == "unknown" || s == "none" || seen[s] {
			t.Errorf("reason %d is called %q", r, s)
		}
		seen[r.String()] = true
	}
	for k := FindSilent; k <= FindRestarted; k++ {
		if s := k.String(); s == "unknown" || seen["f"+s] {
			t.Errorf("finding %d is called %q", k, s)
		}
		seen["f"+k.String()] = true
	}
}
