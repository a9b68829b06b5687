package router

import (
	"testing"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/prefix/event"
)

// inGap serves prompts on a rank so that one batch is missing between them, and
// returns that batch and its number.
func inGap(t *testing.T, b *bench, e *fakeEngine, rank model.Target) (seq uint64, missing []byte) {
	t.Helper()
	e.serve(rank, prompt(1, 2, 3))
	c := e.ranks[rank]
	missing, seq = c.storedBatch(prompt(1, 2, 3, 4)), c.seq
	c.seq++
	e.serve(rank, prompt(7, 8))
	if row := indexOf(t, b, rank); row.Feed != model.FeedGap || row.Device != 3 || row.Gaps != 1 {
		t.Fatalf("in the gap: %+v", row)
	}
	return seq, missing
}

// TestLateBatch: a batch that is late leaves its rank in doubt until it comes.
func TestLateBatch(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV))
	e := newEngine(b, 0)
	rank, other := at("w0", 0), at("w0", 1)
	e.serve(other, prompt(50, 51))
	seq, missing := inGap(t, b, e, rank)
	b.Events(rank.Worker, rank.Rank, seq, missing)
	b.clock.advance(time.Second)
	if row := indexOf(t, b, rank); row.Feed != model.FeedLive || row.Device != 6 || row.Gaps != 1 || row.Refused != 0 {
		t.Fatalf("behind the gap: %+v", row)
	}
	if s := b.Snapshot(); len(s.Findings) != 0 {
		t.Fatalf("findings: %+v", s.Findings)
	}
	if row := indexOf(t, b, other); row.Device != 2 || row.Feed != model.FeedLive {
		t.Fatalf("the other rank: %+v", row)
	}
}

// TestLostBatch: a batch that never comes leaves in doubt what is known of that
// rank alone. What is told again, or has something stored behind it, stays; the
// rest loses its credit after two minutes, or when a request finds less.
func TestLostBatch(t *testing.T) {
	for name, end := range map[string]func(b *bench, rank model.Target){
		"in time": func(b *bench, _ model.Target) {
			b.clock.advance(2 * time.Minute)
		},
		"in time, nobody looks and the rank is quiet": func(b *bench, _ model.Target) {
			b.clock.advance(2 * time.Minute)
			b.endDoubts(b.clock.Now()) // as each first token does
		},
		"disproved": func(b *bench, rank model.Target) {
			id, target := b.place(t, "ghost", nil, of(append(prompt(1, 2, 3), 4)))
			if target != rank {
				t.Fatalf("sent to %s, which is not known to hold most", target)
			}
			b.FirstToken(id, model.Usage{Ran: target, CachedTokens: blockTokens, TTFTMs: 5})
			b.Done(id, model.OutcomeOK)
			b.clock.advance(eventsLag)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV))
			e := newEngine(b, 0)
			rank, other := at("w0", 0), at("w0", 1)
			e.serve(other, prompt(50, 51))
			inGap(t, b, e, rank)
			b.clock.advance(time.Second)
			row := indexOf(t, b, rank)
			if row.Feed != model.FeedDoubt || row.Device != 5 || row.Doubtful != 3 || row.Gaps != 1 || row.Refused != 0 {
				t.Fatalf("behind the gap: %+v", row)
			}
			if s := b.Snapshot(); len(s.Findings) != 1 || s.Findings[0].Code != "in_doubt" || s.Findings[0].Target != rank || s.Findings[0].Next == "" {
				t.Fatalf("findings: %+v", s.Findings)
			}
			e.serve(rank, prompt(1, 2, 9)) // stored behind 2, so 1 and 2 are there
			if row = indexOf(t, b, rank); row.Device != 6 || row.Doubtful != 1 {
				t.Fatalf("confirmed: %+v", row)
			}
			end(b, rank)
			if row = indexOf(t, b, rank); row.Feed != model.FeedLive || row.Device != 5 || row.Doubtful != 0 {
				t.Fatalf("after the doubt: %+v", row)
			}
			if s := b.Snapshot(); len(s.Findings) != 1 || s.Findings[0].Code != "lost" {
				t.Fatalf("findings after it: %+v", s.Findings)
			}
			if row := indexOf(t, b, other); row.Device != 2 || row.Feed != model.FeedLive {
				t.Fatalf("the other rank: %+v", row)
			}
			e.serve(rank, prompt(20, 21))
			if row = indexOf(t, b, rank); row.Device != 7 {
				t.Fatalf("it goes on: %+v", row)
			}
			for range 40 { // it is news for a while only
				b.clock.advance(30 * time.Second)
				e.serve(rank, prompt(20, 21, uint32(b.clock.ns.Load()%1e6)))
			}
			if s := b.Snapshot(); len(s.Findings) != 0 {
				t.Fatalf("it clears by itself: %+v", s.Findings)
			}
		})
	}
}

// TestReportsKeepRanksApart (report A10): each rank keeps its own figures, and
// one that a report leaves out keeps its last, or stays unknown.
func TestReportsKeepRanksApart(t *testing.T) {
	for _, ranks := range []int{1, 4, 16} {
		for missing := range ranks {
			b := newBench(t, 1, ranks, model.PolicyDefault, withBlocks, inMode(model.ModeLockstep))
			var states []model.RankState
			var loads []model.RankLoad
			for k := range ranks {
				if k != missing {
					states = append(states, model.RankState{Rank: k, NumActiveRequests: 27 * k, NumActiveTokens: 100 * k})
					loads = append(loads, model.RankLoad{Rank: k, PendingTokens: 10 * k, KVUsedBlocks: k, KVTotalBlocks: 64})
				}
			}
			b.Report("w0", 0, 0, states, loads)
			for _, row := range b.Snapshot().Ranks {
				k := row.Target.Rank
				f, _ := b.steer.tier.Figures(row.Target, 0)
				switch {
				case k == missing:
					if !row.ReportedAt.IsZero() || f.PendingTokens != 0 {
						t.Fatalf("%d ranks, %d was not reported: %+v", ranks, k, row)
					}
				case row.ReportedAt.IsZero() || row.Active != 27*k || row.Tokens != 100*k || row.PendingTokens != 10*k || row.KVUsedBlocks != k || f.PendingTokens != 10*k:
					t.Fatalf("%d ranks, rank %d: %+v, the cluster tier has %+v", ranks, k, row, f)
				}
			}
		}
	}
}

// TestRestartByConnection (report A13): on a new connection a number that goes
// back is a restart of that rank; on the old one the same bytes are a late
// duplicate.
func TestRestartByConnection(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV))
	e := newEngine(b, 0)
	rank, other := at("w0", 0), at("w0", 1)
	conn := uint64(1)
	var first []byte
	e.wire = func(t model.Target, seq uint64, payload []byte) {
		if t == rank && seq == 0 {
			first = payload
		}
		b.EventsOn(t.Worker, t.Rank, conn, seq, payload)
	}
	e.serve(other, prompt(50, 51))
	e.serve(rank, prompt(1, 2))
	e.serve(rank, prompt(1, 2, 3))
	b.EventsOn("w0", 0, conn, 0, first)
	if row := indexOf(t, b, rank); row.Device != 3 || row.Restarts != 0 {
		t.Fatalf("a late duplicate: %+v", row)
	}
	conn = 2
	e.restart(rank)
	e.serve(rank, prompt(7))
	if row := indexOf(t, b, rank); row.Device != 1 || row.Restarts != 1 || row.Feed != model.FeedLive {
		t.Fatalf("a new process: %+v", row)
	}
	if row := indexOf(t, b, other); row.Device != 2 || row.Restarts != 0 {
		t.Fatalf("the other rank: %+v", row)
	}
}

// TestRanksOfTheSecondNode (report A3): an engine that counts ranks over all
// nodes names 2 and 3 what its worker has as 0 and 1; another is refused.
func TestRanksOfTheSecondNode(t *testing.T) {
	b := newBench(t, 2, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV), func(c *Config) { c.Workers[1].StartRank = 2 })
	c := newEngine(b, 0).ranks[at("w1", 0)]
	batch := func(named int) []byte {
		ev := event.Event{Kind: event.Stored, BlockTokens: blockTokens, Hashes: []event.Hash{event.Hash(named + 1)}, Tokens: prompt(uint32(named + 1)), Group: event.NoGroup}
		return c.enc.AppendBatch(nil, 1, named, []event.Event{ev})
	}
	for rank := range 2 {
		b.Events("w1", rank, 0, batch(2+rank))
		if row := indexOf(t, b, at("w1", rank)); row.Device != 1 || row.Refused != 0 {
			t.Fatalf("rank %d: %+v", rank, row)
		}
	}
	b.Events("w1", 0, 1, batch(0))
	if row := indexOf(t, b, at("w1", 0)); row.Device != 1 || row.Refused != 1 {
		t.Fatalf("a rank of the other node: %+v", row)
	}
	for rank := range 2 {
		if row := indexOf(t, b, at("w0", rank)); row.Device != 0 {
			t.Fatalf("w0/%d took what w1 published: %+v", rank, row)
		}
	}
}
