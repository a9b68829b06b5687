package router

import (
	"fmt"
	"math/bits"
	"slices"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

// Proof of steering: for each route and channel of a worker, whether the engine
// ran requests on the rank that it was asked for. What the engine says of it
// goes first (Usage.Ran with Evidence). Where it says nothing its KV events may:
// the blocks that a request must have left appear on the rank that was asked, or
// on another and not there. And where one request alone is open at a worker, the
// engine's figures tell on which rank it is.

const (
	// ignoredMost is how many requests run elsewhere before it is a finding, or
	// ignoredOfThree how many of the last three: an engine that takes ranks in turn
	// hits the right one now and then. honouredLeast is how many in a row run as
	// asked, with none elsewhere for probeOver, before that clears: that a rank was
	// missed is known later than that it was hit.
	ignoredMost, ignoredOfThree, honouredLeast = 3, 2, 8
	// maxProofs bounds the routes and channels that one worker is watched on.
	maxProofs = 32
	// maxProbes bounds the requests whose blocks are looked for, maxProbesEach
	// those of one route and channel.
	maxProbes, maxProbesEach = 64, 8
	probeEvery               = 250 * time.Millisecond
	// probeIgnored is how long the blocks may take to appear on the rank that was
	// asked before those on another one count, probeOver when neither does.
	probeIgnored, probeOver = 2 * time.Second, 10 * time.Second
)

// What a proof was.
const (
	evidenceUsage  = "usage"
	evidenceEvents = "events"
	evidenceLoads  = "loads"
)

// proof is one route and channel of a worker.
type proof struct {
	model.SteeringProof
	owner   *worker
	ignored int   // since so many were last honoured in a row
	lately  uint8 // a bit for each of the newest, set for those ignored
	run     int   // honoured since the last that was ignored
	raised  bool
	since   time.Time // of raised
	missed  time.Time // when one was last found to be ignored
	last    [2]model.Target
	probes  int
}

// proofs are those of one worker, in the order in which they were first asked.
type proofs struct {
	list []*proof
	// The request that was alone at the worker at the newest figures, where it
	// was, and how often in a row.
	alone int64
	rank  int
	seen  int
}

// of is the proof of a route and channel, nil when too many are watched.
func (p *proofs) of(w *worker, route model.Route, channel string) *proof {
	for _, q := range p.list {
		if q.Route == route && q.Channel == channel {
			return q
		}
	}
	if len(p.list) >= maxProofs {
		return nil
	}
	q := &proof{SteeringProof: model.SteeringProof{Route: route, Channel: channel}, owner: w}
	p.list = append(p.list, q)
	return q
}

// says reports that the engine itself tells where requests of a route and
// channel ran, so that nothing has to be looked for.
func (p *proofs) says(route model.Route, channel string) bool {
	for _, q := range p.list {
		if q.Route == route && q.Channel == channel {
			return q.told()
		}
	}
	return false
}

func (p *proofs) rows() []model.SteeringProof {
	if len(p.list) == 0 {
		return nil
	}
	out := make([]model.SteeringProof, 0, len(p.list))
	for _, q := range p.list {
		out = append(out, q.SteeringProof)
	}
	return out
}

// ask counts a request that is sent with its rank over a channel, and begins to
// look for its blocks where nothing else will tell.
func (r *Router) ask(w *worker, b *booking) {
	t := &b.Value
	r.crossed(t)
	if t.channel == "" {
		return
	}
	p := w.proofs.of(w, t.route, t.channel)
	if p == nil {
		return
	}
	t.proof = p
	p.Asked++
	block := r.know.blockTokens()
	if len(t.trail) == 0 || t.text || !w.spec.KVEvents || p.told() || p.probes >= maxProbesEach || len(r.probes) >= maxProbes ||
		t.heldOn(t.target.Rank) >= len(t.trail)*block {
		return
	}
	p.probes++
	q := &probe{
		proof: p, request: b.ID, decision: t.decision, target: t.target, gen: r.know.gen.Load(), sent: r.now,
		chain: slices.Clone(t.trail), held: slices.Clone(t.held), crossed: make([]bool, len(w.ranks)),
	}
	r.book.Each(func(k *booking) { // whose blocks may come yet
		if k.Worker == w.index && k.Rank != model.NoRank {
			q.cross(&k.Value)
		}
	})
	r.watch(append(r.probes, q))
}

// watch replaces the list of probes.
func (r *Router) watch(list []*probe) {
	r.probes = list
	r.watched.Store(int32(len(list)))
}

// told reports that the engine itself says which rank it used.
func (p *proof) told() bool {
	return p.Evidence != "" && p.Evidence != evidenceEvents && p.Evidence != evidenceLoads
}

// probe is a request whose blocks are looked for.
type probe struct {
	proof    *proof
	request  int64
	decision uint64
	target   model.Target
	gen      uint64 // of the slots
	sent     time.Time
	first    time.Time // its first token, zero before
	chain    []prefix.Chain
	held     []int  // tokens that each rank of its worker held before
	crossed  []bool // ranks that were sent the same blocks since, or just before
}

// crossed notes on the probes that a rank was sent blocks that they look for.
func (r *Router) crossed(t *turn) {
	for _, p := range r.probes {
		p.cross(t)
	}
}

// cross notes a request that was sent to another rank of the worker with all
// the blocks that the probe looks for.
func (p *probe) cross(t *turn) {
	if n := len(p.chain); len(t.trail) >= n && t.trail[n-1] == p.chain[n-1] && p.target.Worker == t.target.Worker &&
		t.target.Rank != p.target.Rank && t.target.Rank >= 0 && t.target.Rank < len(p.crossed) {
		p.crossed[t.target.Rank] = true
	}
}

// begun notes the first token of a request; told says that its engine said where
// it ran, so that nothing has to be looked for.
func (r *Router) begun(b *booking, told bool) {
	for i, p := range r.probes {
		if p.request != b.ID || p.decision != b.Value.decision {
			continue
		}
		if p.first = r.now; told {
			p.proof.probes--
			r.watch(slices.Delete(r.probes, i, i+1))
		}
		return
	}
}

// prove counts a proof.
func (r *Router) prove(p *proof, asked, ran model.Target, evidence string) {
	r.stamp++
	p.Evidence, p.At = evidence, r.now
	p.lately <<= 1
	if asked == ran {
		p.Honoured++
		p.run++
	} else {
		p.Ignored++
		p.ignored++
		p.lately |= 1
		p.run, p.missed, p.last = 0, r.now, [2]model.Target{asked, ran}
	}
	heeded := p.run >= honouredLeast && r.now.Sub(p.missed) >= probeOver
	if heeded {
		p.ignored = 0
	}
	switch {
	case p.raised && heeded:
		p.raised = false
		r.tellProof(p, "info", fmt.Sprintf("%s honours the rank on %s by %s again", p.owner.spec.ID, p.Route, p.Channel))
	case !p.raised && p.often():
		p.raised, p.since = true, r.now
		r.tellProof(p, "warn", p.text())
	}
}

// often reports that requests run elsewhere too often for chance.
func (p *proof) often() bool {
	return p.ignored >= ignoredMost ||
		p.Honoured+p.Ignored >= 3 && bits.OnesCount8(p.lately&0b111) >= ignoredOfThree
}

func (p *proof) text() string {
	return fmt.Sprintf("pin not honoured: %s ran %d of %d %s requests elsewhere than asked by %s; the last was asked of %s and ran on %s, by its %s",
		p.owner.spec.ID, p.Ignored, p.Ignored+p.Honoured, p.Route, p.Channel, p.last[0], p.last[1], p.Evidence)
}

func (r *Router) tellProof(p *proof, level, what string) {
	r.tell(model.Event{Level: level, Who: p.owner.spec.ID, Kind: model.EventEngine, What: what, Target: workerTarget(p.owner.spec.ID)})
}

// finding is what an operator is to know of a proof.
func (p *proof) finding() model.Finding {
	return model.Finding{
		Code: model.FindingPinNotHonoured, Target: *workerTarget(p.owner.spec.ID), Since: p.since, Message: p.text(),
		Next: fmt.Sprintf("steer this worker by another channel than %s, update its engine, or set steer: none so that nothing is promised", p.Channel),
	}
}

// lookForBlocks looks for the blocks of the requests that are watched, a few times a
// second at most. It runs without the router's lock.
func (r *Router) lookForBlocks(now time.Time) {
	r.lock(now)
	if len(r.probes) == 0 || r.now.Before(r.nextProbe) {
		r.mu.Unlock()
		return
	}
	r.nextProbe = r.now.Add(probeEvery)
	watched := slices.Clone(r.probes)
	r.mu.Unlock()
	l := r.know.take()
	defer r.know.drop(l)
	lengths := make([][]int32, len(watched))
	for i, p := range watched {
		l.known.Match(p.chain, &l.matches)
		lengths[i] = slices.Clone(l.matches.Device)
		for k := range lengths[i] {
			lengths[i][k] = int32(l.matches.Total(prefix.ID(k)))
		}
	}
	r.lock(now)
	defer r.unlock()
	for i, p := range watched {
		at := slices.Index(r.probes, p)
		if at < 0 {
			continue
		}
		ran, over := r.foundOn(p, lengths[i])
		if !over {
			continue
		}
		p.proof.probes--
		r.watch(slices.Delete(r.probes, at, at+1))
		if ran.Rank != model.NoRank {
			r.prove(p.proof, p.target, ran, evidenceEvents)
			r.ranOn(p.request, p.decision, ran)
		}
	}
}

// foundOn says on which rank the blocks of a probe were found, NoRank for none,
// and whether it is over.
func (r *Router) foundOn(p *probe, lengths []int32) (ran model.Target, over bool) {
	ran.Rank = model.NoRank
	age, whole := r.now.Sub(p.first), len(p.chain)
	switch {
	case p.gen != r.know.gen.Load(), r.now.Sub(p.sent) > time.Hour:
		return ran, true // ranks have come or gone: the places may be others'
	case p.first.IsZero():
		return ran, r.book.Get(p.request) == nil // it ended without a first token
	case age > probeOver:
		return ran, true
	}
	w := p.proof.owner
	holds := func(k int) int {
		if slot := int(w.slots[k]); slot < len(lengths) {
			return int(lengths[slot])
		}
		return 0
	}
	if holds(p.target.Rank) >= whole {
		return p.target, true
	}
	if age < probeIgnored {
		return ran, false
	}
	block := r.know.blockTokens()
	for k := range w.slots {
		if k != p.target.Rank && !p.crossed[k] && k < len(p.held) && p.held[k] < whole*block && holds(k) >= whole {
			if ran.Rank != model.NoRank {
				ran.Rank = model.NoRank // two came to hold them: that proves nothing
				return ran, false
			}
			ran = model.Target{Worker: p.target.Worker, Rank: k}
		}
	}
	return ran, ran.Rank != model.NoRank
}

// ranOn makes the books follow a request that was found on a rank.
func (r *Router) ranOn(id int64, decision uint64, ran model.Target) {
	b := r.book.Get(id)
	if b == nil || b.Value.decision != decision || b.Rank == model.NoRank {
		return
	}
	b.Value.ran, b.Value.proven = ran, true
	r.followRank(b, true)
}
