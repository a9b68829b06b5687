package router

import (
	"testing"
	"time"

	"adpdeck/router/model"
)

func chat(req *model.Request) { req.Route = model.RouteChat }

func TestCachedComesLate(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault)
	id, target := b.routed(t, "c", chat)
	none := model.Target{Worker: "w0", Rank: model.NoRank}
	b.Cached(id, model.Usage{Ran: none, CachedTokens: 60}) // before the first token: nothing
	b.FirstToken(id, model.Usage{Ran: none, CachedUnknown: true, TTFTMs: 5})
	if s := b.Snapshot(); s.Ranks[target.Rank].Hit.Known() || !s.Convs[0].CachedUnknown {
		t.Errorf("unknown shows as %v, %+v", s.Ranks[target.Rank].Hit, s.Convs[0])
	}
	b.Cached(id, model.Usage{Ran: none, CachedTokens: 60, TTFTMs: -1})
	b.Cached(id, model.Usage{Ran: none, CachedTokens: 99, TTFTMs: -1}) // it is known by now
	s := b.Snapshot()
	if c := s.Convs[0]; c.CachedUnknown || c.CachedTokens != 60 || c.PromptTokens != 100 {
		t.Errorf("%+v", c)
	}
	if hit := s.Ranks[target.Rank].Hit; hit != 0.6 {
		t.Errorf("hit %v, want 0.6 counted once", hit)
	}
	b.Done(id, model.OutcomeOK)
	b.Cached(id, model.Usage{Ran: none, CachedTokens: 60})
	if got := b.Decisions(0, 10); len(got) != 1 {
		t.Fatalf("%d decisions", len(got))
	}
	if b.Strays() != 0 || b.Snapshot().Ranks[target.Rank].InFlight != 0 {
		t.Error("the books do not balance")
	}
}

func TestRankComesLate(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault)
	none := model.Target{Worker: "w0", Rank: model.NoRank}
	for i, honours := range []bool{true, false} {
		id, target := b.routed(t, "c", chat)
		b.Sent(id, "header")
		b.Sent(id, "body") // it is known by now
		b.FirstToken(id, model.Usage{Ran: none, CachedUnknown: true, TTFTMs: 5})
		ran := target
		if !honours {
			ran.Rank = 1 - ran.Rank
		}
		for range 2 {
			b.Cached(id, model.Usage{Ran: ran, CachedUnknown: true, Evidence: "usage"})
		}
		s := b.Snapshot()
		c, p := s.Convs[0], s.Workers[0].Proofs
		if c.Honoured != 1 || c.Lost != i || c.Last != ran {
			t.Errorf("honours %v: %+v", honours, c)
		}
		if len(p) != 1 || p[0].Channel != "header" || p[0].Route != model.RouteChat || p[0].Asked != uint64(i+1) || p[0].Honoured != 1 || p[0].Ignored != uint64(i) {
			t.Errorf("honours %v: %+v", honours, p)
		}
		if n := s.Ranks[ran.Rank].InFlight; n != 1 {
			t.Errorf("honours %v: %d in flight where it ran", honours, n)
		}
		b.Done(id, model.OutcomeOK)
	}
}

func TestRankOfAnEngineThatPicksComesLate(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault, func(c *Config) { c.Workers[0].Steering = model.SteerConversation })
	id, target := b.routed(t, "c", chat)
	if target.Rank != model.NoRank {
		t.Fatalf("routed to %s", target)
	}
	b.Sent(id, "conversation")
	b.FirstToken(id, model.Usage{Ran: target, CachedUnknown: true, TTFTMs: 5})
	b.Cached(id, model.Usage{Ran: at("w0", 1), CachedTokens: 40, Evidence: "usage"})
	s := b.Snapshot()
	if s.Ranks[1].InFlight != 1 || s.Convs[0].Last != at("w0", 1) || s.Ranks[1].Hit != 0.4 {
		t.Errorf("%+v, %+v", s.Ranks[1], s.Convs[0])
	}
	b.Done(id, model.OutcomeOK)
	if s := b.Snapshot(); s.Ranks[0].InFlight+s.Ranks[1].InFlight != 0 {
		t.Error("the books do not balance")
	}
}

// TestPickedLateIsRemembered: an engine that picks the rank and says which at the
// end of its answer has its guess there.
func TestPickedLateIsRemembered(t *testing.T) {
	b := newBench(t, 0, 0, model.PolicyDefault, room(4), inMode(model.ModeKV))
	b.join(t, spec("w0", 2, picking, func(s *model.WorkerSpec) { s.KVEvents = false }))
	id, _ := b.routed(t, "", of(prompt(1, 2, 3)))
	b.FirstToken(id, model.Usage{Ran: model.Target{Rank: model.NoRank}, CachedUnknown: true})
	b.Cached(id, model.Usage{Ran: at("w0", 1), Evidence: "usage"})
	b.Done(id, model.OutcomeOK)
	if row := indexOf(t, b, at("w0", 1)); row.Device != 3 {
		t.Fatalf("%+v", row)
	}
}

// TestSilentRanksOfStreams: a rank that never speaks is found also where answers
// tell only at their end what was cached.
func TestSilentRanksOfStreams(t *testing.T) {
	b := newBench(t, 1, 1, model.PolicyDefault, withBlocks, inMode(model.ModeKV))
	for i := range 2 {
		id, target := b.routed(t, "", of(prompt(uint32(9*i+1), 50)))
		b.FirstToken(id, model.Usage{Ran: target, CachedUnknown: true, TTFTMs: 5})
		b.Cached(id, model.Usage{Ran: target, CachedTokens: 0})
		b.Done(id, model.OutcomeOK)
		b.clock.advance(31 * time.Second)
	}
	if f := b.Snapshot().Findings; len(f) != 1 || f[0].Code != "silent" {
		t.Errorf("%+v", f)
	}
}
