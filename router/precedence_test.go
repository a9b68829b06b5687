package router

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"adpdeck/router/model"

	"github.com/google/go-cmp/cmp"
)

func asks(t model.Target) func(*model.Request) {
	return func(q *model.Request) { q.Explicit, q.Relax = &t, true }
}

// TestPrecedence walks down the order: operator pin, binding, what the client
// asked for, policy.
func TestPrecedence(t *testing.T) {
	b := newBench(t, 2, 4, model.PolicyConversation)
	if got := b.turn(t, "a", nil, asks(at("w1", 2))); got != at("w1", 2) {
		t.Fatalf("an explicit rank on a first turn: %v", got)
	}
	if got := b.conv(t, "a"); got.Pin != model.PinAuto || got.Bound != at("w1", 2) {
		t.Fatalf("it must bind: %+v", got)
	}
	if got := b.turn(t, "a", nil, asks(at("w0", 0))); got != at("w1", 2) {
		t.Fatalf("a binding beats a later explicit rank: %v", got)
	}
	if d := b.lastDecision(t); d.Why != "pinned" || d.Conflict != "asked for w0/0, bound to w1/2" {
		t.Fatalf("why %q, conflict %q", d.Why, d.Conflict)
	}
	b.must(t, onConvs(model.VerbPin, ptr(at("w0", 3)), "a"))
	if got := b.turn(t, "a", nil, asks(at("w1", 1))); got != at("w0", 3) {
		t.Fatalf("an operator pin beats all: %v", got)
	}
	if d := b.lastDecision(t); d.Why != "operator pin (bob)" || d.Conflict != "asked for w1/1, operator pin w0/3" || d.Placement.Phase != model.PhaseOperator {
		t.Fatalf("why %q, conflict %q, phase %q", d.Why, d.Conflict, d.Placement.Phase)
	}
	b.must(t, onConvs(model.VerbUnpin, nil, "a"))
	if got := b.turn(t, "a", nil); got != at("w1", 2) {
		t.Fatalf("the binding is still there: %v", got)
	}
	if got := b.Snapshot().Totals.Conflicts; got != 2 {
		t.Fatalf("%d conflicts", got)
	}
}

// TestPinOutranksLoad: a pinned request whose rank is full waits, is recorded
// and counted once, and goes there when there is room.
func TestPinOutranksLoad(t *testing.T) {
	for _, policy := range []model.Policy{model.PolicyDefault, model.PolicyKVAware, model.PolicyConversation} {
		t.Run(string(policy), func(t *testing.T) {
			b := newBench(t, 1, 4, policy)
			b.turn(t, "a", nil)
			b.must(t, onConvs(model.VerbPin, ptr(at("w0", 3)), "a"))
			full := []int{0, 0, 0, 8}
			id, got := b.submit(t, "a")
			if got != at("w0", 3) {
				t.Fatalf("submitted to %v", got)
			}
			other, _ := b.submit(t, "other")
			for range 3 {
				if rank := b.step(t, "w0", full, id)[0]; rank != model.NoRank {
					t.Fatalf("placed on %d", rank)
				}
			}
			if d := b.lastDecision(t); d.Why != "pin waits: w0/3 full" || d.Target != at("w0", model.NoRank) || d.Placement.Phase != model.PhaseUnplaced {
				t.Fatalf("%+v", d)
			}
			if ranks := b.step(t, "w0", full, id, other); ranks[0] != model.NoRank || ranks[1] == model.NoRank || ranks[1] == 3 {
				t.Fatalf("the rest goes on: %v", ranks)
			}
			if s := b.Snapshot(); s.Totals.Unplaced != 1 || s.Totals.Decisions != 3 {
				t.Fatalf("%d unplaced, %d decisions", s.Totals.Unplaced, s.Totals.Decisions)
			}
			if rank := b.step(t, "w0", nil, id)[0]; rank != 3 {
				t.Fatalf("placed on %d", rank)
			}
		})
	}
}

// TestPinnedCountsForTheRest: what is placed by hand is in the states that the
// policy sees.
func TestPinnedCountsForTheRest(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyDefault)
	b.turn(t, "a", nil)
	b.must(t, onConvs(model.VerbPin, ptr(at("w0", 0)), "a"))
	pinned, _ := b.submit(t, "a")
	free, _ := b.submit(t, "free")
	if got := b.step(t, "w0", nil, free, pinned); got[0] != 1 || got[1] != 0 {
		t.Fatalf("got %v, want the free one on the rank that the pin left", got)
	}
	if d := b.lastDecision(t); d.Why != "operator pin (bob)" {
		t.Fatalf("decisions follow the batch: %q", d.Why)
	}
}

// TestMigratedHoldsUnderEveryPolicy, softly: with the rank full the policy
// decides that turn, and the binding stays.
func TestMigratedHoldsUnderEveryPolicy(t *testing.T) {
	for _, policy := range []model.Policy{model.PolicyDefault, model.PolicyKVAware, model.PolicyConversation} {
		t.Run(string(policy), func(t *testing.T) {
			b := newBench(t, 2, 4, policy)
			b.turn(t, "a", nil)
			reply := b.must(t, onConvs(model.VerbMigrate, ptr(at("w1", 3)), "a"))
			if !strings.HasSuffix(reply.What, "→ w1/3") {
				t.Fatalf("what: %q", reply.What)
			}
			for range 3 {
				if got := b.turn(t, "a", []int{0, 0, 0, 7}); got != at("w1", 3) {
					t.Fatalf("went to %v", got)
				}
			}
			if got := b.turn(t, "a", []int{0, 0, 0, 8}); got.Worker != "w1" || got.Rank == 3 || got.Rank == model.NoRank {
				t.Fatalf("with the rank full: %v", got)
			}
			if d := b.lastDecision(t); d.Why != "overflow: w1/3 full" {
				t.Fatalf("why: %q", d.Why)
			}
			if got := b.turn(t, "a", nil); got != at("w1", 3) {
				t.Fatalf("afterwards: %v", got)
			}
			c := b.conv(t, "a")
			if c.Pin != model.PinMigrated || c.By != "bob" || c.PinnedVersion != 2 || c.Moves < 2 {
				t.Fatalf("%+v", c)
			}
		})
	}
}

// TestAutoBindingsSleep outside the conversation policy and are kept.
func TestAutoBindingsSleep(t *testing.T) {
	b := newBench(t, 2, 4, model.PolicyConversation)
	b.turn(t, "a", nil, asks(at("w1", 2)))
	b.must(t, set(model.FieldPolicy, "default"))
	if _, got := b.submit(t, "a"); got.Rank != model.NoRank {
		t.Fatalf("a dormant binding held: %v", got)
	}
	if b.turn(t, "a", nil, asks(at("w0", 1))) != at("w0", 1) {
		t.Fatal("an explicit rank is free to act")
	}
	b.must(t, set(model.FieldPolicy, "conversation"))
	if got := b.turn(t, "a", nil); got != at("w1", 2) {
		t.Fatalf("awake again: %v", got)
	}
}

// TestEvictedIsPlacedAfresh and undo brings the pin back.
func TestEvictedIsPlacedAfresh(t *testing.T) {
	b := newBench(t, 1, 4, model.PolicyConversation)
	b.turn(t, "a", nil) // rank 0, round robin
	b.must(t, onConvs(model.VerbPin, ptr(at("w0", 3)), "a"))
	for range 20 {
		if got := b.turn(t, "a", nil); got.Rank != 3 {
			t.Fatalf("went to %v", got)
		}
	}
	if r := b.must(t, onConvs(model.VerbUnpin, nil, "a")); r.What != "unpin a from w0/3: it goes back to w0/0, where it was bound" {
		t.Fatalf("%q", r.What)
	}
	if got := b.turn(t, "a", nil); got.Rank != 0 {
		t.Fatalf("unpinned, it went to %v", got)
	}
	b.must(t, undo(0))
	reply := b.must(t, onConvs(model.VerbEvict, nil, "a"))
	if want := "evict a from w0/3, where an operator pinned it (blocks on the engine are not touched)"; reply.What != want {
		t.Fatalf("what: %q", reply.What)
	}
	if got := b.turn(t, "a", nil); got.Rank != 1 {
		t.Fatalf("placed afresh: %v, want the next in turn", got)
	}
	if d := b.lastDecision(t); d.Why != "new: round robin" {
		t.Fatalf("why: %q", d.Why)
	}
	b.must(t, undo(0))
	if got := b.turn(t, "a", nil); got.Rank != 3 {
		t.Fatalf("after undo: %v", got)
	}
	b.must(t, undo(0)) // the pin
	if got := b.turn(t, "a", nil); got.Rank != 0 {
		t.Fatalf("after undoing the pin: %v, want its first binding", got)
	}
}

// TestDrainKeepsTheBound: no new conversations, bound ones stay.
func TestDrainKeepsTheBound(t *testing.T) {
	b := newBench(t, 1, 2, model.PolicyConversation)
	b.turn(t, "a", nil, asks(at("w0", 1)))
	b.must(t, onRank(model.VerbDrain, at("w0", 1)))
	if got := b.turn(t, "a", nil); got.Rank != 1 {
		t.Fatalf("the bound one went to %v", got)
	}
	for i := range 6 {
		if got := b.turn(t, fmt.Sprint("new", i), nil, asks(at("w0", 1))); got.Rank != 0 {
			t.Fatalf("a new one went to %v", got)
		}
	}
	if d := b.lastDecision(t); d.Conflict != "asked for w0/1, which takes no new work" {
		t.Fatalf("conflict: %q", d.Conflict)
	}
	b.must(t, onRank(model.VerbReady, at("w0", 1)))
	if got := b.turn(t, "x", nil, asks(at("w0", 1))); got.Rank != 1 {
		t.Fatalf("ready again: %v", got)
	}
}

// TestMovedAfterSubmit: a migration between Submit and Step does not lose
// itself to the worker that has the request.
func TestMovedAfterSubmit(t *testing.T) {
	b := newBench(t, 2, 4, model.PolicyConversation)
	b.turn(t, "a", nil, asks(at("w0", 0)))
	id, _ := b.submit(t, "a")
	b.must(t, onConvs(model.VerbMigrate, ptr(at("w1", 3)), "a"))
	if rank := b.step(t, "w0", nil, id)[0]; rank == model.NoRank {
		t.Fatal("it must be served where it is")
	}
	b.must(t, onConvs(model.VerbPin, ptr(at("w1", 1)), "a"))
	if got := b.turn(t, "a", nil); got != at("w1", 1) {
		t.Fatalf("next turn: %v", got)
	}
	b.must(t, onConvs(model.VerbUnpin, nil, "a"))
	if got := b.turn(t, "a", nil); got != at("w1", 3) {
		t.Fatalf("the migration stands: %v", got)
	}
}

// TestKeysAreScoped by tenant and model: the same id elsewhere is another
// conversation, with its own pin and eviction.
func TestKeysAreScoped(t *testing.T) {
	b := newBench(t, 1, 8, model.PolicyConversation, func(c *Config) { c.MaxConvs = 1000 })
	where := map[model.ConvKey]model.Target{}
	turn := func(k model.ConvKey) model.Target {
		return b.turn(t, "", nil, func(q *model.Request) { q.Conv = k })
	}
	for m := range 5 {
		for c := range 100 {
			k := model.ConvKey{Tenant: "t", Model: fmt.Sprint("m", m), ID: fmt.Sprint("c", c)}
			where[k] = turn(k)
		}
	}
	for k, want := range where {
		if got := turn(k); got != want {
			t.Fatalf("%+v moved from %v to %v", k, want, got)
		}
	}
	one, two := model.ConvKey{Tenant: "A", ID: "chat-1"}, model.ConvKey{Tenant: "B", ID: "chat-1"}
	turn(one)
	turn(two)
	b.must(t, model.Command{Verb: model.VerbPin, Target: ptr(at("w0", 1)), Convs: []model.ConvKey{one}})
	b.must(t, model.Command{Verb: model.VerbPin, Target: ptr(at("w0", 2)), Convs: []model.ConvKey{two}})
	b.must(t, model.Command{Verb: model.VerbEvict, Convs: []model.ConvKey{one}})
	if got := turn(two); got != at("w0", 2) {
		t.Fatalf("evicting A's moved B's to %v", got)
	}
}

func TestKeylessSpread(t *testing.T) {
	b := newBench(t, 1, 8, model.PolicyConversation)
	counts := map[int]int{}
	for range 800 {
		counts[b.turn(t, "", nil).Rank]++
	}
	for k, n := range counts {
		if n < 80 || n > 120 {
			t.Errorf("rank %d got %d of 800", k, n)
		}
	}
	s := b.Snapshot()
	if s.Totals.Keyless != 800 || s.Totals.Convs != 0 || s.Totals.Pins != 0 {
		t.Fatalf("%+v", s.Totals)
	}
	if d := b.lastDecision(t); d.Why != "keyless: round robin" {
		t.Fatalf("why: %q", d.Why)
	}
}

func TestRefusedRequests(t *testing.T) {
	long := strings.Repeat("x", model.MaxIDBytes+1)
	for name, c := range map[string]struct {
		q    model.Request
		want error
		text string
	}{
		"long id":        {model.Request{ID: 1, Conv: conversation(long)}, ErrID, "request 1: bad id: conversation id has 257 bytes, at most 256 are taken"},
		"long tenant":    {model.Request{ID: 1, Conv: model.ConvKey{Tenant: long, ID: "a"}}, ErrID, "tenant has 257 bytes"},
		"not utf-8":      {model.Request{ID: 1, Conv: conversation("a\x9b")}, ErrID, "conversation id is not UTF-8"},
		"negative id":    {model.Request{ID: -2}, ErrID, "request -2"},
		"negative size":  {model.Request{ID: 1, PromptTokens: -1}, ErrRequest, "prompt tokens -1"},
		"open already":   {model.Request{ID: 99}, ErrDuplicate, "request 99"},
		"no such worker": {model.Request{ID: 1, Explicit: ptr(at("w7", 0))}, ErrNoWorker, `no such worker "w7": choose one of w0, w1`},
		"no such rank":   {model.Request{ID: 1, Explicit: ptr(at("w1", 4))}, ErrNoRank, "request 1: explicit rank: no such rank w1/4: w1 has ranks 0 to 3"},
		"rank -2":        {model.Request{ID: 1, Explicit: ptr(at("w1", -2))}, ErrNoRank, "w1/-2: w1 has ranks 0 to 3"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 2, 4, model.PolicyDefault)
			if _, err := b.Submit(&model.Request{ID: 99}); err != nil {
				t.Fatal(err)
			}
			_, err := b.Submit(&c.q)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("got %v", err)
			}
			if _, err := b.Route(&c.q, nil); !errors.Is(err, c.want) {
				t.Fatalf("route: got %v", err)
			}
			if got := b.Snapshot().Totals; got.Open != 1 || got.Convs != 0 {
				t.Fatalf("it left something behind: %+v", got)
			}
		})
	}
}

func TestRefusedSteps(t *testing.T) {
	states := []model.RankState{{Rank: 0}, {Rank: 1}}
	b := newBench(t, 2, 2, model.PolicyDefault)
	mine, _ := b.submit(t, "a", asks(at("w0", model.NoRank)))
	theirs, _ := b.submit(t, "b", asks(at("w1", model.NoRank)))
	placed, _ := b.place(t, "c", nil, asks(at("w0", 1)))
	req := func(ids ...int64) (out []model.StepRequest) {
		for _, id := range ids {
			out = append(out, model.StepRequest{ID: id})
		}
		return out
	}
	for name, c := range map[string]struct {
		worker string
		in     model.StepInput
		want   error
		text   string
	}{
		"no such worker": {"w9", model.StepInput{States: states}, ErrNoWorker, "choose one of w0, w1"},
		"few states":     {"w0", model.StepInput{States: states[:1]}, ErrStep, "1 rank states, the worker has 2 ranks"},
		"disordered":     {"w0", model.StepInput{States: []model.RankState{{Rank: 1}, {Rank: 0}}}, ErrStep, "order them by rank"},
		"not open":       {"w0", model.StepInput{States: states, Requests: req(77)}, ErrStep, "request 77 is not open"},
		"elsewhere":      {"w0", model.StepInput{States: states, Requests: req(mine, theirs)}, ErrStep, "was sent to w1"},
		"placed":         {"w0", model.StepInput{States: states, Requests: req(placed)}, ErrStep, "on rank 1 already"},
		"twice":          {"w0", model.StepInput{States: states, Requests: req(mine, mine)}, ErrStep, "in it twice"},
	} {
		t.Run(name, func(t *testing.T) {
			var out model.StepOutput
			err := b.Step(c.worker, &c.in, &out)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("got %v", err)
			}
		})
	}
	if got := b.step(t, "w0", nil, mine); got[0] == model.NoRank {
		t.Fatal("a refused step must leave its requests as they were")
	}
}

func TestPickWorker(t *testing.T) {
	load := func(pairs ...int) (out []workerLoad) {
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, workerLoad{open: pairs[i], eligible: pairs[i+1]})
		}
		return out
	}
	for name, c := range map[string]struct {
		mode  model.RouterMode
		loads []workerLoad
		want  []int // successive choices, loads standing still
	}{
		"round robin":            {model.ModeRoundRobin, load(9, 1, 0, 1, 5, 1), []int{0, 1, 2, 0}},
		"round robin skips":      {model.ModeRoundRobin, load(0, 1, 0, 0, 0, 1), []int{0, 2, 0}},
		"least loaded":           {model.ModeLeastLoaded, load(9, 1, 3, 1, 5, 1), []int{1, 1}},
		"per eligible rank":      {model.ModeLeastLoaded, load(8, 8, 3, 2), []int{0, 0}},
		"ties rotate":            {model.ModeLeastLoaded, load(2, 1, 4, 2, 6, 3), []int{0, 1, 2, 0}},
		"not eligible":           {model.ModeLeastLoaded, load(0, 0, 4, 2), []int{1, 1}},
		"none eligible":          {model.ModeRoundRobin, load(0, 0, 0, 0), []int{-1, -1}},
		"none eligible by loads": {model.ModeLeastLoaded, load(0, 0), []int{-1}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []int
			cursor := 0
			for range c.want {
				at, next, _ := pickWorker(c.mode, c.loads, cursor)
				got, cursor = append(got, at), next
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Fatal(diff)
			}
		})
	}
}
