package router

import (
	"fmt"
	"time"

	"adpdeck/router/adp"
	"adpdeck/router/load"
	"adpdeck/router/model"
	"adpdeck/router/pin"
)

// turn is what the router keeps of one open request.
type turn struct {
	conv   *conv // nil for a keyless request
	prompt int
	lead   []int32
	kids   int

	asked      model.Target // what the client asked for, meaningful when wished
	wished     bool
	bound      model.Target // the binding in force when it was routed, of a wished one
	conflicted bool         // its conflict is counted
	rank       int          // backs params
	relax      bool
	params     adp.Params
	steered    bool // params go to the engine tier
	workerWhy  string

	step     uint64 // the last step that it was part of
	waited   bool   // it has been left without a rank at least once
	decision uint64
	target   model.Target
	reach    int
	before   model.Target // the conversation's last target before this turn
	moved    bool
	first    bool // the first token came
	cached   int
	ttft     model.Maybe
	ran      model.Target
}

type booking = load.Booking[turn]

// Submit is the cluster tier: it picks the worker of a request and opens its
// booking. The target's rank is where a pin or binding will hold the request,
// or the rank that the client asked for, or NoRank; Step decides. The request
// is copied.
//
// The error wraps ErrID, ErrRequest, ErrDuplicate, ErrNoWorker, ErrNoRank,
// ErrNoEligible or ErrBusy; nothing is open then.
func (r *Router) Submit(req *model.Request) (model.Target, error) {
	now := r.clock.Now()
	r.lock(now)
	defer r.unlock()
	_, target, err := r.submit(req)
	return target, err
}

func (r *Router) submit(req *model.Request) (*booking, model.Target, error) {
	none := model.Target{Rank: model.NoRank}
	if err := checkRequest(req); err != nil {
		return nil, none, err
	}
	if req.Explicit != nil {
		if err := r.checkTarget(*req.Explicit); err != nil {
			return nil, none, fmt.Errorf("request %d: explicit rank: %w", req.ID, err)
		}
	}
	if r.book.Get(req.ID) != nil {
		return nil, none, fmt.Errorf("request %d: %w: choose another id or wait for its end", req.ID, ErrDuplicate)
	}
	if r.book.Len() >= MaxOpen {
		return nil, none, fmt.Errorf("request %d: %w (%d): finish some first", req.ID, ErrBusy, MaxOpen)
	}
	target, why, ok := r.choose(req)
	if !ok {
		return nil, none, fmt.Errorf("request %d: %w; make one ready", req.ID, ErrNoEligible)
	}
	w := r.workers[r.byID[target.Worker]]
	b, err := r.book.Open(req.ID, w.index)
	if err != nil {
		return nil, none, fmt.Errorf("request %d: %w", req.ID, err)
	}
	r.fill(b, req, why)
	r.stamp++
	r.submitted++
	r.arrivals.at(r.elapsed()).count++
	if c := b.Value.conv; c != nil {
		c.data.Turns++
		c.data.Open++
		r.convs.turn(c, r.now)
		r.convs.touch(c, &r.stamp)
	} else {
		r.totals.Keyless++
	}
	return b, target, nil
}

// fill writes the request into its booking, reusing the booking's buffers.
func (r *Router) fill(b *booking, req *model.Request, why string) {
	t := &b.Value
	lead := append(t.lead[:0], req.Lead...)
	*t = turn{
		prompt: req.PromptTokens, lead: lead, kids: req.Children, workerWhy: why,
		target: model.Target{Rank: model.NoRank}, bound: model.Target{Rank: model.NoRank}, ttft: model.Unknown(),
	}
	if !req.Conv.Keyless() {
		t.conv = r.convs.ensure(req.Conv, r.now, &r.stamp)
	}
	if req.Explicit == nil {
		return
	}
	t.wished, t.asked = true, *req.Explicit
	if req.Explicit.Rank != model.NoRank && req.Explicit.Worker == r.workers[b.Worker].spec.ID {
		t.steered, t.rank, t.relax = true, req.Explicit.Rank, req.Relax
		t.params = adp.Params{Rank: &t.rank, Relax: &t.relax}
	}
}

// choose applies the order of precedence to the worker: operator pin, binding,
// what the client asked for, policy.
func (r *Router) choose(req *model.Request) (target model.Target, why string, ok bool) {
	if !req.Conv.Keyless() {
		if p, ok := r.ops.Get(req.Conv); ok {
			return p.Target, "operator pin", true
		}
		if b, ok := r.bound(req.Conv); ok {
			return b.Target, "bound", true
		}
	}
	if req.Explicit != nil {
		return *req.Explicit, "asked for", true
	}
	for i, w := range r.workers {
		r.loads[i] = workerLoad{open: r.book.WorkerOpen(i), eligible: w.eligible}
	}
	at, next, why := pickWorker(r.settings.RouterMode, r.loads, r.cursor)
	if at < 0 {
		return model.Target{}, "", false
	}
	r.cursor = next
	return model.Target{Worker: r.workers[at].spec.ID, Rank: model.NoRank}, why, true
}

// bound returns the binding of key that is in force: a migrated one under
// every policy, one made by the conversation policy only while that is on.
func (r *Router) bound(key model.ConvKey) (pin.Binding, bool) {
	b, ok := r.binds.Get(key)
	if !ok || (b.Source == model.PinAuto && r.policy() != model.PolicyConversation) {
		return pin.Binding{}, false
	}
	return b, true
}

// since is the wall time from start to now in nanoseconds, 0 without a wall.
func (r *Router) since(start time.Time) int64 {
	if r.wall == nil {
		return 0
	}
	return r.wall().Sub(start).Nanoseconds()
}

func (r *Router) wallNow() time.Time {
	if r.wall == nil {
		return time.Time{}
	}
	return r.wall()
}
