package router

import (
	"fmt"
	"time"

	"adpdeck/router/model"
	"adpdeck/router/prefix"
)

// liveness is what is known of whether a worker's engine answers.
type liveness struct {
	told bool // somebody has said
	at   time.Time
	why  string // of the newest loss
}

// maxWhyBytes bounds a reason that comes from outside.
const maxWhyBytes = 256

// Live says whether an engine answers, which is apart from its load: one that is
// idle is alive. NoRank stands for all ranks of the worker. why says what was
// seen; it may hold foreign text.
//
// A rank that does not answer takes nothing: no new request, no bound one, none
// that asks for it. Its bindings are forgotten, whose conversations are placed
// once more and stay where they are then when the rank is back. A request that an
// operator's pin or its client holds to the rank is refused with the reason
// (ErrDown), never sent elsewhere in silence. Requests that are open there stay
// so until their ends come. The error wraps ErrNoWorker or ErrNoRank.
func (r *Router) Live(worker string, rank int, live bool, why string) error {
	now := r.clock.Now()
	r.lock(now)
	defer r.unlock()
	t := model.Target{Worker: worker, Rank: rank}
	if err := r.checkTarget(t); err != nil {
		return fmt.Errorf("live: %w", err)
	}
	w := r.workers[r.byID[worker]]
	why = cut(why, maxWhyBytes)
	news := false
	for k := range w.ranks {
		if s := &w.ranks[k]; (rank == model.NoRank || rank == k) && s.down == live {
			s.down, news = !live, true
		}
	}
	switch {
	case !news && w.live.told && (live || why == w.live.why):
		return nil
	case !live:
		w.live.why = why
	}
	if news || !w.live.told {
		w.live.at = r.now
	}
	first := !w.live.told
	w.live.told = true
	r.stamp++
	if !news {
		return nil
	}
	r.found.stale = true
	r.tellLive(w, t, live, first)
	r.reconfigure()
	r.requeue()
	return nil
}

// tellLive says what a loss or a return concerns.
func (r *Router) tellLive(w *worker, t model.Target, live, first bool) {
	name := t.Worker
	if t.Rank != model.NoRank {
		name = t.String()
	}
	e := model.Event{Level: "info", Who: name, Kind: model.EventEngine, Target: &t, Before: "down", After: "up", What: name + " answers again"}
	if !live {
		e.Level, e.Before, e.After, e.Reason = "error", "up", "down", w.live.why
		if first {
			e.Before = ""
		}
		e.What = name + " does not answer: nothing goes there"
		moved := r.unbind(func(b model.Target) bool { return b.Worker == w.spec.ID && !w.answers(b.Rank) })
		if moved > 0 {
			e.What += fmt.Sprintf(", %s placed once more", conversations(moved))
		}
		if w.live.why != "" {
			e.What += ": " + w.live.why
		}
	}
	r.tell(e)
}

// cut shortens text to at most n bytes.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return text[:n] + "…"
}

// answers reports that a rank is there and not known to be down; with NoRank,
// that one of the worker's is.
func (w *worker) answers(rank int) bool {
	if rank >= 0 {
		return rank < len(w.ranks) && !w.ranks[rank].down
	}
	for k := range w.ranks {
		if !w.ranks[k].down {
			return true
		}
	}
	return false
}

// inherit makes the ranks from rank from up, which have just come, what the
// others are: down where all of them are.
func (r *Router) inherit(w *worker, from int) {
	for k := range min(from, len(w.ranks)) {
		if !w.ranks[k].down {
			return
		}
	}
	for k := from; k < len(w.ranks); k++ {
		w.ranks[k].down = true
	}
}

// whyDown says in an error that a rank does not answer. The cause is not in it:
// clients are told errors, and causes name addresses. It stands in the worker's
// state and in the events.
func (w *worker) whyDown(rank int) string {
	text := fmt.Sprintf("%s does not answer since %s", w.spec.ID, w.live.at.Format("15:04:05"))
	if rank >= 0 {
		text = fmt.Sprintf("%s/%d does not answer since %s", w.spec.ID, rank, w.live.at.Format("15:04:05"))
	}
	return text
}

// state is the worker's liveness as a screen shows it.
func (w *worker) state() model.Liveness {
	down := 0
	for k := range w.ranks {
		if w.ranks[k].down {
			down++
		}
	}
	switch {
	case !w.live.told:
		return model.LiveUnknown
	case down == len(w.ranks):
		return model.LiveDown
	case down > 0:
		return model.LiveParts
	}
	return model.LiveUp
}

// Restarted says that the engine of a rank, or with NoRank of a whole worker,
// has begun anew with an empty cache: what was known of its blocks is wiped, and
// the bindings that turns made are forgotten, whose conversations are placed
// once more; a migration by an operator stands. A restart that its KV events have
// shown before counts once and wipes nothing twice. Who is not there is left out.
func (r *Router) Restarted(worker string, rank int, why string) {
	seats := r.know.seats.Load()
	known := map[int]bool{}
	for _, s := range seats.byWorker[worker] {
		if rank == model.NoRank || rank == s.target.Rank {
			known[s.target.Rank] = !r.know.wipe(s)
		}
	}
	r.restarted(r.clock.Now(), model.Target{Worker: worker, Rank: rank}, known, cut(why, maxWhyBytes))
}

// wipe forgets what a rank holds. It reports false when events have shown the
// restart since the last time.
func (k *knowledge) wipe(s *source) (fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock() // what the new process tells comes after the wipe
	fresh = s.restarts == s.wiped
	s.wiped, s.awaited = s.restarts, fresh
	if !fresh {
		return false
	}
	s.suspects = nil
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seats.Load().of(s.target) != s {
		return true // it has left
	}
	_ = k.index.Restart(prefix.ID(s.slot))
	if g := k.guess.Load(); g != nil && g.index != nil {
		_ = g.index.Clear(prefix.ID(s.slot))
	}
	return true
}

// tellsRestart reports that the newest batch showed a restart that nobody has
// told of. The caller has the source's lock.
func (s *source) tellsRestart() bool {
	n := s.feed.Stats().Restarts
	if n == s.restarts {
		return false
	}
	s.restarts = n
	if s.awaited { // Restarted said so before
		s.awaited, s.wiped = false, n
		return false
	}
	return true
}

// restarted counts a restart on the ranks where it was not known, and forgets
// the bindings to them: their caches are empty.
func (r *Router) restarted(now time.Time, t model.Target, known map[int]bool, why string) {
	r.lock(now)
	defer r.unlock()
	if r.checkTarget(t) != nil {
		return
	}
	w := r.workers[r.byID[t.Worker]]
	news := false
	for k := range w.ranks {
		if (t.Rank == model.NoRank || t.Rank == k) && !known[k] {
			w.ranks[k].restarts++
			news = true
		}
	}
	if !news {
		return
	}
	n := 0
	for _, e := range r.binds.Entries() {
		b := &e.Binding
		if b.Source == model.PinAuto && b.Target.Worker == t.Worker && (t.Rank == model.NoRank || t.Rank == b.Target.Rank) && !known[b.Target.Rank] {
			r.binds.Remove(e.Key)
			n++
		}
	}
	r.stamp++
	name := t.Worker
	if t.Rank != model.NoRank {
		name = t.String()
	}
	what := name + " restarted with an empty cache"
	if n > 0 {
		what += fmt.Sprintf(", %s placed once more", conversations(n))
	}
	r.tell(model.Event{Level: "warn", Who: name, Kind: model.EventEngine, What: what, Reason: why, Target: &t})
}

// restartCount is how often the worker's engine has begun anew: the most of any
// of its ranks.
func (w *worker) restartCount() (n uint64) {
	for k := range w.ranks {
		n = max(n, w.ranks[k].restarts)
	}
	return n
}
