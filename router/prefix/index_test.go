package prefix

import (
	"slices"
	"testing"
)

// story is a small index that is told events in words; its blocks are one
// chain of ten unless said otherwise.
type story struct {
	*bed
	t      *testing.T
	blocks []Block
	chain  []Chain
}

func newStory(t *testing.T, ranks int) *story {
	s := &story{bed: newBed(t, ranks, Options{Targets: 64}), t: t}
	s.blocks = s.fresh(10)
	s.chain = chainLocals(nil, locals(s.blocks))
	return s
}

func (s *story) apply(k int, events ...Event) Applied {
	s.t.Helper()
	a, err := s.ix.Apply(s.ids[k], &Batch{Events: events})
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s *story) stores(k, from, to int) { s.apply(k, storing(s.blocks, from, to)) }
func (s *story) removes(k int, at ...int) {
	for _, i := range at {
		s.apply(k, removal(s.blocks[i:i+1]))
	}
}

// holds checks the device depths of the first targets.
func (s *story) holds(want ...int32) {
	s.t.Helper()
	if got := depths(s.ix, s.chain)[:len(want)]; !slices.Equal(got, want) {
		s.t.Errorf("held %d, want %d", got, want)
	}
}

func TestStories(t *testing.T) {
	cases := map[string]func(s *story){
		"a stored chain counts as far as it goes": func(s *story) {
			s.stores(0, 0, 10)
			s.stores(1, 0, 4)
			s.holds(10, 4, 0)
		},
		"stored twice, removed once: one owner is left": func(s *story) {
			s.stores(0, 0, 10)
			s.stores(0, 5, 6)
			s.removes(0, 5)
			s.holds(10)
			s.removes(0, 5)
			s.holds(5)
		},
		"a removed middle block shortens until it is back": func(s *story) {
			s.stores(0, 0, 10)
			s.stores(1, 0, 10)
			s.removes(0, 3, 4, 7)
			s.holds(3, 10)
			s.stores(0, 3, 4)
			s.holds(4, 10)
			s.stores(0, 4, 5)
			s.holds(7, 10)
			s.stores(0, 7, 8)
			s.holds(10, 10)
		},
		"the first block is a middle block too": func(s *story) {
			s.stores(0, 0, 10)
			s.removes(0, 0)
			s.holds(0)
			s.stores(0, 0, 1)
			s.holds(10)
		},
		"children of an unknown parent wait for it": func(s *story) {
			s.stores(0, 6, 10)
			s.stores(0, 3, 6)
			s.holds(0)
			s.stores(0, 0, 3)
			s.holds(10)
		},
		"a block removed while it waits does not come back": func(s *story) {
			s.stores(0, 3, 6)
			s.removes(0, 4)
			s.stores(0, 0, 3)
			s.holds(4)
		},
		"a parent that another target holds is unknown to this one": func(s *story) {
			s.stores(1, 0, 10)
			s.stores(0, 5, 10)
			s.holds(0, 10)
		},
		"cleared wipes one target": func(s *story) {
			s.stores(0, 0, 10)
			s.stores(1, 0, 10)
			s.apply(0, Event{Kind: Cleared})
			s.holds(0, 10)
			s.stores(0, 0, 2)
			s.holds(2, 10)
		},
		"cleared wipes waiting blocks and all tiers": func(s *story) {
			host := storing(s.blocks, 0, 10)
			host.Tier = Host
			s.apply(0, host)
			s.stores(0, 0, 1)
			other := s.fresh(3)
			s.apply(0, Event{Kind: Stored, HasParent: true, Parent: 12345, Blocks: other})
			s.apply(0, Event{Kind: Cleared})
			if st, _ := s.ix.TargetStats(s.ids[0]); st.Blocks != [Tiers]int{} || st.Waiting != 0 || s.ix.Stats().Blocks != 0 {
				s.t.Errorf("left: %+v", st)
			}
		},
		"an unknown removal is counted and does nothing": func(s *story) {
			s.stores(1, 0, 10)
			if a := s.apply(0, removal(s.blocks)); a.Unknown != 10 || a.Removed != 0 {
				s.t.Errorf("%+v", a)
			}
			s.holds(0, 10)
		},
		"the tier of a removal counts": func(s *story) {
			s.stores(0, 0, 10)
			e := removal(s.blocks[9:])
			e.Tier = Disk
			if a := s.apply(0, e); a.Unknown != 1 {
				s.t.Errorf("%+v", a)
			}
			s.holds(10)
		},
		"another group is another owner": func(s *story) {
			s.stores(0, 0, 10)
			e := storing(s.blocks, 0, 10)
			e.Group = 1
			s.apply(0, e)
			s.removes(0, 2)
			s.holds(10) // group 1 still holds it
			e = removal(s.blocks[2:3])
			e.Group = 1
			s.apply(0, e)
			s.holds(2)
		},
		"another scope is another owner": func(s *story) {
			e := storing(s.blocks, 0, 10)
			e.Scope = 7
			s.apply(0, e)
			if a := s.apply(0, removal(s.blocks[9:])); a.Unknown != 1 {
				s.t.Errorf("%+v", a)
			}
			s.holds(10)
		},
		"engines may name the same block differently": func(s *story) {
			mine := slices.Clone(s.blocks)
			for i := range mine {
				mine[i].External += 1000
			}
			s.stores(0, 0, 10)
			s.apply(1, storing(mine, 0, 6))
			s.holds(10, 6)
			s.apply(1, removal(mine[3:4]))
			s.holds(10, 3)
			s.apply(1, removal(s.blocks)) // the other's names mean nothing here
			s.holds(10, 3)
		},
		"engines may name different blocks alike": func(s *story) {
			other := slices.Clone(s.blocks)
			for i := range other {
				other[i].Local++
			}
			s.stores(0, 0, 10)
			s.apply(1, storing(other, 0, 10))
			s.holds(10, 0)
			s.apply(1, removal(other[5:]))
			s.holds(10, 0)
			if d := depths(s.ix, chainLocals(nil, locals(other))); d[0] != 0 || d[1] != 5 {
				s.t.Errorf("the other chain: %d", d)
			}
		},
		"a name that equals a chain hash is still only a name": func(s *story) {
			s.apply(0, Event{Kind: Stored, Blocks: []Block{{External(s.chain[1]), s.blocks[0].Local}}})
			s.holds(1)
			s.apply(0, Event{Kind: Removed, Hashes: []External{External(s.chain[0])}})
			s.holds(1)
		},
		"an event that stores a block below itself is refused": func(s *story) {
			e := storing(s.blocks, 0, 3)
			e.HasParent, e.Parent = true, s.blocks[2].External
			twice := Event{Kind: Stored, Blocks: []Block{s.blocks[0], s.blocks[0]}}
			if a := s.apply(0, e, twice, Event{Kind: 9}, Event{Kind: Stored, Tier: 3}, storing(s.blocks, 0, 2)); a.Refused != 4 || a.Stored != 2 {
				s.t.Errorf("%+v", a)
			}
			s.holds(2)
		},
	}
	for name, tell := range cases {
		t.Run(name, func(t *testing.T) { tell(newStory(t, 3)) })
	}
}

func TestReplayAndRestart(t *testing.T) {
	s := newStory(t, 2)
	send := func(seq uint64, e Event) Applied {
		a, _ := s.ix.Apply(s.ids[0], &Batch{Seq: seq, Numbered: true, Events: []Event{e}})
		return a
	}
	s.stores(1, 0, 10)
	send(500, storing(s.blocks, 0, 10))
	if a := send(500, storing(s.blocks, 0, 10)); !a.Replayed {
		t.Errorf("a replay was applied: %+v", a)
	}
	send(501, removal(s.blocks[9:]))
	s.holds(9, 10) // the replay had not raised the count
	if a := send(0, storing(s.blocks, 9, 10)); !a.Replayed {
		t.Errorf("a late duplicate was applied: %+v", a)
	}
	if err := s.ix.Restart(s.ids[0]); err != nil {
		t.Fatal(err)
	}
	s.holds(0, 10)
	other := s.fresh(4)
	send(0, storing(other, 0, 4))
	s.holds(0, 10)
	if d := depths(s.ix, chainLocals(nil, locals(other))); d[0] != 4 {
		t.Errorf("after the restart %d new blocks", d[0])
	}
	st, _ := s.ix.TargetStats(s.ids[0])
	if st.Replayed != 2 || st.Restarts != 1 || st.LastSeq != 0 || !st.Numbered {
		t.Errorf("figures %+v", st)
	}
}

func TestTiersExtendEachOther(t *testing.T) {
	type run struct {
		tier     Tier
		from, to int
	}
	cases := map[string]struct {
		runs []run
		gone []run
		want [Tiers]int32
	}{
		"each tier goes on where the one before ended":    {runs: []run{{Device, 0, 4}, {Host, 4, 6}, {Disk, 6, 9}}, want: [Tiers]int32{4, 2, 3}},
		"copies below count once":                         {runs: []run{{Device, 0, 4}, {Host, 0, 7}, {Disk, 0, 9}}, want: [Tiers]int32{4, 3, 2}},
		"nothing on the device":                           {runs: []run{{Host, 0, 5}}, want: [Tiers]int32{0, 5, 0}},
		"only disk":                                       {runs: []run{{Disk, 0, 5}}, want: [Tiers]int32{0, 0, 5}},
		"what is behind a hole does not count":            {runs: []run{{Device, 0, 10}, {Host, 5, 6}}, gone: []run{{Device, 5, 6}}, want: [Tiers]int32{5, 1, 0}},
		"a hole in the host's run":                        {runs: []run{{Device, 0, 2}, {Host, 2, 10}}, gone: []run{{Host, 6, 7}}, want: [Tiers]int32{2, 4, 0}},
		"disk fills the host's hole and the host resumes": {runs: []run{{Device, 0, 2}, {Host, 2, 10}, {Disk, 6, 10}}, gone: []run{{Host, 6, 7}}, want: [Tiers]int32{2, 4, 4}},
		"moved down from the end":                         {runs: []run{{Device, 0, 10}, {Host, 6, 10}}, gone: []run{{Device, 6, 10}}, want: [Tiers]int32{6, 4, 0}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, 3)
			for _, r := range c.runs {
				e := storing(s.blocks, r.from, r.to)
				e.Tier = r.tier
				s.apply(1, e)
			}
			for _, r := range c.gone {
				e := removal(s.blocks[r.from:r.to])
				e.Tier = r.tier
				s.apply(1, e)
			}
			var out Matches
			s.ix.NewMatcher().Match(s.chain, &out)
			if got := [Tiers]int32{out.Device[1], out.Host[1], out.Disk[1]}; got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
			if total := int(c.want[0] + c.want[1] + c.want[2]); out.Total(1) != total || out.Total(0) != 0 || out.Total(99) != 0 || out.Blocks != 10 {
				t.Errorf("totals %d, %d", out.Total(1), out.Total(0))
			}
		})
	}
}

func TestDropMakesRoom(t *testing.T) {
	s := newStory(t, 3)
	for k := range 3 {
		s.stores(k, 0, 10)
	}
	if err := s.ix.Drop(s.ix.Targets()[1]); err != nil {
		t.Fatal(err)
	}
	s.holds(10, 0, 10)
	id, err := s.ix.Add(w0(77))
	if err != nil || id != 1 {
		t.Fatalf("ID %d, %v", id, err)
	}
	s.holds(10, 0, 10)
	if st, _ := s.ix.TargetStats(id); st.Stored != 0 || st.Target != w0(77) {
		t.Errorf("the new target begins with %+v", st)
	}
}

func TestNamesOfTiers(t *testing.T) {
	if Device.String()+Host.String()+Disk.String()+Tier(7).String() != "devicehostdiskno such tier" {
		t.Error("names of tiers")
	}
}
