package event

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/tinylib/msgp/msgp"
)

// a hash in each range that matters: small, beyond 2^53, beyond 2^63.
func goldenHashes() []Hash { return []Hash{5, 1<<53 + 1, 12460730416951841444} }

func goldenEvents() map[string]Event {
	tokens := make([]uint32, 3*16)
	for i := range tokens {
		tokens[i] = []uint32{7, 200, 40_000, 151_643, 1<<32 - 1}[i%5]
	}
	base := Event{Rank: NoRank, Group: NoGroup, Position: -1, Hashes: goldenHashes()}
	stored := base
	stored.Kind, stored.Tokens, stored.BlockTokens = Stored, tokens, 16
	child := stored
	child.HasParent, child.Parent = true, 1<<63+9
	full := child
	full.Tier, full.LoRA, full.Group, full.Spec, full.Window = Host, "sql-adapter", 2, SpecMain, 4096
	full.Media = []Media{{Block: 0, Offset: -3, Hash: 77}, {Block: 2, Offset: 5, Hash: 1<<63 + 1}}
	salted := stored
	salted.Salt = "tenant-a"
	numbered := stored
	numbered.LoRA = "#7"
	pairs := child
	pairs.Bigram, pairs.Tokens = true, append(append([]uint32{}, tokens...), 3)
	offloaded := child
	offloaded.Tokens, offloaded.BlockTokens, offloaded.Tier = nil, 0, Disk
	copied := base // as vLLM's CPU offload sends it: no tokens, no parent
	copied.Kind, copied.Tier, copied.BlockTokens = Stored, Host, 16
	removed := base
	removed.Kind, removed.Tier, removed.Group, removed.Spec, removed.Window = Removed, Host, 1, SpecOther, 512
	cleared := Event{Kind: Cleared, Rank: NoRank, Group: NoGroup, Position: -1}
	return map[string]Event{
		"stored": stored, "child": child, "full": full, "salted": salted, "numbered": numbered,
		"pairs": pairs, "offloaded": offloaded, "copied": copied, "removed": removed, "cleared": cleared,
	}
}

// asSent is what is left of e when only so many positional fields were sent.
func asSent(e Event, fields int) Event {
	if e.Kind == Removed {
		fields = []int{0, 1, 6, 9, 10, 11}[fields]
	}
	if fields < 11 {
		e.Window = 0
	}
	if fields < 10 {
		e.Spec = SpecUnsaid
	}
	if fields < 9 {
		e.Group = NoGroup
	}
	if fields < 8 {
		e.Media, e.Salt = nil, ""
	}
	if fields < 7 && e.LoRA != "#7" || fields < 5 {
		e.LoRA = ""
	}
	if fields < 6 {
		e.Tier = Device
	}
	return e
}

func lengths(k Kind) (from, to int) {
	switch k {
	case Stored:
		return 4, 11
	case Removed:
		return 1, 5
	}
	return 0, 0
}

func sameEvents(t *testing.T, got, want []Event) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("events differ (-want +got):\n%s", d)
	}
}

func decode(t *testing.T, d *Decoder, b *Batch, p []byte) {
	t.Helper()
	if err := d.Batch(p, b); err != nil {
		t.Fatal(err)
	}
	if n := b.Refused.Total(); n != 0 {
		t.Errorf("%d refused: %s", n, b.Refused.LastError())
	}
}

// Every event in every form, every legal length, every form of hash; with and
// without a rank.
func TestGoldenTable(t *testing.T) {
	cells := 0
	for name, e := range goldenEvents() {
		for _, hash := range []HashForm{UnsignedHash, SignedHash, BytesHash} {
			for _, rank := range []int{NoRank, 0, 11} {
				check := func(form string, c Encoder, want Event) {
					cells++
					t.Run(fmt.Sprintf("%s/%s/hash%d/rank%d", name, form, hash, rank), func(t *testing.T) {
						var d Decoder
						var b Batch
						c.Hash = hash
						decode(t, &d, &b, c.AppendBatch(nil, 1.5, rank, []Event{e}))
						sameEvents(t, b.Events, []Event{want})
						if b.Time != 1.5 || int(b.Rank) != rank || b.Seen != 1 {
							t.Errorf("time %v, rank %d, seen %d", b.Time, b.Rank, b.Seen)
						}
					})
				}
				from, to := lengths(e.Kind)
				for n := from; n <= to; n++ {
					if e.Kind == Stored && e.Tier != Device && len(e.Tokens) == 0 && n < 6 {
						continue // without its medium it would be a device store without tokens
					}
					check(fmt.Sprintf("array%d", n+1), Encoder{Fields: n}, asSent(e, n))
				}
				check("map", Encoder{Form: MapForm}, e)
				check("unknown fields", Encoder{Form: MapForm, Extra: true}, e)
				for seed := range uint64(4) {
					check(fmt.Sprintf("shuffled%d", seed), Encoder{Form: MapForm, Extra: true, Shuffle: rand.New(rand.NewPCG(seed, 1))}, e)
				}
			}
		}
	}
	t.Logf("%d cells", cells)
}

// Report A1: the new form gives what the old one gave, also in one batch.
func TestFormsMixInOneBatch(t *testing.T) {
	var want []Event
	var p []byte
	p = msgp.AppendArrayHeader(p, 3)
	p = msgp.AppendFloat64(p, 1)
	var body []byte
	for _, name := range []string{"stored", "full", "removed", "cleared", "salted", "child"} {
		e := goldenEvents()[name]
		for i, c := range []Encoder{{}, {Form: MapForm}, {Hash: BytesHash}, {Form: MapForm, Hash: SignedHash, Extra: true}} {
			body = c.appendEvent(body, &e)
			want = append(want, e)
			if i == 1 { // something foreign after every second event
				body = msgp.AppendString(msgp.AppendArrayHeader(body, 1), "BlockPromoted")
			}
		}
	}
	p = msgp.AppendArrayHeader(p, uint32(len(want)+6))
	p = append(p, body...)
	p = msgp.AppendInt(p, 3)
	var d Decoder
	var b Batch
	for range 2 { // a used batch reads the same
		if err := d.Batch(p, &b); err != nil {
			t.Fatal(err)
		}
		sameEvents(t, b.Events, want)
		if b.Rank != 3 || b.Refused.Count(UnknownTag) != 6 || b.Refused.Total() != 6 {
			t.Errorf("rank %d, refused %s", b.Rank, b.Refused.LastError())
		}
	}
}

// The batch of report A1, and one in the keys of a vLLM 0.26 engine.
func TestReportedBatches(t *testing.T) {
	m := func(p []byte, n uint32) []byte { return msgp.AppendMapHeader(p, n) }
	s := msgp.AppendString
	ids := func(p []byte) []byte {
		p = msgp.AppendArrayHeader(p, 16)
		for i := range 16 {
			p = msgp.AppendInt(p, i)
		}
		return p
	}
	head := msgp.AppendArrayHeader(msgp.AppendFloat64(msgp.AppendArrayHeader(nil, 3), 1), 1)
	common := func(p []byte, hash uint64) []byte {
		p = msgp.AppendUint64(msgp.AppendArrayHeader(s(s(s(p, "type"), tagStored), "block_hashes"), 1), hash)
		p = ids(s(msgp.AppendNil(s(p, "parent_block_hash")), "token_ids"))
		p = msgp.AppendNil(s(msgp.AppendInt(s(p, "block_size"), 16), "lora_id"))
		return msgp.AppendNil(s(s(s(p, "medium"), "GPU"), "lora_name"))
	}
	a1 := msgp.AppendInt(common(m(head, 8), 5), 0)
	v026 := common(m(head[:len(head):len(head)], 11), 17003414863498349826)
	v026 = msgp.AppendInt(s(msgp.AppendNil(msgp.AppendArrayHeader(s(v026, "extra_keys"), 1)), "group_idx"), 0)
	v026 = msgp.AppendInt(s(s(v026, "kv_cache_spec_kind"), "full_attention"), 0)
	for name, c := range map[string]struct {
		p    []byte
		hash Hash
		g    int32
	}{"A1": {a1, 5, NoGroup}, "vLLM 0.26": {v026, 17003414863498349826, 0}} {
		var d Decoder
		var b Batch
		decode(t, &d, &b, c.p)
		if len(b.Events) != 1 || b.Events[0].Hashes[0] != c.hash || len(b.Events[0].Tokens) != 16 || b.Rank != 0 || b.Events[0].Group != c.g {
			t.Errorf("%s: %+v", name, b.Events)
		}
	}
}

func TestTypedTails(t *testing.T) {
	type tail = []any
	cases := map[string]struct {
		tail  tail
		group int32
		win   int32
		spec  Spec
		media int
	}{
		"none":                {tail{}, NoGroup, 0, SpecUnsaid, 0},
		"group":               {tail{3}, 3, 0, SpecUnsaid, 0},
		"group, kind":         {tail{3, "mla_attention"}, 3, 0, SpecMain, 0},
		"all of vLLM's":       {tail{1, "sliding_window", 512}, 1, 512, SpecOther, 0},
		"no group but window": {tail{nil, "sliding_window", 512}, NoGroup, 512, SpecOther, 0},
		"nil nil window":      {tail{nil, nil, 512}, NoGroup, 512, SpecUnsaid, 0},
		"all nil":             {tail{nil, nil, nil}, NoGroup, 0, SpecUnsaid, 0},
		"media first":         {tail{[]any{"a"}, 2, "full_attention", nil}, 2, 0, SpecMain, 1},
		"nil media":           {tail{nil, 2, "full_attention", 64, "LOCAL"}, 2, 64, SpecMain, 0},
		"kind only":           {tail{"mamba"}, NoGroup, 0, SpecOther, 0},
		"locality":            {tail{0, "full_attention", nil, "LOCAL", map[string]any{"x": 1}}, 0, 0, SpecMain, 0},
		"new kind":            {tail{0, "hyper_attention"}, 0, 0, SpecUnknown, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fields := append([]any{tagStored, []any{1}, nil, []any{1, 2}, 2, nil, "GPU", nil, nil}, c.tail...)
			p, err := msgp.AppendIntf(nil, []any{1.0, []any{fields}})
			if err != nil {
				t.Fatal(err)
			}
			var d Decoder
			var b Batch
			decode(t, &d, &b, p)
			if len(b.Events) != 1 {
				t.Fatal("no event")
			}
			e := b.Events[0]
			if e.Group != c.group || e.Window != c.win || e.Spec != c.spec || len(e.Media) != c.media {
				t.Errorf("group %d window %d spec %d media %d", e.Group, e.Window, e.Spec, len(e.Media))
			}
		})
	}
}
