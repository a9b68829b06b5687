package router

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"adpdeck/router/model"
)

func over(route model.Route, channel string) func(*model.Request) {
	return func(q *model.Request) { q.Route, q.Channel = route, channel }
}

func (b *bench) finding(code string) *model.Finding {
	for _, f := range b.Snapshot().Findings {
		if f.Code == code {
			return &f
		}
	}
	return nil
}

// TestPinNotHonouredBySaying: an engine that says where it ran a request is found
// out at the third that it ran elsewhere, by route and channel, and cleared by
// eight in a row as asked, when ten seconds have passed.
func TestPinNotHonouredBySaying(t *testing.T) {
	b := newBench(t, 2, 4, model.PolicyConversation, withBlocks)
	b.turn(t, "p", nil)
	b.must(t, onConvs(model.VerbPin, ptr(at("w0", 2)), "p"))
	run := func(route model.Route, ran model.Target) {
		id, asked := b.routed(t, "p", over(route, "header"))
		if asked != at("w0", 2) {
			t.Fatalf("sent to %v", asked)
		}
		b.FirstToken(id, model.Usage{Ran: ran, Evidence: "header"})
		b.Done(id, model.OutcomeOK)
		b.clock.advance(time.Second)
	}
	for i := range 3 {
		if b.finding(model.FindingPinNotHonoured) != nil {
			t.Fatalf("after %d", i)
		}
		run(model.RouteResponses, at("w0", i%2))
		run(model.RouteChat, at("w0", 2))
	}
	f := b.finding(model.FindingPinNotHonoured)
	if f == nil || f.Target != at("w0", model.NoRank) || !strings.Contains(f.Message, "w0 ran 3 of 3 responses requests elsewhere than asked by header") ||
		!strings.Contains(f.Message, "asked of w0/2 and ran on w0/0") || f.Next == "" {
		t.Fatalf("%+v", f)
	}
	want := map[model.Route][3]uint64{model.RouteResponses: {3, 0, 3}, model.RouteChat: {3, 3, 0}}
	proofs := b.Snapshot().Workers[0].Proofs
	for _, p := range proofs {
		if got := [3]uint64{p.Asked, p.Honoured, p.Ignored}; got != want[p.Route] || p.Evidence != "header" || p.Channel != "header" {
			t.Fatalf("%+v", p)
		}
	}
	if len(proofs) != 2 || b.Snapshot().Workers[1].Proofs != nil {
		t.Fatalf("%+v", proofs)
	}
	run(model.RouteResponses, at("w0", 2))
	run(model.RouteResponses, at("w0", 2))
	run(model.RouteResponses, at("w0", 0)) // in a row, not in all
	for range 10 {
		if b.finding(model.FindingPinNotHonoured) == nil {
			t.Fatal("cleared too early")
		}
		run(model.RouteResponses, at("w0", 2))
	}
	if f := b.finding(model.FindingPinNotHonoured); f != nil {
		t.Fatalf("%+v", f)
	}
	b.leave(t, "w0")
	if f := b.finding(model.FindingPinGone); f == nil || f.Target != at("w0", 2) || !strings.Contains(f.Message, "hold 1 conversation to w0/2, which is not there") {
		t.Fatalf("%+v", f)
	}
}

// TestRanksInTurnAreNotHonoured: an engine that takes its ranks in turn, and hits
// the one that was asked for now and then, is found out by three requests.
func TestRanksInTurnAreNotHonoured(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyConversation, withBlocks)
	b.turn(t, "p", nil)
	b.must(t, onConvs(model.VerbPin, ptr(at("w0", 1)), "p"))
	for i, ran := range []int{0, 1, 0} {
		if f := b.finding(model.FindingPinNotHonoured); f != nil {
			t.Fatalf("after %d: %+v", i, f)
		}
		id, _ := b.routed(t, "p", over(model.RouteResponses, "header"))
		b.FirstToken(id, model.Usage{Ran: at("w0", ran), Evidence: "header"})
		b.Done(id, model.OutcomeOK)
		b.clock.advance(time.Second)
	}
	if f := b.finding(model.FindingPinNotHonoured); f == nil || !strings.Contains(f.Message, "2 of 3 responses") {
		t.Fatalf("%+v", f)
	}
}

// TestPinNotHonouredByEvents: an engine that says nothing is proven by the blocks
// that appear, within three requests; blocks that another request explains prove
// nothing.
func TestPinNotHonouredByEvents(t *testing.T) {
	for _, honours := range []bool{true, false} {
		t.Run(fmt.Sprint("honours=", honours), func(t *testing.T) {
			b := newBench(t, 1, 4, model.PolicyDefault, withBlocks)
			e := newEngine(b, 0)
			nobody := model.Usage{Ran: model.Target{Rank: model.NoRank}, CachedUnknown: true}
			for i := range uint32(3) {
				tokens := prompt(1+3*i, 2+3*i, 3+3*i)
				id, asked := b.routed(t, "", asks(at("w0", 1)), of(tokens), over(model.RouteChat, "header"))
				ran := asked
				if !honours {
					ran = at("w0", 3)
				}
				b.FirstToken(id, nobody)
				b.clock.advance(300 * time.Millisecond)
				e.serve(ran, tokens)
				b.Done(id, model.OutcomeOK)
				b.clock.advance(3 * time.Second)
				b.Snapshot()
			}
			p := b.Snapshot().Workers[0].Proofs[0]
			if p.Asked != 3 || p.Evidence != "events" || honours != (p.Honoured == 3) || honours != (p.Ignored == 0) || p.Honoured+p.Ignored != 3 {
				t.Fatalf("%+v", p)
			}
			if f := b.finding(model.FindingPinNotHonoured); honours != (f == nil) {
				t.Fatalf("%+v", f)
			}
			if len(b.probes) != 0 || b.watched.Load() != 0 {
				t.Fatalf("%d probes are left", len(b.probes))
			}
		})
	}
	t.Run("another request explains it", func(t *testing.T) {
		b := newBench(t, 1, 4, model.PolicyDefault, withBlocks)
		e := newEngine(b, 0)
		tokens := prompt(1, 2, 3)
		first, _ := b.routed(t, "", asks(at("w0", 1)), of(tokens), over(model.RouteChat, "header"))
		second, _ := b.routed(t, "", asks(at("w0", 2)), of(tokens), over(model.RouteChat, "header"))
		for _, id := range []int64{first, second} {
			b.FirstToken(id, model.Usage{Ran: model.Target{Rank: model.NoRank}, CachedUnknown: true})
		}
		e.serve(at("w0", 2), tokens) // the first one's events are lost
		for range 12 {
			b.clock.advance(time.Second)
			b.Snapshot()
		}
		if p := b.Snapshot().Workers[0].Proofs[0]; p.Ignored != 0 || p.Honoured != 1 || p.Asked != 2 {
			t.Fatalf("%+v", p)
		}
		if len(b.probes) != 0 {
			t.Fatal("a probe does not end")
		}
	})
}

// TestProofByLoads: a request that is alone at its worker is where the engine
// says that one request runs, twice in a row; two open ones prove nothing.
func TestProofByLoads(t *testing.T) {
	b := newBench(t, 1, 3, model.PolicyDefault)
	nobody := model.Usage{Ran: model.Target{Rank: model.NoRank}, CachedUnknown: true}
	look := func(running ...float64) {
		b.clock.advance(time.Second)
		b.Observe("w0", b.clock.Now(), reports(running...))
	}
	begin := func() int64 {
		id, _ := b.routed(t, "", asks(at("w0", 1)), over(model.RouteChat, "body"))
		b.FirstToken(id, nobody)
		return id
	}
	proofs := func() model.SteeringProof { return b.Snapshot().Workers[0].Proofs[0] }
	id := begin()
	look(0, 0, 1)
	look(0, 1, 0) // it has changed: begin again
	if p := proofs(); p.Honoured+p.Ignored != 0 {
		t.Fatalf("%+v", p)
	}
	look(0, 1, 0)
	look(0, 1, 0)
	if p := proofs(); p.Honoured != 1 || p.Ignored != 0 || p.Evidence != "loads" {
		t.Fatalf("%+v", p)
	}
	other := begin()
	look(0, 0, 1)
	look(0, 0, 1)
	if p := proofs(); p.Honoured+p.Ignored != 1 {
		t.Fatalf("two are open: %+v", p)
	}
	b.Done(id, model.OutcomeOK)
	look(1, 0, 1) // other traffic
	look(1, 0, 1)
	look(0, 0, 1)
	look(0, 0, 1)
	if p := proofs(); p.Ignored != 1 {
		t.Fatalf("%+v", p)
	}
	if r := b.Snapshot().Ranks; r[2].InFlight != 1 || r[1].InFlight != 0 {
		t.Fatalf("the books follow: %+v", r)
	}
	b.Done(other, model.OutcomeOK)
}

// TestFoundAndCleared: findings of those who speak to engines.
func TestFoundAndCleared(t *testing.T) {
	b := newBench(t, 2, 1, model.PolicyDefault)
	sub := b.Subscribe()
	sub.Start()
	f := model.Finding{Code: "ranks_differ", Target: at("w0", model.NoRank), Message: "the engine has 8 ranks, the file says 4", Next: "correct one"}
	b.Found(f)
	c, _ := sub.Take(1)
	if c == nil || !c.FindingsChanged || len(c.Findings) != 1 || !c.Findings[0].Since.Equal(epoch) {
		t.Fatalf("%+v", c)
	}
	b.clock.advance(time.Hour)
	b.Found(f)
	if c, _ := sub.Take(1); c != nil && c.FindingsChanged {
		t.Fatal("nothing is new")
	}
	f.Message = "the engine has 2"
	b.Found(f)
	if got := b.finding("ranks_differ"); got == nil || got.Message != f.Message || !got.Since.Equal(epoch) {
		t.Fatalf("%+v", got)
	}
	b.Cleared("ranks_differ", at("w1", model.NoRank))
	b.Cleared("ranks_differ", f.Target)
	if got := b.finding("ranks_differ"); got != nil {
		t.Fatalf("%+v", got)
	}
	for i := range 2 * model.MaxFindings {
		b.Found(model.Finding{Code: fmt.Sprint("c", i), Target: at("w1", 0)})
	}
	if n := len(b.Snapshot().Findings); n != model.MaxFindings {
		t.Fatalf("%d findings", n)
	}
}
