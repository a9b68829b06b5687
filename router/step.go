package router

import (
	"fmt"
	"time"

	"adpdeck/router/adp"
	"adpdeck/router/load"
	"adpdeck/router/model"
	"adpdeck/router/pin"
)

// batch is one call of an engine tier, gathered. Its slices are reused.
type batch struct {
	bookings []*booking
	matches  [][]int32
	states   []model.RankState
	hardCap  int
	rest     []int32 // by engine-tier index: index into bookings
	at       []int32 // by index into bookings: engine-tier index, or -1
	ranks    []int32
	how      []how
	order    [][]int32
	// fullRank is the rank that had no room for a pin or a migrated binding.
	fullRank []int32
}

// how says which hand placed a request of a batch.
type how uint8

const (
	byEngine how = iota
	byOperator
	byBinding
	bySteering // the cluster tier's choice
	bySession  // the cluster tier followed a binding
	waitsForPin
	waitsForRank
	enginePicks // the worker's engine picks the rank
)

// Step is the engine tier of one worker: it places the requests that the
// engine admitted to its step, as TensorRT-LLM does, on the states that the
// engine gathered. Requests held by an operator's pin, and outside the
// conversation policy those bound by a migration, are placed first, like those
// whose rank the cluster tier chose, and count in the states that the rest
// sees. A pinned or chosen request whose rank is full stays without a rank and
// waits; one bound by a migration falls to the engine tier's policy for this
// turn and keeps its binding.
//
// Each request must have been submitted to this worker and not been placed
// yet. The error wraps ErrNoWorker or ErrStep; nothing is placed then. out is
// refilled and allocates nothing once it has grown.
func (r *Router) Step(worker string, in *model.StepInput, out *model.StepOutput) error {
	now, start := r.clock.Now(), r.wallNow()
	notes, err := r.step(now, start, worker, in, out)
	for i := range notes { // the guesses have a lock of their own
		r.know.remember(&notes[i], now.Sub(r.start))
	}
	return err
}

func (r *Router) step(now, start time.Time, worker string, in *model.StepInput, out *model.StepOutput) ([]note, error) {
	r.lock(now)
	defer r.unlock()
	w, err := r.gather(worker, in)
	if err != nil {
		return nil, err
	}
	w.stepped, w.steppedAt = true, r.elapsed()
	if err := r.routeBatch(w); err != nil {
		return nil, err
	}
	out.PinWaits = 0
	took := int64(0)
	if n := len(w.batch.bookings); n > 0 {
		took = r.since(start) / int64(n)
	}
	for i := range w.batch.bookings {
		r.conclude(w, i, took)
		if how := w.batch.how[i]; how == waitsForPin || how == waitsForRank {
			out.PinWaits++
		}
	}
	out.Ranks = append(out.Ranks[:0], w.batch.ranks...)
	out.Order = resizeOrder(out.Order, len(w.ranks))
	for k, list := range w.batch.order {
		out.Order[k] = append(out.Order[k], list...)
	}
	out.Expected = w.softCap
	notes := r.notes
	r.notes = nil
	return notes, nil
}

// gather checks a step against the worker and fills its batch.
func (r *Router) gather(name string, in *model.StepInput) (*worker, error) {
	at, ok := r.byID[name]
	if !ok {
		return nil, fmt.Errorf("step: %w %q: choose one of %s", ErrNoWorker, name, r.workerNames())
	}
	w := r.workers[at]
	if len(in.States) != len(w.ranks) {
		return nil, fmt.Errorf("%w of %s: %d rank states, the worker has %d ranks", ErrStep, name, len(in.States), len(w.ranks))
	}
	for k := range in.States {
		if in.States[k].Rank != k {
			return nil, fmt.Errorf("%w of %s: state %d is of rank %d: order them by rank", ErrStep, name, k, in.States[k].Rank)
		}
	}
	g := &w.batch
	g.reset(in.HardCap)
	g.states = append(g.states, in.States...)
	r.steps++
	for i := range in.Requests {
		q := &in.Requests[i]
		b := r.book.Get(q.ID)
		switch {
		case b == nil:
			return nil, fmt.Errorf("%w of %s: request %d is not open: submit it first", ErrStep, name, q.ID)
		case b.Worker == load.Gone:
			return nil, fmt.Errorf("%w of %s: request %d was sent to a worker or rank that has left: end it", ErrStep, name, q.ID)
		case b.Worker != w.index:
			return nil, fmt.Errorf("%w of %s: request %d was sent to %s", ErrStep, name, q.ID, r.places[b.Worker].spec.ID)
		case b.Rank != model.NoRank:
			return nil, fmt.Errorf("%w of %s: request %d is on rank %d already", ErrStep, name, q.ID, b.Rank)
		case b.Value.step == r.steps:
			return nil, fmt.Errorf("%w of %s: request %d is in it twice", ErrStep, name, q.ID)
		}
		b.Value.step = r.steps
		g.bookings = append(g.bookings, b)
		g.matches = append(g.matches, q.Matches)
	}
	return w, nil
}

func (g *batch) reset(hardCap int) {
	g.bookings, g.matches, g.states = g.bookings[:0], g.matches[:0], g.states[:0]
	g.rest, g.at, g.ranks, g.how, g.fullRank = g.rest[:0], g.at[:0], g.ranks[:0], g.how[:0], g.fullRank[:0]
	g.hardCap = hardCap
}

// routeBatch places the gathered batch of w: pins and migrated bindings by
// hand, the rest by the engine tier.
func (r *Router) routeBatch(w *worker) error {
	g := &w.batch
	g.order = resizeOrder(g.order, len(w.ranks))
	w.request.Requests = w.request.Requests[:0]
	policy := r.policy()
	for i, b := range g.bookings {
		if t := &b.Value; (t.wished || t.looked) && t.conv != nil {
			t.bound = model.Target{Rank: model.NoRank}
			if bind, ok := r.bound(t.conv.data.Key); ok {
				t.bound = bind.Target
			}
		}
		rank, how, full := r.prePlace(w, b, policy)
		at := int32(-1)
		if rank != model.NoRank {
			st := &g.states[rank]
			st.NumActiveRequests++
			st.NumActiveTokens += stateTokens(policy, b.Value.prompt, r.heldAt(w, i, rank))
			g.order[rank] = append(g.order[rank], int32(i))
		} else if how == byEngine {
			at = int32(len(g.rest))
			g.rest = append(g.rest, int32(i))
			q := engineRequest(b, g.matches[i])
			if len(r.exclude) > 0 && b.Value.conv != nil {
				if bind, ok := r.binds.Get(b.Value.conv.data.Key); ok && excludes(r.exclude, bind.Target) {
					q.Conv = "" // the binding stands, and is not followed this time
				}
			}
			w.request.Requests = append(w.request.Requests, q)
		}
		g.at = append(g.at, at)
		g.ranks = append(g.ranks, int32(rank))
		g.how = append(g.how, how)
		g.fullRank = append(g.fullRank, int32(full))
	}
	w.request.States, w.request.HardCap = g.states, g.hardCap
	w.request.Weights, w.request.Closed = w.weights, r.closed(w)
	if err := w.engine.Route(&w.request, &w.result); err != nil {
		return fmt.Errorf("route a batch of %d at %s: %w", len(g.rest), w.spec.ID, err)
	}
	for k, list := range w.result.Assignments {
		for _, j := range list {
			g.order[k] = append(g.order[k], g.rest[j])
			g.ranks[g.rest[j]] = int32(k)
		}
	}
	w.softCap = w.result.Expected
	return nil
}

// prePlace decides by hand what stands above the policy. full is the rank that
// would have been taken but has no room, or NoRank.
func (r *Router) prePlace(w *worker, b *booking, policy model.Policy) (rank int, by how, full int) {
	c := b.Value.conv
	if c == nil {
		return r.steeredPlace(w, b)
	}
	g := &w.batch
	if p, ok := r.ops.Get(c.data.Key); ok {
		switch {
		case p.Target.Worker != w.spec.ID: // pinned elsewhere after it was sent here
			return model.NoRank, byEngine, model.NoRank
		case !w.answers(p.Target.Rank): // pinned after it was sent here, or gone since
			return model.NoRank, waitsForPin, p.Target.Rank
		case g.states[p.Target.Rank].NumActiveRequests < g.hardCap:
			return p.Target.Rank, byOperator, model.NoRank
		}
		return model.NoRank, waitsForPin, p.Target.Rank
	}
	if b.Value.chosen != model.NoRank {
		return r.steeredPlace(w, b)
	}
	if policy == model.PolicyConversation {
		return model.NoRank, byEngine, model.NoRank
	}
	bind, ok := r.bound(c.data.Key)
	switch {
	case !ok || bind.Target.Worker != w.spec.ID || bind.Target.Rank == model.NoRank || !w.answers(bind.Target.Rank) || excludes(r.exclude, bind.Target):
		return model.NoRank, byEngine, model.NoRank
	case g.states[bind.Target.Rank].NumActiveRequests < g.hardCap:
		return bind.Target.Rank, byBinding, model.NoRank
	}
	return model.NoRank, byEngine, bind.Target.Rank
}

// steeredPlace holds a request to the rank that the cluster tier chose; one
// that has no room makes it wait. byEngine leaves the rank to the engine tier.
func (r *Router) steeredPlace(w *worker, b *booking) (rank int, by how, full int) {
	switch k := b.Value.chosen; {
	case k == model.NoRank || !w.answers(k):
		return model.NoRank, byEngine, model.NoRank
	case w.batch.states[k].NumActiveRequests < w.batch.hardCap:
		return k, b.Value.chosenBy, model.NoRank
	default:
		return model.NoRank, waitsForRank, k
	}
}

// stateTokens is what one request adds to its rank's NumActiveTokens under
// policy: the KV-aware router counts only what is not cached.
func stateTokens(policy model.Policy, prompt, cached int) int {
	if policy == model.PolicyKVAware {
		return max(prompt-cached, 0)
	}
	return prompt
}

func engineRequest(b *booking, matches []int32) adp.Request {
	t := &b.Value
	q := adp.Request{ID: b.ID, Tokens: t.prompt, Lead: t.lead, Matches: matches, Children: t.kids}
	if t.steered {
		q.Params = &t.params
	}
	if t.conv != nil {
		q.Conv = t.conv.enc
	}
	return q
}

func match(matches []int32, rank int) int {
	if rank < 0 || rank >= len(matches) {
		return 0
	}
	return int(matches[rank])
}

func resizeOrder(order [][]int32, n int) [][]int32 {
	for len(order) < n {
		order = append(order, nil)
	}
	order = order[:n]
	for k := range order {
		order[k] = order[k][:0]
	}
	return order
}

var _ adp.Pins = (*pin.View)(nil)
