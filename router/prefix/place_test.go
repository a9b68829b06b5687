package prefix

import (
	"sync"
	"sync/atomic"
	"testing"
)

// byName is a Placed event, or a Moved one where from is another tier.
func byName(blocks []Block, from, to Tier) Event {
	e := removal(blocks)
	e.Kind, e.Tier = Placed, to
	if from != to {
		e.Kind, e.From = Moved, from
	}
	return e
}

func (s *story) tiers(k int, want ...int32) {
	s.t.Helper()
	var out Matches
	s.ix.NewMatcher().Match(s.chain, &out)
	if got := [Tiers]int32{out.Device[k], out.Host[k], out.Disk[k]}; got != [Tiers]int32(want) {
		s.t.Errorf("by tier %d, want %d", got, want)
	}
}

// TestNamesAlone: blocks come to a tier and move between tiers under the
// engine's name for them, their content told once.
func TestNamesAlone(t *testing.T) {
	cases := map[string]func(s *story){
		"a copy below outlives the device's": func(s *story) {
			s.stores(0, 0, 10)
			if a := s.apply(0, byName(s.blocks[4:], Host, Host)); a.Placed != 6 || a.Unplaced != 0 {
				s.t.Errorf("%+v", a)
			}
			s.tiers(0, 10, 0, 0)
			s.apply(0, removal(s.blocks[2:]))
			s.tiers(0, 2, 0, 0)
			s.stores(0, 2, 4)
			s.tiers(0, 4, 6, 0)
		},
		"placed twice, removed once": func(s *story) {
			s.stores(0, 0, 10)
			s.apply(0, byName(s.blocks[9:], Host, Host), byName(s.blocks[9:], Host, Host), removal(s.blocks[9:]))
			e := removal(s.blocks[9:])
			e.Tier = Host
			s.apply(0, e)
			s.tiers(0, 9, 1, 0)
			s.apply(0, e)
			s.tiers(0, 9, 0, 0)
		},
		"moved down and up again": func(s *story) {
			s.stores(0, 0, 10)
			if a := s.apply(0, byName(s.blocks[6:], Device, Host)); a.Placed != 4 {
				s.t.Errorf("%+v", a)
			}
			s.tiers(0, 6, 4, 0)
			s.apply(0, byName(s.blocks[8:], Host, Disk))
			s.tiers(0, 6, 2, 2)
			s.apply(0, byName(s.blocks[6:8], Host, Device), byName(s.blocks[8:], Disk, Device))
			s.holds(10)
			if st, _ := s.ix.TargetStats(s.ids[0]); st.Blocks != [Tiers]int{10} || st.Placed != 10 || st.Unplaced != 0 {
				s.t.Errorf("%+v", st)
			}
		},
		"one of two owners moves": func(s *story) {
			s.stores(0, 0, 10)
			s.stores(0, 9, 10)
			s.apply(0, byName(s.blocks[9:], Device, Host))
			s.holds(10)
			s.removes(0, 9)
			s.tiers(0, 9, 1, 0)
		},
		"a middle block that moves shortens the device's match only": func(s *story) {
			s.stores(0, 0, 10)
			s.apply(0, byName(s.blocks[3:4], Device, Host))
			s.tiers(0, 3, 1, 0)
			s.apply(0, byName(s.blocks[3:4], Host, Device))
			s.holds(10)
		},
		"a name nobody told stands for nothing": func(s *story) {
			s.stores(1, 0, 10) // another target's names do not count
			if a := s.apply(0, byName(s.blocks, Host, Host), byName(s.blocks, Device, Host)); a.Placed != 0 || a.Unplaced != 20 {
				s.t.Errorf("%+v", a)
			}
			s.tiers(0, 0, 0, 0)
			if st, _ := s.ix.TargetStats(s.ids[0]); st.Unplaced != 20 || st.Blocks != [Tiers]int{} {
				s.t.Errorf("%+v", st)
			}
		},
		"a name whose block is gone everywhere stands for nothing": func(s *story) {
			s.stores(0, 0, 10)
			s.removes(0, 9)
			if a := s.apply(0, byName(s.blocks[9:], Host, Host)); a.Unplaced != 1 {
				s.t.Errorf("%+v", a)
			}
			s.holds(9)
		},
		"a move whose beginning was missed is believed": func(s *story) {
			s.stores(0, 0, 10)
			s.apply(0, byName(s.blocks[9:], Disk, Host))
			s.removes(0, 9)
			s.tiers(0, 9, 1, 0)
			if a := s.apply(0, byName(s.blocks[9:], Disk, Host)); a.Placed != 1 || a.Unplaced != 0 { // told again
				s.t.Errorf("%+v", a)
			}
			e := removal(s.blocks[9:])
			e.Tier = Host
			s.apply(0, e)
			s.tiers(0, 9, 0, 0)
		},
		"what waits moves and is placed while it waits": func(s *story) {
			s.stores(0, 5, 10)
			s.apply(0, byName(s.blocks[8:], Device, Host), byName(s.blocks[5:6], Disk, Disk))
			s.stores(0, 0, 5)
			s.tiers(0, 8, 2, 0)
			s.removes(0, 5)
			s.tiers(0, 5, 0, 1)
		},
		"a move within a tier is refused": func(s *story) {
			s.stores(0, 0, 10)
			e := byName(s.blocks, Host, Device)
			e.From = Device
			far := byName(s.blocks, Device, Host)
			far.From = Tiers
			if a := s.apply(0, e, far); a.Refused != 2 {
				s.t.Errorf("%+v", a)
			}
		},
		"group and scope are part of the name": func(s *story) {
			e := storing(s.blocks, 0, 10)
			e.Group, e.Scope = 1, 7
			s.apply(0, e)
			move := byName(s.blocks[9:], Device, Host)
			if a := s.apply(0, move); a.Unplaced != 1 {
				s.t.Errorf("%+v", a)
			}
			move.Group, move.Scope = 1, 7
			if a := s.apply(0, move); a.Placed != 1 {
				s.t.Errorf("%+v", a)
			}
			s.tiers(0, 9, 1, 0)
		},
	}
	for name, tell := range cases {
		t.Run(name, func(t *testing.T) { tell(newStory(t, 3)) })
	}
}

// While blocks move between device and host, look-ups may miss some of them
// and never find more than there are.
func TestReadersDuringMoves(t *testing.T) {
	s := newStory(t, 2)
	long := s.fresh(120)
	chain := chainLocals(nil, locals(long))
	s.store(s.ids[0], long[:100])
	s.store(s.ids[1], long)
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			m := s.ix.NewMatcher()
			var out Matches
			for !stop.Load() {
				m.Match(chain, &out)
				if n := out.Total(s.ids[0]); n > 100 || out.Device[s.ids[0]] > 100 || out.Device[s.ids[1]] != 120 {
					t.Errorf("%d blocks of 100, %d of 120", n, out.Device[s.ids[1]])
					stop.Store(true)
				}
			}
		})
	}
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	for i := 0; i < rounds && !stop.Load(); i++ {
		part := long[i%60 : i%60+40]
		apply(s.bed, 0, byName(part, Device, Host))
		apply(s.bed, 0, byName(part, Host, Device))
	}
	stop.Store(true)
	wg.Wait()
	if d := depths(s.ix, chain); d[0] != 100 || d[1] != 120 {
		t.Errorf("in the end %d", d[:2])
	}
}

// BenchmarkMoved16 is 16 blocks that go to the host, or come back.
func BenchmarkMoved16(b *testing.B) {
	bd := newBed(b, 1, Options{MaxBlocks: 1 << 22})
	bd.fill(16, true)
	down, up := make([]Event, 1), make([]Event, 1)
	db, ub := &Batch{Events: down}, &Batch{Events: up}
	removed := removals(bd.blocks)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		names := removed[i/2%len(removed)]
		if i%2 == 0 {
			down[0] = Event{Kind: Moved, From: Device, Tier: Host, Hashes: names}
			_, _ = bd.ix.Apply(bd.ids[0], db)
		} else {
			up[0] = Event{Kind: Moved, From: Host, Tier: Device, Hashes: names}
			_, _ = bd.ix.Apply(bd.ids[0], ub)
		}
	}
}
