package router

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/prefix/event"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// room lets workers join later.
func room(ranks int) func(*Config) { return func(c *Config) { c.MaxRanks = ranks } }

func spec(id string, ranks int, change ...func(*model.WorkerSpec)) model.WorkerSpec {
	s := model.WorkerSpec{ID: id, Ranks: ranks, MaxNumActiveRequests: 8, Engine: "test", KVEvents: true, BlockTokens: blockTokens}
	for _, f := range change {
		f(&s)
	}
	return s
}

func (b *bench) join(t tester, s model.WorkerSpec) {
	t.Helper()
	if err := b.Join(s); err != nil {
		t.Fatalf("join: %v", err)
	}
}

func (b *bench) leave(t tester, id string) {
	t.Helper()
	if err := b.Leave(id); err != nil {
		t.Fatalf("leave: %v", err)
	}
}

func (b *bench) live(t tester, target model.Target, live bool) {
	t.Helper()
	if err := b.Live(target.Worker, target.Rank, live, "connection refused"); err != nil {
		t.Fatalf("live: %v", err)
	}
}

// routed sends one request by Route; it stays open.
func (b *bench) routed(t tester, conv string, change ...func(*model.Request)) (int64, model.Target) {
	t.Helper()
	b.ids++
	req := model.Request{ID: b.ids, PromptTokens: 100, Conv: conversation(conv)}
	for _, f := range change {
		f(&req)
	}
	d, err := b.Route(&req, nil)
	if err != nil {
		t.Fatalf("route %q: %v", conv, err)
	}
	return b.ids, d.Target
}

func (b *bench) refused(t tester, want error, conv string, change ...func(*model.Request)) error {
	t.Helper()
	b.ids++
	req := model.Request{ID: b.ids, PromptTokens: 100, Conv: conversation(conv)}
	for _, f := range change {
		f(&req)
	}
	d, err := b.Route(&req, nil)
	if !errors.Is(err, want) || d.Target.Rank != model.NoRank {
		t.Fatalf("route %q: %v to %v, want %v", conv, err, d.Target, want)
	}
	return err
}

// TestWorkersComeAndGo is the life of a cluster at random: workers join, leave,
// grow, shrink, die and come back while requests are routed, answered and ended.
// At every step the requests on ranks and without one are the open ones, none is
// on a rank that is not there or was dead when it was sent, and a subscriber has
// what a snapshot says.
func TestWorkersComeAndGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := rapid.SampledFrom([]model.Policy{model.PolicyDefault, model.PolicyKVAware, model.PolicyConversation}).Draw(t, "policy")
		b := newBench(t, 0, 0, policy, room(16), inMode(rapid.SampledFrom(allModes()).Draw(t, "mode")), func(c *Config) { c.MaxConvs = 4 })
		sub := b.Subscribe()
		state := sub.Start()
		m := world{bench: b, open: map[int64]model.Target{}}
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			m.step(t)
			m.check(t)
			if rapid.Bool().Draw(t, "take") {
				c, resync := sub.Take(3)
				if resync {
					t.Fatal("nothing was lost")
				}
				if c != nil {
					state = follow(state, c)
				}
				want := b.Snapshot()
				state.At = want.At
				if diff := cmp.Diff(want, state, equal); diff != "" {
					t.Fatal(diff)
				}
			}
		}
		for id := range m.open {
			b.Done(id, model.OutcomeOK)
		}
		m.open, m.gone = nil, nil
		m.check(t)
		if b.book.Len() != 0 {
			t.Fatalf("%d are open after all ended", b.book.Len())
		}
	})
}

// world is a cluster beside a plain list of what is open.
type world struct {
	*bench
	open map[int64]model.Target
	gone map[int64]bool // their worker or rank has left
}

func (m *world) step(t *rapid.T) {
	b := m.bench
	conv := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e"}).Draw(t, "conv")
	id := rapid.Int64Range(1, max(1, b.ids)).Draw(t, "id")
	target := at(rapid.SampledFrom([]string{"w0", "w1", "w2"}).Draw(t, "worker"), rapid.IntRange(0, 3).Draw(t, "rank"))
	tokens := prompt(rapid.SliceOfN(rapid.Uint32Range(1, 3), 0, 4).Draw(t, "blocks")...)
	switch rapid.IntRange(0, 11).Draw(t, "op") {
	case 11:
		b.Observe(target.Worker, b.clock.Now().Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "age"))*time.Second), reports(float64(target.Rank), 1, 0))
		b.EventsOn(target.Worker, target.Rank, 1, uint64(rapid.IntRange(0, 9).Draw(t, "seq")), []byte{0x90})
	case 0, 1:
		s := spec(target.Worker, target.Rank+1, func(s *model.WorkerSpec) {
			s.KVEvents, s.KVReplay = s.ID != "w1", true
			if s.ID == "w2" {
				s.Steering = model.SteerConversation
			}
		})
		if err := b.Join(s); errors.Is(err, ErrSpec) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		m.lose(func(o model.Target) bool { return o.Worker == target.Worker && o.Rank > target.Rank })
	case 2:
		if b.Leave(target.Worker) == nil {
			m.lose(func(o model.Target) bool { return o.Worker == target.Worker })
		}
	case 3:
		if rapid.Bool().Draw(t, "whole") {
			target.Rank = model.NoRank
		}
		_ = b.Live(target.Worker, target.Rank, rapid.Bool().Draw(t, "live"), "timeout")
	case 4, 5, 6:
		m.route(t, conv, target, tokens)
	case 7:
		if rapid.Bool().Draw(t, "untold") {
			target.Rank = model.NoRank
		}
		b.FirstToken(id, model.Usage{Ran: target, CachedTokens: 16, TTFTMs: 3, CachedUnknown: id%3 == 0, Evidence: "header"})
		if _, ok := m.open[id]; ok && !m.gone[id] { // it may run elsewhere
			k := b.book.Get(id)
			m.open[id] = at(b.places[k.Worker].spec.ID, k.Rank)
		}
	case 8:
		b.Done(id, model.OutcomeOK)
		delete(m.open, id)
		delete(m.gone, id)
	case 9:
		b.do(onConvs(rapid.SampledFrom([]model.Verb{model.VerbPin, model.VerbMigrate, model.VerbEvict}).Draw(t, "verb"), &target, "a", "b"))
		b.do(undoOrDrain(t, target))
	case 10:
		b.Restarted(target.Worker, target.Rank, "new process")
		b.clock.advance(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
	}
}

func undoOrDrain(t *rapid.T, target model.Target) model.Command {
	if rapid.Bool().Draw(t, "undo") {
		return undo(0)
	}
	return onRank(rapid.SampledFrom([]model.Verb{model.VerbDrain, model.VerbReady}).Draw(t, "verb"), target)
}

func (m *world) lose(gone func(model.Target) bool) {
	for id, o := range m.open {
		if gone(o) {
			if m.gone == nil {
				m.gone = map[int64]bool{}
			}
			m.gone[id] = true
		}
	}
}

func (m *world) route(t *rapid.T, conv string, target model.Target, tokens []uint32) {
	b := m.bench
	b.ids++
	q := model.Request{ID: b.ids, Conv: conversation(conv), PromptTokens: len(tokens), Locals: localsOf(tokens), Route: model.RouteChat, Channel: "header"}
	asksIn(b.Mode(), target)(&q)
	if rapid.IntRange(0, 3).Draw(t, "exclude") == 0 {
		q.Exclude = []model.Target{target}
	}
	d, err := b.Route(&q, nil)
	if err != nil {
		for _, known := range []error{ErrFull, ErrNoWorkers, ErrNoWorker, ErrNoRank, ErrNoEligible, ErrDown, ErrExcluded, ErrWorkerNeeded} {
			if errors.Is(err, known) {
				return
			}
		}
		t.Fatalf("route: %v", err)
	}
	if !b.there(d.Target) || !b.workers[b.byID[d.Target.Worker]].answers(d.Target.Rank) || (d.Target.Rank == model.NoRank) != (d.Target.Worker == "w2") {
		t.Fatalf("went to %v, which is not there or dead", d.Target)
	}
	if len(q.Exclude) > 0 && (d.Target == target || d.Target == at(target.Worker, model.NoRank)) {
		t.Fatalf("went to %v, which it must not", d.Target)
	}
	m.open[b.ids] = d.Target
}

func (m *world) check(t tester) {
	t.Helper()
	b := m.bench
	s := b.Snapshot()
	sum := 0
	for _, r := range s.Ranks {
		if r.InFlight < 0 || r.Pins < 0 || r.OperatorPins < 0 {
			t.Fatalf("%+v", r)
		}
		sum += r.InFlight
	}
	for _, w := range b.workers {
		sum += b.book.Waiting(w.index)
	}
	if sum != s.Totals.Open || sum+b.Departed() != len(m.open) || b.Departed() != len(m.gone) {
		t.Fatalf("%d in flight, %d in totals, %d departed, want %d open of which %d departed", sum, s.Totals.Open, b.Departed(), len(m.open), len(m.gone))
	}
	if got := b.steer.tier.Load().Counters().Open; got != sum && b.elapsed() < time.Hour {
		t.Fatalf("the cluster tier has %d booked, %d are in flight", got, sum)
	}
	pins := map[model.Target]int{}
	for _, e := range b.binds.Entries() {
		if !b.there(e.Binding.Target) {
			t.Fatalf("%s is bound to %v, which is not there", e.Key.ID, e.Binding.Target)
		}
		pins[e.Binding.Target]++
	}
	for _, r := range s.Ranks {
		if r.Pins != pins[r.Target] {
			t.Fatalf("%v counts %d bindings, there are %d", r.Target, r.Pins, pins[r.Target])
		}
	}
	slots := map[int32]model.Target{}
	for _, w := range b.workers {
		for k, slot := range w.slots {
			target := at(w.spec.ID, k)
			if had, taken := slots[slot]; taken {
				t.Fatalf("%v and %v share a slot", had, target)
			}
			slots[slot] = target
			if b.know.blockTokens() > 0 {
				if id, ok := b.know.index.Lookup(target); !ok || int32(id) != slot {
					t.Fatalf("%v has slot %d and index place %d, %v", target, slot, id, ok)
				}
			}
		}
	}
	if len(s.Index) > 0 && len(s.Index) != len(s.Ranks) {
		t.Fatalf("%d index rows of %d ranks", len(s.Index), len(s.Ranks))
	}
}

// TestNoWorkers: a router that waits for its first engine says so, and goes on
// once one has joined, also after the last has left.
func TestNoWorkers(t *testing.T) {
	if _, err := New(Config{Clock: &fakeClock{}}); err == nil || !strings.Contains(err.Error(), "MaxRanks") {
		t.Fatalf("no workers and no room: %v", err)
	}
	for _, mode := range allModes()[:6] {
		b := newBench(t, 0, 0, model.PolicyConversation, room(8), inMode(mode))
		for range 2 {
			if err := b.refused(t, ErrNoWorkers, "a"); !strings.Contains(err.Error(), "start one") {
				t.Fatalf("%v", err)
			}
			b.join(t, spec("w0", 2))
			id, _ := b.routed(t, "a", of(prompt(1, 2)))
			b.Done(id, model.OutcomeOK)
			b.leave(t, "w0")
		}
		if s := b.Snapshot(); len(s.Workers)+len(s.Ranks)+len(s.Index) != 0 {
			t.Fatalf("%+v", s.Workers)
		}
	}
}

// TestJoinRefusesWhatCannotBe, and leaves nothing behind.
func TestJoinRefusesWhatCannotBe(t *testing.T) {
	b := newBench(t, 0, 0, model.PolicyDefault, room(4))
	b.join(t, spec("w0", 2))
	for name, s := range map[string]model.WorkerSpec{
		"no id": spec("", 1), "no ranks": spec("w1", 0), "no room": spec("w1", 3), "grows too far": spec("w0", 5),
		"another block size": spec("w1", 1, func(s *model.WorkerSpec) { s.BlockTokens = 32 }),
		"negative":           spec("w1", 1, func(s *model.WorkerSpec) { s.StartRank = -1 }),
		"not utf-8":          spec("w\xff", 1),
	} {
		if err := b.Join(s); !errors.Is(err, ErrSpec) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.join(t, spec("w1", 2))
	if err := b.Leave("w9"); !errors.Is(err, ErrNoWorker) {
		t.Fatalf("%v", err)
	}
	if s := b.Snapshot(); len(s.Ranks) != 4 || len(s.Events) != 2 {
		t.Fatalf("%d ranks, %+v", len(s.Ranks), s.Events)
	}
	b.join(t, spec("w1", 2)) // the same again is no news
	if s := b.Snapshot(); len(s.Events) != 2 {
		t.Fatalf("%+v", s.Events)
	}
	static := newBench(t, 1, 1, model.PolicyDefault)
	if err := static.Join(spec("w1", 1)); !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), "MaxRanks") {
		t.Fatalf("%v", err)
	}
}

// TestLateEndsBringNothingBack: 1,000 workers come and go with a request open on
// each; what is listed is what is there, and their ends are counted.
func TestLateEndsBringNothingBack(t *testing.T) {
	b := newBench(t, 0, 0, model.PolicyConversation, room(8), inMode(model.ModeKV))
	b.join(t, spec("home", 2))
	for i := range 1000 {
		id := fmt.Sprint("w", i)
		b.join(t, spec(id, 4))
		req, _ := b.routed(t, "c", asks(at(id, 2)), of(prompt(1, 2)))
		b.EventsOn(id, 2, 1, 0, nil)
		b.leave(t, id)
		b.FirstToken(req, model.Usage{Ran: at(id, 2), CachedTokens: 3})
		b.Output(req, 50)
		b.EventsOn(id, 2, 1, 1, nil)
		b.Done(req, model.OutcomeOK)
		s := b.Snapshot()
		if len(s.Workers) != 1 || len(s.Ranks) != 2 || len(s.Index) != 2 || s.Totals.Open != 0 || s.Ranks[0].InFlight+s.Ranks[1].InFlight != 0 {
			t.Fatalf("after %s: %+v", id, s.Ranks)
		}
	}
	if b.LateEnds() != 1000 || b.Strays() != 0 || b.Departed() != 0 {
		t.Fatalf("%d late ends, %d strays, %d departed", b.LateEnds(), b.Strays(), b.Departed())
	}
	if n := b.steer.tier.Slots(); n > 8 {
		t.Fatalf("%d slots for at most 6 ranks", n)
	}
	if n := len(b.places); n > 2 {
		t.Fatalf("%d places for at most 2 workers", n)
	}
}

// TestShrinkTakesRanksAway: 4 → 2 removes ranks 2 and 3 with their figures; what
// the others have stays.
func TestShrinkTakesRanksAway(t *testing.T) {
	b := newBench(t, 0, 0, model.PolicyConversation, room(8))
	b.join(t, spec("w0", 4))
	sub := b.Subscribe()
	sub.Start()
	ids := map[int]int64{}
	for k := range 4 {
		ids[k], _ = b.routed(t, fmt.Sprint("c", k), asks(at("w0", k)))
	}
	b.must(t, onConvs(model.VerbPin, ptr(at("w0", 3)), "c3"))
	b.must(t, onRank(model.VerbDrain, at("w0", 3)))
	b.must(t, setWeight(at("w0", 2), "0.5"))
	sub.Take(0)
	b.join(t, spec("w0", 2))
	c, _ := sub.Take(0)
	if diff := cmp.Diff([]model.Target{at("w0", 2), at("w0", 3)}, c.RanksGone); diff != "" || len(c.WorkersGone) != 0 {
		t.Fatalf("%s, %v", diff, c.WorkersGone)
	}
	s := b.Snapshot()
	if len(s.Ranks) != 2 || len(s.Index) != 2 || s.Totals.Open != 2 || b.Departed() != 2 {
		t.Fatalf("%+v", s.Ranks)
	}
	if e := s.Events[0]; !strings.Contains(e.What, "ranks 4 → 2") || !strings.Contains(e.What, "2 conversations placed once more") ||
		!strings.Contains(e.What, "2 requests were open there") || !strings.Contains(e.What, "operator pins of 1 conversation wait") || e.Kind != model.EventEngine {
		t.Fatalf("%+v", e)
	}
	if _, got := b.routed(t, "c2"); got.Rank > 1 {
		t.Fatalf("went to %v", got)
	}
	b.refused(t, ErrDown, "c3")
	if _, got := b.routed(t, "c0"); got != at("w0", 0) {
		t.Fatalf("what was bound to a rank that stays went to %v", got)
	}
	for _, id := range ids {
		b.Done(id, model.OutcomeOK)
	}
	if b.LateEnds() != 2 {
		t.Fatalf("%d late ends", b.LateEnds())
	}
	b.join(t, spec("w0", 4))
	s = b.Snapshot()
	if s.Ranks[2].Weight != 0.5 || s.Ranks[3].Availability != model.Draining || s.Ranks[3].OperatorPins != 1 || s.Ranks[3].InFlight != 0 || s.Ranks[3].Requests != 0 {
		t.Fatalf("back again: %+v", s.Ranks)
	}
	if _, got := b.routed(t, "c3"); got != at("w0", 3) {
		t.Fatalf("the pin acts again: %v", got)
	}
}

// TestPinOfAWorkerThatLeft stands, refuses with the reason, and acts again when
// the worker is back under its id; undo and settings live through it.
func TestPinOfAWorkerThatLeft(t *testing.T) {
	for _, mode := range []model.RouterMode{model.ModeRoundRobin, model.ModeKV} {
		b := newBench(t, 2, 2, model.PolicyConversation, room(8), inMode(mode), withBlocks)
		b.turn(t, "a", nil)
		b.must(t, onConvs(model.VerbPin, ptr(at("w1", 1)), "a"))
		b.must(t, onRank(model.VerbDrain, at("w1", 0)))
		b.must(t, setWeight(at("w1", 1), "0.25"))
		b.leave(t, "w1")
		err := b.refused(t, ErrDown, "a")
		for _, part := range []string{"operator pin to w1/1", "w1 has left", "unpin"} {
			if !strings.Contains(err.Error(), part) {
				t.Fatalf("%v does not say %q", err, part)
			}
		}
		if c := b.conv(t, "a"); c.Pin != model.PinOperator || c.Bound != at("w1", 1) {
			t.Fatalf("%+v", c)
		}
		b.must(t, set(model.FieldTimeoutIters, "7")) // v5
		b.must(t, undo(0))                           // v6
		b.must(t, undo(4))                           // v7: the weight of a rank that is not there
		b.must(t, undo(3))                           // v8: its drain
		b.must(t, undo(7))                           // v9: the weight again
		b.join(t, spec("w1", 2))
		s := b.Snapshot()
		if s.Ranks[2].Availability != model.Ready || s.Ranks[3].Weight != 0.25 || s.Ranks[3].OperatorPins != 1 {
			t.Fatalf("%+v", s.Ranks)
		}
		if _, got := b.routed(t, "a"); got != at("w1", 1) {
			t.Fatalf("the pin acts again: %v", got)
		}
	}
}

// TestUndoOfABindingThatHasNoRank brings no binding to a rank that has left.
func TestUndoOfABindingThatHasNoRank(t *testing.T) {
	b := newBench(t, 2, 2, model.PolicyConversation, room(8), withBlocks)
	b.turn(t, "a", nil, asks(at("w1", 1)))
	b.must(t, onConvs(model.VerbEvict, nil, "a"))
	b.leave(t, "w1")
	b.must(t, undo(0))
	if c := b.conv(t, "a"); c.Pin != model.PinNone {
		t.Fatalf("%+v", c)
	}
	b.turn(t, "a", nil)
	b.join(t, spec("w1", 2))
	for _, r := range b.Snapshot().Ranks {
		if r.Target.Worker == "w1" && r.Pins != 0 {
			t.Fatalf("%+v", r)
		}
	}
}

// TestSlotsAreReusedSafely: what was known of a rank that left is nothing of the
// next one in its place, be it looked up, guessed or published too late.
func TestSlotsAreReusedSafely(t *testing.T) {
	for _, events := range []bool{true, false} {
		t.Run(fmt.Sprint("events=", events), func(t *testing.T) {
			b := newBench(t, 0, 0, model.PolicyDefault, room(8), inMode(model.ModeKV))
			with := func(s *model.WorkerSpec) { s.KVEvents = events }
			b.join(t, spec("w0", 2, with))
			b.join(t, spec("w1", 2, with))
			tokens := prompt(1, 2, 3)
			if events {
				newEngine(b, 0).serve(at("w1", 1), tokens)
			} else {
				id, _ := b.routed(t, "", of(tokens), asks(at("w1", 1)))
				b.Done(id, model.OutcomeOK)
			}
			late := b.know.seats.Load().of(at("w1", 1))
			q := &model.Request{ID: 900, PromptTokens: len(tokens), Locals: localsOf(tokens)}
			l, err := b.know.look(q, b.elapsed())
			if err != nil || l.held(int(late.slot), blockTokens) != len(tokens) {
				t.Fatalf("%v", err)
			}
			b.leave(t, "w1")
			b.join(t, spec("w2", 2, with))
			if b.workers[1].slots[1] != late.slot {
				t.Fatalf("slots %v, the old one was %d", b.workers[1].slots, late.slot)
			}
			b.know.routed(l, int(late.slot), b.elapsed()) // decided before
			late.mu.Lock()                                // a batch that was on its way
			gone := late.gone
			late.mu.Unlock()
			if !gone {
				t.Fatal("the old feed takes batches")
			}
			b.mu.Lock()
			b.renew(l)
			b.mu.Unlock()
			if got := l.held(int(late.slot), blockTokens); got != 0 {
				t.Fatalf("the new rank is credited with %d tokens of the old one", got)
			}
			for _, row := range b.Snapshot().Index {
				if row.Device != 0 {
					t.Fatalf("%+v", row)
				}
			}
			if _, err := b.Route(q, nil); err != nil {
				t.Fatal(err)
			}
			if d := b.lastDecision(t); d.Reachable != 0 {
				t.Fatalf("%+v", d)
			}
		})
	}
}

// TestModels: a request goes only to workers that serve its model, in every
// mode; one that nobody serves is told so.
func TestModels(t *testing.T) {
	only := func(names ...string) func(*model.WorkerSpec) {
		return func(s *model.WorkerSpec) { s.Models = names }
	}
	of := func(name string) func(*model.Request) { return func(q *model.Request) { q.Conv.Model = name } }
	for _, mode := range allModes()[:6] {
		for _, policy := range []model.Policy{model.PolicyDefault, model.PolicyConversation} {
			b := newBench(t, 0, 0, policy, room(16), inMode(mode))
			b.join(t, spec("w0", 2, only("m1")))
			b.join(t, spec("w1", 2, only("m2", "m3")))
			b.join(t, spec("w2", 2))
			for i := range 40 {
				name := fmt.Sprint("m", 1+i%3)
				id, got := b.routed(t, fmt.Sprint("c", i%9), of(name))
				if got.Worker == "w0" && name != "m1" || got.Worker == "w1" && name == "m1" {
					t.Fatalf("%s: %s went to %v", mode, name, got)
				}
				if i%2 == 0 {
					b.Done(id, model.OutcomeOK)
				}
			}
			b.leave(t, "w2")
			err := b.refused(t, ErrNoModel, "", of("m9"))
			if !strings.Contains(err.Error(), `["m1" "m2" "m3"]`) {
				t.Fatalf("%v", err)
			}
			b.refused(t, ErrNoModel, "", of("m2"), asks(at("w0", 1)))
			b.routed(t, "", of("m1"), asks(at("w0", 1)))
			b.routed(t, "") // no model is named: any
		}
	}
}

// TestExclude: what has just failed is not chosen again, whatever holds the
// request there; a pin refuses instead.
func TestExclude(t *testing.T) {
	not := func(targets ...model.Target) func(*model.Request) {
		return func(q *model.Request) { q.Exclude = targets }
	}
	for _, mode := range allModes()[:6] {
		for _, policy := range []model.Policy{model.PolicyDefault, model.PolicyKVAware, model.PolicyConversation} {
			b := newBench(t, 2, 2, policy, withBlocks, inMode(mode))
			bound := b.turn(t, "a", nil, func(q *model.Request) { q.Explicit, q.Relax = ptr(at("w1", 1)), true })
			for i := range 8 {
				for _, out := range [][]model.Target{{at("w0", 0)}, {at("w0", 1), at("w1", 1)}, {at("w1", model.NoRank)}} {
					conv := []string{"", "a", fmt.Sprint("c", i)}[i%3]
					id, got := b.routed(t, conv, not(out...))
					if excludes(out, got) {
						t.Fatalf("%s, %s: %q went to %v, not to be %v", mode, policy, conv, got, out)
					}
					b.Done(id, model.OutcomeOK)
				}
			}
			if c := b.conv(t, "a"); c.Pin == model.PinAuto && c.Bound != bound {
				t.Fatalf("%s, %s: the binding moved to %v", mode, policy, c.Bound)
			}
			b.refused(t, ErrExcluded, "", asks(at("w0", 1)), not(at("w0", 1)))
			b.must(t, onConvs(model.VerbPin, ptr(at("w0", 1)), "a"))
			b.refused(t, ErrExcluded, "a", not(at("w0", 1)))
			all := []model.Target{at("w0", model.NoRank), at("w1", 0), at("w1", 1)}
			b.refused(t, ErrNoEligible, "", not(all...))
		}
	}
}

// TestJoinLeaveRace: everything at once, for the race detector; afterwards the
// books are even.
func TestJoinLeaveRace(t *testing.T) {
	b := newBench(t, 0, 0, model.PolicyConversation, room(32), inMode(model.ModeKV))
	b.join(t, spec("home", 2))
	tokens := prompt(1, 2, 3)
	locals := localsOf(tokens)
	n := 400
	if testing.Short() {
		n = 100
	}
	var all, side sync.WaitGroup
	stop := make(chan struct{})
	for lane := range 2 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(lane), 1))
			for i := range n {
				id := int64(lane*1_000_000 + i)
				q := model.Request{ID: id, PromptTokens: len(tokens), Locals: locals, Conv: conversation(fmt.Sprint("c", rng.IntN(50)))}
				d, err := b.Route(&q, nil)
				if err != nil {
					continue
				}
				b.FirstToken(id, model.Usage{Ran: d.Target, CachedTokens: 16})
				b.Done(id, model.OutcomeOK)
			}
		})
		all.Go(func() {
			for i := range n {
				id := fmt.Sprint("w", lane, i%3)
				_ = b.Join(spec(id, 1+i%4, func(s *model.WorkerSpec) { s.KVEvents = i%5 != 0 }))
				_ = b.Live(id, model.NoRank, i%7 != 0, "timeout")
				if i%3 == 2 {
					_ = b.Leave(id)
				}
			}
		})
	}
	side.Go(func() {
		enc := fakeCache{holds: map[event.Hash]bool{}}
		payload := enc.storedBatch(tokens)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				b.Events(fmt.Sprint("w", i%2, i%3), i%4, uint64(i), payload)
				b.Restarted(fmt.Sprint("w", i%2, i%3), i%4, "")
			}
		}
	})
	side.Go(func() {
		sub := b.Subscribe()
		sub.Start()
		for {
			select {
			case <-stop:
				return
			case <-sub.C():
				sub.Take(10)
			}
		}
	})
	all.Wait()
	close(stop)
	side.Wait()
	for lane := range 2 {
		for i := range 3 {
			_ = b.Leave(fmt.Sprint("w", lane, i))
		}
	}
	s := b.Snapshot()
	if s.Totals.Open != 0 || len(s.Ranks) != 2 || len(s.Index) != 2 || b.know.index.Stats().Targets != 2 {
		t.Fatalf("%+v, %d ranks, index %+v", s.Totals, len(s.Ranks), b.know.index.Stats())
	}
}

// TestAWorkerWithoutReadyRanksBlocksNothing: a worker that lost the ranks that
// took work does not stand in the way of commands about others.
func TestAWorkerWithoutReadyRanksBlocksNothing(t *testing.T) {
	b := newBench(t, 0, 0, model.PolicyDefault, room(8))
	b.join(t, spec("w0", 4))
	b.join(t, spec("w1", 2))
	b.must(t, onRank(model.VerbDrain, at("w0", 0)))
	b.must(t, onRank(model.VerbDrain, at("w0", 1)))
	b.join(t, spec("w0", 2))
	b.must(t, set(model.FieldTimeoutIters, "9"))
	b.must(t, onRank(model.VerbDrain, at("w1", 0)))
	if reply := b.do(onRank(model.VerbDrain, at("w1", 1))); reply.Accepted {
		t.Fatal("the last rank of w1 that takes work was drained")
	}
	for range 4 {
		if _, got := b.routed(t, ""); got != at("w1", 1) {
			t.Fatalf("went to %v", got)
		}
	}
}

// TestBlockSizeComesLate: until an engine names it nothing is hashed, which is
// said where events come; from then on everything works.
func TestBlockSizeComesLate(t *testing.T) {
	b := newBench(t, 0, 0, model.PolicyDefault, room(8), inMode(model.ModeKV))
	unknown := func(s *model.WorkerSpec) { s.BlockTokens = 0 }
	b.join(t, spec("w0", 2, unknown))
	if f := b.finding(model.FindingNoBlockSize); f == nil || f.Target != at("w0", model.NoRank) {
		t.Fatalf("%+v", f)
	}
	id, _ := b.routed(t, "", of(prompt(1, 2)))
	b.Done(id, model.OutcomeOK)
	b.Events("w0", 0, 0, nil)
	b.join(t, spec("w1", 2))
	if f := b.finding(model.FindingNoBlockSize); f != nil {
		t.Fatalf("%+v", f)
	}
	newEngine(b, 0).serve(at("w0", 1), prompt(1, 2))
	if _, got := b.routed(t, "", of(prompt(1, 2, 3))); got != at("w0", 1) {
		t.Fatalf("went to %v", got)
	}
	b.join(t, spec("w0", 2, unknown)) // not known takes nothing back
	if w := b.Snapshot().Workers[0]; w.ID != "w0" || b.know.blockTokens() != blockTokens {
		t.Fatalf("%+v", w)
	}
	if err := b.Join(spec("w0", 2, func(s *model.WorkerSpec) { s.BlockTokens = 64 })); !errors.Is(err, ErrSpec) {
		t.Fatalf("%v", err)
	}
}
