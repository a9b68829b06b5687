package event

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// hears plays events as msgpack batches of one through a feed and says what
// came out: kind, group, salt and first hash.
type listener struct{ out []string }

func (l *listener) take(b *Batch) {
	for _, e := range b.Events {
		s := fmt.Sprintf("%s r%d", e.Kind, e.Rank)
		for _, h := range e.Hashes {
			s += fmt.Sprintf(" %d", h)
		}
		if e.Salt != "" {
			s += " " + e.Salt
		}
		if e.Synthetic {
			s += " (own)"
		}
		l.out = append(l.out, s)
	}
}

func short(hash Hash, change func(e *Event)) Event {
	e := Event{Kind: Stored, Group: NoGroup, Hashes: []Hash{hash}, Tokens: []uint32{1, 2}, BlockTokens: 2}
	if change != nil {
		change(&e)
	}
	return e
}

func TestFilter(t *testing.T) {
	group := func(h Hash, g int32, s Spec) Event {
		return short(h, func(e *Event) { e.Group, e.Spec = g, s })
	}
	child := func(h, parent Hash, salt string) Event {
		return short(h, func(e *Event) { e.HasParent, e.Parent, e.Salt = true, parent, salt })
	}
	cases := map[string]struct {
		in      []Event
		out     string
		refused []Reason
	}{
		"plain": {[]Event{short(1, nil), {Kind: Removed, Group: NoGroup, Hashes: []Hash{1}}, {Kind: Cleared}}, "stored r2 1, removed r2 1, cleared r2", nil},
		"hybrid, group 0 is main": {
			[]Event{group(1, 0, SpecMain), group(2, 1, SpecOther), group(3, 1, SpecUnsaid), group(4, 0, SpecUnsaid)},
			"stored r2 1, stored r2 4",
			[]Reason{OtherAttention, OtherGroup},
		},
		"hybrid, main group learned late": {
			[]Event{group(1, 0, SpecUnsaid), group(2, 2, SpecUnsaid), group(3, 2, SpecMain), group(4, 0, SpecUnsaid)},
			"stored r2 1, cleared r2 (own), stored r2 3",
			[]Reason{UnlearnedGroup, OtherGroup},
		},
		"two groups of full attention count once": {[]Event{group(1, 1, SpecMain), group(1, 2, SpecMain)}, "stored r2 1", []Reason{OtherGroup}},
		"removals of other groups":                {[]Event{group(1, 0, SpecMain), {Kind: Removed, Group: 1, Hashes: []Hash{1}}}, "stored r2 1", []Reason{OtherGroup}},
		"unknown attention":                       {[]Event{group(1, 0, SpecUnknown)}, "", []Reason{UnknownSpec}},
		"block size":                              {[]Event{short(1, func(e *Event) { e.BlockTokens, e.Tokens = 1, e.Tokens[:1] })}, "", []Reason{BlockSize}},
		"offloaded by hash only":                  {[]Event{short(1, func(e *Event) { e.BlockTokens, e.Tokens, e.Tier = 0, nil, Host })}, "stored r2 1", nil},
		"salt is inherited": {
			[]Event{short(1, func(e *Event) { e.Salt = "a" }), child(2, 1, ""), child(3, 2, ""), child(5, 4, "")},
			"stored r2 1 a, stored r2 2 a, stored r2 3 a, stored r2 5", nil,
		},
		"salt against its parent's": {[]Event{short(1, func(e *Event) { e.Salt = "a" }), child(2, 1, "b")}, "stored r2 1 a", []Reason{AmbiguousNamespace}},
	}
	for name, c := range cases {
		for _, alone := range []bool{true, false} { // a batch each, or all in one
			t.Run(fmt.Sprintf("%s/%v", name, alone), func(t *testing.T) {
				var l listener
				f, err := NewFeed(Config{BlockTokens: 2, StartRank: 8, Ranks: 4}, l.take)
				if err != nil {
					t.Fatal(err)
				}
				var seq uint64
				send := func(es []Event) {
					f.Live(time.Unix(1, 0), 1, seq, (&Encoder{Form: MapForm}).AppendBatch(nil, 1, 10, es))
					seq++
				}
				if alone {
					for i := range c.in {
						send(c.in[i : i+1])
					}
				} else {
					send(c.in)
				}
				if got := strings.Join(l.out, ", "); got != c.out {
					t.Errorf("got  %s\nwant %s", got, c.out)
				}
				for _, r := range c.refused {
					if f.Refused().Count(r) == 0 {
						t.Errorf("none refused as %s", r)
					}
				}
				if int(f.Refused().Total()) != len(c.refused) {
					t.Errorf("%d refused, last %s", f.Refused().Total(), f.Refused().LastError())
				}
			})
		}
	}
}

func TestSaltsAreForgottenInBounds(t *testing.T) {
	f := newFilter(Msgpack, 2)
	for i := range Hash(5 * maxSalted) {
		e := short(i, func(e *Event) { e.HasParent, e.Parent = i > 0, i-1 })
		if i == 0 {
			e.Salt = "a"
		}
		if why := f.inherit(&e); why.Reason != 0 || e.Salt != "a" {
			t.Fatalf("block %d of a long chain has salt %q", i, e.Salt)
		}
	}
	if n := len(f.salts.young) + len(f.salts.old); n > 2*maxSalted {
		t.Errorf("%d remembered", n)
	}
}

func TestTRTWindowsAndPartialBlocks(t *testing.T) {
	var l listener
	var feeds [4]*Feed
	for rank := range feeds {
		var err error
		if feeds[rank], err = NewFeed(Config{Format: TRTJSON, BlockTokens: 2, Ranks: 4, Rank: rank}, l.take); err != nil {
			t.Fatal(err)
		}
	}
	poll := func(es ...string) {
		t.Helper()
		var refused Tally
		pieces, err := Drain([]byte("["+strings.Join(es, ",")+"]"), nil, &refused)
		if err != nil || refused.Total() != 0 {
			t.Fatal(err, refused.LastError())
		}
		for _, p := range pieces {
			feeds[p.Rank].Live(time.Unix(1, 0), 1, p.ID, p.Raw)
		}
	}
	ev := func(rank, id, window int, data string) string {
		return fmt.Sprintf(`{"event_id":%d,"attention_dp_rank":%d,"window_size":%d,"data":%s}`, id, rank, window, data)
	}
	created := `{"type":"created","num_blocks_per_cache_level":[10,5]}`
	stored := func(parent, blocks string) string {
		return `{"type":"stored","parent_hash":` + parent + `,"blocks":[` + blocks + `]}`
	}
	block := func(h, tokens string) string { return `{"block_hash":` + h + `,"tokens":[` + tokens + `]}` }
	removed := func(h string) string { return `{"type":"removed","block_hashes":[` + h + `]}` }
	want := func(out string) {
		t.Helper()
		if got := strings.Join(l.out, ", "); got != out {
			t.Errorf("got  %s\nwant %s", got, out)
		}
		l.out = nil
	}
	// Two ranks, merged in any order; the narrow window and the partial block go.
	poll(ev(3, 2, 512, stored("null", block("77", "1,2"))), ev(0, 0, 4096, created), ev(3, 1, 4096, created), ev(3, 0, 512, created),
		ev(3, 3, 4096, stored("null", block("1", "1,2")+","+block("2", "3,4")+","+block("3", "5"))))
	want("stored r3 1 2")
	poll(ev(3, 4, 4096, removed("3,2")), ev(3, 5, 4096, removed("3")), ev(3, 6, 512, removed("1")))
	want("removed r3 2")
	poll(ev(3, 7, 4096, `{"type":"updated","block_hash":1,"cache_level":{"new_value":1,"old_value":0},"priority":null}`))
	want("moved r3 1")
	// Numbers jump: the buffer overflowed, and nothing brings the events back.
	poll(ev(3, 10, 4096, stored("null", block("5", "1,2"))))
	want("doubted r3 (own), stored r3 5")
	if s := feeds[3].Stats(); s.Lost != 2 || s.Wipes != 0 {
		t.Errorf("%+v", s)
	}
	// A restart, seen from the numbers: event 0 is the same as ever.
	poll(ev(3, 0, 512, created), ev(3, 1, 4096, created), ev(3, 2, 4096, stored("null", block("6", "1,2"))))
	want("cleared r3 (own), stored r3 6")
	if s := feeds[3].Stats(); s.Restarts != 1 || feeds[0].Stats().Wipes != 0 {
		t.Errorf("%+v", s)
	}
	// Another block size: a partial block cannot have children.
	poll(ev(0, 1, 4096, stored("null", block("8", "1"))), ev(0, 2, 4096, stored("8", block("9", "2"))))
	want("")
	if n := feeds[0].Refused().Count(BlockSize); n != 1 || find(feeds[0].Findings(time.Unix(2, 0)), FindBlockSize) == nil {
		t.Errorf("%d refused for their size", n)
	}
}

// A restart behind a proxy, long after what is remembered and with its first
// batches lost, is no run of duplicates.
func TestOldNumbersInARowAreARestart(t *testing.T) {
	p := newPatient(t, Config{})
	for range 3000 {
		p.send(0, sixteen())
	}
	p.seq = 17
	p.send(0, sixteen())
	if s := p.f.Stats(); s.Restarts != 0 || s.Duplicates != 1 {
		t.Fatalf("one old number: %+v", s)
	}
	p.send(0, sixteen())
	if s := p.f.Stats(); s.Restarts != 1 {
		t.Fatalf("two in a row: %+v", s)
	}
	if last, _ := p.f.Sequence(); last != 18 {
		t.Errorf("at %d", last)
	}
}
