package router

import (
	"fmt"
	"testing"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/prefix"
	"adpdeck/router/prefix/event"
)

// TestDoubtEndsWithoutAScreen: nobody looks at the router; a doubt ends all the
// same, in time or by a request that disproves it.
func TestDoubtEndsWithoutAScreen(t *testing.T) {
	for _, disproved := range []bool{false, true} {
		t.Run(fmt.Sprint("disproved=", disproved), func(t *testing.T) {
			b := newBench(t, 1, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV, fieldValue(noAffinity, "none")))
			e := newEngine(b, 0)
			rank := at("w0", 1)
			e.serve(rank, prompt(1, 2, 3, 4))
			lose := true
			e.wire = func(target model.Target, seq uint64, payload []byte) {
				if !lose {
					b.Events(target.Worker, target.Rank, seq, payload)
				}
			}
			e.serve(rank, prompt(5))
			lose = false
			e.serve(rank, prompt(6))
			b.clock.advance(time.Second)
			e.serve(rank, prompt(7))
			cached := 64
			if disproved {
				cached = 0
			} else {
				b.clock.advance(3 * time.Minute)
			}
			id, got := b.routed(t, "", of(prompt(1, 2, 3, 4, 8)))
			if got != rank {
				t.Fatalf("the doubt took the credit at once: %v", got)
			}
			b.FirstToken(id, model.Usage{Ran: got, CachedTokens: cached})
			b.Done(id, model.OutcomeOK)
			if disproved { // the next first token notices
				b.clock.advance(eventsLag)
				id, got = b.routed(t, "", of(prompt(20)))
				b.FirstToken(id, model.Usage{Ran: got})
			}
			l, err := b.know.look(&model.Request{PromptTokens: 64, Locals: localsOf(prompt(1, 2, 3, 4)), BlockTokens: blockTokens}, b.clock.Now().Sub(epoch))
			if err != nil {
				t.Fatal(err)
			}
			if n := l.held(b.slot(rank), blockTokens); n != 0 {
				t.Fatalf("%d tokens are still credited", n)
			}
		})
	}
}

// TestAGuessDisprovesNothing: a request that finds less than was guessed says
// nothing of what events have told, and the doubt goes on.
func TestAGuessDisprovesNothing(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault, withBlocks,
		inMode(model.ModeKV, fieldValue(noAffinity, "none"), fieldValue("router_predicted_ttl_secs", "60")))
	e := newEngine(b, 0)
	rank := at("w0", 1)
	e.serve(rank, prompt(1, 2, 3, 4))
	e.wire = func(model.Target, uint64, []byte) {}
	e.serve(rank, prompt(5))
	e.wire = nil
	e.serve(rank, prompt(6))
	b.clock.advance(time.Second)
	e.serve(rank, prompt(7))
	if row := indexOf(t, b, rank); row.Feed != model.FeedDoubt {
		t.Fatalf("%+v", row)
	}
	ask := func(tokens []uint32, cached int) {
		id, _ := b.routed(t, "", asks(rank), of(tokens))
		b.FirstToken(id, model.Usage{Ran: rank, CachedTokens: cached})
		b.Done(id, model.OutcomeOK)
		b.clock.advance(time.Second)
	}
	ask(prompt(1, 2, 3, 4, 20, 21, 22, 23), 64)
	ask(prompt(1, 2, 3, 4, 20, 21, 22, 23), 64) // the one before broke off before it was computed
	if row := indexOf(t, b, rank); row.Feed != model.FeedDoubt || row.Device < 6 {
		t.Fatalf("%+v", row)
	}
	ask(prompt(1, 2, 3, 4, 30), 0)
	if row := indexOf(t, b, rank); row.Feed != model.FeedLive {
		t.Fatalf("%+v", row)
	}
}

// TestWhatDisprovesADoubt: a request that finds less than it was sent for, but
// not where events explain it: blocks that were removed between its routing and
// its prefill, told before the answer or soon after, also when the request has
// stored them anew; nor where only credits from before another loss are at
// stake, or none that is in doubt.
func TestWhatDisprovesADoubt(t *testing.T) {
	const short, found = 0, 4 * blockTokens
	for name, c := range map[string]struct {
		ask      []uint32
		sent     func(w *doubtWorld) // between routing and first token
		answered func(w *doubtWorld) // after the first token
		cached   int
		want     bool
	}{
		"found less":                       {ask: prompt(1, 2, 3, 4, 8), cached: short, want: true},
		"found less and stored it anew":    {ask: prompt(1, 2, 3, 4, 8), answered: func(w *doubtWorld) { w.store(1, 2, 3, 4, 8) }, cached: short, want: true},
		"found all":                        {ask: prompt(1, 2, 3, 4, 8), cached: found},
		"removed before the prefill":       {ask: prompt(1, 2, 3, 4, 8), sent: func(w *doubtWorld) { w.remove(1, 2, 3, 4) }, cached: short},
		"removed, and stored by the turn":  {ask: prompt(1, 2, 3, 4, 8), sent: func(w *doubtWorld) { w.remove(1, 2, 3, 4); w.store(1, 2, 3, 4, 8) }, cached: short},
		"removed, told after the answer":   {ask: prompt(1, 2, 3, 4, 8), answered: func(w *doubtWorld) { w.remove(1, 2, 3, 4) }, cached: short},
		"another removed":                  {ask: prompt(1, 2, 3, 4, 8), sent: func(w *doubtWorld) { w.remove(6) }, cached: short, want: true},
		"more was lost since":              {ask: prompt(1, 2, 3, 4, 8), sent: func(w *doubtWorld) { w.lose() }, cached: short},
		"what it lacks is not in doubt":    {ask: prompt(6, 9), cached: short},
		"cleared and filled again":         {ask: prompt(1, 2, 3, 4, 8), sent: func(w *doubtWorld) { w.clear(); w.store(1, 2, 3, 4) }, cached: short},
		"the engine did not say":           {ask: prompt(1, 2, 3, 4, 8), cached: -1},
		"no answer, others are not judged": {ask: prompt(1, 2, 3, 4, 8), cached: -2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDoubtWorld(t)
			id, got := w.b.routed(t, "", asks(w.rank), of(c.ask))
			if got != w.rank {
				t.Fatal(got)
			}
			if c.sent != nil {
				c.sent(w)
			}
			if c.cached >= -1 {
				w.b.FirstToken(id, model.Usage{Ran: got, CachedTokens: max(c.cached, 0), CachedUnknown: c.cached < 0})
			}
			if c.answered != nil {
				c.answered(w)
			}
			before := indexOf(t, w.b, w.rank)
			w.b.clock.advance(eventsLag)
			after := indexOf(t, w.b, w.rank)
			wiped := before.Feed == model.FeedLive && !c.want // the engine's own clearing
			if c.want == (after.Feed == model.FeedDoubt) && !wiped || before.Feed != model.FeedDoubt && !wiped {
				t.Fatalf("before %+v\nafter  %+v", before, after)
			}
			if !c.want && after.Device != before.Device {
				t.Fatalf("credits ended: before %+v\nafter  %+v", before, after)
			}
			w.b.Done(id, model.OutcomeOK)
		})
	}
}

// TestDisprovedEndsOnlyWhatWasInDoubt: what was told since the loss keeps its
// credit.
func TestDisprovedEndsOnlyWhatWasInDoubt(t *testing.T) {
	w := newDoubtWorld(t)
	id, _ := w.b.routed(t, "", asks(w.rank), of(prompt(1, 2, 3, 4, 8)))
	w.store(30, 31)
	w.b.FirstToken(id, model.Usage{Ran: w.rank})
	w.store(40, 41, 42)
	w.b.clock.advance(eventsLag)
	w.store(50)
	// 6 and 7 came after the loss, and nothing else of before it is left.
	if row := indexOf(t, w.b, w.rank); row.Feed != model.FeedLive || row.Device != 2+2+3+1 {
		t.Fatalf("%+v", row)
	}
}

// doubtWorld is a rank that held 1 to 4, lost a batch and told of 6 and 7 since.
type doubtWorld struct {
	t    *testing.T
	b    *bench
	rank model.Target
	enc  event.Encoder
	seq  uint64
}

func newDoubtWorld(t *testing.T) *doubtWorld {
	w := &doubtWorld{t: t, rank: at("w0", 1)}
	w.b = newBench(t, 1, 2, model.PolicyDefault, withBlocks, inMode(model.ModeKV, fieldValue(noAffinity, "none")))
	w.store(1, 2, 3, 4)
	w.seq++ // lost
	w.store(6)
	w.b.clock.advance(time.Second)
	w.store(7)
	if row := indexOf(t, w.b, w.rank); row.Feed != model.FeedDoubt || row.Doubtful != 4 || row.Device != 6 {
		t.Fatalf("%+v", row)
	}
	return w
}

func (w *doubtWorld) names(blocks []uint32) (names []event.Hash) {
	h, _ := prefix.NewHasher(blockTokens, prefix.Seed("", ""))
	for _, x := range h.Chains(nil, prompt(blocks...)) {
		names = append(names, event.Hash(x))
	}
	return names
}

func (w *doubtWorld) send(e event.Event) {
	e.Group = event.NoGroup
	payload := w.enc.AppendBatch(nil, float64(w.b.clock.ns.Load()), w.rank.Rank, []event.Event{e})
	w.b.Events(w.rank.Worker, w.rank.Rank, w.seq, payload)
	w.seq++
}

func (w *doubtWorld) store(blocks ...uint32) {
	w.send(event.Event{Kind: event.Stored, BlockTokens: blockTokens, Hashes: w.names(blocks), Tokens: prompt(blocks...)})
}

func (w *doubtWorld) remove(blocks ...uint32) {
	w.send(event.Event{Kind: event.Removed, Hashes: w.names(blocks)})
}

func (w *doubtWorld) clear() { w.send(event.Event{Kind: event.Cleared}) }

// lose loses a batch for good.
func (w *doubtWorld) lose() {
	w.seq++
	w.store(70)
	w.b.clock.advance(time.Second)
	w.store(71)
}
