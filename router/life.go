package router

import (
	"fmt"
	"math"
	"time"

	"adpdeck/router/load"
	"adpdeck/router/model"
)

// bookedStates begins a batch of w on what is booked there.
func (r *Router) bookedStates(w *worker) {
	g := &w.batch
	hardCap := w.spec.MaxNumActiveRequests
	if hardCap <= 0 {
		hardCap = MaxOpen // the engine has not said
	}
	g.reset(hardCap)
	kv := r.policy() == model.PolicyKVAware
	for k := range w.ranks {
		c := r.book.Rank(w.index, k)
		tokens := c.PromptTokens
		if kv {
			tokens = c.EffectiveTokens
		}
		g.states = append(g.states, model.RankState{Rank: k, NumActiveRequests: c.InFlight, NumActiveTokens: tokens})
	}
}

// decisionOf is the decision on the only request of the batch of w.
func (r *Router) decisionOf(w *worker) model.Decision {
	if r.record {
		return *r.decisions.newest()
	}
	t := &w.batch.bookings[0].Value
	d := model.Decision{
		ID: t.decision, At: r.now, Target: model.Target{Worker: w.spec.ID, Rank: int(w.batch.ranks[0])},
		Policy: r.policy(), Mode: r.settings.RouterMode, Version: r.version, WorkerWhy: t.workerWhy,
		RunnerUp: model.NoRank, Margin: model.Unknown(), Reachable: t.reach, Placement: r.placement(w, 0),
	}
	if t.conv != nil {
		d.Conv = t.conv.data.Key
	}
	if d.Target.Rank == model.NoRank {
		d.Why = r.why(w, 0, &d.Placement)
	}
	return d
}

// withdraw closes a request that found no room as if it had not come.
func (r *Router) withdraw(b *booking) {
	t := &b.Value
	c := t.conv
	if t.waited && !r.steer.again {
		r.totals.Unplaced-- // who waits in the queue is counted there
	}
	if t.conflicted {
		r.totals.Conflicts-- // counted when it is placed
	}
	r.untie(b, true)
	r.steer.tier.Free(r.elapsed(), b.ID)
	r.book.Release(b.ID)
	r.stamp++
	r.submitted--
	r.arrivals.at(r.elapsed()).count-- // the lock was not freed since it was counted
	if c == nil {
		r.totals.Keyless--
	} else {
		c.data.Turns--
		c.data.Open--
		r.rest(c)
		r.convs.touch(c, &r.stamp)
		r.convs.loosen(c)
	}
}

// FirstToken notes what the engine measured when the first token of request id
// came. It is read once per request; for one that is not open it does nothing.
// Where the engine ran the request on another rank than it was sent to, the
// booking follows and the turn counts as lost. A Usage.Ran with NoRank says
// that the engine did not tell.
func (r *Router) FirstToken(id int64, u model.Usage) {
	now := r.clock.Now()
	n := r.firstToken(now, id, u)
	if n.guess != nil {
		r.know.remember(n.guess, now.Sub(r.start))
	}
	r.computed(now, n.ran, n.blocks)
	r.know.answered(id, n.ran, n.found, now)
	r.endDoubts(now)
	if r.watched.Load() > 0 {
		r.lookForBlocks(now)
	}
}

// news is what an answer made known.
type news struct {
	ran    model.Target // where it ran, NoRank where that is not known
	sent   time.Time    // when the request came
	blocks int          // full ones that the rank had to compute
	found  int          // tokens, as noteIndex returns them
	guess  *note        // what is to be remembered of a rank that its engine picked
}

func noNews() news { return news{ran: model.Target{Rank: model.NoRank}, found: -1} }

func (r *Router) firstToken(now time.Time, id int64, u model.Usage) news {
	r.lock(now)
	defer r.unlock()
	n := noNews()
	b := r.book.Get(id)
	if b == nil || b.Value.first || b.Rank == model.NoRank && !b.Value.picks || b.Worker == load.Gone {
		return n
	}
	t := &b.Value
	t.first, t.firstAt = true, r.now
	t.cached, t.unsaid = min(max(u.CachedTokens, 0), t.prompt), u.CachedUnknown
	t.ttft = model.Unknown()
	if u.TTFTMs >= 0 && !math.IsInf(u.TTFTMs, 0) {
		t.ttft = model.Maybe(u.TTFTMs)
		r.ttft.add(r.elapsed(), u.TTFTMs)
	}
	r.places[b.Worker].told.firstToken(r.now, r.elapsed(), t.ttft)
	r.stamp++
	said := r.rank(u.Ran) != nil
	if t.picks && said && b.Rank == model.NoRank && u.Ran.Worker == t.target.Worker {
		n.guess = r.picked(b, u.Ran)
	}
	t.ran = t.target
	if said && b.Rank != model.NoRank {
		t.ran = u.Ran
	}
	if c := t.conv; c != nil && t.ran == t.target {
		c.served = true
	}
	if t.ran.Rank == model.NoRank { // its engine picked the rank and does not tell
		r.steer.tier.FirstToken(r.elapsed(), id)
		r.noted(t)
		r.settle(t, "")
		return n
	}
	if t.proof != nil && said {
		t.proven = true
		r.prove(t.proof, t.target, t.ran, evidenceOf(u.Evidence))
	}
	if len(r.probes) > 0 {
		r.begun(b, t.proven)
	}
	r.followRank(b, u.Ran.Rank != model.NoRank && u.Ran.Worker != "")
	if !t.unsaid {
		r.book.Adjust(b, t.prompt-t.cached)
		r.addHit(&r.hits, t)
		r.addHit(&r.rank(t.ran).hits, t)
	}
	r.steer.tier.FirstToken(r.elapsed(), id)
	n.ran, n.sent, n.found = t.ran, t.came, r.noteIndex(t)
	r.settle(t, "")
	if block := r.know.blockTokens(); block > 0 && !t.unsaid {
		n.blocks = t.prompt/block - t.cached/block
	}
	return n
}

func evidenceOf(evidence string) string {
	if evidence == "" {
		return evidenceUsage
	}
	return cut(evidence, maxEvidenceBytes)
}

// maxEvidenceBytes bounds the word of how a rank is known.
const maxEvidenceBytes = 32

// noted writes down what was measured of a turn.
func (r *Router) noted(t *turn) {
	if !t.unsaid && t.ran.Rank == model.NoRank {
		r.addHit(&r.hits, t)
	}
	if c := t.conv; c != nil {
		c.data.PromptTokens, c.data.CachedTokens, c.data.CachedUnknown = t.prompt, t.cached, t.unsaid
		r.convs.touch(c, &r.stamp)
	}
}

// followRank compares where a request ran with where it was sent.
func (r *Router) followRank(b *booking, told bool) {
	t := &b.Value
	lost := t.ran != t.target
	if lost {
		r.book.Move(b, r.workers[r.byID[t.ran.Worker]].index, t.ran.Rank)
		r.steer.tier.Place(r.elapsed(), b.ID, t.ran, t.prompt, t.cached)
	}
	c := t.conv
	if c == nil {
		return
	}
	c.data.PromptTokens, c.data.CachedTokens, c.data.CachedUnknown = t.prompt, t.cached, t.unsaid
	switch {
	case lost:
		c.data.Lost++
		r.tellLost(t)
		c.data.Last = t.ran
		if t.moved {
			c.data.Moves--
		}
		if t.before.Rank != model.NoRank && t.before != t.ran {
			c.data.Moves++
		}
	case told:
		c.data.Honoured++
	}
	r.convs.touch(c, &r.stamp)
}

// lostEvery is the least time between two events about pins not honoured.
const lostEvery = 10 * time.Second

// tellLost warns that an engine ran a held conversation elsewhere, not more
// often than lostEvery. A conversation that nothing holds has only its count.
func (r *Router) tellLost(t *turn) {
	key := t.conv.data.Key
	_, held := r.ops.Get(key)
	if !held {
		_, held = r.bound(key)
	}
	if !held {
		return
	}
	r.lost++
	if r.lost > 1 && r.now.Sub(r.lostAt) < lostEvery {
		return
	}
	r.lostAt = r.now
	r.event("warn", "router", fmt.Sprintf("pin not honoured: %s was sent to %s and ran on %s (turn %d that did so); does the engine take its rank from the router?",
		key.ID, t.target, t.ran, r.lost), 0)
}

func (r *Router) addHit(w *window, t *turn) {
	s := w.at(r.elapsed())
	s.count++
	s.prompt += int64(t.prompt)
	s.cached += int64(t.cached)
	if t.compared {
		s.lookedAt += int64(t.prompt)
		s.reached += int64(max(t.reach, t.cached))
	}
}

// settle tells screens what became of a decision that was recorded.
func (r *Router) settle(t *turn, o model.Outcome) {
	if !r.record || t.decision == 0 {
		return
	}
	ran := t.ran
	if !t.first {
		ran = t.target
	}
	r.settled.push(model.Settled{Decision: t.decision, Ran: ran, CachedTokens: t.cached, CachedUnknown: t.unsaid, TTFTMs: t.ttft, Outcome: o})
}

// Done frees the booking of request id, whatever way it ended. A second Done,
// or one for a request that is not open, is counted (Strays) and does nothing;
// one for a request whose worker or rank has left is counted (LateEnds).
func (r *Router) Done(id int64, o model.Outcome) {
	now := r.clock.Now()
	r.lock(now)
	defer r.unlock()
	b := r.book.Get(id)
	if b == nil {
		r.book.Release(id)
		if r.book.Strays() == 1 {
			r.event("warn", "router", fmt.Sprintf("request %d ended but is not open: ended twice, or never sent; later ones are only counted", id), 0)
		}
		return
	}
	if o == "" {
		o = model.OutcomeOK
	}
	t := &b.Value
	r.settle(t, o)
	c := t.conv
	r.untie(b, o == model.OutcomeError || o == model.OutcomePanic)
	if b.Worker != load.Gone && o == model.OutcomeOK {
		r.places[b.Worker].told.answered = r.now
	}
	if b.Worker == load.Gone { // its load went with its worker or rank
		r.late++
	} else {
		r.steer.tier.Free(r.elapsed(), id)
	}
	r.book.Release(id)
	r.stamp++
	if c != nil {
		c.data.Open--
		r.rest(c)
		r.convs.touch(c, &r.stamp)
		r.convs.loosen(c)
	}
}

// Strays counts ends of requests that were not open.
func (r *Router) Strays() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.book.Strays()
}

// Report takes an engine's figures. The screen shows them, the mode lockstep
// believes the tokens still to be prefilled, and the threshold on KV blocks
// those in use; the engine tier reads none.
// waiting requests are at the worker without a rank, held counts steps in a
// row that the balance gate held prefill back. What names a worker or rank
// that is not there is left out.
func (r *Router) Report(name string, waiting, held int, states []model.RankState, loads []model.RankLoad) {
	now := r.clock.Now()
	r.lock(now)
	defer r.unlock()
	at, ok := r.byID[name]
	if !ok {
		return
	}
	r.stamp++
	w := r.workers[at]
	w.told.observed = r.now
	asOf := w.asOf(r.elapsed())
	w.reported, w.waiting, w.held = true, max(0, waiting), max(0, held)
	for i := range states {
		if k := states[i].Rank; k >= 0 && k < len(w.ranks) {
			l := &w.ranks[k].load
			l.ReportedAt = r.now
			l.Active, l.Tokens = states[i].NumActiveRequests, states[i].NumActiveTokens
		}
	}
	for i := range loads {
		if k := loads[i].Rank; k >= 0 && k < len(w.ranks) {
			l := &w.ranks[k].load
			l.ReportedAt = r.now
			l.Queued, l.PendingTokens = loads[i].Queued, loads[i].PendingTokens
			l.KVUsedBlocks, l.KVTotalBlocks = loads[i].KVUsedBlocks, loads[i].KVTotalBlocks
			r.steer.tier.ReportPending(l.Target, loads[i].PendingTokens, asOf)
			if loads[i].KVTotalBlocks > 0 {
				r.steer.tier.ReportKV(l.Target, loads[i].KVUsedBlocks)
			}
		}
	}
}

// asOf is when bookings must have been made for a report at now to know them:
// an engine that routes inside has seen what was there at its newest step, any
// other what was there when it reported last.
func (w *worker) asOf(now time.Duration) time.Duration {
	at := w.reportedAt
	w.reportedAt = now
	if w.stepped {
		return w.steppedAt
	}
	return at
}

// Output says how many tokens request id has generated so far; it counts with
// router_track_output_blocks.
func (r *Router) Output(id int64, generated int) {
	now := r.clock.Now()
	r.lock(now)
	defer r.unlock()
	if r.book.Get(id) != nil {
		r.steer.tier.Output(r.elapsed(), id, generated)
	}
}

// TracksOutput reports that Output counts, with the settings in force.
func (r *Router) TracksOutput() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.scored() && r.settings.ClusterConfig.TrackOutputBlocks
}

// Mode returns the cluster tier's mode in force. In lockstep an engine that can
// should Report after every step.
func (r *Router) Mode() model.RouterMode {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.settings.RouterMode
}

// SetSource says where the traffic comes from, for the screen.
func (r *Router) SetSource(s model.Source) {
	now := r.clock.Now()
	r.lock(now)
	defer r.unlock()
	r.source = s
}

// Gate returns what the balance gate of an engine needs, as the settings stand:
// the attention_dp_config and the two low-occupancy knobs (requests, steps).
func (r *Router) Gate(string) (cfg model.AttentionDpConfig, minGen, lowOcc int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.settings
	return s.AttentionDpConfig, s.MinGenerationRequests, s.LowOccupancyTimeoutIters
}

// Decisions returns the recorded decisions with ids from from up, oldest
// first, the newest most of them at most.
func (r *Router) Decisions(from uint64, most int) []*model.Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	items, _ := r.decisions.since(max(from, 1)-1, most)
	return items
}
