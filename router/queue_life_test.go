package router

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"adpdeck/router/model"
)

// TestNobodyWaitsWhereThereIsRoom is the life of the queue at random: requests
// come and go, are canceled, workers join and leave, die, grow and get other
// capacities, operators pin, drain and change modes and thresholds. After each
// step none waits that would be routed if it came now, and in the end all have
// their answer and nothing is booked.
func TestNobodyWaitsWhereThereIsRoom(t *testing.T) {
	seeds := 150
	if testing.Short() {
		seeds = 40
	}
	for seed := range uint64(seeds) {
		for _, mode := range []model.RouterMode{model.ModeKV, model.ModeLockstep, model.ModeRoundRobin, model.ModeLeastLoaded, model.ModeRandom, model.ModePowerOfTwo} {
			synctest.Test(t, func(t *testing.T) {
				q := queueLife{t: t, rng: rand.New(rand.NewPCG(seed, 1)), seed: fmt.Sprint(mode, " ", seed), open: map[int64]bool{}, waits: map[int64]*waitingTest{}}
				policy := []model.Policy{model.PolicyDefault, model.PolicyKVAware, model.PolicyConversation}[seed%3]
				q.bench = newBench(t, 0, 0, policy, room(12), inMode(mode))
				for range 120 {
					q.step()
					q.check()
				}
				q.end()
			})
		}
	}
}

type queueLife struct {
	*bench
	t     *testing.T
	rng   *rand.Rand
	seed  string
	open  map[int64]bool
	waits map[int64]*waitingTest
	last  string
}

type waitingTest struct {
	got    chan routed
	cancel context.CancelFunc
}

func (q *queueLife) target() model.Target {
	return at(fmt.Sprint("w", q.rng.IntN(3)), q.rng.IntN(3))
}

func (q *queueLife) conv() string { return fmt.Sprint("c", q.rng.IntN(5)) }

func (q *queueLife) ask() {
	ctx, cancel := context.WithCancel(q.t.Context())
	q.ids++
	tokens := prompt(uint32(q.rng.IntN(3)), uint32(q.rng.IntN(3)))
	conv, explicit, exclude := "", (*model.Target)(nil), []model.Target(nil)
	if q.rng.IntN(2) == 0 {
		conv = q.conv()
	}
	if q.rng.IntN(5) == 0 {
		explicit = ptr(q.target())
		if q.rng.IntN(2) == 0 {
			explicit.Rank = model.NoRank
		}
	}
	if q.rng.IntN(6) == 0 {
		exclude = []model.Target{q.target()}
	}
	name, relax := "", q.rng.IntN(2) == 0
	if q.rng.IntN(3) == 0 {
		name = "llama"
	}
	q.last += fmt.Sprintf(" %d: conv %q explicit %v relax %v exclude %v model %q", q.ids, conv, explicit, relax, exclude, name)
	w := &waitingTest{cancel: cancel}
	w.got = q.waiting(ctx, q.ids, of(tokens), func(r *model.Request) {
		r.Conv, r.Explicit, r.Relax, r.Exclude = conversation(conv), explicit, relax, exclude
		if conv != "" {
			r.Conv.Model = name
		}
	})
	q.waits[q.ids] = w
}

// one is some id of a set, 0 for an empty one.
func one[V any](rng *rand.Rand, set map[int64]V) int64 {
	ids := make([]int64, 0, len(set))
	for id := range int64(10_000) {
		if _, ok := set[id]; ok {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return 0
	}
	return ids[rng.IntN(len(ids))]
}

func (q *queueLife) step() {
	op := q.rng.IntN(20)
	q.last = fmt.Sprint("op ", op)
	target := q.target()
	switch op {
	case 0, 1, 2, 3, 4, 5, 6:
		q.ask()
	case 7, 8, 9:
		id := one(q.rng, q.open)
		q.Done(id, model.OutcomeOK)
		delete(q.open, id)
	case 10, 11:
		q.FirstToken(one(q.rng, q.open), model.Usage{Ran: model.Target{Rank: model.NoRank}, CachedUnknown: true})
	case 12:
		if w := q.waits[one(q.rng, q.waits)]; w != nil {
			w.cancel()
		}
	case 13, 14:
		_ = q.Join(spec(target.Worker, 1+target.Rank, func(s *model.WorkerSpec) {
			s.MaxNumActiveRequests, s.MaxBatchedTokens = q.rng.IntN(3), 64
			if s.ID == "w1" && q.rng.IntN(2) == 0 {
				s.Models = []string{"llama"}
			}
			if s.ID == "w2" && q.rng.IntN(2) == 0 {
				s.Steering = model.SteerConversation
			}
		}))
	case 15:
		if q.rng.IntN(3) == 0 {
			_ = q.Leave(target.Worker)
		}
		_ = q.Block(target, q.rng.IntN(3) == 0)
	case 16:
		_ = q.Live(target.Worker, target.Rank, q.rng.IntN(3) > 0, "timeout")
	case 17:
		verb := []model.Verb{model.VerbPin, model.VerbUnpin, model.VerbMigrate, model.VerbEvict}[q.rng.IntN(4)]
		q.do(onConvs(verb, &target, q.conv(), q.conv()))
	case 18:
		q.do(onRank([]model.Verb{model.VerbDrain, model.VerbReady, model.VerbReady}[q.rng.IntN(3)], target))
	case 19:
		q.setting()
	}
	q.bench.clock.advance(time.Duration(q.rng.IntN(2000)) * time.Millisecond)
	synctest.Wait()
	for id, w := range q.waits {
		if !answered(w.got) {
			continue
		}
		w.cancel()
		if a := <-w.got; a.err == nil {
			q.open[id] = true
		}
		delete(q.waits, id)
	}
}

func (q *queueLife) setting() {
	all := [][2]string{
		{"router_mode", "kv"},
		{"router_mode", "lockstep"},
		{"router_mode", "round_robin"},
		{"router_mode", "least_loaded"},
		{"router_mode", "random"},
		{"router_queue_threshold_tokens", "40"},
		{"router_queue_threshold_tokens", "none"},
		{"router_session_affinity_mode", "soft"},
		{"router_session_affinity_mode", "hard"},
		{noAffinity, "none"},
		{noAffinity, "36000"},
		{"router_queue_policy", "wspt"},
		{"policy", "conversation"},
		{"policy", "default"},
	}
	v := all[q.rng.IntN(len(all))]
	q.last += fmt.Sprint(v)
	q.do(set(v[0], v[1]))
}

// check tries all who wait as if they came now.
func (q *queueLife) check() {
	r := q.Router
	if n := r.steer.queue.Len(); n != len(q.waits) {
		q.t.Fatalf("seed %s, %s: %d wait, the queue has %d", q.seed, q.last, len(q.waits), n)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.steer.queue.Empty() {
		p := w.Payload
		d, _, err := r.route(r.wallNow(), p.req, p.look, p.matches, refuses)
		if err == nil {
			q.t.Logf("%s: %s, mode %s, policy %s", d.WorkerWhy, d.Why, d.Mode, d.Policy)
			q.t.Fatalf("seed %s, after %s: request %d waits in lane %d (%+v) and might go to %v", q.seed, q.last, w.ID, w.Slot, p.req, d.Target)
		}
		r.steer.queue.Return(w)
	}
}

func (q *queueLife) end() {
	for i := 0; len(q.open)+len(q.waits) > 0; i++ {
		for id := range q.open {
			q.Done(id, model.OutcomeOK)
			delete(q.open, id)
		}
		if i > 20 { // those that wait for a rank that is blocked or full by others
			for _, w := range q.waits {
				w.cancel()
			}
		}
		synctest.Wait()
		for id, w := range q.waits {
			if answered(w.got) {
				if a := <-w.got; a.err == nil {
					q.open[id] = true
				}
				w.cancel()
				delete(q.waits, id)
			}
		}
		if i > 20 && len(q.waits) > 0 {
			q.t.Fatalf("seed %s: %d never had an answer", q.seed, len(q.waits))
		}
	}
	s := q.Snapshot()
	if s.Totals.Open != 0 || s.Totals.InQueue != 0 || q.Departed() != 0 || q.steer.tier.Load().Counters().Open != 0 {
		q.t.Fatalf("seed %s: %+v", q.seed, s.Totals)
	}
	for _, rank := range s.Ranks {
		if rank.InFlight != 0 {
			q.t.Fatalf("seed %s: %+v", q.seed, rank)
		}
	}
}
