package router

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"adpdeck/router/adp"
	"adpdeck/router/load"
	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

// turn is what the router keeps of one open request.
type turn struct {
	conv   *conv // nil for a keyless request
	prompt int
	lead   []int32
	kids   int

	asked      model.Target // what the client asked for, meaningful when wished
	wished     bool
	bound      model.Target // the binding in force when it was routed, of one that was wished or looked up
	conflicted bool         // its conflict is counted
	rank       int          // backs params
	relax      bool
	params     adp.Params
	steered    bool // params go to the engine tier
	workerWhy  string

	step      uint64 // the last step that it was part of
	waited    bool   // it has been left without a rank at least once
	chosen    int    // rank that the cluster tier chose, NoRank: the engine's to choose
	chosenBy  how
	steerWhy  string
	selection *model.Selection // its record, nil for none
	runnerUp  int
	margin    model.Maybe
	looked    bool           // the index was asked
	text      bool           // with hashes of text
	guess     bool           // what some rank of the worker was said to hold is a guess
	unsaid    bool           // the engine did not say what it found in its cache
	held      []int          // by rank of the worker: tokens that it was said to hold
	chain     []prefix.Chain // to remember where the engine tier puts it, empty for nothing to remember
	chainGen  uint64         // lookup.gen of chain
	known     int            // the most that any rank was said to hold
	lostTo    string
	tied      bool // it bound its conversation

	route   model.Route
	channel string
	proof   *proof         // of its route and channel, nil where none is kept
	proven  bool           // where it ran is known for certain
	picks   bool           // its engine picks the rank
	trail   []prefix.Chain // its blocks, where they may have to prove where it ran
	came    time.Time
	firstAt time.Time

	decision uint64
	target   model.Target
	reach    int          // the most that any rank of the worker held, or of the cluster where it was looked up
	compared bool         // reach is known
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
	l, err := r.know.look(req, now.Sub(r.start))
	if err != nil {
		return model.Target{Rank: model.NoRank}, err
	}
	defer r.know.drop(l)
	target, slot, err := r.submitLocked(now, req, l)
	if err == nil {
		r.know.routed(l, slot, now.Sub(r.start))
		r.know.suspect(req.ID, target, l, now)
	}
	return target, err
}

func (r *Router) submitLocked(now time.Time, req *model.Request, l *lookup) (target model.Target, slot int, err error) {
	r.lock(now)
	defer r.unlock()
	slot = -1
	_, target, err = r.submit(req, l, engineQueues)
	r.countFull(err)
	if err == nil {
		r.noteShared(l)
	}
	if err == nil && target.Rank != model.NoRank {
		slot = r.slot(target)
	}
	return target, slot, err
}

// submit opens a request.
func (r *Router) submit(req *model.Request, l *lookup, rule roomRule) (*booking, model.Target, error) {
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
	r.sweep()
	r.renew(l)
	why, err := r.choose(req, l, rule)
	if err != nil {
		if !errors.Is(err, ErrFull) { // the caller knows whether it waits
			r.countRefused(err)
		}
		return nil, none, err
	}
	s := &r.steer
	if rule != engineQueues {
		r.leaveRank()
	}
	target := s.choice.Target
	w := r.workers[r.byID[target.Worker]]
	b, err := r.book.Open(req.ID, w.index)
	if err != nil {
		return nil, none, fmt.Errorf("request %d: %w", req.ID, err)
	}
	if err := s.tier.Book(r.elapsed(), &s.req, &s.choice); err != nil {
		r.book.Release(req.ID)
		return nil, none, fmt.Errorf("request %d: %w: %w", req.ID, ErrBusy, err)
	}
	r.fill(b, req, why)
	r.fillChoice(b, l)
	if (rule == engineQueues || w.picks()) && target.Rank == model.NoRank && l != nil && r.know.guess.Load().remembers(int(w.slots[0]), l.text) {
		b.Value.chain, b.Value.chainGen = append(b.Value.chain, l.chain...), l.gen
	}
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
	r.begin(b)
	return b, target, nil
}

// fill writes the request into its booking, reusing the booking's buffers.
func (r *Router) fill(b *booking, req *model.Request, why string) {
	t := &b.Value
	lead, held, chain, trail := append(t.lead[:0], req.Lead...), t.held[:0], t.chain[:0], t.trail[:0]
	*t = turn{
		waited: r.steer.again, came: r.now, prompt: req.PromptTokens, lead: lead, kids: req.Children, workerWhy: why,
		target: model.Target{Rank: model.NoRank}, bound: model.Target{Rank: model.NoRank}, ttft: model.Unknown(),
		chosen: model.NoRank, runnerUp: model.NoRank, margin: model.Unknown(), held: held, chain: chain, trail: trail, route: req.Route, channel: req.Channel,
	}
	if !req.Conv.Keyless() {
		t.conv = r.convs.ensure(req.Conv, r.now, &r.stamp)
	}
	if req.Explicit == nil {
		return
	}
	t.wished, t.asked = true, *req.Explicit
	if req.Explicit.Rank != model.NoRank && req.Explicit.Worker == r.places[b.Worker].spec.ID {
		t.steered, t.rank, t.relax = true, req.Explicit.Rank, req.Relax
		t.params = adp.Params{Rank: &t.rank, Relax: &t.relax}
	}
}

// fillChoice writes the cluster tier's choice into the booking.
func (r *Router) fillChoice(b *booking, l *lookup) {
	t, s := &b.Value, &r.steer
	c := &s.choice
	if s.how != byEngine {
		t.chosen, t.chosenBy = c.Target.Rank, s.how
		if c.RunnerUp >= 0 {
			t.margin = model.Maybe(c.Margin)
			if up, ok := s.tier.Target(c.RunnerUp); ok && up.Worker == c.Target.Worker {
				t.runnerUp = up.Rank
			}
		}
	}
	if l != nil && !l.text && (len(r.probes) > 0 || (t.channel != "" || t.route != "") && !r.places[b.Worker].proofs.says(t.route, t.channel)) {
		t.trail = append(t.trail, l.chain...)
	}
	if l != nil {
		t.looked, t.text, t.known, t.lostTo = true, l.text, c.Reachable, c.LostTo
		block := r.know.blockTokens()
		for _, slot := range r.places[b.Worker].slots {
			t.held = append(t.held, l.held(int(slot), block))
			t.guess = t.guess || l.isGuess(int(slot))
		}
	}
	if r.selection() == nil {
		return
	}
	t.steerWhy = r.whySteered(&s.record, c)
	kept := s.record
	kept.Candidates = slices.Clone(kept.Candidates)
	t.selection = &kept
}

// heldOn is how many tokens a rank was said to hold when the request came, 0 for
// one that has come since.
func (t *turn) heldOn(rank int) int {
	if rank < 0 || rank >= len(t.held) {
		return 0
	}
	return t.held[rank]
}

// renew brings a look-up up to date that was made before ranks came or went, or
// before there was anything to compare text with.
func (r *Router) renew(l *lookup) {
	if l == nil {
		return
	}
	if l.text {
		if g := r.know.guess.Load(); g == nil || !g.rules.texts {
			_ = r.know.guessBy(r.workers, rulesOf(&r.settings.ClusterConfig, true))
		}
	}
	r.know.renew(l, r.elapsed())
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
