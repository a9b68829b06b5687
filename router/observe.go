package router

import (
	"cmp"
	"math"
	"slices"
	"time"

	"adpdeck/router/model"
)

const (
	// reachWithin is how long a booking may take to show in an engine's figures:
	// one that is younger than that when they were taken is added to them. Engines
	// refresh what they report about every 100 ms.
	reachWithin = 200 * time.Millisecond
	// metricsStale is the age from which an engine's figures are not shown as
	// live.
	metricsStale = 5 * time.Second
	// feedStep is what the times of feeds are rounded down to, so that a row is
	// not sent for every answer.
	feedStep = 500 * time.Millisecond
)

// told is what a worker's engine has told, and when.
type told struct {
	answered time.Time // a first token or an end
	observed time.Time // of the newest figures
	missing  string    // why there are none since, empty while they come
	source   string    // where they are from, empty for the engine's own pages
	ttft     ttfts
	p50, p99 model.Maybe
	counted  uint64 // of ttft, when p50 and p99 were worked out
	at       time.Duration
}

// Observe takes an engine's figures of its ranks, as they were at at: when the
// snapshot was taken, or asked for where that is not known. What is older than
// the newest is left out. A rank that loads does not name is unknown, not idle,
// and so is a figure that is unknown, below 0 or infinite.
//
// The router's own bookings are never overwritten: choices are made on them, and
// what the engine says is still to be prefilled, which mode lockstep believes, is
// said of those bookings that it can know, with those added that it cannot.
func (r *Router) Observe(worker string, at time.Time, loads []model.RankReport) {
	now := r.clock.Now()
	r.observe(now, worker, at, loads)
	for _, s := range r.know.seats.Load().byWorker[worker] {
		r.tick(now, s)
	}
}

func (r *Router) observe(now time.Time, worker string, at time.Time, loads []model.RankReport) {
	r.lock(now)
	defer r.unlock()
	place, ok := r.byID[worker]
	if !ok {
		return
	}
	w := r.workers[place]
	if at.After(r.now) {
		at = r.now
	}
	if !at.After(w.told.observed) {
		return
	}
	r.stamp++
	w.told.observed, w.told.missing = at, ""
	for k := range w.ranks {
		i := slices.IndexFunc(loads, func(l model.RankReport) bool { return l.Rank == k })
		if i < 0 {
			l := &w.ranks[k].load
			l.ReportedAt = time.Time{}
			l.Active, l.Queued, l.Tokens, l.PendingTokens, l.KVUsedBlocks, l.KVTotalBlocks = 0, 0, 0, 0, 0, 0
			r.steer.tier.ReportNothing(l.Target)
			continue
		}
		r.observeRank(w, k, at, &loads[i])
	}
	r.proveByLoads(w, at, loads)
}

// observeRank takes the figures of one rank. What its engine does not say is the
// router's own count.
func (r *Router) observeRank(w *worker, k int, at time.Time, in *model.RankReport) {
	s := &w.ranks[k]
	l, own := &s.load, r.book.Rank(w.index, k)
	s.observed = true
	l.ReportedAt = at
	l.Active = whole(in.Running, own.InFlight)
	l.Queued, l.QueuedUnknown = whole(in.Waiting, 0), whole(in.Waiting, -1) < 0
	l.Tokens = whole(in.Tokens, own.PromptTokens)
	if pending := whole(in.PendingTokens, -1); pending >= 0 {
		l.PendingTokens = pending
		r.steer.tier.ReportPending(l.Target, pending, at.Sub(r.start)-reachWithin)
	} else {
		r.steer.tier.Load().ReportNothing(w.slots[k])
		l.PendingTokens = int(r.steer.tier.Load().Pending(w.slots[k]))
	}
	l.KVUsedBlocks, l.KVTotalBlocks = 0, 0
	used := whole(in.KVUsedBlocks, -1)
	if total := whole(in.KVTotalBlocks, w.spec.KVBlocks); total > 0 && used >= 0 {
		l.KVUsedBlocks, l.KVTotalBlocks = used, total
	}
	r.steer.tier.ReportKV(l.Target, used)
}

// whole is a figure as a count, otherwise where it is none.
func whole(m model.Maybe, otherwise int) int {
	if !m.Known() || m < 0 || m > math.MaxInt32 {
		return otherwise
	}
	return int(math.Round(float64(m)))
}

// LoadsFrom says where a worker's figures are from, for people to read; empty for
// the pages that its kind offers.
func (r *Router) LoadsFrom(worker, source string) {
	r.lock(r.clock.Now())
	defer r.unlock()
	at, ok := r.byID[worker]
	if !ok || r.workers[at].told.source == source {
		return
	}
	r.stamp++
	r.workers[at].told.source = cut(source, maxWhyBytes)
}

// Unobserved says that an engine's figures could not be had, and why; it may hold
// foreign text. Those from before stay, with their age; once they are no longer
// live no choice is made on them.
func (r *Router) Unobserved(worker string, why string) {
	now := r.clock.Now()
	r.lock(now)
	defer r.unlock()
	at, ok := r.byID[worker]
	if !ok {
		return
	}
	w := r.workers[at]
	r.stamp++
	w.told.missing = cut(why, maxWhyBytes)
	if r.now.Sub(w.told.observed) > metricsStale {
		for k := range w.ranks {
			r.steer.tier.ReportNothing(w.ranks[k].load.Target)
		}
	}
}

// feeds are what comes from a worker's engine, and how fresh it is.
func (r *Router) feeds(w *worker, g *gathered) []model.WorkerFeed {
	t := &w.told
	requests := model.WorkerFeed{Name: model.FeedRequests, State: model.FeedNone, At: t.answered.Truncate(feedStep)}
	if !t.answered.IsZero() {
		requests.State = model.FeedLive
	}
	if w.live.told && !w.answers(model.NoRank) {
		requests.State, requests.Why = model.FeedStale, w.live.why
	}
	out := append(make([]model.WorkerFeed, 0, 3), requests, r.metricsFeed(w))
	if kv, ok := g.worst(w.spec.ID); ok {
		if kv.Feed == model.FeedLive && requests.State == model.FeedStale {
			kv.Feed = model.FeedStale // what does not answer says nothing new
		}
		out = append(out, model.WorkerFeed{Name: model.FeedKVEvents, State: kv.Feed, At: kv.EventAt.Truncate(feedStep), Why: kv.LastError})
	}
	return out
}

func (r *Router) metricsFeed(w *worker) model.WorkerFeed {
	t := &w.told
	f := model.WorkerFeed{Name: model.FeedMetrics, State: model.FeedLive, At: t.observed.Truncate(feedStep), Why: cmp.Or(t.missing, t.source)}
	switch {
	case t.observed.IsZero():
		f.State = model.FeedNone
	case t.missing != "" || r.now.Sub(t.observed) > metricsStale:
		f.State = model.FeedStale
	}
	return f
}

// worst is the row of the worker's rank whose KV events are in the worst state,
// ok is false where no index is kept.
func (g *gathered) worst(id string) (row model.IndexRank, ok bool) {
	from, _ := slices.BinarySearchFunc(g.ranks, *workerTarget(id), func(r model.IndexRank, t model.Target) int { return r.Target.Compare(t) })
	for _, r := range g.ranks[from:] {
		if r.Target.Worker != id {
			break
		}
		if !ok || badness(r.Feed) > badness(row.Feed) {
			row, ok = r, true
		}
	}
	return row, ok
}

func badness(f model.IndexFeed) int {
	return slices.Index([]model.IndexFeed{model.FeedLive, model.FeedApproximate, model.FeedNone, model.FeedSilent, model.FeedDoubt, model.FeedGap}, f)
}

// firstToken notes a first token that a worker's engine answered with.
func (t *told) firstToken(now time.Time, elapsed time.Duration, ttft model.Maybe) {
	t.answered = now
	if ttft.Known() {
		t.ttft.add(elapsed, float64(ttft))
	}
}

// quantiles are those of ttft, worked out twice a second at most while no first
// token comes.
func (t *told) quantiles(now time.Duration) (p50, p99 model.Maybe) {
	if t.ttft.n == 0 {
		return model.Unknown(), model.Unknown()
	}
	if t.counted != t.ttft.n || now-t.at >= feedStep {
		t.p50, t.p99 = t.ttft.quantiles(now)
		t.counted, t.at = t.ttft.n, now
	}
	return t.p50, t.p99
}
